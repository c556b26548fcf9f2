# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A record is held against its plan: what the plan makes a gate is one, and JOB is what the recorded job says."""

from __future__ import annotations

import pytest
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._run import as_planned, runs

VERSIONS = {"collection": "0.1.0", "ansible": "2.19.14", "python": "3.11.7"}
CUDA = {"applies_when": {"accelerator": ["cuda"]}}
OPTIONAL = {"within": {"from": "r", "tolerance": 0.1, "optional": True}}


@pytest.fixture
def recorded(example):
    """(changes of b, changes of JOB, job) → the record of the gates a and b."""

    def make(b=None, job_criterion=None, **parts):
        judged = {**example("judged"), "verdict": "pass", "severity": "gate"}
        criteria = [
            {**judged, "id": "JOB", **(job_criterion or {})},
            {**judged, "id": "a"},
            {**judged, "id": "b", **(b or {})},
        ]
        return {"id": "MLOPS-1.1", "job": example("job"), "data": {}, "criteria": criteria, **parts}

    return make


@pytest.fixture
def verdict(tmp_path, example):
    """(record, what the plan says of b) → the verdict of the run and why its workload has it."""

    def make(record, b=None):
        manifest = {**example("manifest"), "criteria": [{"id": "a"}, {"id": "b", **(b or {})}]}
        plan = {"title": "t", "accelerator": "cuda", "workloads": [manifest]}
        folder = runs.start(tmp_path / "results", plan, VERSIONS)
        runs.record(folder, "workload", record)
        passed = runs.passed(folder)
        document = runs.finish(folder)
        assert (passed == ["MLOPS-1.1"]) is (document["verdict"] == "pass")
        return document["verdict"], document["workloads"][0]["why"]

    return make


def test_two_gates_that_passed_are_a_pass(recorded, verdict):
    assert verdict(recorded()) == ("pass", "every applicable criterion passed")


@pytest.mark.parametrize(
    "judged",
    [
        {"severity": "record", "verdict": "fail"},
        {"severity": "record", "verdict": "recorded"},
        {"severity": "record", "verdict": "pass"},
        {"severity": "gate", "verdict": "recorded"},
    ],
)
@pytest.mark.parametrize("planned", [{}, {"severity": "gate"}])
def test_a_gate_that_is_only_recorded_is_no_pass(recorded, verdict, judged, planned):
    assert verdict(recorded(judged), planned) == ("undetermined", "planned as a gate, but only recorded: b")


@pytest.mark.parametrize("judged", [{"severity": "record", "verdict": "recorded"}, {"severity": "gate"}])
def test_what_is_planned_to_be_recorded_may_be_that_or_a_gate(recorded, verdict, judged):
    assert verdict(recorded(judged), {"severity": "record"})[0] == "pass"


@pytest.mark.parametrize(
    ("planned", "expected"),
    [
        ({}, "undetermined"),
        ({"within": {"from": "r", "tolerance": 0.1}}, "undetermined"),
        ({"each": {"within": {"from": "r", "tolerance": 0.1}}}, "undetermined"),
        ({"each": {"gt": 1}}, "undetermined"),
        (CUDA, "pass"),
        (OPTIONAL, "pass"),
        ({"each": OPTIONAL}, "pass"),
    ],
)
def test_only_what_has_a_condition_may_not_apply(recorded, verdict, planned, expected):
    found, why = verdict(recorded({"verdict": "not_applicable"}), planned)
    assert found == expected
    assert ("without a condition: b" in why) is (expected == "undetermined")


@pytest.mark.parametrize(
    "judged",
    [
        {"severity": "record"},
        {"severity": "record", "verdict": "fail"},
        {"verdict": "recorded"},
        {"verdict": "not_applicable"},
        {"verdict": "waived"},
    ],
)
def test_the_jobs_outcome_is_a_gate_that_always_applies(recorded, verdict, judged):
    found, why = verdict(recorded(job_criterion=judged))
    assert found == "undetermined"
    assert "JOB" in why


@pytest.mark.parametrize(
    "changes", [None, {"state": "RUNNING"}, {"state": "FAILED"}, {"exit_code": 1}, {"flags": ["COMPLETING"]}]
)
def test_the_jobs_outcome_passes_only_if_the_recorded_job_does(recorded, verdict, example, changes):
    job = None if changes is None else {**example("job"), **changes}
    found, why = verdict(recorded(job=job))
    assert found == "undetermined"
    assert why.startswith("JOB is recorded as a pass, but of the recorded job: ")


@pytest.mark.parametrize("outcome", ["fail", "undetermined"])
def test_an_outcome_that_is_no_pass_stands(recorded, example, outcome):
    record = recorded(job_criterion={"verdict": outcome}, job={**example("job"), "state": "RUNNING"})
    assert as_planned.differences({"criteria": [{"id": "a"}, {"id": "b"}]}, record) == []
