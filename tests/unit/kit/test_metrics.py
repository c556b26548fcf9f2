# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The metrics document and the progress rows."""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import sys
from pathlib import Path

from kit.job import Job
from kit.metrics import Progress, write_metrics

JOB = Job("12", 0)


def test_metrics_carry_the_job_and_cannot_claim_another(tmp_path: Path) -> None:
    write_metrics(tmp_path / "metrics.json", {"loss": [math.nan], "job_id": "99"}, JOB)
    assert json.loads((tmp_path / "metrics.json").read_text()) == {"loss": ["NaN"], "job_id": "12", "attempt": 0}


def test_rows_are_json_lines_with_job_time_and_time_left(tmp_path: Path) -> None:
    with Progress(tmp_path / "progress.jsonl", str(tmp_path / "markers"), JOB) as progress:
        progress.row(epoch=1, step=1, steps=4, loss=0.5)
        progress.row(epoch=1, step=4, steps=4, loss=math.inf)
    first, last = (json.loads(line) for line in (tmp_path / "progress.jsonl").read_text().splitlines())
    assert first["job_id"] == "12"
    assert first["attempt"] == 0
    assert first["loss"] == 0.5
    assert first["eta_seconds"] >= 0
    assert last["loss"] == "Infinity"
    assert last["eta_seconds"] == 0
    assert json.loads((tmp_path / "markers" / "12.progress.json").read_text()) == last


def test_a_file_of_an_earlier_run_is_not_continued(tmp_path: Path) -> None:
    (tmp_path / "progress.jsonl").write_text('{"job_id": "1"}\n')
    with Progress(tmp_path / "progress.jsonl", job=JOB) as progress:
        progress.row(step=1)
    assert [json.loads(line)["job_id"] for line in (tmp_path / "progress.jsonl").read_text().splitlines()] == ["12"]


def test_rows_written_before_a_kill_are_there_and_whole(tmp_path: Path, root: Path) -> None:
    script = (
        "import os, signal, sys\nfrom kit.metrics import Progress\nprogress = Progress(sys.argv[1])\n"
        "for step in range(1, 4): progress.row(step=step, steps=9)\nos.kill(os.getpid(), signal.SIGKILL)"
    )
    path = tmp_path / "progress.jsonl"
    environment = {**os.environ, "PYTHONPATH": str(root / "files"), "SLURM_JOB_ID": "12"}
    done = subprocess.run([sys.executable, "-c", script, str(path)], env=environment, check=False)
    assert done.returncode == -signal.SIGKILL
    assert [json.loads(line)["step"] for line in path.read_text().splitlines()] == [1, 2, 3]


def test_rows_go_on_where_another_process_ended(tmp_path: Path) -> None:
    path = tmp_path / "progress.jsonl"
    for append in (False, True):
        with Progress(path, job=JOB, append=append) as progress:
            progress.row(step=int(append))
    assert [json.loads(line)["step"] for line in path.read_text().splitlines()] == [0, 1]


def test_the_marker_is_not_renewed_more_often_than_told(tmp_path: Path) -> None:
    with Progress(tmp_path / "progress.jsonl", str(tmp_path / "markers"), JOB, every=600.0) as progress:
        progress.row(step=1)
        progress.row(step=2)
    (marker,) = (tmp_path / "markers").glob("*progress*")
    assert json.loads(marker.read_text())["step"] == 1
    assert len((tmp_path / "progress.jsonl").read_text().splitlines()) == 2
