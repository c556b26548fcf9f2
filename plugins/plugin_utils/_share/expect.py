# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the inventory may expect of the share: the setting hpc_validation_share_expect."""

from __future__ import annotations

import typing as t

from ansible_collections.mlops.hpc_validation.plugins.module_utils._common import scalars
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._judge.expect import (
    AMOUNT,
    COUNT,
    EXCUSES,
    FLAG,
    Expectations,
    Key,
    is_amount,
    is_count,
)


def _counts(value: t.Any) -> bool:
    return (
        isinstance(value, dict) and set(value) <= {"meta", "storage"} and all(is_count(item) for item in value.values())
    )


def _names(value: t.Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(item, str) and item for item in value)


def _amounts(value: t.Any) -> bool:
    """Return whether `value` is an amount for every target, or one for each type of target."""
    if isinstance(value, dict):
        return bool(value) and set(value) <= {"meta", "storage"} and all(is_amount(item) for item in value.values())
    return is_amount(value)


COUNTS: Key = (_counts, "an object with whole numbers for meta and storage")
AMOUNTS: Key = (_amounts, "a number of 0 or more, or an object with such numbers for meta and storage")
TARGET_FREE_GIB = {"meta": 1, "storage": 1}
# A metadata target needs as many inodes as the whole share; a storage target needs one for each chunk file.
TARGET_FREE_INODES = {"meta": 100_000, "storage": 200_000}


def amount(expect: t.Mapping[str, t.Any], key: str, kind: str) -> float:
    """Return the minimum expected of a target of that type; for an unknown type, the largest minimum."""
    value = expect[key]
    if isinstance(value, dict):
        of_each = {**SHARE.defaults[key], **value}
        value = of_each.get(kind, max(of_each.values()))
    return scalars.number(value)


SHARE = Expectations(
    "hpc_validation_share_expect",
    {
        "config_file": (lambda value: isinstance(value, str) and value.startswith("/"), "an absolute path"),
        "fstype": (_names, "a list of names"),
        "rdma": FLAG,
        "read_only": FLAG,
        "global_locks": FLAG,
        "quota": FLAG,
        "write_mib_s": AMOUNT,
        "read_mib_s": AMOUNT,
        "metadata_ops_s": AMOUNT,
        "free_gib": AMOUNT,
        "free_inodes": AMOUNT,
        "target_free_gib": AMOUNTS,
        "target_free_inodes": AMOUNTS,
        "coherence_seconds": AMOUNT,
        "node_speed_ratio": AMOUNT,
        "chunk_kib": COUNT,
        "stripe_targets": COUNT,
        "capacity_pool": (lambda value: value in ("normal", "low"), "normal or low"),
        "nodes": COUNTS,
        "targets": COUNTS,
        "mirrors": COUNTS,
        "not_applicable": EXCUSES,
    },
    {
        "write_mib_s": 50,
        "read_mib_s": 50,
        "metadata_ops_s": 100,
        "free_gib": 10,
        "free_inodes": 100_000,
        "target_free_gib": TARGET_FREE_GIB,
        "target_free_inodes": TARGET_FREE_INODES,
        "coherence_seconds": 5,
        "node_speed_ratio": 0.1,
        "global_locks": True,
        "not_applicable": {},
    },
)
