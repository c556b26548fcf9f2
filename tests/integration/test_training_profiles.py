# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Training profiles on the real cluster: real ranks, a real MLflow server that its own client is asked about."""

from __future__ import annotations

import json
import os
import typing as t
from pathlib import Path

import pytest

from tests.integration import canaries, small_training_profile
from tests.integration.conftest import ANY_SPEED, CACHE, CLUSTER, ROOT, cluster, running_play, wait_for
from tests.integration.environments import on_login
from tests.mlflow import server

PLAYBOOK = ROOT / "playbooks/validate_training_hpc.yml"
TO_MLFLOW = {"hpc_validation_profile": {"logging": {"mlflow": {"tracking_uri": server.ADDRESS}}}}
LABEL = canaries.label(small_training_profile.NAME)


@pytest.fixture
def mlflow() -> t.Iterator[None]:
    """A server that runs."""
    server.start()
    yield
    server.end()


def output(name: str, job: str) -> Path:
    """A job's output folder, as this machine sees it."""
    return CACHE / "clusters" / CLUSTER / f"share/models/{name}/job-{job}"


def written(folder: Path) -> dict[str, list[list[float]]]:
    """What the rows hold of each figure: steps and values, as a server must have them."""
    found: dict[str, list[list[float]]] = {}
    for line in (folder / "progress.jsonl").read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        for name, value in row.items():
            if name not in ("attempt", "job_id", "step", "steps", "time", "eta_seconds"):
                found.setdefault(name, []).append([row["step"], value])
    return found


def test_a_small_profile_passes(play, tmp_path):
    selected = canaries.select(tmp_path / "workloads", small_training_profile.NAME)
    played = play(variables={**selected, **ANY_SPEED})
    assert played.code == 0, played.screen
    (workload,) = played.verdict["workloads"]
    found = {criterion["id"]: criterion["verdict"] for criterion in workload["criteria"]}
    assert found["S4-23.stop"] == found["S4-24.learns"] == found["S4-27.histograms"] == "pass"


def test_a_profile_with_errors_is_told_line_by_line_and_nothing_is_submitted(play, tmp_path):
    selected = canaries.select(tmp_path / "workloads", small_training_profile.NAME)
    wrong = {"model": {"num_heads": 7}, "training": {"epochs": 0}}
    played = play(variables={**selected, **ANY_SPEED, "hpc_validation_profile": wrong})
    assert played.code != 0
    (finding,) = (each for each in played.verdict["findings"] if each["id"] == "profile.errors")
    assert "training.epochs: 0; expected at least 1" in finding["why"]
    assert f"{LABEL}: submitted" not in played.screen


@pytest.mark.slow
@pytest.mark.usefixtures("mlflow")
def test_the_acceptance_passes_and_mlflow_has_every_row(play):
    played = play(PLAYBOOK, variables=TO_MLFLOW)
    assert played.code == 0, played.screen
    (workload,) = played.verdict["workloads"]
    found = {criterion["id"]: criterion["verdict"] for criterion in workload["criteria"]}
    own = {name: verdict for name, verdict in found.items() if name.startswith("S4-")}
    assert set(own.values()) == {"pass", "recorded", "not_applicable"}
    on_gpus = {name for name, verdict in own.items() if verdict == "not_applicable"}
    assert on_gpus == {"S4-3.backend", "S4-26.scaling"}
    (run,) = server.asked()
    assert (run["experiment"], run["status"]) == ("training-profiles", "FINISHED")
    assert run["metrics"] == written(output("training-profiles", workload["job"]["job_id"]))
    assert run["parameters"]["model.hidden_size"] == "64"


@pytest.mark.slow
@pytest.mark.usefixtures("mlflow")
def test_what_a_killed_server_missed_is_sent_later_and_nothing_twice(tmp_path):
    selected = canaries.select(tmp_path / "workloads", small_training_profile.NAME, "held")
    variables = {**selected, **ANY_SPEED, **TO_MLFLOW, "hpc_validation_results": str(tmp_path / "results")}
    with running_play(variables, tmp_path, f" {LABEL}: RUNNING for") as played:
        job = (tmp_path / "screen").read_text().partition(f" {LABEL}: submitted")[0].rpartition("job ")[2]
        folder = output(LABEL, job)
        wait_for((folder / "held").exists, 240)
        server.kill()
        cluster("login", "touch", f"/mnt/beegfs/models/{LABEL}/job-{job}/go", user="admin")
        assert played.wait(240) == 0
    state = json.loads((folder / "tracker.json").read_text(encoding="utf-8"))
    assert state["gap"]
    server.start()
    send = ["-m", "kit", "tracker", "send", f"/mnt/beegfs/models/{LABEL}/job-{job}", "--address", server.ADDRESS]
    for _time in range(2):  # the second has nothing to send
        done = on_login("python3", *send, "--name", "local", PYTHONPATH="/mnt/beegfs/scripts")
        assert done.returncode == 0, done.stderr
    (run,) = server.asked()
    assert run["metrics"] == written(folder)


@pytest.mark.slow
def test_a_training_is_submitted_by_hand(tmp_path):
    """As docs/profiles.md says, with what the playbook has put on the share."""
    profile = tmp_path / "profile.yaml"
    whole = (ROOT / "files/workloads/training_profiles/local.yaml").read_text(encoding="utf-8")
    place = f"/mnt/beegfs/evaluations/by-hand-{os.getpid()}"
    profile.write_text(whole.replace("/tmp/training-profiles", place).replace("max_steps: 400", "max_steps: 100"))
    share = CACHE / "clusters" / CLUSTER / "share"
    cluster("login", "mkdir", "-p", place, user="admin")
    (share / f"evaluations/by-hand-{os.getpid()}/profile.yaml").write_text(profile.read_text(encoding="utf-8"))
    script = "/mnt/beegfs/scripts/training_profiles/scripts/train_hpc.sh"
    options = ["--wait", "--nodes=2", "--ntasks-per-node=2", "--gres=gpu:2", "--mem=6G", "--chdir", place]
    done = on_login("bash", script, f"{place}/profile.yaml", *options, HPC_VALIDATION_ACCELERATOR="simulated")
    assert done.returncode == 0, done.stdout + done.stderr
    (output_folder,) = (share / f"evaluations/by-hand-{os.getpid()}/logs").glob("job-*")
    assert json.loads((output_folder / "metrics.json").read_text(encoding="utf-8"))["steps"] == 100
    assert [*output_folder.glob("nodes/*/gpu.jsonl")]
    kept = share / f"evaluations/by-hand-{os.getpid()}/checkpoints/final_checkpoint_step_100"
    assert kept.is_dir()
