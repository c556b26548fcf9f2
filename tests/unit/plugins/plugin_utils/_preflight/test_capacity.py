# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A workload that no partition can hold is told in numbers: what it asks for, what is there, and where."""

from __future__ import annotations

import json
import typing as t

import pytest
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._common import schema
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._preflight import capacity

from tests.unit import fleet_reports

Json = dict[str, t.Any]


def node(name: str, gpus: int = 2, **facts: t.Any) -> Json:
    return {"name": name, "state": "idle", "flags": [], "gres": {"gpu": gpus}, "partitions": ["gpu"], **facts}


def cluster(nodes: list[Json], **states: str) -> Json:
    partitions = {"gpu": "up", **states}
    return {
        "nodes": nodes,
        "partitions": [{"name": name, "state": state, "default": name == "gpu"} for name, state in partitions.items()],
    }


FOUR = [node("n1"), node("n2", 4), node("n3", 8), node("n4", 8, state="down", reason="bad DIMM")]


def judge(nodes: list[Json], directives: Json, **states: str) -> Json:
    found = capacity.finding(cluster(nodes, **states), "MLOPS-2.1", directives)
    assert schema.problems("finding", found) == []
    assert found["where"] == {"workload": "MLOPS-2.1"}
    assert (found["source"], found["severity"]) == ("slurm_cluster_info", "gate")
    assert bool(found["remedy"]) is (found["verdict"] != "pass")
    return found


@pytest.mark.parametrize(
    ("directives", "value", "asked", "there"),
    [
        (
            {"nodes": 1, "gres": "gpu:16"},
            0,
            "1 node with gpu:16",
            "0 of 4 nodes of partition gpu define it, none more than gpu:8",
        ),
        (
            {"nodes": 4, "gres": "gpu:4"},
            3,
            "4 nodes with gpu:4 each",
            "3 of 4 nodes of partition gpu define it, none more than gpu:8",
        ),
        (
            {"nodes": 2, "gres": "gpu:8", "exclude": "n3"},
            1,
            "2 nodes with gpu:8 each",
            "1 of 3 nodes of partition gpu defines it, none more than gpu:8, narrowed by exclude n3",
        ),
        (
            {"nodes": 1, "gres": "shard:4"},
            0,
            "1 node with shard:4",
            "0 of 4 nodes of partition gpu define it, none more than shard:0",
        ),
        (
            {"nodes": 1, "gres": ["gpu:1", "shard:4"]},
            0,
            "1 node with gpu:1,shard:4",
            "0 of 4 nodes of partition gpu define it, none more than gpu:8 and shard:0",
        ),
        ({"nodes": 5}, 4, "5 nodes", "partition gpu has 4 nodes"),
        (
            {"nodes": 1, "constraint": "ib", "nodelist": "n2", "exclude": "n1"},
            0,
            "1 node",
            "partition gpu has 0 nodes, narrowed by nodelist n2, exclude n1, constraint ib",
        ),
        (
            {"nodes": 2, "gres": "gpu:1", "exclude": "n[2-4]"},
            1,
            "2 nodes with gpu:1 each",
            "1 of 1 node of partition gpu defines it, none more than gpu:2, narrowed by exclude n[2-4]",
        ),
    ],
)
def test_what_no_partition_holds_is_told_in_numbers(directives: Json, value: int, asked: str, there: str) -> None:
    found = judge(FOUR, directives)
    assert (found["id"], found["verdict"]) == ("scheduler.gres", "undetermined")
    assert (found["value"], found["bound"]) == (value, f"at least {asked}")
    assert found["why"] == f"it asks for {asked}; {there}"
    assert "hpc_validation_leave_out" in found["remedy"]


@pytest.mark.parametrize(
    ("directives", "value", "why"),
    [
        ({"nodes": 1, "gres": "gpu:8"}, 1, "1 of 2 nodes of partition gpu can start it"),
        ({"nodes": 2, "gres": "gpu:4"}, 2, "2 of 3 nodes of partition gpu can start it"),
        ({"nodes": 3, "gres": "gpu"}, 3, "3 of 4 nodes of partition gpu can start it"),
        ({"nodes": 1, "gres": "none"}, 3, "3 of 4 nodes of partition gpu can start it"),
        ({"nodes": "2-4"}, 3, "3 of 4 nodes of partition gpu can start it"),
        ({"nodes": "many"}, 3, "3 of 4 nodes of partition gpu can start it"),
        ({}, 3, "3 of 4 nodes of partition gpu can start it"),
        ({"nodes": 2, "nodelist": "n[2-3]"}, 2, "2 of 2 nodes of partition gpu can start it"),
        ({"nodes": 1, "nodelist": "n2"}, 1, "1 of 1 node of partition gpu can start it"),
        # Slurm adds nodes to a list that is too short.
        ({"nodes": 2, "nodelist": "n2"}, 3, "3 of 4 nodes of partition gpu can start it"),
    ],
)
def test_what_a_partition_holds_passes(directives: Json, value: int, why: str) -> None:
    found = judge(FOUR, directives)
    assert (found["id"], found["verdict"], found["value"], found["why"]) == ("scheduler.nodes", "pass", value, why)


@pytest.mark.parametrize("directives", [{}, {"nodes": "many"}, {"nodes": None}])
def test_without_a_number_of_nodes_one_is_asked_for(directives: Json) -> None:
    found = judge([node("n1")], directives)
    assert (found["verdict"], found["bound"]) == ("pass", "at least 1 node")


