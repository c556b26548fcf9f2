# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Judging what the jobs of a preflight found, and what became of the jobs."""

from __future__ import annotations

import copy
import typing as t

import pytest
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._common import schema
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._preflight import nodes, plan
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.fleet_reports import SETTINGS
from tests.unit.plugins.plugin_utils._gpu import gpu_node

Json = dict[str, t.Any]
NODES = ("compute01", "compute02")
PAIR = ",".join(NODES)
START = gpu_node.NOW
PLANNED = plan.plan(
    {
        "partitions": [{"name": "gpu", "state": "up", "default": True}],
        "nodes": [
            {"name": n, "state": "idle", "flags": [], "reason": "", "gres": {"gpu": 2}, "partitions": ["gpu"]}
            for n in NODES
        ],
    },
    SETTINGS,
)
COHERENCE = {
    "share.coherence",
    "share.coherence_overwrite",
    "share.coherence_rename",
    "share.coherence_unlink",
    "share.locks_across_nodes",
}
COHERENT = {
    "seen": True,
    "seconds": 0.02,
}


def report(node: str, example: t.Callable[[str], Json]) -> Json:
    facts = {**gpu_node.healthy(), "node": node, "time": START + 1}
    for gpu in facts["gpus"]:
        gpu["uuid"] = f"{gpu['uuid']}-{node}"
    present = ["/dev/nvidia0", "/dev/nvidia1"]
    return {
        "problems": {},
        "messages": "",
        "begin": {"time": START + 0.5},
        "end": {"time": START + 3},
        "host": {**example("host"), "host": node, "hostname": node, "time": START + 1},
        "gpus": facts,
        "confined": {"present": present, "openable": present[:1]},
        "without": None,
        "share": {**example("share"), "node": node, "time": START + 1},
        "coherence": None,
    }


def coherence() -> Json:
    def direction(writer: str, reader: str) -> Json:
        locks = {"while_held": "refused", "after_release": "granted"}
        return {
            "writer": writer,
            "reader": reader,
            "steps": {step: dict(COHERENT) for step in ("create", "overwrite", "rename", "unlink")},
            "locks": {"flock": dict(locks), "fcntl": dict(locks)},
        }

    return {
        "schema": 1,
        "nodes": list(NODES),
        "error": None,
        "directions": [direction(*NODES), direction(*NODES[::-1])],
    }


@pytest.fixture
def world(example: t.Callable[[str], Json]) -> Json:
    """What came back from a healthy cluster: {waited, reports}."""
    job = {
        **example("job"),
        "state": "COMPLETED",
        "exit_code": 0,
        "reason_text": "",
        "started": START,
        "ended": START + 4,
    }
    numbers = {NODES[0]: "11", NODES[1]: "12", PAIR: "13"}
    jobs = {key: {**job, "key": key, "job_id": number} for key, number in numbers.items()}
    reports = {"11": report(NODES[0], example), "12": report(NODES[1], example)}
    reports["13"] = {"problems": {}, "messages": "", "begin": None, "end": None, "coherence": coherence()}
    outcomes = {
        job["job_id"]: {"outcome": "ended", "why": "", "remedy": "", "cancelled": False} for job in jobs.values()
    }
    return copy.deepcopy({"waited": {"jobs_by_key": jobs, "outcomes": outcomes}, "reports": reports})


def judged(world: Json, **changes: t.Any) -> list[Json]:
    found = list(nodes.Judging(PLANNED, world["waited"], {**SETTINGS, **changes}).findings(world["reports"].items()))
    for finding in found:
        assert schema.problems("finding", finding) == []
        assert finding["remedy"] or finding["verdict"] not in ("fail", "undetermined")
    return found


def probed(world: Json) -> Json:
    judging = nodes.Judging(PLANNED, world["waited"], SETTINGS)
    assert list(judging.findings(world["reports"].items()))
    return judging.probed()


def odd(found: list[Json]) -> set[tuple[str, str, str | None]]:
    return {(f["id"], f["verdict"], f["where"].get("node")) for f in found if f["verdict"] in ("fail", "undetermined")}


