# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Workloads in real Apptainer images, built on the cluster. What is wrong with an image: tests/faults/faults.yml."""

from __future__ import annotations

import hashlib
import json
import re
import shutil

import pytest

from tests.integration.conftest import ANY_SPEED, CACHE, CLUSTER, ROOT, cluster, jobs, running_play, wait_for

IN_IMAGES = {"hpc_validation_runtime": "apptainer", "hpc_validation_nodes": ["compute01"], **ANY_SPEED}


def check_container(played, workload, environment):
    """It ran in the image of this environment, which the evidence names by what was seen from inside."""
    assert played.code == 0, played.screen[-8000:]
    container = {c["id"]: c["verdict"] for c in played.verdict["workloads"][0]["criteria"] if "CONTAINER" in c["id"]}
    assert container == dict.fromkeys([f"CONTAINER.{name}" for name in ("entered", "image", "lock", "gpus")], "pass")
    provenance = json.loads((played.folder / f"evidence/{workload}.json").read_text())["provenance"]
    image = provenance["container"]
    assert image["path"] == f"/mnt/beegfs/containers/{environment}_latest.sif"
    assert image["python"] == "/opt/hpc_validation/runtime/bin/python"
    assert len(image["sha256"]) == 64
    assert provenance["runtime"]["key"].startswith(f"{environment}-")
    assert (list(image["gpus"].values()), len(provenance["gpus"])) == ([{"answers": True}], 1)


@pytest.mark.slow
def test_mnist_is_trained_in_an_image(play):
    played = play(variables={**IN_IMAGES, "hpc_validation_only": ["MLOPS-1.1"]}, timeout=1200)
    check_container(played, "MLOPS-1.1", "pytorch")


@pytest.mark.slow
def test_a_language_model_is_fine_tuned_in_an_image_that_is_staged_once(play):
    playbook = ROOT / "playbooks/validate_baseline.yml"
    check_container(play(playbook, variables=IN_IMAGES, timeout=1200), "BASELINE-1", "sft")
    again = play(playbook, variables=IN_IMAGES)
    check_container(again, "BASELINE-1", "sft")
    tasks = re.split(r"^TASK \[", again.screen, flags=re.MULTILINE)
    staging = [task for task in tasks if task.startswith("mlops.hpc_validation.stage :")]
    assert [task for task in staging if "the image /mnt/beegfs/containers/sft_latest.sif" in task]
    assert [task for task in staging if "changed: [login]" in task] == []


@pytest.mark.slow
def test_a_job_in_an_image_from_the_controller_is_cancelled_whole(canary, tmp_path):
    """The image is copied and known by its hash. Ctrl-C: what runs in the container does not outlive its job."""
    made, base = "/mnt/beegfs/evaluations/canary.sif", "docker-archive:/mnt/beegfs/containers/python.tar"
    cluster("login", "mkdir", "-p", "/mnt/beegfs/evaluations", user="admin")
    cluster("login", "apptainer", "build", "--disable-cache", "--force", made, base, user="admin")
    mine = shutil.copy(CACHE / "clusters" / CLUSTER / "share/evaluations/canary.sif", tmp_path / "mine.sif")
    digest = hashlib.sha256(mine.read_bytes()).hexdigest()
    image = {"path": str(mine), "sha256": digest, "python": "/usr/bin/python3"}
    variables = {
        **canary("wait", runtime="standin"),
        "hpc_validation_runtime": "apptainer",
        "hpc_validation_images": {"standin": image},
        "hpc_validation_results": str(tmp_path / "results"),
    }
    with running_play(variables, tmp_path):
        wait_for(lambda: "canary.py" in cluster("compute01", "ps", "-eo", "args"), 60)
        assert cluster("login", "sha256sum", "/mnt/beegfs/containers/standin_latest.sif").split()[0] == digest
        assert cluster("login", "ls", "/mnt/beegfs/containers/.incoming") == ""
    wait_for(lambda: jobs() == [], 60)
    wait_for(lambda: "canary.py" not in cluster("compute01", "ps", "-eo", "args"), 30)
