# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""docs/guides/own-workload.md on the live cluster: a workload is begun, checked, run, and its faults are named."""

from __future__ import annotations

import typing as t
from pathlib import Path

import pytest

from tests.integration.conftest import ANY_SPEED, ROOT, Played

VALIDATE = ROOT / "playbooks/validate.yml"


@pytest.fixture
def begin(play, tmp_path):
    """(name, what is replaced in the script by what) → the id of a new workload, made as a user makes it."""

    def make(name: str, *changes: tuple[str, str]) -> str:
        made = play(ROOT / "playbooks/new_workload.yml", variables={"name": name, "dest": str(tmp_path / "workloads")})
        assert made.code == 0, made.screen
        script = tmp_path / "workloads" / name / "train.py"
        for old, new in changes:
            text = script.read_text()
            assert text.count(old) == 1, old
            script.write_text(text.replace(old, new))
        return f"{name.upper()}-1"

    return make


def selected(folder: Path) -> dict[str, t.Any]:
    """The variables of a user who has workloads in this folder."""
    return {
        "hpc_validation_workload_folders": [str(folder)],
        "hpc_validation_nodes": ["compute01"],  # preflight has tests of its own, over all nodes
        **ANY_SPEED,
    }


def judged(played: Played, identity: str) -> tuple[str, dict[str, dict[str, t.Any]]]:
    """The verdict on a workload, and its criteria by id."""
    found = [workload for workload in played.verdict["workloads"] if workload["id"] == identity]
    assert len(found) == 1, played.screen
    return found[0]["verdict"], {criterion["id"]: criterion for criterion in found[0]["criteria"]}


def amiss(criteria: dict[str, dict[str, t.Any]]) -> dict[str, str]:
    """The criteria that did not pass, and how."""
    odd = ("fail", "undetermined", "waived")
    return {name: each["verdict"] for name, each in criteria.items() if each["verdict"] in odd}


def test_a_new_workload_is_checked_and_passes_as_it_is(play, begin, tmp_path):
    identity = begin("triad")
    checked = play(ROOT / "playbooks/check_workload.yml", variables={"folder": str(tmp_path / "workloads/triad")})
    assert checked.code == 0, checked.screen
    played = play(VALIDATE, "--tags", identity, variables=selected(tmp_path / "workloads"))
    assert played.code == 0, played.end
    assert played.verdict["verdict"] == "pass"
    assert [workload["id"] for workload in played.verdict["workloads"]] == [identity]
    verdict, criteria = judged(played, identity)
    assert verdict == "pass"
    assert amiss(criteria) == {}
    assert {"JOB", "C-1", "C-2", "C-3", "C-4", "C-5", "C-6", "GPU.samples"} <= set(criteria)
    assert criteria["C-3"]["value"] < 0.01


@pytest.mark.slow
def test_what_a_workload_does_wrong_is_named(play, begin, tmp_path):
    slow = begin("slow", ("200_000, 0.5", "200_000, 0.1"))
    lost = begin("lost", ('"metrics.json"', '"results.json"'))
    brief = begin("brief", ("50, 200_000", "50, 20"))  # it ends before the sampler of the GPUs is ready
    variables = {**selected(tmp_path / "workloads"), "hpc_validation_only": [slow, lost, brief]}
    played = play(VALIDATE, variables=variables)
    assert played.code != 0
    assert played.verdict["verdict"] == "fail"

    verdict, criteria = judged(played, slow)
    assert verdict == "fail"
    assert amiss(criteria) == {"C-3": "fail"}
    assert criteria["C-3"]["bound"] == "< 0.01"
    assert "C-3" in played.end

    verdict, criteria = judged(played, lost)
    assert verdict == "undetermined"
    assert amiss(criteria) == dict.fromkeys(("C-2", "C-3", "C-4"), "undetermined")
    job = next(workload["job"]["job_id"] for workload in played.verdict["workloads"] if workload["id"] == lost)
    folder = f"/mnt/beegfs/models/lost/job-{job}"
    left = "gpu.jsonl, model.json, progress.jsonl, provenance.json, results.json"
    told = f"{folder}/metrics.json: missing: there is no such file; {folder} holds {left}"
    assert criteria["C-3"]["why"] == told

    verdict, criteria = judged(played, brief)
    assert (verdict, amiss(criteria)) == ("pass", {})


def test_a_run_of_nothing_is_refused(play, tmp_path):
    (tmp_path / "workloads").mkdir()
    played = play(VALIDATE, variables=selected(tmp_path / "workloads"))
    assert played.code != 0
    assert "no workload is selected" in played.screen
    assert played.folder is None