def test_a_healthy_cluster_passes_and_says_what_was_looked_at(world: Json) -> None:
    found = judged(world)
    assert odd(found) == set()
    passed = {f["id"] for f in found if f["verdict"] == "pass"}
    assert {"node.job", "node.clock", "node.python", "scheduler.confinement", "scheduler.gres_equals_gpus"} <= passed
    assert {"gpu.count", "gpu.pcie_width", "share.mounted", "share.coherence", "share.same_on_every_node"} <= passed
    looked_at = probed(world)
    assert looked_at["nodes"] == list(NODES)
    assert len(looked_at["gpus"]) == 4


@pytest.mark.parametrize(
    ("code", "identity", "verdict"),
    [
        (80, "share.mounted", "fail"),
        (81, "share.connections", "fail"),
        (82, "share.same_files", "fail"),
        (83, "share.writable", "fail"),
        (84, "share.answers", "undetermined"),
        (85, "share.guard", "undetermined"),
    ],
)
def test_a_guards_exit_code_says_what_is_wrong_with_the_share(
    world: Json, code: int, identity: str, verdict: str
) -> None:
    world["waited"]["jobs_by_key"]["compute02"].update(state="FAILED", exit_code=code)
    world["reports"]["12"] = {"problems": {}, "messages": ""}
    assert {(i, v) for i, v, node in odd(judged(world)) if node == "compute02"} >= {(identity, verdict)}


def test_a_busy_node_is_undetermined_and_hides_no_other(world: Json) -> None:
    world["waited"]["jobs_by_key"]["compute01"].update(state="CANCELLED", exit_code=None)
    world["waited"]["outcomes"]["11"].update(outcome="queue_timeout", why="it waited 120 s")
    world["reports"]["11"] = {"problems": {}}
    found = judged(world)
    assert odd(found) == {("node.job", "undetermined", "compute01"), ("share.same_on_every_node", "undetermined", None)}
    finding = next(f for f in found if f["id"] == "node.job" and f["verdict"] == "undetermined")
    assert "it waited 120 s" in finding["why"]
    assert "squeue --nodelist=compute01" in finding["remedy"]


def the(found: list[Json], identity: str, node: str) -> Json:
    (finding,) = [f for f in found if f["id"] == identity and f["where"].get("node") == node]
    return finding


@pytest.mark.parametrize("part", ["host", "gpus", "share"])
def test_a_part_that_could_not_be_read_is_named(world: Json, part: str) -> None:
    world["reports"]["11"].update({part: None, "problems": {part: f"{part}.json is incomplete: line 1"}})
    finding = the(judged(world), "node.report", "compute01")
    assert (finding["verdict"], finding["value"]) == ("undetermined", None)
    assert f"{part}.json is incomplete" in finding["why"]


@pytest.mark.parametrize("part", ["host", "gpus", "share"])
def test_a_part_that_another_node_made_is_none(world: Json, part: str) -> None:
    world["reports"]["11"][part] = world["reports"]["12"][part]
    found = judged(world)
    assert f'{part}.json is of "compute02"' in the(found, "node.report", "compute01")["why"]
    assert "compute02" not in {node for _other, _other, node in odd(found)}


@pytest.mark.parametrize("part", ["host", "gpus", "share"])
@pytest.mark.parametrize("time", [START - 86400, START - 0.6, START + 4.1, None, "now"])
def test_a_part_that_was_made_at_another_time_is_none(world: Json, part: str, time: t.Any) -> None:
    world["reports"]["11"][part]["time"] = time
    finding = the(judged(world), "node.report", "compute01")
    assert finding["verdict"] == "undetermined"
    assert f"{part}.json was not made while the job ran" in finding["why"]


@pytest.mark.parametrize("time", [START - 0.5, START + 0.5, START + 4])
def test_a_part_may_be_a_second_off_the_markers(world: Json, time: float) -> None:
    world["reports"]["11"]["host"]["time"] = time
    assert odd(judged(world)) == set()


