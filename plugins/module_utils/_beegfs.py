# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What BeeGFS's command-line tools say of servers, in one form for both. Pure. PRIVATE to the collection.

`beegfs-ctl` (7.x) prints text, `beegfs` (8.x) JSON. A parser returns what it could read and the problems it met; what
fits no known form is a problem, so that silence or foreign text is never taken for a healthy file system.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

Row = dict[str, Any]
TYPES = ("meta", "storage")
REACHABILITY = ("online", "probably-offline", "offline")
CONSISTENCY = ("good", "needs-resync", "resyncing", "bad")
POOLS = ("normal", "low", "emergency")
MAX_TEXT = 300


@dataclass
class Parsed:
    """The rows that were read, and why the rest, if any, was not."""

    rows: list[Row] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


def short(text: str) -> str:
    """Return foreign text as one printable, bounded line."""
    line = "".join(char if char.isprintable() else " " for char in text)
    return " ".join(line.split())[:MAX_TEXT]


def word(value: Any) -> str | None:
    """Return a state as BeeGFS names it, in lower case; None where there is none."""
    return value.strip().lower() or None if isinstance(value, str) and value.strip() not in ("-", "") else None


def whole(value: Any) -> int | None:
    """Return a whole number that is not negative, given as number or as digits; None otherwise."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value if value >= 0 else None
    if isinstance(value, str) and re.fullmatch(r"[0-9]{1,18}", value.strip(), re.ASCII):
        return int(value)
    return None


_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12, "p": 10**15}
_BINARY = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40, "p": 1 << 50}


def size(text: Any) -> int | None:
    """Return bytes of '252.0GiB', '512K', '1073741824' or '0 Byte'; None for anything else."""
    match = re.fullmatch(
        r"([0-9]{1,18}(?:\.[0-9]{1,9})?) ?([kmgtp]?)(?:i?b|byte)?", str(text).strip().lower(), re.ASCII
    )
    return int(float(match[1]) * _BINARY[match[2]]) if match and not isinstance(text, bool) else None


def count(text: Any) -> int | None:
    """Return a number of inodes such as '16.8M'; None for anything else."""
    match = re.fullmatch(r"([0-9]{1,18}(?:\.[0-9]{1,9})?)([kmgtp]?)", str(text).strip().lower(), re.ASCII)
    return int(float(match[1]) * _UNITS[match[2]]) if match and not isinstance(text, bool) else None


def target(kind: str, number: int, **known: Any) -> Row:
    """Return a target's row; what is not known is None."""
    row: Row = {"type": kind, "id": number}
    for key in (
        "name",
        "node",
        "reachability",
        "consistency",
        "sync_state",
        "pool",
        "total",
        "free",
        "inodes",
        "inodes_free",
    ):
        row[key] = known.get(key)
    return row


def entry(**known: Any) -> Row:
    """Return the striping of one path; what is not known is None."""
    return {key: known.get(key) for key in ("pattern", "chunk_kib", "targets", "source", "error")}
