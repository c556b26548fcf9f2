# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Slurm's commands run in an environment of their own, end in time, and their errors are told apart."""

from __future__ import annotations

import os
import signal
import subprocess
import time
import typing as t
from pathlib import Path

import pytest
from ansible_collections.mlops.hpc_validation.plugins.module_utils._slurm import cli
from ansible_collections.mlops.hpc_validation.plugins.module_utils._slurm.cli import Result, environment, run

PREFIXES = ("SLURM", "SLURMD", "SBATCH", "SQUEUE", "SACCT", "SCONTROL", "SCANCEL", "SINFO", "SRUN", "SALLOC")


@pytest.mark.parametrize("prefix", PREFIXES)
@pytest.mark.parametrize("query", [True, False])
def test_variables_of_every_command_of_slurm_are_taken_out(prefix: str, query: bool) -> None:
    assert f"{prefix}_FORMAT" not in environment({f"{prefix}_FORMAT": "x"}, query=query)
    assert (
        environment({f"MY_{prefix}_X": "x", prefix: "y"}, query=query).items()
        >= {f"MY_{prefix}_X": "x", prefix: "y"}.items()
    )


@pytest.mark.parametrize("name", ["SLURM_CONF", "SLURM_CONF_SERVER", "PATH", "KRB5CCNAME"])
def test_where_the_configuration_is_may_be_said(name: str) -> None:
    assert environment({name: "x"}, query=True)[name] == "x"


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A command that tells how it was started, or does as it is told."""
    program = tmp_path / "bin" / "squeue"
    program.parent.mkdir()
    program.write_text(
        "#!/bin/sh\n"
        'case $1 in told) umask; pwd; echo "$SLURM_TIME_FORMAT $LC_ALL $SQUEUE_FORMAT"; cat ;;\n'
        'fail) printf "a\\377b"; printf "c\\377d" >&2; exit 3 ;;\n'
        'hang) printf "$3" >&2; sleep 300 & echo $! > "$2"; exec sleep 300 ;; esac\n'
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")
    monkeypatch.setenv("SQUEUE_FORMAT", "%i")
    return "squeue"


def runs(pid: int) -> bool:
    """Whether a process has not ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0] not in "ZX"
    except OSError:
        return False


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> t.Iterator[list[subprocess.Popen[bytes]]]:
    """What was started; none of it is left behind, whatever the test found."""
    kept: list[subprocess.Popen[bytes]] = []

    class Kept(subprocess.Popen):
        def __init__(self, *arguments: t.Any, **named: t.Any) -> None:
            super().__init__(*arguments, **named)
            kept.append(self)

    monkeypatch.setattr(subprocess, "Popen", Kept)
    yield kept
    for process in kept:
        if process.poll() is None:
            process.kill()


def has_ended_with_all_that_it_started(process: subprocess.Popen[bytes], noted: Path) -> bool:
    """Whether it was killed and waited for, and so was the child that it noted."""
    child, end = int(noted.read_text()), time.monotonic() + 10
    while runs(child):
        if time.monotonic() > end:
            os.kill(child, signal.SIGKILL)
            return False
    return process.returncode == -signal.SIGKILL


