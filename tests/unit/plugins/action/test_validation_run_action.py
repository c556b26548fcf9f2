# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What Ansible hands to validation_run is read as metrics_assert reads it."""

from __future__ import annotations

import datetime
import shutil
from pathlib import Path
from unittest import mock

import pytest
from ansible_collections.mlops.hpc_validation.plugins.action import validation_run
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._common.plain import plain
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._judge import spec

WORKLOAD = Path(__file__).parents[4] / "files/workloads/mnist_single_gpu"


@pytest.fixture
def started(tmp_path):
    """(overrides) → what the start of a run answers."""
    shutil.copytree(WORKLOAD, tmp_path / "workloads/mnist_single_gpu")

    def run(overrides):
        arguments = {
            "state": "started",
            "results": str(tmp_path / "results"),
            "title": "t",
            "accelerator": "cpu",
            "folders": [str(tmp_path / "workloads")],
            "only": ["MLOPS-1.1"],
            "overrides": overrides,
        }
        task = mock.MagicMock(args=arguments, async_val=0, check_mode=False, no_log=False)
        action = validation_run.ActionModule(task, mock.MagicMock(), mock.MagicMock(), None, None, None)
        return action.run(task_vars={})

    return run


@pytest.mark.parametrize(
    ("expires", "taken"),
    [
        ("2026-12-31", True),
        (datetime.date(2026, 12, 31), True),
        (datetime.datetime(2026, 12, 31, 10, 0, tzinfo=datetime.timezone.utc), False),
        ("31.12.2026", False),
        (20261231, False),
        (None, False),
    ],
)
def test_role_and_module_take_the_same_forms_of_a_date(started, expires, taken):
    waive = {"S0-13": {"waive": {"reason": "ticket 4711", "expires": expires}}}
    answer = started({"MLOPS-1.1": waive})
    assert answer.get("failed", False) is not taken
    criteria = [{"id": "S0-13", "title": "accuracy", "query": "metrics.test_accuracy", "gt": 0.95}]
    try:  # as metrics_assert reads them
        spec.read(criteria, plain(waive), workload="MLOPS-1.1", pattern_sets={}, references={})
    except spec.CriteriaError:
        assert not taken
    else:
        assert taken
