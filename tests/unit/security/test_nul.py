# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A NUL in whatever a module is given is refused in words, in every option that is text, and never a traceback."""

from __future__ import annotations

import json
import typing as t
from pathlib import Path
from unittest import mock

import pytest
from ansible.errors import AnsibleActionFail
from ansible.module_utils.testing import patch_module_args
from ansible_collections.mlops.hpc_validation.plugins.action import (
    beegfs_check,
    edge_host,
    gpu_probe,
    metrics_assert,
    share_tree,
    validation_record,
    validation_run,
)
from ansible_collections.mlops.hpc_validation.plugins.module_utils._common import no_nul
from ansible_collections.mlops.hpc_validation.plugins.modules import metrics_assert as metrics_module
from ansible_collections.mlops.hpc_validation.plugins.modules import share_tree as share_module
from ansible_collections.mlops.hpc_validation.plugins.modules import slurm_job, slurm_job_info

BAD = "/mnt/a\0b"
MODULES = [
    (share_module, {"dest": BAD, "_files": {}}, "dest"),
    (share_module, {"dest": "/tmp/x", "_files": {}, "folders": ["a", "b\0"]}, "folders[1]"),
    (share_module, {"dest": "/tmp/x", "_files": {"a\0b": ""}}, "_files"),
    (share_module, {"dest": "/tmp/x", "_files": {}, "group": "a\0b"}, "group"),
    (metrics_module, {"job": {"job_id": "7", "attempt": 0}, "output": BAD}, "output"),
    (metrics_module, {"job": {"job_id": "7", "attempt": 0}, "output": "/x", "logs": {"stdout": BAD}}, "logs.stdout"),
    (slurm_job, {"path": BAD}, "path"),
    (slurm_job, {"path": "/x", "chdir": BAD}, "chdir"),
    (slurm_job, {"path": "/x", "journal": BAD}, "journal"),
    (slurm_job, {"jobs": [{"path": "/x"}, {"path": "/y", "end_marker": BAD}]}, "jobs[1].end_marker"),
    (slurm_job_info, {"jobs": [{"job_id": "7", "begin_marker": BAD}]}, "jobs[0].begin_marker"),
    (slurm_job_info, {"job_ids": ["7"], "user": "a\0b"}, "user"),
]
METRICS = {"job": {"job_id": "7", "attempt": 0}, "output": "/x", "criteria": []}
STARTED = {"state": "started", "title": "t", "accelerator": "cpu"}
RECALLED = {"state": "recalled", "folder": "/x", "workload": "W-1"}
ACTIONS = [
    (beegfs_check, {"path": BAD}, "path"),
    (beegfs_check, {"path": "/mnt/x", "folder": "a\0b"}, "folder"),
    (gpu_probe, {"kit": BAD}, "kit"),
    (gpu_probe, {"python": BAD}, "python"),
    (metrics_assert, {**METRICS, "save": BAD}, "save"),
    (metrics_assert, {**METRICS, "baseline": BAD}, "baseline"),
    (metrics_assert, {"evidence": BAD, "criteria": []}, "evidence"),
    (validation_run, {**STARTED, "results": BAD, "folders": ["/x"]}, "results"),
    (validation_run, {**STARTED, "results": "/x", "folders": [BAD]}, "folders[0]"),
    (validation_run, {"state": "finished", "folder": BAD}, "folder"),
    (validation_record, {"state": "recorded", "folder": BAD, "kind": "findings", "document": []}, "folder"),
    (validation_record, {**RECALLED, "script_sha256": BAD}, "script_sha256"),
    (share_tree, {"dest": "/tmp/x", "src": BAD}, "src"),
    (edge_host, {"state": "looked", "python": BAD}, "python"),
    (edge_host, {"state": "absent", "folder": BAD}, "folder"),
]


def named(cases: list[t.Any]) -> list[t.Any]:
    return [pytest.param(*case, id=f"{case[0].__name__.rpartition('.')[2]}-{case[2]}") for case in cases]


@pytest.mark.parametrize(("module", "arguments", "where"), named(MODULES))
def test_a_module_refuses_a_nul_in_words(module, arguments, where, capsys):
    with patch_module_args(arguments), pytest.raises(SystemExit):
        module.main()
    answer = json.loads(capsys.readouterr().out)
    assert answer["failed"]
    assert where in answer["msg"]
    assert "NUL" in answer["msg"]


@pytest.mark.parametrize(("plugin", "arguments", "where"), named(ACTIONS))
def test_an_action_refuses_a_nul_in_words_before_anything_is_done(plugin, arguments, where):
    task = mock.MagicMock(args=arguments, async_val=0, check_mode=False, no_log=False)
    action = plugin.ActionModule(task, mock.MagicMock(), mock.MagicMock(), None, None, None)
    action._display = mock.MagicMock()
    action._execute_module = mock.MagicMock(side_effect=AssertionError("the host was asked"))
    try:
        told = action.run(task_vars={})
        assert told["failed"]
        message = told["msg"]
    except AnsibleActionFail as exc:
        message = str(exc)
    assert where in message
    assert "NUL" in message
    assert not Path("/x").exists()


@pytest.mark.parametrize("options", [{}, {"a": [1, None, {"b": "text"}]}, {"a": ("x", True)}])
def test_what_holds_none_is_not_refused(options):
    assert no_nul.refusal(options) is None
