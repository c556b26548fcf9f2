# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Everything in one run: what the cluster cannot hold is undetermined by itself, what is left out is not applicable."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest
import yaml

from tests.integration import canaries
from tests.integration.conftest import ROOT, jobs

# Not yet played on a cluster.
RUNS, LARGE, NEEDS, OUT = "TEST-1", "TEST-3", "TEST-4", "TEST-5"
RESOURCES = {"nodes": 1, "ntasks_per_node": 1, "cpus_per_task": 1, "mem": "500M", "time": "00:05:00"}
WHY = "no rack has room for it"
# Those of the collection take minutes.
SHIPPED = [yaml.safe_load(path.read_text())["id"] for path in (ROOT / "files/workloads").glob("*/workload.yml")]


@pytest.fixture
def variables(tmp_path):
    """(settings) → variables of a run of all workloads: four canaries, and those of the collection left out."""
    folder = tmp_path / "workloads"
    canaries.add(folder, RUNS, "canary_runs")
    canaries.add(folder, LARGE, "canary_large", resources={**RESOURCES, "nodes": 2, "gres": "gpu:8"})
    canaries.add(folder, NEEDS, "canary_needs", needs=[LARGE])
    canaries.add(folder, OUT, "canary_out")

    def given(**settings):
        left_out = {**dict.fromkeys(SHIPPED, "other tests run it"), OUT: WHY}
        chosen = {"hpc_validation_workload_folders": [str(folder)], "hpc_validation_nodes": ["compute01"]}
        return {**chosen, "hpc_validation_leave_out": left_out, **settings}

    return given


def test_one_verdict_of_all_that_there_is(play, variables):
    played = play(ROOT / "playbooks/validate_all.yml", variables=variables())
    assert played.code != 0
    found = {each["id"]: each for each in played.verdict["workloads"]}
    assert {name: each["verdict"] for name, each in found.items() if name not in SHIPPED} == {
        RUNS: "pass",
        LARGE: "undetermined",
        NEEDS: "undetermined",
        OUT: "not_applicable",
    }
    assert found[LARGE]["why"] == (
        "not_run: it asks for 2 nodes with gpu:8 each; 0 of 2 nodes of partition gpu define it, none more than gpu:2"
    )
    assert found[NEEDS]["why"] == f"not_run: {LARGE} is undetermined"
    assert (found[LARGE]["job"], found[NEEDS]["job"]) == (None, None)
    assert {"name": f"workload {OUT}", "count": 1, "why": WHY} in played.verdict["coverage"]["left_out"]
    screen = " ".join(played.screen.split())
    assert f"left out: workload {OUT} ({WHY})" in screen
    assert f"{LARGE}: not submitted: it asks for 2 nodes with gpu:8 each" in screen
    suites = ElementTree.parse(played.folder / "junit.xml").getroot()
    (skipped,) = [suite for suite in suites if str(suite.get("name")).startswith(OUT)]
    assert (skipped.get("skipped"), skipped.get("errors")) == ("1", "0")


@pytest.mark.slow
def test_a_need_that_is_left_out_ends_the_play_at_once(play, variables):
    left_out = {**dict.fromkeys(SHIPPED, "other tests run it"), LARGE: WHY}
    played = play(ROOT / "playbooks/validate_all.yml", variables=variables(hpc_validation_leave_out=left_out))
    assert played.code != 0
    assert f"{NEEDS} needs {LARGE}; leave out {NEEDS} as well" in " ".join(played.screen.split())
    assert played.folder is None
    assert jobs() == []