def test_without_markers_no_time_is_wrong(world: Json) -> None:
    world["reports"]["11"].update(begin=None, end=None)
    assert the(judged(world), "node.report", "compute01")["verdict"] == "pass"


def test_a_report_that_is_gone_names_every_part(world: Json) -> None:
    del world["reports"]["11"]
    finding = the(judged(world), "node.report", "compute01")
    assert finding["verdict"] == "undetermined"
    assert [part in finding["why"] for part in ("host.json", "gpus.json", "share.json")] == [True] * 3
    cpu = the(judged(world, accelerator="cpu"), "node.report", "compute01")
    assert "gpus.json" not in cpu["why"]


def test_one_machine_under_two_names_is_found(world: Json) -> None:
    world["reports"]["12"]["host"]["hostname"] = "compute01"
    assert odd(judged(world)) == {("node.unique", "fail", "compute02")}


def test_a_job_that_was_refused_hides_no_other(world: Json) -> None:
    world["waited"]["jobs_by_key"]["compute01"] = {
        "key": "compute01",
        "job_id": "0",
        "state": "UNKNOWN",
        "exit_code": None,
        "reason_text": "sbatch refused it",
    }
    del world["reports"]["11"]
    found = judged(world)
    assert ("node.job", "undetermined", "compute01") in odd(found)
    assert (
        "sbatch refused it"
        in next(f for f in found if f["id"] == "node.job" and f["where"]["node"] == "compute01")["why"]
    )
    assert "compute02" not in {node for _other, _other, node in odd(found)}


def about(found: list[Json], node: str) -> set[tuple[str, str]]:
    return {(f["id"], f["verdict"]) for f in found if f["where"].get("node") == node}


def test_the_order_of_the_jobs_does_not_matter(world: Json) -> None:
    as_planned = judged(world)
    world["waited"]["jobs_by_key"] = dict(reversed(world["waited"]["jobs_by_key"].items()))
    assert sorted(map(repr, judged(world))) == sorted(map(repr, as_planned))


@pytest.mark.parametrize("key", NODES)
def test_a_node_whose_key_was_not_returned_is_undetermined_and_hides_no_other(world: Json, key: str) -> None:
    del world["waited"]["jobs_by_key"][key]
    (other,) = set(NODES) - {key}
    found = judged(world)
    assert ("node.job", "undetermined") in about(found, key)
    assert {identity for identity, verdict in about(found, key) if verdict == "pass"} <= COHERENCE  # the pair's job ran
    assert "undetermined" not in {verdict for _identity, verdict in about(found, other)}
    assert key not in probed(world)["nodes"]
    assert repr(key) in next(f for f in found if f["verdict"] == "undetermined" and f["where"] == {"node": key})["why"]


def test_two_nodes_whose_pair_was_not_returned_are_not_coherent(world: Json) -> None:
    del world["waited"]["jobs_by_key"][PAIR]
    assert {(f["id"], f["verdict"]) for f in judged(world) if f["id"] in COHERENCE} == {
        ("share.coherence", "undetermined")
    }


@pytest.mark.parametrize("damage", [None, [], {}, "text"])
def test_without_keys_nothing_is_known_of_any_node(world: Json, damage: t.Any) -> None:
    world["waited"]["jobs"] = list(world["waited"]["jobs_by_key"].values())  # their order proves nothing
    world["waited"]["jobs_by_key"] = damage
    found = judged(world)
    assert {("node.job", "undetermined", node) for node in NODES} <= set(odd(found))
    assert "pass" not in {finding["verdict"] for finding in found}


def test_a_job_that_is_returned_under_the_key_of_another_proves_nothing(world: Json) -> None:
    jobs = world["waited"]["jobs_by_key"]
    jobs["compute01"], jobs["compute02"] = jobs["compute02"], jobs["compute01"]
    assert {("node.job", "undetermined", node) for node in NODES} <= set(odd(judged(world)))


