# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The log and the rows of a training: whole lines, of this job, that any reader of JSON takes."""

from __future__ import annotations

import json
import math
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from kit.job import Job
from kit.pretraining import records
from kit.pretraining.records import LOG, PERFORMANCE, STEPS, Lines, Records, step_line, timestamp

JOB = Job("12", 1)
FIGURES: dict[str, Any] = {
    "loss": 3.25,
    "learning_rate": 3e-4,
    "grad_norm": 0.5,
    "steps_per_second": 0.5,
    "tokens_per_second": 524288.0,
    "skipped_steps": 0,
}
SECONDS = {
    "data_seconds": 0.1,
    "forward_seconds": 0.2,
    "backward_seconds": 0.3,
    "optimizer_seconds": 0.4,
    "step_seconds": 1.0,
}


def rows(path: Path) -> list[dict[str, Any]]:
    def refused(name: str) -> None:
        raise AssertionError(f"{name} is not JSON")

    return [json.loads(line, parse_constant=refused) for line in path.read_text().splitlines()]


def test_a_moment_is_shown_in_utc():
    assert timestamp(1800000000.0) == "2027-01-15T08:00:00.000Z"
    assert timestamp(1800000000.0625) == "2027-01-15T08:00:00.062Z"


def test_a_steps_row_has_these_fields(tmp_path):
    written = Records(tmp_path / "made/deep", JOB, 40)
    returned = written.step(1, **FIGURES)
    written.step(2, **{**FIGURES, "loss": math.nan, "grad_norm": math.inf, "skipped_steps": 1, "memory_bytes": 5})
    written.step(3, **FIGURES, loss_scale=1024.0, validation_loss=3.5, checkpoint_step=2)
    written.close()
    first, second, third = rows(tmp_path / "made/deep" / STEPS)
    assert {**returned, "time": 0, "timestamp": "", "elapsed_seconds": 0} == {
        "job_id": "12",
        "attempt": 1,
        "time": 0,
        "timestamp": "",
        "elapsed_seconds": 0,
        "step": 1,
        "steps": 40,
        **FIGURES,
        "memory_bytes": None,
        "loss_scale": None,
    }
    assert first == returned
    assert first["timestamp"] == timestamp(first["time"])
    assert 0 <= first["elapsed_seconds"] <= second["elapsed_seconds"] <= third["elapsed_seconds"] < 60
    assert (second["loss"], second["grad_norm"], second["memory_bytes"]) == ("NaN", "Infinity", 5)
    assert (third["loss_scale"], third["validation_loss"], third["checkpoint_step"]) == (1024.0, 3.5, 2)


def test_a_row_of_performance_has_these_fields(tmp_path):
    written = Records(tmp_path, JOB, 40)
    written.performance(1, **SECONDS)
    written.performance(2, **SECONDS, mfu=0.4, solo_seconds=(0.1, None), extra=1)
    written.close()
    first, second = rows(tmp_path / PERFORMANCE)
    assert first.pop("time") > 0
    assert first == {"job_id": "12", "attempt": 1, "step": 1, **SECONDS, "mfu": None}
    assert (second["mfu"], second["solo_seconds"], second["extra"]) == (0.4, [0.1, None], 1)


def test_the_log_has_first_last_every_tenth_and_unusual_steps(tmp_path):
    written = Records(tmp_path, JOB, 25)
    unusual = {
        13: {"validation_loss": 3.5},
        15: {"loss": math.nan},
        17: {"grad_norm": math.inf},
        18: {"skipped_steps": 1},
        19: {"skipped_steps": 1},
    }
    for step in range(1, 26):
        written.step(step, **{**FIGURES, **unusual.get(step, {"skipped_steps": int(step > 17)})})
    written.close()
    told = [int(re.search(r"step (\d+) of 25", line)[1]) for line in (tmp_path / LOG).read_text().splitlines()]
    assert told == [1, 10, 13, 15, 17, 18, 20, 25]


def test_a_line_of_the_log_has_time_and_job(tmp_path):
    written = Records(tmp_path, JOB, 25)
    written.say("resumed from\ncheckpoint_step_10 \x1b[31m\udcff")
    written.close()
    (line,) = (tmp_path / LOG).read_bytes().splitlines()
    assert re.fullmatch(
        rb"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z \[12\.1\] resumed from checkpoint_step_10 \[31m", line
    )


def test_the_text_of_a_step():
    row = {"step": 7, "steps": 40, **FIGURES, "memory_bytes": None, "loss_scale": None}
    plain = "step 7 of 40: loss 3.2500, learning rate 3.000e-04, gradient norm 0.500, 0.500 steps/s, 524,288 tokens/s"
    assert step_line(row) == plain
    row.update(memory_bytes=2**36 + 2**35, loss_scale=65536.0, skipped_steps=3, validation_loss=3.5)
    more = ", memory 96.0 GiB, loss scale 65536, skipped steps 3, validation loss 3.5000"
    assert step_line(row) == plain + more


