# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The controller's half: how often it asks again where the asking itself fails, and what it returns."""

from __future__ import annotations

from unittest import mock

import pytest
from ansible.errors import AnsibleActionFail, AnsibleConnectionFailure
from ansible_collections.mlops.hpc_validation.plugins.action import slurm_job
from ansible_collections.mlops.hpc_validation.plugins.module_utils._slurm.job import empty
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._wait.waiting import Waiting

CALL_SECONDS = 0.35  # what a call of a module takes that fails at once


class Clock:
    def __init__(self):
        self.now = 1000.0

    def monotonic(self):
        return self.now

    def sleep(self, seconds):
        self.now += seconds


@pytest.fixture
def action(monkeypatch):
    """An action whose calls of slurm_job_info are answered by `action.answer`, and whose clock is its own."""
    made = object.__new__(slurm_job.ActionModule)
    made.clock, made.calls, made.lines = Clock(), 0, []
    made._args = {"controller_timeout": 300.0, "progress_interval": 30.0, "tail": 20, "fail_on_state": True}
    made._connection = mock.MagicMock()
    made._say = made.lines.append
    monkeypatch.setattr(slurm_job, "time", made.clock)

    def call(_name, _arguments):
        made.calls += 1
        made.clock.now += CALL_SECONDS
        if isinstance(made.answer, Exception):
            raise made.answer
        return dict(made.answer)

    made._module = call
    return made


@pytest.mark.parametrize(
    "answer",
    [
        {"failed": True, "msg": "MODULE FAILURE: No space left on device"},
        {"failed": True},
        {"changed": False},
        AnsibleConnectionFailure("Connection refused"),
    ],
)
def test_what_fails_at_once_is_asked_again_after_a_pause(action, answer):
    action.answer = answer
    result = action._wait([Waiting(job_id="7", name="train")])
    assert result["outcomes"]["7"]["outcome"] == "undetermined"
    assert result["jobs"][0]["state"] == "UNKNOWN"
    assert action.clock.now - 1000.0 >= 300.0
    assert 10 <= action.calls <= 300 / slurm_job._RETRY_PAUSE + 1
    assert action.lines[0].startswith("Slurm does not answer: ")


def test_nothing_is_waited_for_once_it_has_given_up(action):
    action.answer = {"failed": True, "msg": "no"}
    action._args["controller_timeout"] = 0.0
    action._wait([Waiting(job_id="7")])
    assert (action.calls, action.clock.now) == (1, 1000.0 + CALL_SECONDS)


@pytest.fixture
def run(monkeypatch):
    """(what slurm_job and slurm_job_info answer, options) → what the task returns."""

    def run(answers, **arguments):
        task = mock.MagicMock(args=arguments, async_val=0, check_mode=False)
        action = slurm_job.ActionModule(task, mock.MagicMock(), mock.MagicMock(), None, None, None)
        action._execute_module = lambda module_name, **_other: dict(answers[module_name.rpartition(".")[2]])
        monkeypatch.setattr(slurm_job, "display", mock.MagicMock())
        return action.run(task_vars={})

    return run


def submitted(job_id, **values):
    made = {"refused": None, "job_id": job_id, "attached": False, "name": "n", "comment": "c"}
    return {**made, "script_sha256": "0" * 64, "submitted_by": 5.0, **values}


def done(job_id):
    values = {"state": "COMPLETED", "source": "squeue", "exit_code": 0, "name": "n", "comment": "c"}
    return {**empty(job_id), **values}


ASKED = {"asked": True, "controller": "up", "accounting": "up", "blocked": {}, "markers": {}}


@pytest.mark.parametrize("wait", [True, False])
@pytest.mark.parametrize("jobs", [["8", "9"], ["9", "8"]])
def test_jobs_are_returned_under_their_keys(run, wait, jobs):
    entries = [submitted("9"), submitted("", refused="sbatch refused it")]
    result = run(
        {
            "slurm_job": {"changed": True, "submitted": entries},
            "slurm_job_info": {**ASKED, "jobs": [done(job_id) for job_id in jobs]},
        },
        jobs=[{"key": "b", "path": "/b"}, {"key": "c", "path": "/c"}, {"key": "a", "job_id": "8"}],
        wait=wait,
        on_refusal="go_on",
        fail_on_state=False,
    )
    assert {key: job["job_id"] for key, job in result["jobs_by_key"].items()} == {"b": "9", "c": "0", "a": "8"}
    assert [job["key"] for job in result["jobs"]] == ["b", "c", "a"]
    assert [job["state"] for job in result["jobs"]] == ["COMPLETED", "UNKNOWN", "COMPLETED"]
    assert (result["job"], result["failed"], result["msg"]) == (result["jobs"][0], False, "sbatch refused it")
    assert (result["attached"], result["changed"]) == (False, True)


@pytest.mark.parametrize("wait", [True, False])
def test_where_all_are_refused_slurm_is_not_asked(run, wait):
    answers = {"slurm_job": {"changed": True, "submitted": [submitted("", refused="no")]}}
    result = run(answers, key="a", path="/a", wait=wait, on_refusal="go_on")
    assert (result["jobs_by_key"]["a"]["reason_text"], result["failed"]) == ("no", True)


def test_what_failed_before_it_was_submitted_has_no_jobs(run):
    result = run({"slurm_job": {"failed": True, "msg": "no", "changed": False}}, key="a", path="/a")
    assert (result["jobs"], result["jobs_by_key"], result["job"], result["failed"]) == ([], {}, None, True)


def test_two_jobs_of_one_key_are_refused(run):
    with pytest.raises(AnsibleActionFail, match="'a' appears twice"):
        run({}, jobs=[{"key": "a", "path": "/a"}, {"key": "a", "path": "/b"}])