def test_what_fits_and_cannot_start_now_names_the_nodes() -> None:
    nodes = [node("n1", 8), *(node(f"n{n}", 8, flags=["drain"], reason="upgrade") for n in (2, 3)), FOUR[3]]
    found = judge(nodes, {"nodes": 2, "gres": "gpu:8"})
    assert (found["id"], found["verdict"], found["value"]) == ("scheduler.nodes", "undetermined", 1)
    assert found["bound"] == "at least 2 nodes with gpu:8 each"
    assert found["why"] == (
        "it asks for 2 nodes with gpu:8 each; 1 of 4 nodes of partition gpu can start it: n[2-3] are idle+drain "
        "(upgrade); n4 is down (bad DIMM)"
    )
    assert "sinfo -R" in found["remedy"]


@pytest.mark.parametrize(("broken", "told"), [(10, 10), (11, 11), (40, 11)])
def test_of_many_states_some_are_told(broken: int, told: int) -> None:
    nodes = [node(f"n{n}", state="down", reason=f"ticket {n}") for n in range(broken)]
    states = judge(nodes, {"nodes": 1, "gres": "gpu:1"})["why"].partition(": ")[2].split("; ")
    assert len(states) == told
    assert (states[-1] == f"and {broken - 10} more") is (broken > 10)


# -- types


@pytest.mark.parametrize(
    ("types", "gres", "verdict"),
    [
        (["h100"], "gpu:h100:2", "pass"),
        (["a100", "h100"], "gpu:h100:2", "pass"),
        (["h100"], "gpu:h200:2", "undetermined"),
        (["h100"], "gpu:h200", "undetermined"),
        (["h100"], "gpu:2", "pass"),
        # A type may be known to gres.conf only: left to Slurm.
        ([], "gpu:h200:2", "pass"),
        (None, "gpu:h200:2", "pass"),
        (None, "gpu:h200:3", "undetermined"),
    ],
)
def test_a_type_that_no_node_has_does_not_fit(types: list[str] | None, gres: str, verdict: str) -> None:
    assert judge([node("n1", gres_types=types)], {"nodes": 1, "gres": gres})["verdict"] == verdict


def test_the_types_there_are_are_told() -> None:
    nodes = [node("n1", gres_types=["h100"]), node("n2", 4, gres_types=["a100"]), node("n3", gres_types=None)]
    found = judge(nodes[:2], {"nodes": 1, "gres": "gpu:h200:2"})
    assert found["why"].endswith("none more than gpu:4 (types: a100, h100)")
    assert judge(nodes, {"nodes": 1, "gres": "gpu:9"})["why"].endswith("none more than gpu:4")
    assert judge(nodes[2:], {"nodes": 1, "gres": "gpu:h200:9"})["why"].endswith("than gpu:2")


# -- partitions


TWO = [node("n1", 8), node("n2", 8, partitions=["big"]), node("n3", 8, partitions=["big"]), node("n4", 16)]


@pytest.mark.parametrize(
    ("directives", "told"),
    [
        ({"nodes": 2, "gres": "gpu:8"}, "2 of 2 nodes of partition gpu (of gpu, big) can start it"),
        ({"nodes": 3, "gres": "gpu:8"}, "2 of 2 nodes of partition gpu (of gpu, big) define it"),
        ({"nodes": 2, "gres": "gpu:8", "exclude": "n1"}, "2 of 2 nodes of partition big (of gpu, big) can start it"),
        ({"nodes": 1, "gres": "gpu:16"}, "1 of 1 node of partition gpu (of gpu, big) can start it"),
    ],
)
def test_a_job_runs_within_one_partition(directives: Json, told: str) -> None:
    assert told in judge(TWO, {**directives, "partition": "gpu, big"}, big="up")["why"]


def test_the_partition_that_can_start_it_comes_before_the_one_that_is_larger() -> None:
    down = [node(f"n{n}", 8, state="down", reason="") for n in range(5)]
    ready = [node("m1", 8, partitions=["big"])]
    asked = {"nodes": 1, "gres": "gpu:8", "partition": "gpu,big"}
    assert judge([*down, *ready], asked, big="up")["verdict"] == "pass"
    found = judge([*down, *ready], {**asked, "nodes": 2}, big="up")
    assert (found["id"], "partition gpu " in found["why"]) == ("scheduler.nodes", True)


@pytest.mark.parametrize(
    ("gpu", "big", "told"),
    [("up", "down", "partition gpu can"), ("DOWN", "UP", "partition big has 0 nodes"), ("down", "down", "of gpu, big")],
)
def test_a_partition_that_is_down_counts_only_if_all_are(gpu: str, big: str, told: str) -> None:
    assert told in judge([node("n1")], {"nodes": 1, "partition": "gpu,big"}, gpu=gpu, big=big)["why"]


def test_of_thousands_of_nodes_the_finding_stays_small() -> None:
    info = fleet_reports.cluster(5000)
    exclude = ",".join(fleet_reports.names(5000)[::2])
    for reasons in (1, 100):
        for number, each in enumerate(info["nodes"]):
            each.update(state="down" if number % 3 else "idle", reason=f"ticket {number % reasons}")
        for directives in (
            {"nodes": 4000, "gres": "gpu:8"},
            {"nodes": 1, "gres": "gpu:16"},
            {"nodes": 2500, "gres": "gpu:8", "exclude": exclude},
            {"nodes": 3000, "gres": "gpu:8", "exclude": exclude},
        ):
            found = capacity.finding(info, "MLOPS-2.1", directives)
            assert found["verdict"] == "undetermined"
            assert len(json.dumps(found)) < 5000
