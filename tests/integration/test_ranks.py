# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Two real ranks on the local cluster, and what goes wrong with one of them: the verdict names it, within bounds."""

from __future__ import annotations

import json
import shutil
import time

import pytest
import yaml

from tests.integration.conftest import ANY_SPEED, CACHE, CLUSTER, ROOT, cluster, jobs, running_play, wait_for

RANK_1 = "rank 1 (compute01 GPU-"


@pytest.fixture
def ranks(tmp_path):
    """(behaviour, changes of the manifest) → the variables that select such ranks."""

    def make(behaviour="well", **changes):
        folder = tmp_path / "workloads/ranks_canary"
        shutil.copytree(ROOT / "tests/integration/ranks_canary", folder)
        manifest = yaml.safe_load((folder / "workload.yml").read_text())
        manifest["command"][-1] = behaviour
        (folder / "workload.yml").write_text(yaml.safe_dump({**manifest, **changes}))
        return {
            "hpc_validation_workload_folders": [str(folder.parent)],
            "hpc_validation_only": ["TEST-2"],
            "hpc_validation_nodes": ["compute01"],
            **ANY_SPEED,
        }

    return make


def amiss(played):
    """The criteria that are neither met nor not applicable, with their verdicts."""
    (workload,) = played.verdict["workloads"]
    return {c["id"]: c["verdict"] for c in workload["criteria"] if c["verdict"] in ("fail", "undetermined")}


def test_two_ranks_between_two_runs_of_one_pass(play, ranks):
    played = play(variables=ranks())
    assert played.code == 0, played.screen
    evidence = json.loads((played.folder / "evidence/TEST-2.json").read_text())
    legs = [evidence["legs"][name] for name in ("before", "measured", "after")]
    assert [leg["ranks"] for leg in legs] == [1, 2, 1]
    assert legs[0]["ended"] <= legs[1]["started"] < legs[1]["ended"] <= legs[2]["started"]
    assert len({state["gpu"] for state in legs[1]["states"].values()}) == 2
    assert evidence["baseline"]["source"] == "legs"
    assert played.criterion("T-5")["verdict"] == "pass"
    assert "by leg" in played.criterion("T-5")["why"] or "(" in played.criterion("T-5")["why"]


def test_a_killed_rank_is_named(tmp_path, ranks):
    variables = {**ranks("wait"), "hpc_validation_results": str(tmp_path / "results")}
    with running_play(variables, tmp_path, until=" ranks-canary: RUNNING for") as played:
        (job,) = jobs()
        state = CACHE / "clusters" / CLUSTER / f"share/models/ranks-canary/job-{job}/ranks/rank-1.json"
        wait_for(lambda: state.exists() and (json.loads(state.read_text())["step"] or 0) >= 20, 120)
        pids = cluster("compute01", "pgrep", "-f", "ranks_canary.py --behaviour wait").split()
        victims = [pid for pid in pids if "\nRANK=1\n" in environment(pid)]
        assert len(victims) == 1, pids
        cluster("compute01", "kill", "-KILL", *victims)
        killed = time.monotonic()
        assert played.wait(timeout=120) != 0
        assert time.monotonic() - killed < 90
    screen = (tmp_path / "screen").read_text()
    (run,) = (tmp_path / "results").iterdir()
    judged = {c["id"]: c for w in json.loads((run / "verdict.json").read_text())["workloads"] for c in w["criteria"]}
    assert judged["RANKS.first_failure"]["verdict"] == "fail", screen
    assert RANK_1 in judged["RANKS.first_failure"]["why"]
    assert "killed by SIGKILL" in judged["RANKS.first_failure"]["why"]
    assert judged["RANKS.ended"]["verdict"] == "fail"
    assert judged["T-5"]["verdict"] == "undetermined"


def environment(pid):
    """A process's environment, a variable a line."""
    return "\n" + cluster("compute01", "cat", f"/proc/{pid}/environ").replace("\0", "\n")


def test_one_gpu_where_two_ranks_need_one_each_fails_before_training(play, ranks):
    resources = {"nodes": 1, "ntasks_per_node": 2, "cpus_per_task": 1, "gres": "gpu:1", "mem": "2G", "time": "00:05:00"}
    played = play(variables=ranks(resources=resources))
    assert played.code != 0
    assert played.criterion("T-1")["verdict"] == "fail", played.screen
    why = played.criterion("RANKS.first_failure")["why"]
    assert "rank 1 (compute01): ended with exit code 1" in why
    assert "local rank 1 has no GPU of its own: this node gave the job 1" in why


@pytest.mark.slow
def test_two_ranks_on_one_gpu_are_refused(play, ranks):
    played = play(variables=ranks("same-gpu"))
    assert played.code != 0
    assert "compute on the same GPU" in played.criterion("RANKS.first_failure")["why"], played.screen


@pytest.mark.slow
def test_ranks_with_different_data_are_refused(play, ranks):
    played = play(variables=ranks("other-data"))
    assert played.code != 0
    why = played.criterion("RANKS.first_failure")["why"]
    assert "the dataset is that of rank 1 on rank 1 (compute01" in why, played.screen


@pytest.mark.slow
def test_a_rank_that_never_joins_is_named_and_the_job_ends_in_time(play, ranks):
    began = time.monotonic()
    played = play(variables=ranks("never-joins"))
    assert time.monotonic() - began < 300
    assert played.code != 0
    assert played.criterion("RANKS.ended")["verdict"] == "fail", played.screen
    assert "rank 1" in played.criterion("RANKS.ended")["why"]
    assert "joining" in played.criterion("RANKS.ended")["why"]