def test_records_are_continued_and_half_a_line_is_ended(tmp_path):
    (tmp_path / STEPS).write_text('{"step": 1}\n{"ste')
    (tmp_path / LOG).write_text("before\n")
    (tmp_path / PERFORMANCE).write_text("x")
    written = Records(tmp_path, JOB, 40)
    written.step(2, **FIGURES)
    written.step(3, **FIGURES)
    written.performance(2, **SECONDS)
    written.say("after")
    written.close()
    lines = (tmp_path / STEPS).read_text().splitlines()
    assert lines[:2] == ['{"step": 1}', '{"ste']
    assert [json.loads(line)["step"] for line in lines[2:]] == [2, 3]
    assert [line.partition("] ")[2] for line in (tmp_path / LOG).read_text().splitlines()] == ["", "after"]
    lines = (tmp_path / PERFORMANCE).read_text().splitlines()
    assert (lines[0], len(lines)) == ("x", 2)


def test_a_full_disk_is_an_error_and_leaves_no_merged_lines(tmp_path, monkeypatch):
    lines = Lines(tmp_path / "rows")
    real, room = os.write, [4]

    def write(descriptor: int, content: bytes) -> int:
        if not room[0]:
            raise OSError(28, "No space left on device")
        taken = real(descriptor, content[: room[0]])
        room[0] -= taken
        return taken

    monkeypatch.setattr(os, "write", write)
    with pytest.raises(OSError, match="No space left"):
        lines.add(b"first line\n")
    room[0] = 100
    lines.add(b"second line\n")
    lines.add(b"third line\n")
    lines.close()
    assert (tmp_path / "rows").read_bytes() == b"firs\nsecond line\nthird line\n"


def test_a_line_after_the_end_goes_into_no_other_file(tmp_path):
    lines = Lines(tmp_path / "rows")
    descriptor = lines._descriptor
    lines.close()
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(descriptor)
    other = os.open(tmp_path / "other", os.O_WRONLY | os.O_CREAT)
    with pytest.raises(OSError, match="Bad file descriptor"):
        lines.add(b"late\n")
    os.close(other)
    assert (tmp_path / "other").read_bytes() == b""


def test_the_end_puts_everything_onto_the_disk(tmp_path, monkeypatch):
    written, synced, real = Records(tmp_path, JOB, 40), [], os.fsync

    def sync(descriptor: int) -> None:
        synced.append(os.path.basename(os.readlink(f"/proc/self/fd/{descriptor}")))
        real(descriptor)

    monkeypatch.setattr(os, "fsync", sync)
    written.close()
    assert sorted(synced) == sorted([LOG, STEPS, PERFORMANCE])
    with pytest.raises(OSError, match="Bad file descriptor"):
        written.say("late")


def test_anyone_may_read_records_and_nobody_else_write_them(tmp_path):
    before = os.umask(0)
    try:
        Records(tmp_path, JOB, 40).close()
    finally:
        os.umask(before)
    assert {path.stat().st_mode & 0o777 for path in tmp_path.iterdir()} == {0o644}


def test_rows_written_before_a_kill_are_there_and_whole(tmp_path, root):
    script = (
        "import os, signal, sys\nfrom pathlib import Path\nfrom kit.job import current_job\n"
        "from kit.pretraining.records import Records\nwritten = Records(Path(sys.argv[1]), current_job(), 9)\n"
        f"for step in range(1, 4): written.step(step, **{FIGURES!r})\nos.kill(os.getpid(), signal.SIGKILL)"
    )
    environment = {**os.environ, "PYTHONPATH": str(root / "files"), "SLURM_JOB_ID": "12"}
    done = subprocess.run([sys.executable, "-c", script, str(tmp_path)], env=environment, check=False)
    assert done.returncode == -signal.SIGKILL
    assert [row["step"] for row in rows(tmp_path / STEPS)] == [1, 2, 3]


def marker(folder: Path) -> dict[str, Any]:
    return json.loads((folder / "12.progress.json").read_text())


def test_the_jobs_progress_is_marked_now_and_then_and_at_the_end(tmp_path, monkeypatch):
    clock = [100.0]
    monkeypatch.setattr(records.time, "monotonic", lambda: clock[0])
    written = Records(tmp_path, JOB, 40, markers_folder=str(tmp_path / "markers"))
    written.step(1, **{**FIGURES, "steps_per_second": 0.7})
    assert (marker(tmp_path / "markers")["step"], marker(tmp_path / "markers")["eta_seconds"]) == (1, 55.7)
    clock[0] += 4.9
    written.step(2, **FIGURES)
    assert marker(tmp_path / "markers")["step"] == 1
    clock[0] += 0.1
    written.step(3, **{**FIGURES, "steps_per_second": 0.0})
    assert marker(tmp_path / "markers")["step"] == 3
    assert "eta_seconds" not in marker(tmp_path / "markers")
    written.step(40, **{**FIGURES, "steps_per_second": math.inf})
    assert marker(tmp_path / "markers")["step"] == 40
    assert "eta_seconds" not in marker(tmp_path / "markers")
    written.close()


def test_without_a_folder_for_markers_there_are_none(tmp_path, monkeypatch):
    monkeypatch.delenv("HPC_VALIDATION_MARKERS", raising=False)
    written = Records(tmp_path, JOB, 40)
    written.step(1, **FIGURES)
    written.close()
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([LOG, STEPS, PERFORMANCE])
    monkeypatch.setenv("HPC_VALIDATION_MARKERS", str(tmp_path / "markers"))
    written = Records(tmp_path, JOB, 40)
    written.step(1, **FIGURES)
    written.close()
    assert marker(tmp_path / "markers")["step"] == 1
