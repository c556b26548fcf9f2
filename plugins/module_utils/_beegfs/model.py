# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What BeeGFS's command-line tools report about servers, in one form for both. Pure. PRIVATE to the collection.

`beegfs-ctl` (7.x) prints text, `beegfs` (8.x) JSON. A parser returns what it could read and the problems it
found. Unrecognised output is a problem, so that silence or foreign text never passes for a healthy file system.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

Row = dict[str, Any]
TYPES = ("meta", "storage")
MAX_TEXT = 300


@dataclass
class Parsed:
    """The rows that were read, and why any others were not."""

    rows: list[Row] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


def short(text: str) -> str:
    """Return foreign text as one printable, bounded line."""
    line = "".join(char if char.isprintable() else " " for char in text)
    return " ".join(line.split())[:MAX_TEXT]


def word(value: Any) -> str | None:
    """Return a state as BeeGFS names it, in lower case; None if there is none."""
    named = value.strip().lower() if isinstance(value, str) else ""
    return named if named.strip("-") else None


def whole(value: Any) -> int | None:
    """Return a non-negative integer, given as a number or as digits; None otherwise."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value if value >= 0 else None
    if isinstance(value, str) and re.fullmatch(r"[0-9]{1,18}", value.strip(), re.ASCII):
        return int(value)
    return None


# All units in use: 7.x prints inodes in millions and space in GiB, whatever their size, and chunks in smaller units.
_COUNTS = {"": 1, "m": 10**6}
_SIZES = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}


@dataclass(frozen=True)
class Amount:
    """A number as printed, which stands for every number from `least` to `most` that prints the same."""

    value: int
    least: float
    most: float


def exactly(value: int | None) -> Amount | None:
    """Return the amount of a number that was not rounded."""
    return None if value is None else Amount(value, value, value)


def size(text: Any) -> Amount | None:
    """Return bytes of '252.0GiB', '512K', '1073741824' or '0 Byte'; None for anything else."""
    return _amount(text, r" ?([kmg]?)(?:i?b|byte)?", _SIZES)


def count(text: Any) -> Amount | None:
    """Return a number of inodes such as '16.8M'; None for anything else."""
    return _amount(text, r"(m?)", _COUNTS)


def _amount(text: Any, unit: str, units: dict[str, int]) -> Amount | None:
    match = re.fullmatch(rf"([0-9]{{1,18}})(?:\.([0-9]{{1,9}}))?{unit}", str(text).strip().lower(), re.ASCII)
    if match is None:
        return None
    scale = units[match[3]]
    value = float(f"{match[1]}.{match[2] or 0}") * scale
    # With decimals it was rounded to the last of them; with neither decimals nor a unit it is exact.
    half = 0.5 * scale / 10 ** len(match[2]) if match[2] else 0.5 * scale if match[3] else 0
    return Amount(int(value), max(0.0, value - half), value + half)


def narrowed(free: Amount, total: Amount, percent: int) -> Amount:
    """Return `free` narrowed by its printed percentage of `total`.

    The tool computes the percentage from the exact numbers, so 0.1M of 0.5M at 18 % is 78,750 to 101,750. If the two
    contradict each other, the percentage is ignored.
    """
    least = max(free.least, max(0.0, percent - 0.5) / 100 * total.least)
    most = min(free.most, min(100.0, percent + 0.5) / 100 * total.most)
    return Amount(free.value, least, most) if least <= most else free


_AMOUNTS = ("total", "free", "inodes", "inodes_free")


def target(kind: str, number: int, **known: Any) -> Row:
    """Return a target's row; unknown values are None. An amount is given as printed, with its least and most value."""
    row: Row = {"type": kind, "id": number}
    for key in ("name", "node", "reachability", "consistency", "sync_state", "pool"):
        row[key] = known.get(key)
    for key in _AMOUNTS:
        amount: Amount | None = known.get(key)
        row[key] = amount.value if amount else None
        if key.endswith("free"):
            row[f"{key}_least"] = amount.least if amount else None
            row[f"{key}_most"] = amount.most if amount else None
    row["space_told"] = known.get("space_told")
    return row


def entry(**known: Any) -> Row:
    """Return the striping of one path; unknown values are None."""
    return {key: known.get(key) for key in ("pattern", "chunk_kib", "targets", "source", "error")}
