# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Slurm's commands run in an environment of their own, end in time, and their errors are told apart."""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path

import pytest
from ansible_collections.mlops.hpc_validation.plugins.module_utils import _slurm_cli
from ansible_collections.mlops.hpc_validation.plugins.module_utils._slurm_cli import Result, environment, run

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
        'hang) echo $$ > "$2"; sleep 300 & sleep 300 ;; esac\n'
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")
    monkeypatch.setenv("SQUEUE_FORMAT", "%i")
    return "squeue"


def running(group: int) -> list[str]:
    """The processes of a group that have not ended."""
    fields = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            fields.append(path.read_text().rpartition(") ")[2].split())
    return [state for state, _parent, of, *_rest in fields if of == str(group) and state not in "ZX"]


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


def test_a_command_that_does_not_answer_is_killed_with_all_that_it_started(command: str, tmp_path: Path) -> None:
    noted = tmp_path / "pid"
    done = run([command, "hang", str(noted)], seconds=0.5)
    assert (done.rc, done.err) == (None, "squeue did not answer within 0 s")
    end = time.monotonic() + 30
    while running(int(noted.read_text())):
        assert time.monotonic() < end
    assert _slurm_cli.is_unreachable(done)
    assert _slurm_cli.is_ambiguous(done)
    assert not _slurm_cli.is_missing(done)


def test_output_is_bounded(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_slurm_cli, "OUTPUT_BYTES", 2)
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
        assert _slurm_cli.is_missing(done)
        assert not _slurm_cli.is_unreachable(done)
        assert not _slurm_cli.is_ambiguous(done)


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
    assert _slurm_cli.is_unreachable(Result(1, b"", words)) is (words in UNREACHABLE)
    assert _slurm_cli.is_ambiguous(Result(1, b"", words)) is (words in AMBIGUOUS)
    assert not _slurm_cli.is_missing(Result(1, b"", "sacct was not found on login"))


def test_an_error_is_one_clean_line() -> None:
    assert _slurm_cli.error_text(Result(1, b"out", "a\nb\x1b[31m")) == "a b"
    assert _slurm_cli.error_text(Result(1, b"out", "")) == "out"
    assert _slurm_cli.error_text(Result(1)) == "exit code 1 without a message"
    assert len(_slurm_cli.error_text(Result(1, b"", "x" * 700))) == 600
