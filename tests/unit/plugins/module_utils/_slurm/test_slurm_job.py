# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One job dictionary, whoever told it: what is a guess of the scheduler's is not in it, times are the job's own."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.mlops.hpc_validation.plugins.module_utils._slurm.job import empty, from_row, has_ended

NOW = 1100.0
ENDED = {"state": "COMPLETED", "nodes": ["n1"], "submitted": 1000.0, "started": 1010.0, "ended": 1030.0}
CODES = {"exit_code": 3, "signal": 9, "derived_exit_code": 4}


def job(**row: Any) -> dict[str, Any]:
    return from_row({"job_id": "7", **row}, "squeue", NOW)


def test_of_an_unknown_job_nothing_is_told():
    assert empty("7") == {
        "job_id": "7",
        "attempt": 0,
        "name": "",
        "user": "",
        "state": "UNKNOWN",
        "flags": [],
        "exit_code": None,
        "signal": None,
        "derived_exit_code": None,
        "reason": "",
        "reason_text": "neither slurmctld nor accounting knows this job",
        "nodes": [],
        "gpus": None,
        "partition": "",
        "submitted": None,
        "started": None,
        "ended": None,
        "queued_seconds": None,
        "run_seconds": None,
        "time_limit_seconds": None,
        "stdout": "",
        "stderr": "",
        "steps": None,
        "tail": [],
        "script_sha256": None,
        "comment": "",
        "source": "none",
    }


def test_a_row_is_taken_as_it_is_but_for_what_a_job_has_not():
    told = {**ENDED, **CODES, "name": "canary", "user": "admin", "gpus": 2, "partition": "gpu", "comment": "ours"}
    assert job(**told, asks_gpus=True) == {
        **empty("7"),
        **told,
        "source": "squeue",
        "queued_seconds": 10.0,
        "run_seconds": 20.0,
        "reason_text": "",
    }


@pytest.mark.parametrize("state", ["RUNNING", "PENDING", "UNKNOWN"])
def test_what_has_not_ended_has_neither_codes_nor_an_end(state):
    found = job(**{**ENDED, **CODES, "state": state})
    assert [found[key] for key in (*CODES, "ended")] == [None] * 4


@pytest.mark.parametrize(
    ("state", "nodes", "started"),
    [
        ("PENDING", ["n1"], None),  # a guess of the scheduler's
        ("RUNNING", ["n1"], 1010.0),
        ("RUNNING", [], 1010.0),
        ("UNKNOWN", [], 1010.0),
        ("CANCELLED", [], None),  # it was never given a node
        ("CANCELLED", ["n1"], 1010.0),
    ],
)
def test_only_what_ran_has_a_start(state, nodes, started):
    assert job(**{**ENDED, "state": state, "nodes": nodes})["started"] == started


@pytest.mark.parametrize(
    ("told", "queued", "run"),
    [
        ({}, 10.0, 20.0),
        ({"state": "RUNNING"}, 10.0, 90.0),
        ({"state": "PENDING"}, 100.0, None),
        ({"state": "CANCELLED", "nodes": []}, 30.0, None),
        ({"state": "CANCELLED", "nodes": [], "ended": None}, 100.0, None),
        ({"submitted": None}, None, 20.0),
        ({"submitted": 1020.0}, 0.0, 20.0),  # a clock was set back
        ({"ended": 1010.0}, 10.0, 1.0),  # within one of Slurm's whole seconds
        ({"ended": 1011.0}, 10.0, 1.0),
        ({"ended": 1005.0}, 10.0, None),  # a clock was set back while it ran
        ({"state": "RUNNING", "started": 1200.0}, 200.0, 0.0),
        ({"started": None}, 30.0, None),
        ({"ended": None}, 10.0, 90.0),
    ],
)
def test_how_long_it_waited_and_ran(told, queued, run):
    found = job(**{**ENDED, **told})
    assert (found["queued_seconds"], found["run_seconds"]) == (queued, run)


@pytest.mark.parametrize(
    ("state", "reason", "flags", "words"),
    [
        ("UNKNOWN", "Priority", [], "Slurm printed a state that is not one of its own"),
        ("PENDING", "PartitionTimeLimit", [], "its time limit is longer than its partition allows"),
        ("FAILED", "NonZeroExitCode", ["COMPLETING"], "the script ended with a non-zero exit code"),
        ("FAILED", "None", ["COMPLETING", "STAGE_OUT"], "completing, stage_out"),
        ("FAILED", "", [], ""),
        ("FAILED", "", "COMPLETING", ""),
    ],
)
def test_the_reason_is_in_words(state, reason, flags, words):
    assert words in job(state=state, reason=reason, flags=flags)["reason_text"]
    if not words:
        assert job(state=state, reason=reason, flags=flags)["reason_text"] == ""


def test_a_pending_job_without_a_reason_is_pending_for_one_that_is_not_told():
    assert job(state="PENDING", reason="", flags=["REQUEUED"])["reason_text"] != "requeued"


@pytest.mark.parametrize(
    ("state", "flags", "ended"),
    [
        ("COMPLETED", [], True),
        ("COMPLETED", ["COMPLETING"], False),
        ("RUNNING", [], False),
        ("UNKNOWN", [], False),
        ("COMPLETED", None, False),  # which flags it has is not known
    ],
)
def test_when_it_has_ended(state, flags, ended):
    assert has_ended({"state": state, "flags": flags}) is ended
