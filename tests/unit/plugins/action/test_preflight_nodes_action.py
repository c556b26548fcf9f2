# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Planning and judging the nodes: the facts go into files, and the task returns numbers."""

from __future__ import annotations

import json
import typing as t
from pathlib import Path
from unittest import mock

import pytest
from ansible.errors import AnsibleActionFail, AnsibleError
from ansible_collections.mlops.hpc_validation.plugins.action import preflight_nodes
from ansible_collections.mlops.hpc_validation.plugins.action.preflight_nodes import ActionModule
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._run import runs

from tests.unit import fleet_reports
from tests.unit.fleet_reports import SETTINGS
from tests.unit.plugins.plugin_utils._preflight.test_sweep import Fleet

Json = dict[str, t.Any]


def run(answer: Json | None = None, *, check_mode: bool = False, **arguments: t.Any) -> Json:
    task = mock.MagicMock(args={"settings": SETTINGS, **arguments}, async_val=0, check_mode=check_mode)
    action = ActionModule(task, mock.MagicMock(), mock.MagicMock(), None, None, None)
    action._execute_module = mock.MagicMock(return_value=answer)
    return dict(action.run(task_vars={}))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    plan = {"title": "Preflight", "accelerator": "cuda", "workloads": [], "probes_only": True}
    return runs.start(tmp_path, plan, {"collection": "0.1.0", "ansible": "2.19.14", "python": "3.11.7"})


def cluster(nodes: int = 300) -> Json:
    return {**fleet_reports.cluster(nodes), "changed": False, "invocation": {}, "_ansible_parsed": True}


def test_a_plan_of_many_nodes_returns_numbers_and_keeps_the_rest_in_files(folder: Path) -> None:
    result = run(cluster(), state="planned", folder=str(folder))
    assert {key: result[key] for key in ("jobs", "amiss", "changed")} == {"jobs": 301, "amiss": 0, "changed": False}
    assert len(json.dumps(result)) < 200
    assert json.loads((folder / "cluster.json").read_text()) == fleet_reports.cluster(300)
    assert len(json.loads((folder / "nodes.json").read_text())["jobs"]) == 301
    assert len(json.loads((folder / "probed.json").read_text())["scope"]) == 300


def test_in_check_mode_no_node_is_expected_to_have_a_result(folder: Path) -> None:
    assert run(cluster(2), state="planned", folder=str(folder), check_mode=True)["jobs"] == 3
    assert not (folder / "probed.json").exists()


def test_a_scheduler_that_does_not_answer_fails_the_task(folder: Path) -> None:
    result = run({"failed": True, "msg": "sinfo: not found"}, state="planned", folder=str(folder))
    assert (result["failed"], result["msg"]) == (True, "sinfo: not found")
    assert not (folder / "cluster.json").exists()


def test_what_is_amiss_is_counted(folder: Path) -> None:
    info = cluster(3)
    info["nodes"][1]["state"] = "down"
    assert run(info, state="planned", folder=str(folder))["amiss"] == 1


def test_what_the_partition_cannot_hold_is_told_and_blocks_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = fleet_reports.example("manifest")
    large = {**small, "id": "MLOPS-2.1", "resources": {**small["resources"], "gres": "gpu:16"}}
    workloads = [small, large, {**small, "id": "MLOPS-2.2", "needs": ["MLOPS-2.1"]}]
    plan = {"title": "All", "accelerator": "cuda", "workloads": workloads}
    folder = runs.start(tmp_path, plan, {"collection": "0.1.0", "ansible": "2.19.14", "python": "3.11.7"})
    told: list[str] = []
    monkeypatch.setattr(preflight_nodes.Display, "display", lambda _self, line, **_more: told.append(line))
    result = run(cluster(2000), state="planned", folder=str(folder), workloads=workloads)
    assert (result["held_back"], result["amiss"]) == (["MLOPS-2.1", "MLOPS-2.2"], 0)
    assert " ".join(told[0].split()) == (
        "MLOPS-2.1: not submitted: it asks for 1 node with gpu:16; 0 of 2000 nodes of partition gpu define it, none "
        "more than gpu:8"
    )
    assert told[1:] == ["MLOPS-2.2: not submitted: it needs MLOPS-2.1"]
    assert max(map(len, told[0].split("\n"))) <= 120


def test_what_one_workload_is_given_by_the_site_is_what_it_asks_for(tmp_path: Path) -> None:
    manifest = fleet_reports.example("manifest")
    plan = {"title": "All", "accelerator": "cuda", "workloads": [manifest]}
    for number, (extra, held) in enumerate([({"gres": "gpu:9"}, [manifest["id"]]), ({"gres": "gpu:8"}, [])]):
        folder = runs.start(tmp_path / str(number), plan, {"collection": "0", "ansible": "2.19.14", "python": "3.11.7"})
        slurm = {manifest["id"]: {"extra": extra}}
        result = run(cluster(2), state="planned", folder=str(folder), workloads=[manifest], workload_slurm=slurm)
        assert result["held_back"] == held


def test_a_preflight_alone_holds_nothing_back(folder: Path) -> None:
    assert run(cluster(2), state="planned", folder=str(folder))["held_back"] == []


def test_judging_returns_what_is_amiss(tmp_path: Path) -> None:
    fleet = Fleet(tmp_path, bad=0.34)
    fleet.finish()
    result = run(state="judged", folder=str(fleet.folder))
    assert result["amiss"] > 1
    assert len(json.dumps(result)) < 200


@pytest.mark.parametrize("name", ["jobs.json", "nodes.json"])
def test_without_its_files_judging_fails_and_says_which(tmp_path: Path, name: str) -> None:
    fleet = Fleet(tmp_path)
    fleet.finish()
    (fleet.folder / name).unlink()
    result = run(state="judged", folder=str(fleet.folder))
    assert result["failed"]
    assert name in result["msg"]


@pytest.mark.parametrize("arguments", [{"state": "gone"}, {"state": "judged", "folder": "a\0b"}, {"state": "planned"}])
def test_what_is_malformed_is_refused(arguments: Json) -> None:
    with pytest.raises((AnsibleActionFail, AnsibleError)):
        run(**{"folder": "/x", **arguments} if arguments.get("state") != "planned" else arguments)


def test_settings_that_cannot_be_judged_by_are_a_sentence(tmp_path: Path) -> None:
    fleet = Fleet(tmp_path)
    fleet.finish()
    result = run(state="judged", folder=str(fleet.folder), settings={**SETTINGS, "gpu": {"modell": "x"}})
    assert result["failed"]
    assert "modell" in result["msg"]
