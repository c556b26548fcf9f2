# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What accounting says of a job and cannot be read is never taken for nothing."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.mlops.hpc_validation.plugins.module_utils._slurm import sacct
from ansible_collections.mlops.hpc_validation.plugins.module_utils._slurm.identity import Identity
from ansible_collections.mlops.hpc_validation.plugins.module_utils._slurm.query import ask
from ansible_collections.mlops.hpc_validation.plugins.module_utils._slurm.states import STATES
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._judge.job import judge_job

from tests.unit.plugins.module_utils._slurm.slurm_fake import FakeSlurm, sacct_row

OURS = "hpc_validation:0123456789abcdef"
JOB = sacct_row("1", "COMPLETED")
BATCH = sacct_row("1.batch", "COMPLETED")
STEP = sacct_row("1.0", "COMPLETED")


def judged(accounting: str | None, *, forgotten: bool = False, ids: tuple[str, ...] = ("1",)) -> dict[str, Any]:
    """JOB of job 1, which Slurm says has COMPLETED, by what accounting says of it."""
    jobs: dict[str, dict[str, object]] = {each: {"Comment": OURS, "State": "COMPLETED"} for each in ids}
    slurm = FakeSlurm(jobs={} if forgotten else jobs)
    slurm.accounting = None if accounting is None else {"1": accounting}
    answer = ask(slurm, [Identity(each, OURS) for each in ids], "admin", now=slurm.now, sleep=slurm.sleep)
    return judge_job(answer.jobs["1"])


@pytest.mark.parametrize("forgotten", [False, True])
def test_a_job_whose_steps_all_ended_well_passes(forgotten: bool) -> None:
    assert judged(JOB + BATCH + STEP, forgotten=forgotten)["verdict"] == "pass"
    assert judged(JOB + "\n" + BATCH, forgotten=forgotten)["verdict"] == "pass"


def test_without_accounting_the_job_stands() -> None:
    assert judged(None)["verdict"] == "pass"


