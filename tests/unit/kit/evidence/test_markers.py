# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Begin, end and progress markers, and the job's identity."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from kit.errors import KitError
from kit.evidence import markers
from kit.job import Job, current_job

JOB = Job("12", 1)


def run_kit(root: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the command line in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "kit", *arguments],
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(root / "files"), **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_job_is_read_from_the_environment() -> None:
    assert current_job({"SLURM_JOB_ID": "7", "HPC_VALIDATION_ATTEMPT": "2", "SLURM_RESTART_COUNT": "5"}) == Job("7", 2)
    assert current_job({"SLURM_JOB_ID": "7", "SLURM_RESTART_COUNT": "5"}) == Job("7", 5)
    assert current_job({}) == Job("manual", 0)


@pytest.mark.parametrize(
    "environment",
    [
        {"SLURM_JOB_ID": "../../etc/x"},
        {"SLURM_JOB_ID": "1\n2"},
        {"HPC_VALIDATION_ATTEMPT": "-1"},
        {"HPC_VALIDATION_ATTEMPT": "x"},
    ],
)
def test_an_identity_that_is_none_is_refused(environment: dict[str, str]) -> None:
    with pytest.raises(KitError):
        current_job(environment)


def test_begin_says_who_where_and_when_and_clears_the_earlier_attempt(tmp_path: Path) -> None:
    for kind in ("end", "progress"):
        (tmp_path / f"12.{kind}.json").write_text("{}")
    markers.begin(tmp_path, JOB)
    assert [path.name for path in tmp_path.iterdir()] == ["12.begin.json"]
    written = json.loads((tmp_path / "12.begin.json").read_text())
    assert written.keys() == {"job_id", "attempt", "host", "time"}
    assert (written["job_id"], written["attempt"]) == ("12", 1)


def test_end_closes_both_logs_on_a_line_of_its_own_and_writes_the_marker(tmp_path: Path, root: Path) -> None:
    folder = tmp_path / "a 'b'; $c"
    done = run_kit(
        root,
        "end",
        "--exit-code",
        "3",
        SLURM_JOB_ID="12",
        HPC_VALIDATION_ATTEMPT="1",
        HPC_VALIDATION_MARKERS=str(folder),
    )
    assert done.returncode == 0
    written = json.loads((folder / "12.end.json").read_text())
    assert len(written["nonce"]) == 32
    for log in ("no newline" + done.stdout, "no newline" + done.stderr):
        assert log.splitlines()[-1] == f"hpc-validation-end job=12 attempt=1 exit=3 nonce={written['nonce']}"
    assert (written["job_id"], written["attempt"], written["exit_code"]) == ("12", 1, 3)


def test_no_two_ends_bear_the_same_nonce(tmp_path: Path) -> None:
    nonces = set()
    for _each in range(3):
        markers.end(tmp_path, JOB, 0)
        nonces.add(json.loads((tmp_path / "12.end.json").read_text())["nonce"])
    assert len(nonces) == 3


def test_the_end_marker_is_not_written_when_the_log_cannot_be(tmp_path: Path, root: Path) -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "kit", "end", "--exit-code", "0", "--markers", str(tmp_path)],
            env={"PYTHONPATH": str(root / "files"), "SLURM_JOB_ID": "12"},
            stdout=full,
            stderr=subprocess.PIPE,
            check=False,
        )
    assert done.returncode != 0
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("code", ["-1", "256", "x", ""])
def test_an_exit_code_that_is_none_is_refused(tmp_path: Path, root: Path, code: str) -> None:
    done = run_kit(root, "end", f"--exit-code={code}", "--markers", str(tmp_path))
    assert done.returncode in (1, 2)
    assert list(tmp_path.iterdir()) == []


def test_markers_need_a_folder(root: Path) -> None:
    done = run_kit(root, "begin")
    assert done.returncode == 1
    assert "--markers" in done.stderr


def test_progress_is_the_latest_row(tmp_path: Path) -> None:
    markers.progress(tmp_path, JOB, {"step": 1})
    markers.progress(tmp_path, JOB, {"step": 2})
    assert json.loads((tmp_path / "12.progress.json").read_text()) == {"step": 2}
