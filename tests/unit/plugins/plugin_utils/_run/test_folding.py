# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a verdict says of the cluster and of jobs is folded, and nothing else of it is changed."""

from __future__ import annotations

import typing as t

import pytest
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._run import coverage, folding, schema_1


def node(name: str, **facts: t.Any) -> dict[str, t.Any]:
    return {"name": name, "state": "idle", "gres": {"gpu": 8, "shard": 1}, **facts}


def test_equal_nodes_are_told_once_whatever_the_order_of_their_facts() -> None:
    turned = dict(reversed(node("n002").items()))
    told = folding.cluster({"version": "1", "nodes": [node("n001"), turned, node("n003", state="down")]})
    assert told is not None
    assert [(each["name"], each["count"], each["state"]) for each in told["nodes"]] == [
        ("n[001-002]", 2, "idle"),
        ("n003", 1, "down"),
    ]
    assert told["version"] == "1"


@pytest.mark.parametrize("nothing", [None, {}])
def test_no_facts_stay_none(nothing: t.Any) -> None:
    assert folding.cluster(nothing) is nothing


def test_facts_without_nodes_have_none() -> None:
    assert folding.cluster({"version": "1", "nodes": None}) == {"version": "1", "nodes": [], "partitions": None}


@pytest.mark.parametrize(
    ("partition", "told"),
    [
        ({"name": "gpu", "nodes": ["n1", "n2"]}, {"name": "gpu", "nodes": "n[1-2]"}),
        ({"name": "gpu", "nodes": []}, {"name": "gpu", "nodes": ""}),
        ({"name": "gpu", "nodes": "n[1-2]"}, {"name": "gpu", "nodes": "n[1-2]"}),
        ({"name": "gpu", "nodes": ["n1", 5]}, {"name": "gpu", "nodes": ["n1", 5]}),
        ({"name": "gpu"}, {"name": "gpu"}),
        ("gpu", "gpu"),
    ],
)
def test_partitions_name_their_nodes_in_one_expression(partition: t.Any, told: t.Any) -> None:
    folded = folding.cluster({"nodes": [node("n1")], "partitions": [partition]})
    assert folded is not None
    assert folded["partitions"] == [told]


def test_a_jobs_nodes_fold_and_unfold() -> None:
    workload = {"id": "W", "job": {"job_id": "7", "nodes": ["n1", "n2"]}}
    folded = folding.workload(workload)
    assert folded["job"]["nodes"] == "n[1-2]"
    assert schema_1._workload(folded) == workload
    without = {"id": "W", "job": None}
    assert folding.workload(without) == schema_1._workload(without) == without


@pytest.mark.parametrize(
    ("name", "names"),
    [("n[1-2]", ["n1", "n2"]), ("n1", ["n1"]), ("checks gpu.xid, gpu.ecc", ["checks gpu.xid, gpu.ecc"]), ("?", ["?"])],
)
def test_what_was_left_out_is_told_name_by_name(name: str, names: list[str]) -> None:
    assert schema_1._each({"name": name, "count": 1, "why": "x"}) == [{"name": each, "why": "x"} for each in names]


def test_without_preflight_and_workloads_nothing_was_exercised(tmp_path: t.Any) -> None:
    assert coverage.exercised(tmp_path, [], None) == (set(), set())
