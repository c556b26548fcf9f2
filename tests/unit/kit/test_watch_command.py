# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""`kit watch`, as a person calls it on a login node."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest
from kit.commands import watch

from tests.pythons import find
from tests.unit.kit.training_folder import training, write
from tests.unit.kit.training_rows import BEGAN

END = {"job_id": "12", "attempt": 0, "exit_code": 0, "time": BEGAN + 9000}


@pytest.fixture
def command(root):
    def run(*arguments: str, python: str = sys.executable, **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [python, "-S", "-s", "-B", "-m", "kit", "watch", *arguments],
            env={"PATH": os.defpath, "PYTHONPATH": str(root / "files"), **environment},
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )

    return run


def test_a_job_is_shown_once_by_the_oldest_python(tmp_path, command):
    training(tmp_path)
    python = str(find("3.9") or sys.executable)
    done = command("12", "--share", str(tmp_path), "--once", python=python, LC_ALL="C")
    assert (done.returncode, done.stderr) == (0, "")
    assert "Step        400 of 1,000 (40.0%)" in done.stdout
    assert done.stdout.count("Job 12") == 1
    assert "\x1b" not in done.stdout


def test_the_share_is_that_of_the_environment(tmp_path, command):
    folder = training(tmp_path)
    assert "400 of 1,000" in command("12", "--once", HPC_VALIDATION_SHARE=str(tmp_path)).stdout
    assert "400 of 1,000" in command(str(folder), "--once").stdout


def test_a_job_that_has_ended_is_shown_once(tmp_path, command):
    training(tmp_path)
    write(tmp_path / "jobs/.markers/12.end.json", END)
    done = command("12", "--share", str(tmp_path))
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("Job 12, ended with exit code 0, seen ")


def test_screens_follow_until_the_job_has_ended(tmp_path, monkeypatch, capsys):
    training(tmp_path)
    slept = []

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        if len(slept) == 2:
            write(tmp_path / "jobs/.markers/12.end.json", END)

    monkeypatch.setattr(time, "sleep", sleep)
    watch.run(_arguments("12", "--share", str(tmp_path), "--every", "7"))
    shown = capsys.readouterr().out
    assert slept == [7.0, 7.0]
    assert shown.count("\n----------------------------------------\nJob 12") == 2
    assert "ended with exit code 0" in shown


def _arguments(*words: str):
    import argparse

    parser = argparse.ArgumentParser()
    watch.add_arguments(parser)
    return parser.parse_args(words)


def test_an_interruption_ends_it_quietly(tmp_path, root):
    training(tmp_path)
    process = subprocess.Popen(
        [sys.executable, "-B", "-m", "kit", "watch", "12", "--share", str(tmp_path)],
        env={"PATH": os.defpath, "PYTHONPATH": str(root / "files")},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    for line in process.stdout:
        if line.startswith("-----"):
            break
    process.send_signal(signal.SIGINT)
    _out, errors = process.communicate(timeout=60)
    assert (process.returncode, errors) == (0, "")


def test_a_reader_that_is_gone_ends_it_quietly(tmp_path, root):
    training(tmp_path)
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [sys.executable, "-B", "-m", "kit", "watch", "12", "--share", str(tmp_path)],
        env={"PATH": os.defpath, "PYTHONPATH": str(root / "files")},
        stdout=writing,
        stderr=subprocess.PIPE,
        check=False,
        timeout=60,
    )
    os.close(writing)
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.parametrize("every", ["0", "0.9", "3601", "nan"])
def test_a_strange_pace_is_refused(command, every):
    done = command("12", "--every", every)
    assert done.returncode == 1
    assert "expected 1 to 3600 seconds" in done.stderr


def test_a_training_that_is_not_found_is_an_error(tmp_path, command):
    done = command("12", "--share", str(tmp_path))
    assert done.returncode == 1
    assert done.stderr.startswith(f"kit watch: {tmp_path}/models/gpt-pretraining has no folder of job 12: ")


def test_a_job_that_has_not_begun_is_waited_for(tmp_path, root):
    process = subprocess.Popen(
        [sys.executable, "-B", "-m", "kit", "watch", "12", "--share", str(tmp_path), "--wait", "60", "--once"],
        env={"PATH": os.defpath, "PYTHONPATH": str(root / "files")},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "job 12 has not begun; squeue -j 12 says why\n"
    training(tmp_path)
    shown, errors = process.communicate(timeout=60)
    assert (process.returncode, errors) == (0, "")
    assert shown.startswith("Job 12")


def test_a_job_that_does_not_begin_in_time_is_an_error(tmp_path, command):
    done = command("12", "--share", str(tmp_path), "--wait", "0.1")
    assert done.returncode == 1
    assert done.stdout == "job 12 has not begun; squeue -j 12 says why\n"
    assert "has no folder of job 12" in done.stderr


def test_a_folder_that_is_not_there_is_not_waited_for(tmp_path, command):
    done = command(str(tmp_path / "job-12"), "--wait", "60")
    assert (done.returncode, done.stdout) == (1, "")


@pytest.mark.parametrize("wait", ["-1", "nan", "2678401"])
def test_a_strange_wait_is_refused(command, wait):
    done = command("12", "--wait", wait)
    assert done.returncode == 1
    assert "expected 0 to 2678400 seconds" in done.stderr
