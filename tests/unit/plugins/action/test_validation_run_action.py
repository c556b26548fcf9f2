# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What Ansible hands to validation_run is read as metrics_assert reads it."""

from __future__ import annotations

import datetime
import json
import shutil
from pathlib import Path
from unittest import mock

import pytest
from ansible_collections.mlops.hpc_validation.plugins.action import validation_run
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._common.plain import plain
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._judge import spec

WORKLOADS = Path(__file__).parents[4] / "files/workloads"


@pytest.fixture
def started(tmp_path):
    """(overrides, other arguments) → what the start of a run answers."""
    for name in ("mnist_single_gpu", "cifar10_multi_gpu", "sft_single_gpu"):
        shutil.copytree(WORKLOADS / name, tmp_path / "workloads" / name)

    def run(overrides, **more):
        arguments = {
            "state": "started",
            "results": str(tmp_path / "results"),
            "title": "t",
            "accelerator": "cpu",
            "folders": [str(tmp_path / "workloads")],
            "only": ["MLOPS-1.1"],
            "overrides": overrides,
            **more,
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


def planned(answer):
    """The plan that a start left."""
    return json.loads((Path(answer["folder"]) / "plan.json").read_text())


def test_everything_runs_in_one_run(started):
    answer = started({}, only=[], everything=True)
    assert [each["id"] for each in answer["workloads"]] == ["BASELINE-1", "MLOPS-1.1", "MLOPS-2.1"]
    assert all(each["asked"] for each in answer["workloads"])
    assert sorted(name for wave in answer["waves"] for name in wave) == ["BASELINE-1", "MLOPS-1.1", "MLOPS-2.1"]
    assert planned(answer)["left_out"] == []


def test_a_selection_makes_the_same_checks_and_leaves_nothing(started, tmp_path):
    answer = started({}, state="selected")
    assert [each["id"] for each in answer["workloads"]] == ["MLOPS-1.1"]
    assert answer["waves"] == [["MLOPS-1.1"]]
    assert answer["changed"] is False
    assert started({"MLOPS-9.9": {}}, state="selected")["failed"]
    assert not (tmp_path / "results").exists()


def test_categories_are_selected_unless_everything_is(started):
    assert [each["id"] for each in started({}, only=[], categories=[1])["workloads"]] == ["MLOPS-1.1"]
    assert len(started({}, only=[], categories=[1], everything=True)["workloads"]) == 3


def test_what_is_left_out_is_planned_with_its_reason_and_not_run(started):
    answer = started({}, only=[], everything=True, leave_out={"BASELINE-1": " no card has 64 GB "})
    assert [each["id"] for each in answer["workloads"]] == ["MLOPS-1.1", "MLOPS-2.1"]
    assert ["BASELINE-1"] not in answer["waves"]
    (left,) = planned(answer)["left_out"]
    assert {key: left[key] for key in ("id", "name", "why")} == {
        "id": "BASELINE-1",
        "name": "sft_single_gpu",
        "why": "no card has 64 GB",
    }
    assert set(left) == {"id", "name", "title", "why"}


@pytest.mark.parametrize(
    ("leave_out", "why"),
    [
        ({"MLOPS-9.9": "x"}, "hpc_validation_leave_out: unknown workload MLOPS-9.9"),
        ({"BASELINE-1": " "}, "hpc_validation_leave_out.BASELINE-1: expected the reason"),
        ({"MLOPS-1.1": "x"}, "hpc_validation_leave_out: MLOPS-2.1 needs MLOPS-1.1"),
    ],
)
def test_what_cannot_be_left_out_ends_the_play_before_there_is_a_run(started, tmp_path, leave_out, why):
    answer = started({}, only=[], everything=True, leave_out=leave_out)
    assert answer["failed"]
    assert answer["msg"].startswith(why)
    assert not (tmp_path / "results").exists()


@pytest.mark.parametrize(("leave_out", "refused"), [({"MLOPS-9.9": "x"}, True), ({"MLOPS-1.1": "x"}, False)])
def test_a_preflight_alone_reads_the_setting_and_tells_nothing_of_it(started, leave_out, refused):
    answer = started({}, only=[], probes_only=True, leave_out=leave_out)
    assert answer.get("failed", False) is refused
    if not refused:
        assert (answer["workloads"], planned(answer)["left_out"]) == ([], [])
