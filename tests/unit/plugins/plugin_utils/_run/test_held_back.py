# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A workload that the partition cannot hold is undetermined by itself: the run goes on, and is no pass."""

from __future__ import annotations

import copy
import json
import typing as t
from pathlib import Path
from xml.etree import ElementTree

import pytest
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._common import schema
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._findings.columns import Table
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._preflight import sweep
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._report import summary
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._run import held_back, runs

from tests.unit import fleet_reports
from tests.unit.plugins.plugin_utils._findings.made import finding

Json = dict[str, t.Any]
VERSIONS = {"collection": "0.1.0", "ansible": "2.19.14", "python": "3.11.7"}
SMALL, LARGE, NEEDS = "MLOPS-1.1", "MLOPS-2.1", "MLOPS-2.2"
WHY = "it asks for 2 nodes with gpu:16 each; 0 of 3 nodes of partition gpu define it, none more than gpu:8"


def holding(identity: str, verdict: str, workload: str | None = LARGE, why: str = WHY) -> Json:
    found = finding(identity, verdict, node=None, why=why)
    return {**found, "where": {"workload": workload} if workload else {"node": "n1"}}


@pytest.mark.parametrize(
    ("found", "holds"),
    [
        (holding("scheduler.gres", "undetermined"), True),
        (holding("scheduler.gres", "fail"), True),
        (holding("scheduler.nodes", "undetermined"), True),
        (holding("scheduler.nodes", "pass"), False),
        (holding("scheduler.gres", "recorded"), False),
        (holding("scheduler.gres", "undetermined", workload=None), False),
        (holding("scheduler.partition", "undetermined"), False),
        (holding("step.failed", "undetermined"), False),
    ],
)
def test_what_holds_a_workload_back(found: Json, holds: bool) -> None:
    others = [finding("gpu.ecc", "fail"), holding("scheduler.nodes", "pass", SMALL)]
    table = Table([*others, found])
    assert held_back.is_one(found) is holds
    assert held_back.findings(table) == ([found] if holds else [])
    assert held_back.reasons(table) == ({LARGE: WHY} if holds else {})
    assert held_back.others(table) == 1 + (not holds and found["verdict"] in ("fail", "undetermined"))


@pytest.mark.parametrize(
    ("held", "workloads", "expected"),
    [
        ({}, {"A": [], "B": ["A"]}, {}),
        ({"A": "a"}, {"A": [], "B": []}, {"A": "a"}),
        ({"A": "a"}, {"A": [], "B": ["A"], "C": ["B"]}, {"A": "a", "B": "it needs A", "C": "it needs B"}),
        ({"A": "a", "B": "b"}, {"A": [], "B": ["A"], "C": ["A", "B"]}, {"A": "a", "B": "b", "C": "it needs A, B"}),
        ({"X": "x"}, {"A": ["X"]}, {}),  # X is not of this run
    ],
)
def test_what_needs_one_that_is_held_back_is_not_submitted_either(
    held: dict[str, str], workloads: dict[str, list[str]], expected: dict[str, str]
) -> None:
    manifests = [{"id": name, "needs": needs} for name, needs in workloads.items()]
    found = held_back.with_dependents(held, manifests)
    assert list(found.items()) == list(expected.items())
    assert held_back.with_dependents({}, [{"id": "A"}]) == {}


def edge(identity: str, verdict: str, host: str, workload: str | None = LARGE, why: str = "gone") -> Json:
    where = {"host": host, **({"workload": workload} if workload else {})}
    return {**finding(identity, verdict, node=None, why=why), "where": where}


@pytest.mark.parametrize(
    ("found", "reasons", "others"),
    [
        ([edge("edge.python", "fail", "e1", why="3.7")], {LARGE: "e1: 3.7"}, 0),
        ([edge("edge.wheels", "undetermined", "e1", why="musl")], {LARGE: "e1: musl"}, 0),
        ([edge("edge.reached", "undetermined", name) for name in ("e1", "e2")], {LARGE: "e1: gone; e2: gone"}, 0),
        # One of several hosts that cannot be reached holds nothing back, and stops nothing else.
        ([edge("edge.reached", "undetermined", "e1", workload=None)], {}, 0),
        ([edge("edge.reached", "pass", "e1", workload=None)], {}, 0),
        ([edge("edge.reached", "undetermined", "e1", workload=None), finding("gpu.ecc", "fail")], {}, 1),
        (
            [edge("edge.python", "fail", "e1"), holding("scheduler.gres", "undetermined")],
            {LARGE: f"{WHY}; e1: gone"},
            0,
        ),
    ],
)
def test_nothing_depends_on_an_edge_host_but_what_is_measured_there(
    found: list[Json], reasons: dict[str, str], others: int
) -> None:
    table = Table(found)
    assert (held_back.reasons(table), held_back.others(table)) == (reasons, others)


# -- from the facts about the cluster to the verdict


