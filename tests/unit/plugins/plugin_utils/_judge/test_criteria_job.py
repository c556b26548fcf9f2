# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The job's own outcome: what a report is told, and what is no clean end."""

from __future__ import annotations

import pytest
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._judge.job import judge_job

from tests.unit.plugins.plugin_utils._judge.criteria_fake import whole


@pytest.fixture
def job():
    return whole()["job"]


def test_all_that_a_report_is_told_of_a_clean_end(job):
    assert judge_job(job) == {
        "id": "JOB",
        "title": "The Slurm job ended COMPLETED with exit code 0 and no failed step",
        "verdict": "pass",
        "value": "COMPLETED, exit code 0",
        "bound": "COMPLETED, exit code 0",
        "unit": None,
        "source": "job 12 as reported by squeue",
        "why": "on compute01: exit code 0, no failed step",
        "remedy": None,
        "bound_from": "manifest",
        "severity": "gate",
        "against_baseline": False,
    }


@pytest.mark.parametrize(("attempt", "told"), [(0, ""), (1, ", in attempt 2: it was requeued"), (None, "")])
def test_a_pass_says_that_the_job_was_requeued(job, attempt, told):
    assert judge_job({**job, "attempt": attempt})["why"] == f"on compute01: exit code 0, no failed step{told}"
    assert judge_job({**job, "attempt": attempt, "steps": None})["why"].startswith(f"on compute01: exit code 0{told} (")


@pytest.mark.parametrize(("state", "may_live"), [("UNKNOWN", True), ("CANCELLED", False)])
def test_a_job_that_may_still_run_can_be_cancelled_by_what_is_said(job, state, may_live):
    remedy = judge_job({**job, "state": state})["remedy"]
    assert "sacct -j 12" in remedy
    assert ("scancel 12" in remedy) is may_live


@pytest.mark.parametrize("job", [None, [], "COMPLETED", 12])
def test_without_a_job_nothing_is_told_of_one(job):
    judged = judge_job(job)
    assert (judged["verdict"], judged["value"], judged["source"]) == ("undetermined", None, "no job")
    assert (judged["why"], judged["remedy"]) == ("there is no job", "Submit the workload's job first.")


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({}, "the job is CANCELLED, neither done nor failed"),
        ({"reason": "None"}, "the job is CANCELLED, neither done nor failed"),
        ({"reason": "R", "reason_text": ""}, "the job is CANCELLED, neither done nor failed: R"),
        ({"reason": "R", "reason_text": "words"}, "the job is CANCELLED, neither done nor failed: words"),
    ],
)
def test_a_job_without_an_end_says_why_as_far_as_it_is_known(job, change, why):
    judged = judge_job({**job, "state": "CANCELLED", **change})
    assert (judged["verdict"], judged["why"]) == ("undetermined", why)
    assert judged["remedy"] == (
        "Run sacct -j 12 --format=JobID,State%30 to see who cancelled it. "
        "See what happened to it with: scontrol show job 12; sacct -j 12"
    )


@pytest.mark.parametrize("change", [{}, {"reason": "None"}, {"reason": "BeginTime", "reason_text": "words"}])
def test_a_preempted_job_is_told_what_became_of_it_and_what_helps(job, change):
    judged = judge_job({**job, "state": "PREEMPTED", **change})
    assert (judged["verdict"], judged["why"]) == (
        "undetermined",
        "the job is PREEMPTED, neither done nor failed: Slurm gave its resources to a job of higher priority",
    )
    assert judged["remedy"] == (
        "Run it again, or in a partition or QOS that is not preempted (hpc_validation_slurm). "
        "See what happened to it with: scontrol show job 12; sacct -j 12"
    )


@pytest.mark.parametrize(
    ("flags", "shown"),
    [
        (["COMPLETING"], "COMPLETING"),
        (["A", "B"], "A, B"),
        ("COMPLETING", 'its flags are the text "COMPLETING"'),
    ],
)
def test_a_job_that_is_not_at_rest_is_judged_later(job, flags, shown):
    judged = judge_job({**job, "flags": flags})
    assert (judged["verdict"], judged["why"]) == ("undetermined", f"the job has not ended: {shown}")


@pytest.mark.parametrize(
    ("flags", "shown"),
    [(None, "null"), ({}, "an empty object"), ("", 'the text ""'), (0, "0"), (False, "false, a boolean")],
)
def test_flags_that_are_no_list_do_not_say_that_the_job_has_ended(job, flags, shown):
    judged = judge_job({**job, "flags": flags})
    assert (judged["verdict"], judged["why"]) == ("undetermined", f"the job has not ended: its flags are {shown}")