UNREADABLE = {
    "an unknown state": sacct_row("1.0", "NEWSTATE"),
    "no state": sacct_row("1.0", ""),
    "more than a state": sacct_row("1.0", "NODE_FAIL by x"),
    "a state by nobody": sacct_row("1.0", "CANCELLED by"),
    "another space": sacct_row("1.0", "CANCELLED\u2003by\u20030"),
    "a field too many": STEP.rstrip("\n") + "|\n",
    "a field too few": STEP.rpartition("|")[0] + "\n",
    "a cut line": STEP[: len(STEP) // 2],
    "a line without its end": STEP.rstrip("\n"),
    "a line cut in its id": "1.",
    "only an id": "1\n",
    "a state that failed and one field too many": sacct_row("1.0", "FAILED").rstrip("\n") + "|x\n",
    "a step's id of other signs": sacct_row("1.0 0", "COMPLETED"),
    "no id": sacct_row("", "COMPLETED"),
    "an id that was not asked for": "77|FAILED\n",
    "words": "sacct: error: something\n",
    "an exit code that is none": sacct_row("1.0", "COMPLETED", ExitCode="x"),
    "an exit code without a signal": sacct_row("1.0", "COMPLETED", ExitCode="0"),
    "a signal": sacct_row("1.0", "COMPLETED", ExitCode="0:9"),
    "a line break of another kind": sacct_row("1.0", "FAILED\u2028COMPLETED"),
    "a line break before the rest": sacct_row("1.0", "FAILED").replace("|", "\x85", 1),
    "the job a second time": sacct_row("1", "FAILED"),
}


@pytest.mark.parametrize("line", UNREADABLE.values(), ids=UNREADABLE)
@pytest.mark.parametrize("forgotten", [False, True])
def test_a_line_of_the_job_that_cannot_be_read_leaves_it_undetermined(line: str, forgotten: bool) -> None:
    assert judged(JOB + BATCH + line, forgotten=forgotten)["verdict"] == "undetermined"
    if line.endswith("\n"):
        assert judged(JOB + line + BATCH, forgotten=forgotten)["verdict"] == "undetermined"


@pytest.mark.parametrize(
    "line",
    [
        sacct_row("1", "NEWSTATE"),
        sacct_row("1", "COMPLETED", ExitCode=""),
        JOB.rstrip("\n") + "|\n",
        JOB[:20],
        sacct_row("", "COMPLETED"),
    ],
)
@pytest.mark.parametrize("forgotten", [False, True])
def test_the_jobs_own_line_too(line: str, forgotten: bool) -> None:
    assert judged(line if not line.endswith("\n") else line + BATCH, forgotten=forgotten)["verdict"] == "undetermined"


def test_a_derived_exit_code_that_cannot_be_read_is_no_success() -> None:
    assert judged(sacct_row("1", "COMPLETED", DerivedExitCode="?") + BATCH, forgotten=True)["verdict"] == "undetermined"


def test_a_line_of_another_job_is_its_own_matter() -> None:
    assert judged(JOB + BATCH + "2.0|NEWSTATE\n", ids=("1", "2"))["verdict"] == "pass"
    assert judged(JOB + BATCH + sacct_row("3.0", "FAILED"))["verdict"] == "pass"


def test_a_line_that_was_cut_is_asked_for_again() -> None:
    slurm = FakeSlurm(jobs={"1": {"Comment": OURS, "State": "COMPLETED"}}, accounting={"1": JOB + BATCH[:9]})

    def sleep(seconds: float) -> None:
        slurm.sleep(seconds)
        slurm.accounting = {"1": JOB + BATCH}

    job = ask(slurm, [Identity("1", OURS)], "admin", now=slurm.now, sleep=sleep).jobs["1"]
    assert (judge_job(job)["verdict"], slurm.count("sacct")) == ("pass", 2)


@pytest.mark.parametrize("state", sorted(STATES - {"COMPLETED"}))
def test_no_step_of_any_state_is_left_out(state: str) -> None:
    told = sacct.parse(JOB + sacct_row("1.0", state), ["1"])
    assert told.rows["1"]["steps"] == [{"id": "0", "state": state, "exit_code": 0, "signal": 0}]
    assert judged(JOB + sacct_row("1.0", state))["verdict"] in ("fail", "undetermined")


@pytest.mark.parametrize(
    ("line", "step"),
    [("1.7|FAILED\n", "7"), ("1.batch|\n", "batch"), ("1|\n", "?"), ("words\n", "?"), ("1.x", "x")],
)
def test_what_cannot_be_read_is_a_step_of_its_own_in_no_known_state(line: str, step: str) -> None:
    told = sacct.parse(JOB + line, ["1"])
    assert told.rows["1"]["steps"] == [{"id": step, "state": "UNKNOWN", "exit_code": None, "signal": None}]


def test_every_field_of_a_record_is_read() -> None:
    values = {
        "ExitCode": "3:9",
        "DerivedExitCode": "0:15",
        "NodeList": "n[1-2]",
        "AllocTRES": "cpu=1,gres/gpu=2",
        "Partition": "gpu",
        "User": "admin",
        "TimelimitRaw": "5",
        "Reason": "None",
    }
    told = sacct.parse(sacct_row("1", "FAILED", **values), ["1"])
    assert told.rows == {
        "1": {
            "job_id": "1",
            "user": "admin",
            "state": "FAILED",
            "flags": [],
            "exit_code": 3,
            "signal": 9,
            "derived_exit_code": 143,
            "reason": "None",
            "nodes": ["n1", "n2"],
            "gpus": 2,
            "partition": "gpu",
            "submitted": 1000.0,
            "started": 1001.0,
            "ended": 1006.0,
            "time_limit_seconds": 300,
            "steps": [],
        }
    }
    assert (
        sacct.parse(sacct_row("1", "FAILED", TimelimitRaw="UNLIMITED"), ["1"]).rows["1"]["time_limit_seconds"] is None
    )
