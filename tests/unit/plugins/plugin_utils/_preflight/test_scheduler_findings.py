from __future__ import annotations

import copy

import pytest
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._common import schema
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._preflight.scheduler import findings

INFO = {
    "version": "24.11.5",
    "controllers": [{"host": "login", "up": True}],
    "problems": [],
    "partitions": [{"name": "gpu", "state": "UP", "default": True, "nodes": ["compute01", "compute02"]}],
    "nodes": [
        {"name": name, "state": "idle", "flags": [], "reason": None, "gres": {"gpu": 2}, "partitions": ["gpu"]}
        for name in ("compute01", "compute02")
    ],
}


@pytest.fixture
def info():
    return copy.deepcopy(INFO)


def judge(info, manifest, slurm=None, accelerator="cuda"):
    found = findings(info, [manifest], slurm or {}, accelerator)
    for finding in found:
        assert schema.problems("finding", finding) == []
    return {finding["id"]: finding for finding in found}


def test_a_healthy_cluster_passes(info, example):
    found = judge(info, example("manifest"))
    assert {key: value["verdict"] for key, value in found.items()} == {
        "scheduler.answers": "pass",
        "scheduler.partition": "pass",
        "scheduler.accounting": "recorded",
        "scheduler.nodes": "pass",
    }


def test_a_dead_controller_is_undetermined(info, example):
    info["controllers"][0]["up"] = False
    assert judge(info, example("manifest"))["scheduler.answers"]["verdict"] == "undetermined"


def test_a_problem_in_the_facts_is_no_pass(info, example):
    info["problems"] = ["scontrol show node: timed out"]
    finding = judge(info, example("manifest"))["scheduler.answers"]
    assert finding["verdict"] == "undetermined"
    assert "timed out" in finding["why"]


def test_a_wrong_partition_is_named_with_those_there_are(info, example):
    finding = judge(info, example("manifest"), {"partition": "gpus"})["scheduler.partition"]
    assert finding["verdict"] == "fail"
    assert "partition gpus does not exist; available: gpu" in finding["why"]


def test_no_default_partition_is_a_failure(info, example):
    info["partitions"][0]["default"] = False
    assert judge(info, example("manifest"))["scheduler.partition"]["verdict"] == "fail"


def test_a_partition_that_is_down_is_undetermined(info, example):
    info["partitions"][0]["state"] = "DOWN"
    assert judge(info, example("manifest"))["scheduler.partition"]["verdict"] == "undetermined"


def test_gres_is_not_asked_of_a_cpu_cluster(info, example):
    for node in info["nodes"]:
        node["gres"] = {}
    assert judge(info, example("manifest"), accelerator="cpu")["scheduler.nodes"]["verdict"] == "pass"
    assert judge(info, example("manifest"))["scheduler.gres"]["verdict"] == "undetermined"


@pytest.mark.parametrize(
    "change",
    [
        {"flags": ["DRAIN"], "reason": "bad DIMM"},
        {"state": "down", "reason": "bad DIMM"},
        {"flags": ["NOT_RESPONDING"], "reason": "bad DIMM"},
    ],
)
def test_nodes_out_of_service_are_named_with_their_reason(info, example, change):
    for node in info["nodes"]:
        node.update(change)
    finding = judge(info, example("manifest"))["scheduler.nodes"]
    assert finding["verdict"] == "undetermined"
    assert "compute[01-02] are" in finding["why"]
    assert "bad DIMM" in finding["why"]


def test_one_node_out_of_service_leaves_enough_for_the_workload(info, example):
    info["nodes"][0].update(flags=["DRAIN"], reason="bad DIMM")
    assert judge(info, example("manifest"))["scheduler.nodes"]["verdict"] == "pass"


def test_excluded_nodes_do_not_count(info, example):
    found = judge(info, example("manifest"), {"exclude": "compute01,compute02"})
    assert found["scheduler.gres"]["verdict"] == "undetermined"


@pytest.mark.parametrize(
    "facts", [{}, {"problems": ["scontrol: timed out"]}, {"controllers": [{"host": "login", "up": None}]}]
)
def test_facts_that_are_not_there_are_undetermined(facts, example):
    assert [finding["verdict"] for finding in findings(facts, [example("manifest")], {}, "cuda")] == ["undetermined"]


def test_a_workloads_own_partition_is_the_one_that_is_judged(info, example):
    info["partitions"].append({"name": "cpu", "state": "up", "default": False, "nodes": []})
    manifest = example("manifest")
    found = findings(info, [manifest], {"partition": "cpu"}, "cuda", {manifest["id"]: {"partition": "gpu"}})
    assert {finding["verdict"] for finding in found} == {"pass", "recorded"}
    found = findings(info, [manifest], {}, "cuda", {manifest["id"]: {"partition": "gpux"}})
    assert "partition gpux does not exist" in found[-1]["why"]


def test_of_several_partitions_each_must_exist_and_one_be_up(info, example):
    info["partitions"].append({"name": "old", "state": "DOWN", "default": False, "nodes": []})
    assert judge(info, example("manifest"), {"partition": "gpu,old"})["scheduler.partition"]["verdict"] == "pass"
    assert judge(info, example("manifest"), {"partition": "old"})["scheduler.partition"]["verdict"] == "undetermined"
    assert judge(info, example("manifest"), {"partition": "gpu,new"})["scheduler.partition"]["verdict"] == "fail"


@pytest.mark.parametrize(("state", "verdict"), [("UP", "pass"), ("DOWN", "undetermined")])
def test_the_partition_is_judged_without_workloads_too(info, state, verdict):
    info["partitions"][0]["state"] = state
    found = {finding["id"]: finding["verdict"] for finding in findings(info, [], {}, "cuda")}
    assert found["scheduler.partition"] == verdict
    missing = {finding["id"]: finding["verdict"] for finding in findings(info, [], {"partition": "x"}, "cuda")}
    assert missing["scheduler.partition"] == "fail"


def test_settings_that_leave_no_node_are_named(info, example):
    found = judge(info, example("manifest"), {"constraint": "h200&ib"})["scheduler.gres"]
    assert found["verdict"] == "undetermined"
    assert "constraint h200&ib" in found["why"]


def test_what_one_workload_asks_for_does_not_matter_to_another(info, example):
    large = {**example("manifest"), "id": "MLOPS-2.1"}
    large["resources"] = {**large["resources"], "gres": "gpu:8"}
    found = findings(info, [large, example("manifest")], {}, "cuda")
    by_workload = {each["where"]["workload"]: each["verdict"] for each in found if each["where"]}
    assert by_workload == {"MLOPS-2.1": "undetermined", "MLOPS-1.1": "pass"}


def test_the_partition_is_the_one_that_sbatch_is_given(info, example):
    info["partitions"].append({"name": "old", "state": "down", "default": False, "nodes": []})
    extra = {"partition": "gpu", "extra": {"partition": "old"}}
    found = judge(info, example("manifest"), extra)
    assert found["scheduler.partition"]["why"] == "partition old is down"
    assert "partition old has 0 nodes" in found["scheduler.gres"]["why"]
