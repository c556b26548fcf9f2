# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""However a job ends: its children end before it, however they behave, and the end is told once."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import typing as t
from pathlib import Path

import pytest

from tests.unit.roles.test_job_script import VENV, render, wait_for

__all__ = ["render"]
# Notes its calls and signals. As the workload it ends when it is let, as the sampler when it is told and listens.
PYTHON = """#!/usr/bin/env bash
notes=$(dirname "$0")
echo "$*" >> "$notes/calls"
case "$*" in
    train.py) trap 'echo TERM >> "$notes/train.signals"' TERM; echo $$ > "$notes/train.pid"
        until [ -e "$notes/let" ]; do read -r -t 0.05 <> <(:); done ;;
    *"kit sample"*) echo $$ > "$notes/sample.pid"
        until [ -e "$notes/listen" ]; do read -r -t 0.05 <> <(:); done
        trap 'echo USR1 >> "$notes/sample.signals"; exit 0' USR1; echo {} > "$5"
        while :; do read -r -t 0.05 <> <(:); done ;;
esac
exit 0
"""
# The job's own sleep, between two looks: whether the sampler is ready, and then whether a child has ended.
SLEEP = """#!/usr/bin/env bash
notes=$(dirname "$0")/..
echo >> "$notes/waits"
[ -e "$notes/train.pid" ] || { [ -e "$notes/go" ] || /bin/sleep 0.05; exit; }
touch "$notes/looked"
until [ -e "$notes/go" ]; do read -r -t 0.05 <> <(:); done
"""
# The shell's own kill, which notes what it was asked.
KILL = """() { echo "$*" >> "$NOTES/kills"; builtin kill "$@"; }"""


class Job:
    def __init__(self, place: Path, render: t.Callable[..., str]) -> None:
        self.place = place
        (place / "share/jobs/.markers").mkdir(parents=True)
        (place / "bin").mkdir()
        for path, text in ((place / "python", PYTHON), (place / "bin/sleep", SLEEP)):
            path.write_text(text)
            path.chmod(0o755)
        python = str(place / "python")
        script = place / "job.sbatch"
        script.write_text(
            render(
                manifest={"command": ["python", "train.py"]},
                hpc_validation_share=str(place / "share"),
                hpc_validation_python=python,
                __stage_runtimes={"pytorch": {**VENV, "python": python}},
            )
        )
        environment = {"SLURM_JOB_ID": "7", "PATH": f"{place}/bin:/usr/bin:/bin"}
        environment |= {"BASH_FUNC_kill%%": KILL, "NOTES": str(place)}
        self.process = subprocess.Popen(["bash", str(script)], env=environment, start_new_session=True)
        wait_for(lambda: self.pid("sample"))

    def pid(self, which: str) -> int:
        path = self.place / f"{which}.pid"
        return int(path.read_text() or 0) if path.exists() else 0

    def says(self, name: str) -> list[str]:
        path = self.place / name
        return path.read_text().splitlines() if path.exists() else []

    def let(self, name: str) -> None:
        (self.place / name).touch()

    def ended(self) -> int:
        """Its exit code; nothing of it is left, and its end was told once and last."""
        code = self.process.wait(20)
        for which in ("train", "sample"):
            assert not Path(f"/proc/{self.pid(which)}").exists()
        ends = [call for call in self.says("calls") if call.startswith("-m kit end")]
        assert (ends, self.says("calls")[-1:]) == ([f"-m kit end --exit-code {code}"], ends)
        return code


@pytest.fixture
def deaf(tmp_path: Path, render: t.Callable[..., str]) -> t.Iterator[Job]:
    """A job whose sampler is not ready yet."""
    found = Job(tmp_path, render)
    yield found
    with contextlib.suppress(ProcessLookupError):
        os.killpg(found.process.pid, signal.SIGKILL)  # also what a job that has ended left behind
    found.process.wait(60)


@pytest.fixture
def job(deaf: Job) -> Job:
    deaf.let("listen")
    wait_for(lambda: deaf.pid("train"))
    return deaf


def test_a_workload_that_ends_by_itself_is_sent_nothing_and_the_sampler_its_own_signal(job: Job) -> None:
    job.let("go")
    job.let("let")
    assert job.ended() == 0
    assert (job.says("train.signals"), job.says("sample.signals")) == ([], ["USR1"])


def test_the_number_of_a_workload_that_ended_is_sent_nothing(job: Job) -> None:
    """It may be another process's by then."""
    job.let("go")
    job.let("let")
    assert job.ended() == 0
    sent = [line.split()[-1] for line in job.says("kills")]
    assert str(job.pid("sample")) in sent
    assert str(job.pid("train")) not in sent


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_job_that_is_told_to_end_tells_its_workload(job: Job, number: int, code: int) -> None:
    job.process.send_signal(number)
    wait_for(lambda: job.says("train.signals"))
    job.let("let")
    job.let("go")
    assert job.ended() == code
    assert job.says("sample.signals") == ["USR1"]


def test_a_workload_that_does_not_end_is_killed(job: Job) -> None:
    job.let("go")
    job.process.send_signal(signal.SIGTERM)
    assert job.ended() == 143
    assert job.says("train.signals")


def test_told_again_while_it_ends_it_ends_as_before(job: Job) -> None:
    job.process.send_signal(signal.SIGTERM)
    wait_for((job.place / "looked").exists)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGTERM):
        job.process.send_signal(number)
    job.let("let")
    job.let("go")
    assert job.ended() == 143


def test_the_workload_starts_when_its_gpus_are_watched(deaf: Job) -> None:
    wait_for((deaf.place / "waits").exists)
    assert "train.py" not in deaf.says("calls")
    deaf.let("listen")
    wait_for(lambda: deaf.pid("train"))
    deaf.let("go")
    deaf.let("let")
    assert deaf.ended() == 0
    assert deaf.says("sample.signals") == ["USR1"]


def test_a_sampler_that_is_never_ready_is_not_waited_for_forever(deaf: Job) -> None:
    deaf.let("go")
    deaf.let("let")
    assert deaf.ended() == 0
    assert "train.py" in deaf.says("calls")
    assert deaf.says("sample.signals") == []


def test_a_sampler_that_died_is_not_waited_for(deaf: Job) -> None:
    subprocess.run(["kill", "-KILL", str(deaf.pid("sample"))], check=True)
    wait_for(lambda: deaf.pid("train"))
    assert len(deaf.says("waits")) < 300
    deaf.let("go")
    deaf.let("let")
    assert deaf.ended() == 0


def test_a_job_that_is_told_to_end_before_its_workload_started_ends(deaf: Job) -> None:
    wait_for((deaf.place / "waits").exists)
    deaf.process.send_signal(signal.SIGTERM)
    deaf.let("go")
    assert deaf.ended() == 143
    assert "train.py" not in deaf.says("calls")
