# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Jobs that can be in the queue together are; what judges its own speed is alone; what befalls one befalls no other."""

from __future__ import annotations

import pytest

from tests.integration import canaries

CPUS = 16  # of a node, in tests/cluster/hpcval_cluster/slurm_conf.py
FIRST, SECOND, THIRD = "TEST-1", "TEST-3", "TEST-4"
RESOURCES = {"nodes": 1, "ntasks_per_node": 1, "cpus_per_task": 1, "mem": "500M", "time": "00:05:00"}


@pytest.fixture
def play_all(play, tmp_path):
    """(each canary's id, its behaviour and changes; scheduling) → the play of all of them."""
    folder = tmp_path / "workloads"

    def played(wanted, slurm=None):
        for number, (identity, (behaviour, changes)) in enumerate(wanted.items()):
            canaries.add(folder, identity, f"canary_{number}", behaviour, **changes)
        selected = {"hpc_validation_only": list(wanted), "hpc_validation_workload_folders": [str(folder)]}
        scheduling = {"hpc_validation_nodes": ["compute01"], "hpc_validation_slurm": slurm or {}}
        return play(variables={**selected, **scheduling})

    return played


def by_id(played):
    """The workloads of the verdict."""
    return {workload["id"]: workload for workload in played.verdict["workloads"]}


def ran_side_by_side(played):
    """Whether the first two jobs ran at the same time, by Slurm's clock."""
    jobs = [by_id(played)[identity]["job"] for identity in (FIRST, SECOND)]
    return max(job["started"] for job in jobs) < min(job["ended"] for job in jobs)


def test_side_by_side_each_is_judged_by_itself(play_all):
    nowhere = {**RESOURCES, "gres": "gpu:1", "mem": "900G"}
    played = play_all({FIRST: ("sleep-15", {}), SECOND: ("low,sleep-15", {}), THIRD: ("well", {"resources": nowhere})})
    assert played.code != 0
    assert "Run through Slurm TEST-1 and TEST-3 and TEST-4" in played.screen
    verdicts = {identity: workload["verdict"] for identity, workload in by_id(played).items()}
    assert verdicts == {FIRST: "pass", SECOND: "fail", THIRD: "undetermined"}
    (low,) = [criterion for criterion in by_id(played)[SECOND]["criteria"] if criterion["verdict"] == "fail"]
    assert (low["id"], low["value"]) == ("T-2", 0.5)
    (refused,) = [finding for finding in played.verdict["findings"] if finding["verdict"] == "undetermined"]
    assert (refused["id"], refused["where"]["workload"]) == ("step.failed", THIRD)
    assert "refused the job 'canary-2'" in refused["why"]
    assert ran_side_by_side(played)


@pytest.mark.slow
def test_what_judges_its_own_speed_is_alone(play_all):
    played = play_all({FIRST: ("sleep-5", {"alone": True}), SECOND: ("well", {})})
    assert played.code == 0, played.end
    assert not ran_side_by_side(played)


@pytest.mark.slow
def test_what_waits_for_another_of_its_wave_has_not_waited_too_long(play_all):
    whole = {"resources": {**RESOURCES, "gres": "gpu:1", "cpus_per_task": CPUS}, "limits": {"queue": 10, "run": 120}}
    played = play_all({FIRST: ("sleep-25", whole), SECOND: ("sleep-25", whole)}, {"nodelist": "compute01"})
    assert played.code == 0, played.end
    assert not ran_side_by_side(played)
    assert max(workload["job"]["queued_seconds"] for workload in by_id(played).values()) > 20
