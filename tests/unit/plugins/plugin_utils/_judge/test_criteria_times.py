# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A file whose own time lies outside the job was not written by it."""

from __future__ import annotations

import pytest

from tests.unit.plugins.plugin_utils._judge.criteria_fake import EACH, one, whole

CRITERION = {"query": "metrics.accuracy", "gt": 0.95}


@pytest.mark.parametrize(
    ("mtime", "verdict", "words"),
    [
        (1000.0, "pass", ""),
        (1060.0, "pass", ""),
        (700.0, "pass", ""),
        (1360.0, "pass", ""),
        (699.0, "undetermined", "/out/metrics.json says that it was written 301 s before the job began"),
        (1361.0, "undetermined", "/out/metrics.json says that it was written 301 s after the job ended"),
        (0, "undetermined", "before the job began"),
        (4e9, "undetermined", "after the job ended"),
    ],
)
def test_a_file_that_is_too_old_or_too_new_is_no_evidence(mtime, verdict, words):
    evidence = whole()
    evidence["job"].update(started=1000.0, ended=1060.0)
    evidence["files"]["metrics"]["mtime"] = mtime
    judged = one(evidence, **CRITERION)
    assert judged["verdict"] == verdict, judged
    assert words in judged["why"]


@pytest.mark.parametrize(
    ("mtime", "verdict"), [(1060.0, "pass"), (1361.0, "pass"), (9000.0, "pass"), (699.0, "undetermined")]
)
def test_what_the_controller_adds_comes_after_the_job_and_not_before_it(mtime, verdict):
    evidence = whole()
    evidence["job"].update(started=1000.0, ended=1060.0)
    evidence["edge"] = {"job_id": evidence["job"]["job_id"], "attempt": evidence["job"]["attempt"], "expected": 1}
    evidence["files"]["edge"] = {"path": "/out/edge/edge.json", "mtime": mtime}
    assert one(evidence, query="edge.expected", eq=1)["verdict"] == verdict


@pytest.mark.parametrize("times", [{}, {"started": None, "ended": None}, {"started": "yesterday", "ended": True}])
def test_where_no_times_are_known_the_file_is_judged_by_its_stamp_alone(times):
    evidence = whole()
    evidence["job"].update(times)
    assert one(evidence, **CRITERION)["verdict"] == "pass"


EVERY_SOURCE = [
    CRITERION,
    {"query": "gpu.fields.util.mean", "gt": 0},
    {"each": {**EACH, "gt": 0}},
    {"log": ["stdout", "stderr"], "absent": "cuda_errors"},
    {"artifact": "model.pt", "exists": True},
]


@pytest.mark.parametrize("criterion", EVERY_SOURCE, ids=str)
@pytest.mark.parametrize(
    ("state", "began"),
    [
        ("PENDING", False),
        ("CANCELLED", False),
        ("DEADLINE", False),
        ("PREEMPTED", False),
        ("COMPLETED", True),
        ("FAILED", True),
        ("UNKNOWN", True),  # as far as anybody knows
        (None, True),
        (["RUNNING"], False),
    ],
)
def test_what_lies_in_the_place_of_a_job_that_never_began_is_an_older_ones(criterion, state, began):
    evidence = whole()
    evidence["job"].update(state=state, started=None)
    judged = one(evidence, **criterion)
    assert ("never started" in judged["why"]) is not began
    if not began:
        assert (judged["verdict"], judged["value"]) == ("undetermined", None)
    evidence["job"]["started"] = 1000.0
    assert "never started" not in one(evidence, **criterion)["why"]
    del evidence["job"]["started"]
    why = one(evidence, **criterion)["why"]
    assert "never started" not in why
    assert "judging it failed" not in why


@pytest.mark.parametrize("query", ["files.metrics.size", 'artifacts."model.pt".size'])
def test_files_of_a_job_that_never_began_are_an_older_ones(query):
    evidence = whole()
    assert one(evidence, query=query, ge=1)["verdict"] == "pass"
    evidence["job"].update(state="CANCELLED", started=None)
    assert "never started" in one(evidence, query=query, ge=1)["why"]


def test_how_many_gpus_a_job_asked_for_is_known_before_it_began():
    evidence = whole()
    evidence["job"].update(state="PENDING", started=None)
    assert one(evidence, query="job.gpus", ge=1)["verdict"] == "pass"


def test_a_job_that_has_not_ended_still_has_a_beginning():
    evidence = whole()
    evidence["job"].update(started=1000.0, ended=None)
    evidence["files"]["metrics"]["mtime"] = 1.0
    assert one(evidence, **CRITERION)["verdict"] == "undetermined"


@pytest.mark.parametrize(
    ("oldest", "newest", "verdict", "words"),
    [
        (1001.0, 1059.0, "pass", ""),
        (700.0, 1360.0, "pass", ""),
        (1001.0, 4660.0, "undetermined", "/out/gpu.jsonl has a row of 3600 s after the job ended"),
        (-2600.0, 1059.0, "undetermined", "/out/gpu.jsonl has a row of 3600 s before the job began"),
        (None, None, "pass", ""),
    ],
)
def test_samples_by_a_clock_that_was_set_while_the_job_ran_are_no_evidence(oldest, newest, verdict, words):
    evidence = whole()
    evidence["gpu"] = {"rows": 3, "malformed": 0, "fields": {"time": {"min": oldest, "max": newest}}}
    evidence["job"].update(started=1000.0, ended=1060.0)
    evidence["files"]["gpu"] = {"path": "/out/gpu.jsonl", "mtime": 1060.0}
    judged = one(evidence, query="gpu.rows", eq=3)
    assert judged["verdict"] == verdict, judged
    assert words in judged["why"]


def test_the_time_in_a_row_of_the_workload_may_be_any_number():
    evidence = whole()
    evidence["job"].update(started=1000.0, ended=1060.0)
    evidence["files"]["metrics"]["mtime"] = 1060.0
    evidence["metrics"]["fields"] = {"time": {"min": 0.0, "max": 1e6}}
    assert one(evidence, **CRITERION)["verdict"] == "pass"


@pytest.mark.parametrize("fields", [None, [], {"time": 1.0}, {"time": None}, {}])
def test_samples_of_another_shape_tell_no_times(fields):
    evidence = whole()
    evidence["job"].update(started=1000.0, ended=1060.0)
    evidence["gpu"] = {"rows": 3, "malformed": 0, "fields": fields}
    evidence["files"]["gpu"] = {"path": "/out/gpu.jsonl", "mtime": 1060.0}
    assert one(evidence, query="gpu.rows", eq=3)["verdict"] == "pass"
