# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How often the controller asks again where the asking itself fails; no second of it is really waited."""

from __future__ import annotations

from unittest import mock

import pytest
from ansible.errors import AnsibleConnectionFailure
from ansible_collections.mlops.hpc_validation.plugins.action import slurm_job
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._wait import Waiting

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
