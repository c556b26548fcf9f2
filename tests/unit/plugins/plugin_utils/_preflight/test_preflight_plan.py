# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which nodes a preflight looks at, and by which job."""

from __future__ import annotations

import copy
import typing as t

import pytest
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._common import schema
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._preflight.plan import plan

Json = dict[str, t.Any]
INFO = {
    "partitions": [
        {"name": "gpu", "state": "up", "default": True},
        {"name": "big", "state": "up", "default": False},
    ],
    "nodes": [
        {"name": f"compute0{n}", "state": "idle", "flags": [], "reason": "", "gres": {"gpu": 2}, "partitions": ["gpu"]}
        for n in (1, 2, 3)
    ],
}
SETTINGS = {"accelerator": "cuda", "nodes": [], "slurm": {}, "workload_slurm": [], "node_gpus": {}}


@pytest.fixture
def info() -> Json:
    return copy.deepcopy(INFO)


def planned(info: Json, expected: t.Sequence[str] = (), **settings: t.Any) -> Json:
    found = plan(info, {**SETTINGS, **settings}, expected)
    for finding in found["findings"]:
        assert schema.problems("finding", finding) == []
    return found


def odd(found: Json) -> dict[tuple[str, str | None], str]:
    return {
        (finding["id"], finding["where"].get("node")): finding["verdict"]
        for finding in found["findings"]
        if finding["verdict"] in ("fail", "undetermined")
    }


def test_one_job_a_node_for_all_its_gpus_and_one_over_two_nodes(info: Json) -> None:
    info["nodes"][1]["gres"] = {"gpu": 8}
    found = planned(info)
    assert [job["options"]["job-name"] for job in found["jobs"]] == [
        "preflight-compute01",
        "preflight-compute02",
        "preflight-compute03",
        "preflight-coherence",
    ]
    assert [job["key"] for job in found["jobs"]] == ["compute01", "compute02", "compute03", "compute01,compute03"]
    assert [job["options"].get("gres") for job in found["jobs"]] == ["gpu:2", "gpu:8", "gpu:2", None]
    assert [job["options"]["nodelist"] for job in found["jobs"]][-1] == "compute01,compute03"
    assert odd(found) == {}


def test_idle_nodes_come_first_and_busy_ones_last(info: Json) -> None:
    info["nodes"][0]["state"] = "allocated"
    assert [job["key"] for job in planned(info)["jobs"]] == [
        "compute02",
        "compute03",
        "compute02,compute03",
        "compute01",
    ]
    info["nodes"][1]["state"] = "mixed"
    assert [job["key"] for job in planned(info)["jobs"]] == [
        "compute03",
        "compute01,compute03",
        "compute01",
        "compute02",
    ]


def test_a_node_that_does_not_respond_gets_a_job_of_its_own_after_the_others(info: Json) -> None:
    info["nodes"][0]["flags"] = ["not_responding"]
    found = planned(info)
    assert odd(found) == {}
    assert [node["name"] for node in found["nodes"]] == ["compute01", "compute02", "compute03"]
    assert [job["key"] for job in found["jobs"]] == ["compute02", "compute03", "compute02,compute03", "compute01"]
    info["nodes"][1]["state"] = "allocated"
    assert [job["key"] for job in planned(info)["jobs"]] == [
        "compute03",
        "compute02,compute03",
        "compute01",
        "compute02",
    ]
    info["nodes"][2]["flags"] = ["not_responding"]
    assert [job["key"] for job in planned(info)["jobs"]] == ["compute01", "compute02", "compute03"]


def test_one_node_needs_no_second(info: Json) -> None:
    del info["nodes"][1:]
    assert len(planned(info)["jobs"]) == 1


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"flags": ["drain"], "reason": "bad DIMM"}, "compute02 is idle+drain (bad DIMM)"),
        ({"state": "down"}, "compute02 is down"),
        ({"flags": ["not_responding", "drain"]}, "compute02 is idle+not_responding+drain"),
        ({"state": "down", "flags": ["not_responding"]}, "compute02 is down+not_responding"),
        ({"state": None}, "compute02 is None"),
    ],
)
def test_a_node_out_of_service_is_undetermined_and_hides_no_other(info: Json, change: Json, words: str) -> None:
    info["nodes"][1].update(change)
    found = planned(info)
    assert odd(found) == {("scheduler.node", "compute02"): "undetermined"}
    finding = next(f for f in found["findings"] if f["id"] == "scheduler.node")
    assert finding["why"] == words
    assert "State=RESUME" in finding["remedy"]
    assert [node["name"] for node in found["nodes"]] == ["compute01", "compute03"]