@pytest.fixture
def started(tmp_path: Path, example: t.Callable[[str], t.Any]) -> t.Callable[..., Path]:
    """(what else the preflight found) → the folder of a run of three workloads; the partition is too small for one."""

    def start(*more: Json) -> Path:
        small = example("manifest")
        large = copy.deepcopy({**small, "id": LARGE})
        large["resources"].update(nodes=2, gres="gpu:16")
        plan = {
            "title": "All",
            "accelerator": "cuda",
            "workloads": [small, large, {**small, "id": NEEDS, "needs": [LARGE]}],
        }
        folder = runs.start(tmp_path / "results", plan, VERSIONS)
        jobs = sweep.plan(
            folder, fleet_reports.cluster(3), fleet_reports.SETTINGS, [], (plan["workloads"], {}), dry=True
        )
        assert jobs == 4
        runs.record(folder, "findings", more)
        return folder

    return start


def passed(folder: Path, example: t.Callable[[str], t.Any]) -> None:
    """Record that the small workload ran and passed."""
    plan = json.loads((folder / "plan.json").read_text())
    judged = {**example("judged"), "verdict": "pass", "severity": "gate"}
    names = ["JOB", *(criterion["id"] for criterion in plan["workloads"][0]["criteria"])]
    criteria = [{**judged, "id": name} for name in names]
    runs.record(folder, "workload", {"id": SMALL, "job": example("job"), "data": {}, "criteria": criteria})


def test_the_others_run_and_those_that_need_it_do_not(started: t.Callable[..., Path]) -> None:
    folder = started()
    assert runs.amiss(folder) == 0
    assert runs.not_submitted(folder) == {LARGE: WHY, NEEDS: f"it needs {LARGE}"}


def test_what_is_wrong_with_the_machine_still_counts(started: t.Callable[..., Path]) -> None:
    folder = started(finding("gpu.ecc", "fail"), finding("node.job", "undetermined"), finding("node.clock"))
    assert runs.amiss(folder) == 2


def test_the_verdict_is_undetermined_and_tells_the_numbers_once(
    started: t.Callable[..., Path], example: t.Callable[[str], t.Any]
) -> None:
    folder = started()
    passed(folder, example)
    verdict = runs.finish(folder)
    assert schema.problems("verdict", verdict) == []
    assert [(each["verdict"], each["why"]) for each in verdict["workloads"]] == [
        ("pass", "every applicable criterion passed"),
        ("undetermined", f"not_run: {WHY}"),
        ("undetermined", f"not_run: {LARGE} is undetermined"),
    ]
    assert verdict["verdict"] == "undetermined"
    assert verdict["why"] == f"{LARGE}: not_run: {WHY}; {NEEDS}: not_run: {LARGE} is undetermined"
    (found,) = verdict["findings"]
    assert (found["id"], found["where"], found["value"]) == ("scheduler.gres", {"workload": LARGE}, 0)
    lines = summary.summary(verdict, folder)
    assert f"  not_run: {WHY}" in lines
    assert any("do:" in line and "hpc_validation_workload_options" in line for line in lines)
    suites = ElementTree.parse(folder / "junit.xml").getroot()
    errors = {suite.get("name"): suite.get("errors") for suite in suites}
    assert [errors[name] for name in errors if name and name.startswith((LARGE, NEEDS))] == ["1", "1"]
    assert next(error.get("message") for error in suites.iterfind(".//error")) == f"not_run: {WHY}"


def test_a_node_without_a_result_is_told_all_the_same(started: t.Callable[..., Path]) -> None:
    folder = started()
    runs.record(folder, "probed", {"scope": [{"name": "n001", "gpus": 8}], "nodes": [], "gpus": []})
    assert {each["id"] for each in runs.finish(folder)["findings"]} == {"scheduler.gres", "coverage.node"}


def test_a_finding_that_holds_nothing_back_is_a_reason(started: t.Callable[..., Path]) -> None:
    folder = started(finding("gpu.ecc", "undetermined", why="not asked"))
    assert runs.finish(folder)["why"].startswith("gpu.ecc: n1: not asked; MLOPS-1.1: not_run: the run ended")


def test_an_edge_host_that_fails_is_a_reason_of_the_run_itself(
    started: t.Callable[..., Path], example: t.Callable[[str], t.Any]
) -> None:
    folder = started(edge("edge.python", "fail", "edge01", why="it is 3.7.3"))
    passed(folder, example)
    verdict = runs.finish(folder)
    assert verdict["verdict"] == "fail"
    assert verdict["why"] == "edge.python: MLOPS-2.1, edge01: it is 3.7.3"
    assert verdict["workloads"][1]["why"] == f"not_run: {WHY}; edge01: it is 3.7.3"


def test_an_edge_host_that_cannot_be_reached_makes_no_pass(
    started: t.Callable[..., Path], example: t.Callable[[str], t.Any]
) -> None:
    folder = started(edge("edge.reached", "undetermined", "edge02", workload=None, why="no route"))
    assert runs.amiss(folder) == 0
    passed(folder, example)
    verdict = runs.finish(folder)
    assert verdict["verdict"] == "undetermined"
    assert verdict["why"].startswith("edge.reached: edge02: no route; ")


def test_before_the_end_nothing_is_said_of_it(started: t.Callable[..., Path]) -> None:
    folder = started()
    assert runs.passed(folder) == []
    verdict = json.loads((folder / "verdict.json").read_text())
    assert {each["why"] for each in verdict["workloads"]} == {
        "the run did not finish: it was interrupted or killed, or is still running"
    }
