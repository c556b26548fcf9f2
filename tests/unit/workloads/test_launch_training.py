# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The script that people submit a training with: what it hands on to resume from."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.unit.conftest import ROOT

SCRIPT = ROOT / "files/workloads/gpt_pretraining/scripts/launch_training.sh"


def launch(folder: Path, earlier: str) -> subprocess.CompletedProcess[str]:
    """Run the script where sbatch writes down its arguments."""
    sbatch = folder / "sbatch"
    sbatch.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" > "{folder}/asked"\necho 12\n')
    sbatch.chmod(0o755)
    return subprocess.run(
        ["bash", str(SCRIPT), "--no-monitor", "--resume_from_checkpoint", earlier],
        env={"PATH": f"{folder}:{os.defpath}"},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


@pytest.mark.parametrize("below", ["", "/checkpoints/checkpoint_step_50000", "/checkpoints/final_checkpoint_step_7"])
def test_a_checkpoint_stands_for_its_jobs_folder(tmp_path: Path, below: str) -> None:
    job = tmp_path / "job-4711"
    job.mkdir()
    done = launch(tmp_path, f"{job}{below}")
    assert (done.returncode, done.stdout, done.stderr) == (0, "job 12\n", "")
    assert f"--export=HPC_VALIDATION_RESUME={job}\n" in (tmp_path / "asked").read_text()


def test_a_bucket_is_handed_on_as_it_is(tmp_path: Path) -> None:
    assert launch(tmp_path, "gs://bucket/checkpoints/checkpoint_step_5").returncode == 0
    asked = (tmp_path / "asked").read_text()
    assert "--export=HPC_VALIDATION_RESUME=gs://bucket/checkpoints/checkpoint_step_5\n" in asked


def test_nothing_is_submitted_for_a_folder_that_is_not_there(tmp_path: Path) -> None:
    done = launch(tmp_path, f"{tmp_path}/job-9/checkpoints/checkpoint_step_5")
    assert (done.returncode, done.stderr) == (2, f"--resume_from_checkpoint: {tmp_path}/job-9: no such folder\n")
    assert not (tmp_path / "asked").exists()


def test_a_job_that_waits_in_the_queue_is_watched_once_it_begins(tmp_path: Path) -> None:
    python = tmp_path / "python"
    python.write_text('#!/bin/sh\necho "$@"\n')
    python.chmod(0o755)
    (tmp_path / "sbatch").write_text("#!/bin/sh\necho 12\n")
    (tmp_path / "sbatch").chmod(0o755)
    done = subprocess.run(
        ["bash", str(SCRIPT)],
        env={"PATH": f"{tmp_path}:{os.defpath}", "PYTHON": str(python)},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    share = SCRIPT.parents[3]
    assert done.stdout == f"job 12\n-B -m kit watch --wait 604800 --share {share} 12\n"
