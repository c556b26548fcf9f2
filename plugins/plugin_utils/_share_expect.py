# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the inventory expects of the share: the setting hpc_validation_share_expect, checked before anything is read."""

from __future__ import annotations

import difflib
import typing as t

from ansible_collections.mlops.hpc_validation.plugins.module_utils import _numbers

Json = dict[str, t.Any]
SETTING = "hpc_validation_share_expect"
DEFAULTS: Json = {
    "write_mib_s": 50,
    "read_mib_s": 50,
    "metadata_ops_s": 100,
    "free_gib": 10,
    "free_inodes": 100_000,
    "target_free_gib": 1,
    "target_free_inodes": 200_000,
    "coherence_seconds": 5,
    "global_locks": True,
    "not_applicable": {},
}


class ExpectError(ValueError):
    """The expectations are malformed; the message names each key at fault."""


def _count(value: t.Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**63


def _amount(value: t.Any) -> bool:
    return _numbers.is_number(value) and value >= 0


def _flag(value: t.Any) -> bool:
    return isinstance(value, bool)


def _counts(value: t.Any) -> bool:
    return (
        isinstance(value, dict) and set(value) <= {"meta", "storage"} and all(_count(item) for item in value.values())
    )


def _names(value: t.Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(item, str) and item for item in value)


_AMOUNT = (_amount, "a number of 0 or more")
_FLAG = (_flag, "true or false")
_KEYS: dict[str, tuple[t.Callable[[t.Any], bool], str]] = {
    "config_file": (lambda value: isinstance(value, str) and value.startswith("/"), "an absolute path"),
    "fstype": (_names, "a list of names"),
    "rdma": _FLAG,
    "read_only": _FLAG,
    "global_locks": _FLAG,
    "quota": _FLAG,
    "write_mib_s": _AMOUNT,
    "read_mib_s": _AMOUNT,
    "metadata_ops_s": _AMOUNT,
    "free_gib": _AMOUNT,
    "free_inodes": _AMOUNT,
    "target_free_gib": _AMOUNT,
    "target_free_inodes": _AMOUNT,
    "coherence_seconds": _AMOUNT,
    "chunk_kib": (_count, "a whole number"),
    "stripe_targets": (_count, "a whole number"),
    "capacity_pool": (lambda value: value in ("normal", "low"), "normal or low"),
    "targets": (_counts, "an object of meta and storage with whole numbers"),
    "not_applicable": (lambda value: isinstance(value, dict), "an object of finding ids and reasons"),
}


def read(expect: t.Any, identities: t.Collection[str]) -> Json:
    """Return the expectations, with defaults for those not stated. Raise ExpectError."""
    wrong = problems(expect, identities)
    if wrong:
        raise ExpectError("; ".join(wrong))
    return {**DEFAULTS, **{key: value for key, value in (expect or {}).items() if value is not None}}


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