def test_a_query_has_fixed_formats_and_a_safe_umask(command: str, tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        done = run([command, "told"], stdin=b"given", cwd=str(tmp_path))
    finally:
        os.umask(before)
    assert (done.rc, done.text.splitlines()) == (0, ["0022", str(tmp_path), "%s C ", "given"])


def test_without_a_standard_input_there_is_an_empty_one(command: str) -> None:
    assert run([command, "told"]).text.splitlines()[2:] == ["%s C "]


def test_what_a_command_gives_back_is_kept_as_it_is(command: str) -> None:
    done = run([command, "fail"])
    assert (done.rc, done.out, done.text, done.err) == (3, b"a\xffb", "a\ufffdb", "c\ufffdd")


def test_a_command_that_does_not_answer_is_killed_with_all_that_it_started(
    command: str, tmp_path: Path, started: list[subprocess.Popen[bytes]]
) -> None:
    noted = tmp_path / "pid"
    done = run([command, "hang", str(noted)], seconds=0.5)
    assert (done.rc, done.err) == (None, "squeue did not answer within 0 s")
    assert has_ended_with_all_that_it_started(started[0], noted)
    assert cli.is_unreachable(done)
    assert cli.is_ambiguous(done)
    assert not cli.is_missing(done)


def test_what_a_command_said_before_it_hung_is_told(
    command: str, tmp_path: Path, started: list[subprocess.Popen[bytes]]
) -> None:
    noted = tmp_path / "pid"
    done = run([command, "hang", str(noted), "slurmctld is full"], seconds=0.5)
    assert (done.rc, done.err) == (None, "squeue did not answer within 0 s: slurmctld is full")
    assert has_ended_with_all_that_it_started(started[0], noted)


def test_whoever_is_interrupted_leaves_no_command_behind(
    command: str, tmp_path: Path, started: list[subprocess.Popen[bytes]], monkeypatch: pytest.MonkeyPatch
) -> None:
    noted, communicate = tmp_path / "pid", subprocess.Popen.communicate

    def interrupted(
        self: subprocess.Popen[bytes], given: bytes | None = None, timeout: float | None = None
    ) -> tuple[bytes, bytes]:
        if timeout != 77:
            return communicate(self, given, timeout)
        end = time.monotonic() + 30
        while not (noted.exists() and noted.read_text().endswith("\n")):
            assert time.monotonic() < end
        raise KeyboardInterrupt

    monkeypatch.setattr(subprocess.Popen, "communicate", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run([command, "hang", str(noted)], seconds=77)
    assert has_ended_with_all_that_it_started(started[0], noted)


def test_a_command_of_which_nothing_is_known_may_have_done_what_it_was_told() -> None:
    nothing = Result(None)
    assert cli.is_unreachable(nothing)
    assert cli.is_ambiguous(nothing)
    assert not cli.is_missing(nothing)


def test_output_is_bounded(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cli, "OUTPUT_BYTES", 2)
    done = run([command, "fail"])
    assert (done.out, done.err) == (b"a\xff", "c\ufffd")


@pytest.mark.usefixtures("command")
def test_a_command_that_is_not_there_or_cannot_be_started_is_missing(tmp_path: Path) -> None:
    gone = run(["sacct"])
    assert "sacct was not found on" in gone.err
    assert str(tmp_path) in gone.err
    (tmp_path / "bin" / "sinfo").write_bytes(b"\x7fELF")
    (tmp_path / "bin" / "sinfo").chmod(0o755)
    for done in (gone, run(["sinfo"])):
        assert done.rc is None
        assert cli.is_missing(done)
        assert not cli.is_unreachable(done)
        assert not cli.is_ambiguous(done)


UNREACHABLE = (
    "slurm_load_jobs error: Unable to contact slurm controller (connect failure)",
    "Socket timed out on send/recv operation",
    "Connection refused",
    "Connection timed out",
    "Connection reset by peer",
    "Slurm backup controller in standby mode",
    "Zero Bytes were transmitted or received",
    "Communication connection failure",
    "Transport endpoint is not connected",
    "Message receive failure",
    "Communication shutdown failure",
    "Slurm temporarily unable to accept job, sleeping and retrying",
    "Unable to establish configuration source",
    "Could not establish a configuration source",
    "Resource temporarily unavailable",
    "did not answer",
)
AMBIGUOUS = (
    "Socket timed out on send/recv operation",
    "Zero Bytes were transmitted or received",
    "Transport endpoint is not connected",
    "Message receive failure",
    "Communication shutdown failure",
    "Unexpected message received",
    "Connection reset by peer",
    "Header lengths are longer than data received",
    "Incomplete",
    "did not answer",
)


@pytest.mark.parametrize("words", [*UNREACHABLE, *AMBIGUOUS, "Invalid qos specification", ""])
def test_errors_are_told_apart(words: str) -> None:
    assert cli.is_unreachable(Result(1, b"", words)) is (words in UNREACHABLE)
    assert cli.is_ambiguous(Result(1, b"", words)) is (words in AMBIGUOUS)
    assert not cli.is_missing(Result(1, b"", "sacct was not found on login"))


def test_an_error_is_one_clean_line() -> None:
    assert cli.error_text(Result(1, b"out", "a\nb\x1b[31m")) == "a b"
    assert cli.error_text(Result(1, b"out", "")) == "out"
    assert cli.error_text(Result(1)) == "exit code 1 without a message"
    assert len(cli.error_text(Result(1, b"", "x" * 700))) == 600
