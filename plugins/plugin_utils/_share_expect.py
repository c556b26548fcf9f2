# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the inventory may expect of the share: the setting hpc_validation_share_expect."""

from __future__ import annotations

import typing as t

from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._expect import (
    AMOUNT,
    COUNT,
    EXCUSES,
    FLAG,
    Expectations,
    is_count,
)


def _counts(value: t.Any) -> bool:
    return (
        isinstance(value, dict) and set(value) <= {"meta", "storage"} and all(is_count(item) for item in value.values())
    )


def _names(value: t.Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(item, str) and item for item in value)


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
        "target_free_gib": AMOUNT,
        "target_free_inodes": AMOUNT,
        "coherence_seconds": AMOUNT,
        "chunk_kib": COUNT,
        "stripe_targets": COUNT,
        "capacity_pool": (lambda value: value in ("normal", "low"), "normal or low"),
        "targets": (_counts, "an object of meta and storage with whole numbers"),
        "not_applicable": EXCUSES,
    },
    {
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
    },
)