def test_a_job_without_flags_is_not_known_to_have_ended(job):
    del job["flags"]
    assert judge_job(job)["verdict"] == "undetermined"


@pytest.mark.parametrize("steps", [None, []])
def test_steps_that_accounting_does_not_report_are_not_said_to_be_sound(job, steps):
    judged = judge_job({**job, "steps": steps})
    assert judged["verdict"] == "pass"
    assert judged["why"] == "on compute01: exit code 0 (its steps are unknown: accounting has not reported any)"


@pytest.mark.parametrize(
    ("job_id", "shown"),
    [(None, "null"), ("", 'the text ""'), (" ", 'the text " "'), (12, "12"), (["12"], "a list of 1")],
)
def test_a_job_that_does_not_say_which_it_is_does_not_pass(job, job_id, shown):
    judged = judge_job({**job, "job_id": job_id})
    assert (judged["verdict"], judged["why"]) == (
        "undetermined",
        f"which job it is, is unknown: its job_id is {shown}",
    )
    del job["job_id"]
    assert judge_job(job)["verdict"] == "undetermined"
    assert judge_job({**job, "state": "FAILED"})["verdict"] == "fail"


@pytest.mark.parametrize("steps", ["", {}, 0, [None], [{"id": "0", "state": "COMPLETED"}, "1"]])
def test_steps_that_are_none_decide_nothing(job, steps):
    judged = judge_job({**job, "steps": steps})
    assert (judged["verdict"], judged["why"]) == ("undetermined", "the job's steps are not a list of steps")


@pytest.mark.parametrize("key", ["exit_code", "signal", "derived_exit_code"])
@pytest.mark.parametrize(("value", "shown"), [(True, "true, a boolean"), ("0", 'the text "0"'), (0.0, "0")])
def test_a_code_that_is_no_whole_number_decides_nothing(job, key, value, shown):
    judged = judge_job({**job, key: value})
    assert (judged["verdict"], judged["why"]) == ("undetermined", f"the job's {key} is {shown}")


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"exit_code": 1}, "its exit code is 1"),
        ({"signal": 9}, "its signal is 9"),
        ({"derived_exit_code": 2}, "its derived exit code is 2"),
        ({"exit_code": -1}, "its exit code is -1"),
        ({"steps": [{"id": "0", "state": "COMPLETED", "exit_code": 3}]}, "step 0 ended COMPLETED, exit code 3"),
        ({"steps": [{"id": "0", "state": "TIMEOUT", "exit_code": 0}]}, "step 0 ended TIMEOUT, exit code 0"),
        ({"state": "FAILED", "exit_code": 1}, "FAILED, exit code 1"),
        ({"state": "FAILED", "exit_code": 0, "signal": 9}, "FAILED, exit code 0, signal 9"),
    ],
)
def test_a_failure_names_its_code_and_its_node(job, change, why):
    judged = judge_job({**job, **change})
    assert (judged["verdict"], judged["why"]) == ("fail", f"on compute01: {why}")


@pytest.mark.parametrize(
    ("nodes", "where"),
    [
        ([], ""),
        (None, ""),
        ("compute01", ""),
        (["a"], "on a: "),
        (["a", "b", "c", "d"], "on a, b, c, d: "),
        (["a", "b", "c", "d", "e"], "on a, b, c, d and 1 more: "),
        (list("abcdefg"), "on a, b, c, d and 3 more: "),
    ],
)
def test_up_to_four_nodes_are_named(job, nodes, where):
    assert judge_job({**job, "nodes": nodes, "exit_code": 1})["why"] == f"{where}its exit code is 1"


def test_a_step_that_failed_outweighs_one_that_is_not_done(job):
    doubtful = {"id": "0", "state": "RUNNING", "exit_code": 0}
    failed = {"id": "1", "state": "FAILED", "exit_code": 1}
    assert judge_job({**job, "steps": [doubtful]})["why"] == "step 0 is RUNNING"
    for steps in ([doubtful, failed], [failed, doubtful]):
        assert judge_job({**job, "steps": steps})["verdict"] == "fail"