@pytest.mark.parametrize("nodes", [["compute01", "compute03"], "compute01, compute03", "compute[01,03]"])
def test_the_user_may_narrow_it_and_what_is_left_out_is_told(info: Json, nodes: t.Any) -> None:
    info["nodes"][1]["state"] = "down"
    found = planned(info, nodes=nodes)
    assert odd(found) == {}
    assert [node["name"] for node in found["nodes"]] == ["compute01", "compute03"]
    assert found["left_out"] == [{"name": "compute02", "why": "not among hpc_validation_nodes"}]


def test_a_name_that_slurm_does_not_know_fails_and_nothing_is_submitted(info: Json) -> None:
    found = planned(info, nodes=["compute01", "compute9"])
    assert odd(found) == {("scheduler.node_known", "compute9"): "fail"}
    assert (found["jobs"], found["scope"], found["left_out"]) == ([], [], [])


def test_a_text_that_names_no_nodes_narrows_to_nothing_and_fails(info: Json) -> None:
    found = planned(info, nodes="compute[01")
    assert odd(found) == {("scheduler.node_known", "compute[01"): "fail"}
    assert found["jobs"] == []


def test_an_inventory_whose_node_slurm_lost_fails(info: Json) -> None:
    assert odd(planned(info, ["compute01", "compute02", "compute03", "compute04"])) == {
        ("scheduler.node_known", "compute04"): "fail"
    }


def test_an_inventory_with_other_names_than_slurms_says_nothing(info: Json) -> None:
    assert odd(planned(info, ["10.0.0.11", "10.0.0.12"])) == {}


def test_a_node_of_the_inventory_without_gres_fails_and_is_looked_at_all_the_same(info: Json) -> None:
    info["nodes"][2]["gres"] = {}
    found = planned(info, ["compute01", "compute02", "compute03"])
    assert odd(found) == {("scheduler.gres_defined", "compute03"): "fail"}
    assert "gres" not in found["jobs"][2]["options"]


def test_a_cluster_without_gpus_is_no_pass(info: Json) -> None:
    for node in info["nodes"]:
        node["gres"] = {}
    assert odd(planned(info)) == {("scheduler.scope", None): "fail"}
    assert len(planned(info, accelerator="cpu")["nodes"]) == 3


def test_nothing_known_of_the_cluster_plans_nothing() -> None:
    found = planned({})
    assert found["jobs"] == []
    assert odd(found) == {("scheduler.scope", None): "undetermined"}


@pytest.mark.parametrize(
    ("login", "node", "verdict"),
    [
        ("24.11.5", "24.11.5", "pass"),
        ("24.11.5", "23.02.7", "pass"),
        ("23.11.1", "24.05.0", "fail"),
        (None, "24.11.5", "undetermined"),
        ("24.11.5", None, "recorded"),
        ("24.11.5", "(null)", "recorded"),
    ],
)
def test_slurmd_may_be_older_and_never_newer(info: Json, login: str | None, node: str | None, verdict: str) -> None:
    info["version"] = login
    for each in info["nodes"]:
        each["version"] = node
    found = [f for f in planned(info)["findings"] if f["id"] == "scheduler.version"]
    assert {f["verdict"] for f in found} == {verdict}


def test_what_the_site_asks_of_jobs_is_passed_on(info: Json) -> None:
    slurm = {
        "account": "hpc",
        "gres_type": "h200",
        "extra": {"licenses": "x"},
        "nodelist": "compute02",
        "partition": "gpu",
    }
    (job,) = planned(info, slurm=slurm)["jobs"]
    assert job["options"] == {
        "account": "hpc",
        "partition": "gpu",
        "licenses": "x",
        "job-name": "preflight-compute02",
        "nodelist": "compute02",
        "gres": "gpu:h200:2",
        "export": "NONE",
    }