def test_what_a_job_reported_before_it_was_killed_counts(world: Json) -> None:
    world["waited"]["jobs_by_key"]["compute02"].update(state="TIMEOUT", exit_code=None)
    world["reports"]["12"]["gpus"]["gpus"][1]["pcie"]["width"] = 8
    world["reports"]["12"].update(share=None, end=None)
    assert {(i, v) for i, v, node in odd(judged(world)) if node == "compute02"} == {
        ("node.job", "undetermined"),
        ("gpu.pcie_width", "fail"),
    }


def test_a_python_that_is_too_old_is_named(world: Json) -> None:
    world["waited"]["jobs_by_key"]["compute02"].update(state="FAILED", exit_code=86)
    world["reports"]["12"] = {}
    assert ("node.python", "fail", "compute02") in odd(judged(world))


def test_one_gpu_is_confined_only_if_a_step_without_any_opens_none(world: Json) -> None:
    one = {"present": ["/dev/nvidia0"], "openable": ["/dev/nvidia0"]}
    world["reports"]["12"]["confined"] = one
    assert ("scheduler.confinement", "undetermined", "compute02") in odd(judged(world))
    world["reports"]["12"]["without"] = one
    assert ("scheduler.confinement", "fail", "compute02") in odd(judged(world))
    world["reports"]["12"]["without"] = {"present": ["/dev/nvidia0"], "openable": []}
    assert "scheduler.confinement" not in {identity for identity, _other, _other in odd(judged(world))}


@pytest.mark.parametrize("count", [1, 2])
def test_a_step_that_could_not_be_tried_says_why_and_no_more(world: Json, count: int) -> None:
    report = world["reports"]["12"]
    if count == 1:
        report["confined"] = {"present": ["/dev/nvidia0"], "openable": ["/dev/nvidia0"]}
    report["confined" if count == 2 else "without"] = {"problem": "srun did not end within 180 s"}
    finding = next(
        f for f in judged(world) if f["id"] == "scheduler.confinement" and f["where"] == {"node": "compute02"}
    )
    assert (finding["verdict"], finding["why"]) == ("undetermined", "srun did not end within 180 s")
    assert "srun --nodelist=compute02" in finding["remedy"]


def test_a_step_whose_file_is_absent_is_told_by_the_file(world: Json) -> None:
    world["reports"]["12"].update(confined=None, problems={"confined": "confined.json was not written"})
    finding = next(
        f for f in judged(world) if f["id"] == "scheduler.confinement" and f["where"] == {"node": "compute02"}
    )
    assert (finding["verdict"], finding["why"]) == ("undetermined", "confined.json was not written")


def test_a_device_that_is_not_there_proves_nothing(world: Json) -> None:
    world["reports"]["12"]["confined"]["openable"] = ["/dev/zzz"]
    assert ("scheduler.confinement", "undetermined", "compute02") in odd(judged(world))


def test_one_node_has_nobody_to_be_compared_with(world: Json) -> None:
    planned = {**PLANNED, "jobs": [job for job in PLANNED["jobs"] if job["key"] == "compute01"]}
    found = list(nodes.Judging(planned, world["waited"], SETTINGS).findings(world["reports"].items()))
    assert [f["verdict"] for f in found if f["id"] == "share.coherence"] == ["recorded"]


@pytest.mark.parametrize("state", ["NODE_FAIL", "TIMEOUT", "UNKNOWN", "OUT_OF_MEMORY", "PENDING", "CANCELLED"])
def test_a_job_that_did_not_end_well_is_undetermined(world: Json, state: str) -> None:
    world["waited"]["jobs_by_key"]["compute02"].update(state=state, exit_code=None)
    assert ("node.job", "undetermined", "compute02") in odd(judged(world))


def test_a_job_that_failed_by_itself_fails_with_its_messages(world: Json) -> None:
    world["waited"]["jobs_by_key"]["compute02"].update(state="FAILED", exit_code=127)
    world["reports"]["12"]["messages"] = "python3: not found"
    finding = next(f for f in judged(world) if f["id"] == "node.job" and f["where"] == {"node": "compute02"})
    assert (finding["verdict"], finding["value"]) == ("fail", 127)
    assert "python3: not found" in finding["why"]