@pytest.mark.parametrize(
    "step",
    [
        {"state": "COMPLETED", "exit_code": None, "signal": None},
        {"state": "COMPLETED", "exit_code": 0, "signal": None},
        {"state": "COMPLETED", "exit_code": 0},
        {"state": "COMPLETED", "signal": 0},
        {"state": "COMPLETED", "exit_code": 0, "signal": 9},
        {"state": "COMPLETED", "exit_code": False, "signal": 0},
        {"state": "COMPLETED", "exit_code": 0, "signal": False},
        {"state": "COMPLETED", "exit_code": "0", "signal": 0},
        {"state": "COMPLETED", "exit_code": 0.0, "signal": 0},
        {"state": "UNKNOWN", "exit_code": 0, "signal": 0},
        {"state": None, "exit_code": 0, "signal": 0},
        *(
            {"state": state, "exit_code": 0, "signal": 0}
            for state in ("CANCELLED", "PREEMPTED", "DEADLINE", "REVOKED", "RUNNING", "PENDING", "SUSPENDED")
        ),
    ],
)
@pytest.mark.parametrize("place", [0, 1])
def test_a_step_that_is_not_known_to_have_ended_well_is_no_success(job, step, place):
    steps = [{"id": "batch", "state": "COMPLETED", "exit_code": 0, "signal": 0}]
    steps.insert(place, {"id": "3", **step})
    judged = judge_job({**job, "steps": steps})
    assert judged["verdict"] == "undetermined"
    assert "step 3 " in judged["why"]


@pytest.mark.parametrize("state", ["FAILED", "TIMEOUT", "OUT_OF_MEMORY", "NODE_FAIL", "BOOT_FAIL"])
def test_a_step_that_failed_fails_the_job_whatever_its_code(job, state):
    for code, signal in ((0, 0), (None, None), (0, 9)):
        step = {"id": "0", "state": state, "exit_code": code, "signal": signal}
        assert judge_job({**job, "steps": [step]})["verdict"] == "fail"


@pytest.mark.parametrize("key", ["exit_code", "signal", "derived_exit_code"])
def test_a_code_that_nobody_told_is_no_success(job, key):
    assert judge_job({**job, key: None})["verdict"] == "undetermined"
    assert judge_job({name: value for name, value in job.items() if name != key})["verdict"] == "undetermined"


@pytest.mark.parametrize("state", ["FAILED", "TIMEOUT", "OUT_OF_MEMORY", "NODE_FAIL", "BOOT_FAIL"])
def test_a_failure_has_a_remedy_of_its_own(job, state):
    remedy = judge_job({**job, "state": state})["remedy"]
    others = {judge_job({**job, "state": other})["remedy"] for other in ("FAILED", "TIMEOUT", "OUT_OF_MEMORY")}
    assert remedy
    assert (remedy in others) == (state in ("FAILED", "TIMEOUT", "OUT_OF_MEMORY"))
    steps = [{"id": "0", "state": state, "exit_code": 1}]
    assert judge_job({**job, "steps": steps})["remedy"] == remedy


@pytest.mark.parametrize("nodes", [["n1"], ["n1", "n2"], [], None, "n1"])
def test_a_node_that_failed_is_named_in_the_command_to_look_at_it(job, nodes):
    remedy = judge_job({**job, "state": "NODE_FAIL", "nodes": nodes})["remedy"]
    assert f"scontrol show node {'n1' if isinstance(nodes, list) and nodes else '<node>'} " in remedy


def test_nothing_that_a_node_is_called_breaks_a_remedy(job):
    remedy = judge_job({**job, "state": "NODE_FAIL", "nodes": ["\x1b[2J{job_id}"]})["remedy"]
    assert "scontrol show node \ufffd[2J{job_id} and" in remedy


def test_unknown_steps_are_told(job):
    assert "its steps are unknown" in judge_job({**job, "steps": None})["why"]


@pytest.mark.parametrize(
    ("attempt", "told"),
    [(0, ""), (None, ""), ("1", ""), (1, ", in attempt 2: it was requeued"), (2, ", in attempt 3: it was requeued")],
)
def test_a_pass_after_a_requeue_says_so(job, attempt, told):
    job["attempt"] = attempt
    assert judge_job(job)["why"] == f"on compute01: exit code 0, no failed step{told}"
    assert judge_job({**job, "steps": None})["why"].startswith(f"on compute01: exit code 0{told} (its steps")


def test_a_job_that_nobody_knows_may_still_run(job):
    look = "See what happened to it with: scontrol show job 12; sacct -j 12"
    assert judge_job({**job, "state": "SUSPENDED"})["remedy"] == look
    assert judge_job({**job, "state": "CANCELLED"})["remedy"].endswith(f" who cancelled it. {look}")
    assert judge_job({**job, "state": "UNKNOWN"})["remedy"] == f"{look}. If it still runs, cancel it: scancel 12"


def test_a_step_that_cannot_be_read_is_said_to_be_that(job):
    job = {**job, "steps": [{"id": "0", "state": "UNKNOWN", "exit_code": 0, "signal": 0}]}
    judged = judge_job(job)
    assert judged["verdict"] == "undetermined"
    assert "what accounting says of step 0 cannot be read" in judged["why"]