def test_nodes_of_a_workloads_own_partition_are_looked_at_through_it(info: Json) -> None:
    info["nodes"][2]["partitions"] = ["big"]
    found = planned(info, workload_slurm=[{"partition": "big"}])
    assert [job["options"].get("partition") for job in found["jobs"]] == [None, None, "big", None]
    assert found["jobs"][-1]["nodes"] == ["compute01", "compute02"]  # one job can have these two


def test_a_wanted_node_that_the_sites_jobs_cannot_reach_fails(info: Json) -> None:
    info["nodes"][2]["partitions"] = ["big"]
    found = planned(info, nodes=["compute01", "compute03"])
    assert odd(found) == {("scheduler.node_in_reach", "compute03"): "fail"}
    assert found["jobs"] == []
    assert planned(info, ["compute01", "compute03"])["left_out"][0]["name"] == "compute03"


def test_a_node_that_lost_its_gpus_is_told_though_the_inventory_has_other_names(info: Json) -> None:
    info["nodes"][1]["gres"] = {}
    assert planned(info)["left_out"] == [{"name": "compute02", "why": "it defines no GPUs"}]
    found = planned(info, [f"{node['name']}.example.org" for node in info["nodes"]])
    assert odd(found) == {("scheduler.gres_defined", "compute02"): "fail"}


def test_expectations_of_a_node_that_is_not_there_are_refused(info: Json) -> None:
    assert odd(planned(info, node_gpus={"compute9": {"count": 4}})) == {("scheduler.node_known", "compute9"): "fail"}


@pytest.mark.parametrize(
    ("constraint", "count"),
    [("h200", 1), ("h200|v100", 2), ("h200&ib", 1), ("[a*2]", 3)],
)
def test_features_narrow_as_they_do_for_jobs(info: Json, constraint: str, count: int) -> None:
    for node, features in zip(info["nodes"], (["h200", "ib"], ["v100"], [])):
        node["features"] = features
    assert len(planned(info, slurm={"constraint": constraint})["nodes"]) == count


def test_a_gres_type_leads_to_nodes_of_that_type(info: Json) -> None:
    info["nodes"][0]["gres_types"], info["nodes"][1]["gres_types"] = ["h200"], ["v100"]
    assert [node["name"] for node in planned(info, slurm={"gres_type": "h200"})["nodes"]] == ["compute01", "compute03"]


@pytest.mark.parametrize(
    ("known", "nodes", "scope"),
    [
        (["rack1.n01", "rack1.n02", "rack2.n01"], "rack1.n01", ["rack1.n01"]),
        (["rack1.n01", "rack1.n02", "rack2.n01"], "rack1.n[01-02]", ["rack1.n01", "rack1.n02"]),
        (["n1.a.org", "n1.b.org"], "n1.a.org", ["n1.a.org"]),
        (["n1.a.org", "n2.a.org"], "n2", ["n2.a.org"]),
        (["n1", "n2"], "n2.a.org", ["n2"]),
        (["n1", "n1.a.org"], "n1", ["n1"]),
    ],
)
def test_a_node_is_the_one_that_is_named(info: Json, known: list[str], nodes: str, scope: list[str]) -> None:
    info["nodes"] = [{**info["nodes"][0], "name": name} for name in known]
    found = planned(info, nodes=nodes)
    assert [node["name"] for node in found["scope"]] == scope
    assert odd(found) == {}


@pytest.mark.parametrize(
    ("known", "nodes"),
    [
        (["n1", "n2", "n3"], "n1..n3"),
        (["n1", "n2", "n3"], "n1.,n2"),
        (["rack1.n01", "rack2.n01"], "rack1.n02"),
        (["n1.a.org", "n1.b.org"], "n1"),
    ],
)
def test_a_name_that_may_mean_another_node_is_refused(info: Json, known: list[str], nodes: str) -> None:
    info["nodes"] = [{**info["nodes"][0], "name": name} for name in known]
    found = planned(info, nodes=nodes)
    assert found["scope"] == []
    assert {identity for identity, _node in odd(found)} == {"scheduler.node_known"}