@pytest.mark.parametrize("part", ["host", "gpus", "share", "confined", "begin", "end"])
def test_a_part_that_was_not_written_is_undetermined(world: Json, part: str) -> None:
    world["reports"]["12"][part] = None
    assert "undetermined" in {verdict for _other, verdict, node in odd(judged(world)) if node == "compute02"}


def test_a_report_that_is_gone_is_undetermined(world: Json) -> None:
    del world["reports"]["12"]
    assert "undetermined" in {verdict for _other, verdict, node in odd(judged(world)) if node == "compute02"}


@pytest.mark.parametrize(("begin", "end", "value"), [(-60.0, 3.0, 60.0), (0.5, 400.0, 396.0)])
def test_a_clock_that_is_off_is_named(world: Json, begin: float, end: float, value: float) -> None:
    world["reports"]["12"].update(begin={"time": START + begin}, end={"time": START + end})
    found = judged(world)
    assert odd(found) == {("node.clock", "fail", "compute02")}
    assert next(f for f in found if f["verdict"] == "fail")["value"] == value


def test_a_step_that_can_open_every_gpu_is_not_confined(world: Json) -> None:
    world["reports"]["12"]["confined"]["openable"] = ["/dev/nvidia0", "/dev/nvidia1"]
    found = judged(world)
    assert odd(found) == {("scheduler.confinement", "fail", "compute02")}
    assert "Set ConstrainDevices=yes" in next(f for f in found if f["verdict"] == "fail")["remedy"]


def test_gpus_that_slurm_does_not_define_are_counted(world: Json) -> None:
    world["reports"]["12"]["gpus"]["device_files"].append("/dev/nvidia2")
    assert ("scheduler.gres_equals_gpus", "fail", "compute02") in odd(judged(world))


def test_what_a_node_should_have_may_differ_from_the_others(world: Json) -> None:
    expect = {"gpu": {"memory_gib": 100}, "node_gpus": {"compute02": {"memory_gib": 500}}}
    assert {(i, node) for i, _other, node in odd(judged(world, **expect))} == {("gpu.memory", "compute02")}


def test_without_gpus_none_are_judged(world: Json) -> None:
    for number in ("11", "12"):
        world["reports"][number].update(gpus=None, confined=None)
    found = judged(world, accelerator="cpu")
    assert odd(found) == set()
    assert not [f for f in found if f["id"].startswith("gpu.")]


def test_a_pair_that_did_not_run_is_undetermined(world: Json) -> None:
    world["waited"]["jobs_by_key"][PAIR].update(state="CANCELLED", exit_code=None)
    world["reports"]["13"]["coherence"] = None
    assert {(i, v) for i, v, _other in odd(judged(world))} >= {("share.coherence", "undetermined")}


JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=4) | st.floats(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=60, deadline=None)
@given(parts=st.dictionaries(st.sampled_from(["host", "gpus", "share", "confined", "begin", "end", "problems"]), JUNK))
def test_whatever_a_node_wrote_never_raises_and_never_passes_for_what_it_broke(parts: Json) -> None:
    numbers = {NODES[0]: "11", NODES[1]: "12", PAIR: "13"}
    base = {"state": "COMPLETED", "exit_code": 0, "started": START, "ended": START + 4, "reason_text": ""}
    waited = {
        "jobs_by_key": {key: {**base, "key": key, "job_id": number} for key, number in numbers.items()},
        "outcomes": {number: {} for number in numbers.values()},
    }
    reports: Json = {"12": parts}
    found = list(nodes.Judging(PLANNED, waited, SETTINGS).findings(reports.items()))
    about = {f["id"]: f["verdict"] for f in found if f["where"].get("node") == "compute02"}
    for identity in ("gpu.pcie_width", "share.fsync_read_back", "node.python"):
        assert about.get(identity) != "pass"
