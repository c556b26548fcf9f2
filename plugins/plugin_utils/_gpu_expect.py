# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the inventory expects of GPUs: the setting hpc_validation_gpu, checked before anything is read."""

from __future__ import annotations

import difflib
import re
import typing as t

from ansible_collections.mlops.hpc_validation.plugins.module_utils import _numbers

Json = dict[str, t.Any]
SETTING = "hpc_validation_gpu"
CORRECTED_MAX = 50_000_000  # volatile corrected errors: Meta's cluster monitoring (GCM) holds more to be critical


class ExpectError(ValueError):
    """The expectations are malformed; the message names each key at fault."""


def _count(value: t.Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**63


def _positive(value: t.Any) -> bool:
    return _numbers.is_number(value) and value > 0


def _flag(value: t.Any) -> bool:
    return isinstance(value, bool)


_DRIVER = re.compile(r"(>=)?\d+(\.\d+)*")
_KEYS: dict[str, tuple[t.Callable[[t.Any], bool], str]] = {
    "count": (_count, "a whole number"),
    "model": (lambda value: isinstance(value, str) and value.strip("* ") != "", "a name, or the start of one and *"),
    "memory_gib": (_positive, "a number of GiB above 0"),
    "driver": (
        lambda value: isinstance(value, str) and _DRIVER.fullmatch(value) is not None,
        'a version such as "570.133.20", or the least one, such as ">=570"',
    ),
    "ecc": (_flag, "true or false"),
    "persistence": (_flag, "true or false"),
    "mig": (_flag, "true or false"),
    "pcie_generation": (lambda value: _count(value) and 1 <= value <= 9, "a whole number from 1 to 9"),
    "pcie_width": (lambda value: _count(value) and value in (1, 2, 4, 8, 12, 16, 32), "1, 2, 4, 8, 12, 16 or 32"),
    "power_limit_w": (_positive, "a number of watts above 0"),
    "nvlinks": (_count, "a whole number"),
    "xid_since": (lambda value: value == "boot" or _positive(value), "boot, or a number of seconds above 0"),
    "under_load": (_flag, "true or false"),
    "foreign_processes": (_flag, "true or false"),
    "corrected_max": (_count, "a whole number"),
    "pcie_replays_max": (_count, "a whole number"),
    "not_applicable": (lambda value: isinstance(value, dict), "an object of finding ids and reasons"),
}


def read(expect: t.Any, identities: t.Collection[str]) -> Json:
    """Return the expectations that are stated; a key whose value is null is not. Raise ExpectError."""
    wrong = problems(expect, identities)
    if wrong:
        raise ExpectError("; ".join(wrong))
    stated = {key: value for key, value in (expect or {}).items() if value is not None}
    return {"corrected_max": CORRECTED_MAX, "xid_since": "boot", "not_applicable": {}, **stated}


def problems(expect: t.Any, identities: t.Collection[str]) -> list[str]:
    """Name everything malformed in `expect`; `identities` are the checks that not_applicable may name."""
    if expect is None:
        return []
    if not isinstance(expect, dict):
        return [f"{SETTING}: {_numbers.describe(expect)}, not an object"]
    found = []
    for key, value in expect.items():
        if key not in _KEYS:
            found.append(f"{SETTING}: unknown key {key!r}{_meant(key, _KEYS)}")
        elif value is not None and not _KEYS[key][0](value):
            found.append(f"{SETTING}.{key}: {_numbers.describe(value)}, not {_KEYS[key][1]}")
    excused = expect.get("not_applicable")
    for identity, reason in excused.items() if isinstance(excused, dict) else ():
        if identity not in identities:
            found.append(f"{SETTING}.not_applicable: unknown check {identity!r}{_meant(identity, identities)}")
        elif not isinstance(reason, str) or not reason.strip():
            found.append(f"{SETTING}.not_applicable.{identity}: {_numbers.describe(reason)}, not a reason")
    return found


def _meant(name: t.Any, known: t.Collection[str]) -> str:
    close = difflib.get_close_matches(str(name), known, n=1)
    return f" (did you mean {close[0]!r}?)" if close else ""
