# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What may be expected of the share, what may not, and what is expected where nothing is stated."""

from __future__ import annotations

import typing as t

import pytest
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._judge.expect import ExpectError
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._share.expect import SHARE, amount

NAMES = ["share.flock"]
AMOUNTS = (
    *("write_mib_s", "read_mib_s", "metadata_ops_s", "free_gib", "free_inodes", "coherence_seconds"),
    "node_speed_ratio",
)
DEFAULTS = {
    "write_mib_s": 50,
    "read_mib_s": 50,
    "metadata_ops_s": 100,
    "free_gib": 10,
    "free_inodes": 100_000,
    "target_free_gib": {"meta": 1, "storage": 1},
    "target_free_inodes": {"meta": 100_000, "storage": 200_000},
    "coherence_seconds": 5,
    "node_speed_ratio": 0.1,
    "global_locks": True,
    "not_applicable": {},
}


def test_what_is_expected_where_nothing_is_stated() -> None:
    assert SHARE.read(None, NAMES) == SHARE.read({}, NAMES) == SHARE.read({"free_gib": None}, NAMES) == DEFAULTS
    assert SHARE.setting == "hpc_validation_share_expect"


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("config_file", "/etc/beegfs/beegfs-client.conf"),
        ("fstype", ["nfs4", "nfs"]),
        *((key, value) for key in ("rdma", "read_only", "global_locks", "quota") for value in (True, False)),
        *((key, value) for key in AMOUNTS for value in (0, 2.5)),
        *(
            (key, value)
            for key in ("target_free_gib", "target_free_inodes")
            for value in (0, 2.5, {"meta": 0}, {"storage": 2.5}, {"meta": 1, "storage": 2})
        ),
        *((key, value) for key in ("chunk_kib", "stripe_targets") for value in (0, 512)),
        ("capacity_pool", "normal"),
        ("capacity_pool", "low"),
        *(
            (key, value)
            for key in ("nodes", "targets", "mirrors")
            for value in ({}, {"meta": 0}, {"storage": 2}, {"meta": 1, "storage": 2})
        ),
        ("not_applicable", {"share.flock": "nobody locks"}),
    ],
)
def test_what_may_be_expected(key: str, value: t.Any) -> None:
    assert SHARE.read({key: value}, NAMES) == {**DEFAULTS, key: value}


@pytest.mark.parametrize(
    ("key", "value", "wanted"),
    [
        *(("config_file", value, "an absolute path") for value in ("etc/beegfs.conf", "", 7, ["/etc"])),
        *(
            ("fstype", value, "a list of names")
            for value in ("nfs", {"nfs": "nfs"}, [], [""], [7], ["nfs", ""], ["nfs", 7], [["nfs"]], 7)
        ),
        *((key, 1, "true or false") for key in ("rdma", "read_only", "global_locks", "quota")),
        *((key, -1, "a number of 0 or more") for key in AMOUNTS),
        *(
            (key, value, "a number of 0 or more, or an object with such numbers for meta and storage")
            for key in ("target_free_gib", "target_free_inodes")
            for value in (-1, "1", [], {}, {"storag": 1}, {"meta": -1}, {"meta": 1, "storage": "2"}, True)
        ),
        *((key, value, "a whole number") for key in ("chunk_kib", "stripe_targets") for value in (-1, 0.5, True)),
        *(("capacity_pool", value, "normal or low") for value in ("emergency", "", 7)),
        *(
            (key, value, "an object with whole numbers for meta and storage")
            for key in ("nodes", "targets", "mirrors")
            for value in (2, [], "", {"storag": 1}, {"meta": -1}, {"meta": 1, "storage": 0.5})
        ),
        ("not_applicable", ["share.flock"], "an object with check IDs and reasons"),
    ],
)
def test_what_may_not_be_expected_is_refused_with_what_may(key: str, value: t.Any, wanted: str) -> None:
    with pytest.raises(ExpectError) as caught:
        SHARE.read({key: value}, NAMES)
    assert str(caught.value).startswith(f"hpc_validation_share_expect.{key}: expected {wanted}, found ")


@pytest.mark.parametrize(
    ("stated", "gib", "inodes"),
    [
        ({}, (1, 1), (100_000, 200_000)),
        ({"target_free_gib": 3, "target_free_inodes": 4}, (3, 3), (4, 4)),
        ({"target_free_gib": {"meta": 3}, "target_free_inodes": {"meta": 4}}, (3, 1), (4, 200_000)),
        ({"target_free_gib": {"storage": 3}, "target_free_inodes": {"storage": 4}}, (1, 3), (100_000, 4)),
    ],
)
def test_the_least_amount_of_a_target_goes_by_its_type_and_of_no_known_type_is_the_most(
    stated: dict, gib: tuple[int, int], inodes: tuple[int, int]
) -> None:
    expect = SHARE.read(stated, NAMES)
    for kind, least_gib, least_inodes in zip(("meta", "storage"), gib, inodes):
        assert amount(expect, "target_free_gib", kind) == least_gib
        assert amount(expect, "target_free_inodes", kind) == least_inodes
        assert amount(expect, "target_free_gib", "other") == max(gib)
        assert amount(expect, "target_free_inodes", "other") == max(inodes)
