# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a run's record takes, by its own name and for one release by validation_run's."""

from __future__ import annotations

import typing as t
from pathlib import Path
from unittest import mock

import pytest
from ansible.errors import AnsibleActionFail, AnsibleError
from ansible.utils.display import Display
from ansible_collections.mlops.hpc_validation.plugins.action import validation_record, validation_run
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._run import runs

from tests.unit.conftest import ROOT

Json = dict[str, t.Any]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A run that needs one workload and was asked for none."""
    workload = {
        "id": "MLOPS-1.1",
        "name": "n",
        "title": "t",
        "category": 1,
        "needs": [],
        "asked": False,
        "criteria": [],
    }
    plan = {"title": "t", "accelerator": "cpu", "workloads": [workload], "probes_only": False, "needs_days": 7}
    return runs.start(tmp_path / "results", plan, {"collection": "1", "ansible": "2", "python": "3"})


def answer(plugin: t.Any, **arguments: t.Any) -> Json:
    task = mock.MagicMock(args=arguments, async_val=0, check_mode=False, no_log=False)
    action = plugin.ActionModule(task, mock.MagicMock(), mock.MagicMock(), None, None, None)
    found: Json = action.run(task_vars={})
    return found


@pytest.fixture
def deprecated() -> t.Iterator[mock.MagicMock]:
    with mock.patch.object(Display, "deprecated") as called:
        yield called


FINDINGS = {"state": "recorded", "kind": "findings"}
RECALLED = {"state": "recalled", "workload": "MLOPS-1.1", "script_sha256": "0" * 64}


def test_what_was_found_is_recorded_and_counted(folder: Path, example: t.Callable[[str], t.Any]) -> None:
    odd = {**example("finding"), "verdict": "fail"}
    assert answer(validation_record, **FINDINGS, folder=str(folder), document=[odd, odd])["amiss"] == 2
    assert answer(validation_record, **FINDINGS, folder=str(folder), document=[])["amiss"] == 2


def test_what_is_no_finding_is_refused(folder: Path) -> None:
    found = answer(validation_record, **FINDINGS, folder=str(folder), document=[{"id": "x"}])
    assert found["failed"]
    assert "finding" in found["msg"]


def test_without_an_earlier_run_no_pass_stands(folder: Path) -> None:
    found = answer(validation_record, **RECALLED, folder=str(folder))
    assert (found["passed"], found["changed"]) == ([], False)
    assert "MLOPS-1.1" in found["msg"]


@pytest.mark.parametrize(
    "arguments",
    [
        {"state": "recorded", "kind": "findings"},
        {"state": "recorded", "document": []},
        {"state": "recalled", "workload": "MLOPS-1.1"},
        {"state": "recalled", "script_sha256": "0"},
        {"state": "finished"},
        {"state": "recorded", "kind": "findings", "document": [], "title": "t"},
    ],
)
def test_each_state_needs_its_own_options(folder: Path, arguments: Json) -> None:
    with pytest.raises((AnsibleActionFail, AnsibleError)):
        answer(validation_record, **arguments, folder=str(folder))


@pytest.mark.parametrize("arguments", [{**FINDINGS, "document": []}, RECALLED])
def test_the_old_states_are_handed_on_with_a_warning(folder: Path, arguments: Json, deprecated: mock.MagicMock) -> None:
    new = answer(validation_record, **arguments, folder=str(folder))
    deprecated.assert_not_called()
    assert answer(validation_run, **arguments, folder=str(folder)) == new
    ((message,), words) = deprecated.call_args
    assert "validation_record" in message
    assert arguments["state"] in message
    assert words == {"version": "0.5.0", "collection_name": "mlops.hpc_validation"}


def test_what_is_refused_is_refused_by_the_old_name_too(folder: Path, deprecated: mock.MagicMock) -> None:
    with pytest.raises((AnsibleActionFail, AnsibleError)):
        answer(validation_run, state="recorded", kind="findings", folder=str(folder))
    deprecated.assert_called_once()


def test_a_run_takes_no_records(folder: Path, deprecated: mock.MagicMock) -> None:
    with pytest.raises((AnsibleActionFail, AnsibleError)):
        answer(validation_run, state="finished", folder=str(folder), kind="findings")
    deprecated.assert_not_called()


def test_no_role_uses_the_old_states() -> None:
    for path in [*ROOT.glob("roles/*/tasks/*.yml"), *ROOT.glob("playbooks/*.yml")]:
        words = path.read_text(encoding="utf-8").split()
        states = [words[n + 2] for n, word in enumerate(words) if word == "mlops.hpc_validation.validation_run:"]
        assert not set(states) - {"started", "finished", "expanded", "selected"}, path
