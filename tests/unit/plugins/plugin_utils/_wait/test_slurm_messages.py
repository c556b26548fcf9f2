# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a person reads: progress lines and failure messages, with nothing of foreign origin left raw."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.mlops.hpc_validation.plugins.module_utils._slurm.job import empty
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._wait import messages
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._wait.messages import message, submitted_line
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._wait.progress import end_line, job_line, seconds


def job(**values: Any) -> dict[str, Any]:
    return {**empty("12"), "name": "train", "nodes": ["n1"], "stderr": "/m/a b.err", "stdout": "/m/a.out", **values}


def told(outcome: str, **values: Any) -> dict[str, dict[str, Any]]:
    return {"12": {"outcome": outcome, "why": "", "remedy": "", "cancelled": False, **values}}


@pytest.mark.parametrize(
    ("value", "words"),
    [(0, "0 s"), (99.9, "99 s"), (200, "3 min 20 s"), (7500, "2 h 5 min"), (None, "?"), (-1, "?"), (True, "?")],
)
def test_seconds(value: object, words: str) -> None:
    assert seconds(value) == words


def test_a_pending_line_says_why() -> None:
    pending = job(state="PENDING", nodes=[], reason="Resources", reason_text="waiting for nodes to become free")
    line = job_line(pending, {}, 4.0, 600.0)
    assert line == "job 12 train: PENDING for 4 s of at most 10 min 0 s: waiting for nodes to become free (Resources)"


def test_a_running_line_says_how_far_it_is() -> None:
    progress = {"progress": {"epoch": 2, "epochs": 5, "step": 40, "steps": 79, "loss": 0.12345, "eta_seconds": 41}}
    line = job_line(job(state="RUNNING", attempt=1), progress, 65.0, None)
    assert line == (
        "job 12 train: RUNNING (attempt 1) for 65 s on n1: epoch 2/5, step 40/79, loss 0.1235, about 41 s left"
    )


def test_a_running_line_has_the_limit_until_the_job_trains() -> None:
    running = job(state="RUNNING")
    assert job_line(running, {}, 65.0, 600.0) == "job 12 train: RUNNING for 65 s of at most 10 min 0 s on n1"
    trains = {"progress": {"step": 4, "steps": 7}}
    assert job_line(running, trains, 65.0, 600.0) == "job 12 train: RUNNING for 65 s on n1: step 4/7"


def test_a_running_line_names_the_leg_that_has_begun() -> None:
    line = job_line(job(state="RUNNING"), {"progress": {"attempt": 0, "time": 5.0, "leg": "resumed"}}, 65.0, None)
    assert line == "job 12 train: RUNNING for 65 s on n1: leg resumed"


def test_names_are_cleaned() -> None:
    line = job_line(job(state="RUNNING", name="a\x1b]0;x\x07b\nc"), {}, 1.0, None)
    assert line.startswith("job 12 ab c: RUNNING")
    assert "\x1b" not in end_line(job(state="FAILED", name="\x1b[2J"))
    assert "\x1b" not in submitted_line({"job_id": "12", "name": "\x1b[2J", "attached": False})


def test_a_failure_names_signal_log_and_commands() -> None:
    failed = job(
        state="FAILED", exit_code=0, signal=9, run_seconds=3.0, tail=["one", "two"], reason_text="it was killed"
    )
    text = message([failed], told("ended"))
    assert "FAILED, signal 9, after 3 s on n1: it was killed" in text
    assert "one | two" in text
    assert "tail -n 50 '/m/a b.err'" in text
    assert "scontrol show job 12" in text


@pytest.mark.parametrize(
    ("outcome", "words"),
    [
        ("never_starts", "can never start: because"),
        ("queue_timeout", "was not started: because"),
        ("run_timeout", "did not end: because"),
        ("lost", "is unknown: because"),
        ("undetermined", "is unknown: because"),
    ],
)
def test_every_outcome_has_its_sentence(outcome: str, words: str) -> None:
    text = message([job(state="UNKNOWN")], told(outcome, why="because", remedy="do that"))
    assert words in text
    assert "do that" in text
    assert "scancel 12" in text
    assert "scancel" not in message([job(state="CANCELLED")], told(outcome, cancelled=True)).replace("scancel 12'", "")


@pytest.mark.parametrize(
    ("state", "advice"),
    [("OUT_OF_MEMORY", "more memory"), ("NODE_FAIL", "scontrol show node n1"), ("TIMEOUT", "more time")],
)
def test_states_carry_advice(state: str, advice: str) -> None:
    assert advice in message([job(state=state)], told("ended"))


def test_many_failures_are_summed_up() -> None:
    jobs = [job(state="FAILED", job_id=str(number)) for number in range(1, 9)] + [job(state="COMPLETED", job_id="9")]
    text = message(jobs, {})
    assert text.startswith("8 of 9 jobs did not complete.")
    assert "Also: 6 FAILED, 7 FAILED, 8 FAILED." in text


def _entry(job_id: int, **values: object) -> dict[str, object]:
    return {"job_id": str(job_id), "name": f"job-{job_id}", "attached": False, "refused": None, **values}


def test_one_submission_is_a_line_of_its_own() -> None:
    assert messages.submitted_lines([_entry(7)]) == [messages.submitted_line(_entry(7))]


def test_several_submissions_are_one_line_and_others_have_their_own() -> None:
    entries = [_entry(7), _entry(8, attached=True), _entry(9, refused="sbatch refused it"), _entry(10)]
    first, *others = messages.submitted_lines(entries)
    assert first.startswith("jobs 7 to 10 submitted: job-[7,10];")
    assert first.endswith("scancel 7 10")
    assert others == [messages.submitted_line(entries[1]), "sbatch refused it"]


def test_a_thousand_submissions_are_one_short_line() -> None:
    (line,) = messages.submitted_lines([_entry(number) for number in range(1000)])
    assert len(line) < 240
