# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Two real ranks on the local cluster, and what goes wrong with one of them: the verdict names it, within bounds."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
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
    assert re.search(r" = [\d.]+ \([\d.]+ to [\d.]+\) is >= 0.1", played.criterion("T-5")["why"])
    assert " GPU-hours" in played.screen


@pytest.mark.slow
def test_a_stored_baseline_is_shown_as_such_and_nothing_is_run_for_it(play, ranks):
    variables = ranks()
    first = play(variables=variables)
    assert first.code == 0, first.screen
    stored = {"hpc_validation_baselines": {"TEST-2": str(first.folder / "evidence/TEST-2.json")}}
    second = play(variables={**variables, **stored})
    assert second.code == 0, second.screen
    evidence = json.loads((second.folder / "evidence/TEST-2.json").read_text())
    assert {"before", "measured", "after"} & set(evidence["legs"]) == {"measured"}
    job = first.verdict["workloads"][0]["job"]["job_id"]
    assert f"stored baseline of job {job}, less than a day old" in second.criterion("T-5")["why"]
    there = {"hpc_validation_nodes": ["compute02"], "hpc_validation_slurm": {"nodelist": "compute02"}}
    elsewhere = play(variables={**variables, **stored, **there})
    assert elsewhere.code != 0
    assert elsewhere.criterion("T-5")["verdict"] == "undetermined"
    assert "it ran on compute01 and this job on compute02" in elsewhere.criterion("T-5")["why"]


class Running:
    """A play whose two ranks train, for as long as a test does something to them."""

    def __init__(self, folder, job):
        self.folder, self.job = folder, job
        self.output = CACHE / "clusters" / CLUSTER / f"share/models/ranks-canary/job-{job}"

    def step_of(self, rank):
        """How far a rank says that it has come."""
        state = self.output / f"ranks/rank-{rank}.json"
        return (json.loads(state.read_text())["step"] or 0) if state.exists() else 0

    def pid_of(self, rank):
        """The process on the node that is this rank."""
        pids = cluster("compute01", "pgrep", "-f", "ranks_canary.py --behaviour wait").split()
        (found,) = [pid for pid in pids if f"\nRANK={rank}\n" in environment(pid)]
        return found


def environment(pid):
    """A process's environment, a variable a line."""
    return "\n" + cluster("compute01", "cat", f"/proc/{pid}/environ").replace("\0", "\n")


@pytest.fixture
def disturbed(tmp_path, ranks):
    """(what to do to the running ranks) → the judged criteria of the play that then ended, and how long that took."""

    def play(disturb):
        variables = {**ranks("wait"), "hpc_validation_results": str(tmp_path / "results")}
        with running_play(variables, tmp_path, until=" ranks-canary: RUNNING for") as played:
            (job,) = jobs()
            running = Running(tmp_path, job)
            wait_for(lambda: running.step_of(1) >= 20, 120)
            began = time.monotonic()
            disturb(running)
            assert played.wait(timeout=240) != 0, (tmp_path / "screen").read_text()
            seconds = time.monotonic() - began
        (run,) = (tmp_path / "results").iterdir()
        (workload,) = json.loads((run / "verdict.json").read_text())["workloads"]
        return {criterion["id"]: criterion for criterion in workload["criteria"]}, seconds

    return play


def amiss_of(judged):
    """Ids of the criteria that are neither met nor not applicable, with their verdicts."""
    return {name: c["verdict"] for name, c in judged.items() if c["verdict"] in ("fail", "undetermined")}


def test_a_killed_rank_is_named(disturbed):
    judged, seconds = disturbed(lambda running: cluster("compute01", "kill", "-KILL", running.pid_of(1)))
    assert seconds < 90
    assert judged["RANKS.first_failure"]["verdict"] == "fail"
    assert RANK_1 in judged["RANKS.first_failure"]["why"]
    assert "killed by SIGKILL" in judged["RANKS.first_failure"]["why"]
    assert judged["RANKS.ended"]["verdict"] == "fail"
    assert judged["T-5"]["verdict"] == "undetermined"


@pytest.mark.slow
def test_a_rank_that_is_stopped_ends_the_others_within_their_patience(disturbed):
    judged, seconds = disturbed(lambda running: cluster("compute01", "kill", "-STOP", running.pid_of(1)))
    assert seconds < 200  # a collective waits two minutes
    assert judged["RANKS.ended"]["verdict"] == "fail"
    assert RANK_1 in judged["RANKS.ended"]["why"]


@pytest.mark.slow
def test_a_rank_that_is_held_up_in_every_step_is_named(disturbed):
    def hold_up(running):
        pid, script = running.pid_of(1), "while kill -STOP $0; do sleep 0.2; kill -CONT $0; sleep 0.005; done"
        cluster("compute01", "setsid", "--fork", "bash", "-c", f"({script}) > /dev/null 2>&1", pid)

    judged, _seconds = disturbed(hold_up)
    assert amiss_of(judged) == {"T-6": "fail"}
    assert RANK_1 in judged["T-6"]["why"]


@pytest.mark.slow
def test_a_line_that_nccl_wrote_is_quoted_with_its_remedy(disturbed):
    line = "[rank 1] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=4, OpType=ALLREDUCE)"

    def write(running):
        with (CACHE / "clusters" / CLUSTER / f"share/jobs/ranks-canary-{running.job}.err").open("a") as log:
            log.write(line + "\n")

    judged, _seconds = disturbed(write)
    assert amiss_of(judged) == {"T-7": "fail"}
    assert "Watchdog caught collective operation timeout" in judged["T-7"]["why"]
    assert "A rank did not arrive" in judged["T-7"]["remedy"]


@pytest.mark.slow
def test_without_its_baseline_a_speed_up_is_undetermined(disturbed):
    judged, _seconds = disturbed(lambda running: (running.output / "baseline-before/metrics.json").unlink())
    assert amiss_of(judged) == {"T-5": "undetermined"}
    assert "the baseline's leg before" in judged["T-5"]["why"]


@pytest.mark.slow
def test_a_gpu_that_idles_is_named(play, ranks):
    uuid = gpu("compute01", "1").partition("uuid=")[2].split()[0]
    gpu("compute01", "1", "utilization=20")
    try:
        played = play(variables=ranks())
    finally:
        gpu("compute01", "1", "healthy")
    assert played.code != 0
    assert amiss(played) == {"T-3": "fail"}
    assert f"{uuid}: 20 is not > 70" in played.criterion("T-3")["why"]


def gpu(*arguments):
    """Ask or change a simulated GPU."""
    command = [str(ROOT / "tests/cluster/cluster"), "gpu", "--name", CLUSTER, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout


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
