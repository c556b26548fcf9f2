# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The job scripts that a play deploys are the user's too: by plain sbatch they leave what they left in the play."""

from __future__ import annotations

import json
import re
import time

import pytest

from tests.integration import canaries
from tests.integration.conftest import ANY_SPEED, CACHE, CLUSTER, ROOT, cluster, jobs, wait_for

SHARE = CACHE / "clusters" / CLUSTER / "share"
LEGS = ("before", "measured", "after")


def submitted(name):
    """The id of a job of this workload's deployed script, submitted as the user does."""
    script = f"/mnt/beegfs/scripts/{name}/{name}.sbatch"
    return cluster("login", "sbatch", "--parsable", script, user="admin").strip()


def has_ended(job, since):
    """Whether the job's end marker is there: Slurm is asked once it is, for two ranks need the machine's cores."""
    marker = SHARE / f"jobs/.markers/{job}.end.json"
    return marker.exists() and marker.stat().st_mtime > since


def state_of(job):
    argv = ("squeue", "--noheader", f"--jobs={job}", "--states=all", "--format=%T")
    return cluster("login", *argv, user="admin").strip()


def files_of(output, job):
    """Paths of the files below a job's output folder; the launcher names the folder of its logs at random."""
    found = (path.relative_to(output).as_posix() for path in output.rglob("*") if path.is_file())
    return {re.sub(rf"ranks/logs/{job}_[^/]+/", "ranks/logs/", path) for path in found}


def keys_of(value):
    """A JSON value without its leaves: of an object its keys and what they hold, of a list what its elements are."""
    if isinstance(value, dict):
        return {key: keys_of(item) for key, item in value.items()}
    if isinstance(value, list):
        kinds = []
        for item in map(keys_of, value):
            kinds += [item] if item not in kinds else []
        return kinds
    return None


@pytest.mark.slow
@pytest.mark.parametrize(
    ("workload", "name", "models", "seconds"),
    [
        ("TEST-2", "ranks_canary", "ranks-canary", 180),
        ("MLOPS-2.1", "cifar10_multi_gpu", "cifar10", 900),
        ("MLOPS-2.2", "smollm_multi_gpu", "smollm-multi-gpu", 900),
    ],
)
def test_plain_sbatch_leaves_the_same_files(play, tmp_path, workload, name, models, seconds):
    variables = {
        **canaries.select(tmp_path / "workloads", "ranks_canary"),
        "hpc_validation_only": [workload],
        "hpc_validation_workload_slurm": {workload: {"nodelist": "compute01"}},  # its name and GPUs are among the keys
        **ANY_SPEED,
    }
    played = play(ROOT / "playbooks/validate_category2.yml", variables=variables, timeout=1200)
    assert played.folder, played.end
    (judged,) = [each for each in played.verdict["workloads"] if each["id"] == workload]  # what it needs ran first
    in_the_play = judged["job"]["job_id"]
    assert [each["verdict"] for each in judged["criteria"] if each["id"] == "JOB"] == ["pass"], played.end
    began, by_hand = time.time(), submitted(name)
    try:
        wait_for(lambda: has_ended(by_hand, began), seconds)
        wait_for(lambda: state_of(by_hand) not in ("RUNNING", "COMPLETING"), 60)
        assert state_of(by_hand) == "COMPLETED"
    finally:
        if by_hand in jobs():
            cluster("login", "scancel", by_hand, user="admin")
    first, second = (SHARE / f"models/{models}/job-{job}" for job in (in_the_play, by_hand))
    assert files_of(second, by_hand) == files_of(first, in_the_play)
    for document in ("metrics.json", "legs.json", "baseline-before/metrics.json", "baseline-after/metrics.json"):
        one, other = (json.loads((folder / document).read_text()) for folder in (first, second))
        assert (one["job_id"], other["job_id"]) == (in_the_play, by_hand)
        assert keys_of(other) == keys_of(one), document
    legs = json.loads((second / "legs.json").read_text())
    assert [(legs[leg]["ranks"], legs[leg]["exit_code"]) for leg in LEGS] == [(1, 0), (2, 0), (1, 0)]
