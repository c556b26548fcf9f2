# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run Slurm's commands with a clean environment, argument lists and time limits, and classify their errors."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ansible_collections.mlops.hpc_validation.plugins.module_utils._slurm.text import clean

QUERY_SECONDS = 30.0
SUBMIT_SECONDS = 120.0
OUTPUT_BYTES = 64 << 20

# These change what the commands print, which cluster they query or how they authenticate (SLURM_JWT makes sacct fail
# if slurmdbd does not support JWT). Only the location of the configuration may be set from outside.
_SLURM_VARIABLE = re.compile(r"(SLURM|SLURMD|SBATCH|SQUEUE|SACCT|SCONTROL|SCANCEL|SINFO|SRUN|SALLOC)_")
_KEPT = ("SLURM_CONF", "SLURM_CONF_SERVER")

_UNREACHABLE = (
    "Unable to contact slurm controller",
    "Socket timed out",
    "Connection refused",
    "Connection timed out",
    "Connection reset",
    "Slurm backup controller in standby mode",
    "Zero Bytes were transmitted or received",
    "Communication connection failure",
    "Transport endpoint is not connected",
    "Message receive failure",
    "Communication shutdown failure",
    "Slurm temporarily unable to accept job",
    "Unable to establish configuration source",
    "Could not establish a configuration source",
    "Resource temporarily unavailable",
    "not answer",
)
# The controller may have accepted the job although the command failed.
_AMBIGUOUS = (
    "Socket timed out",
    "Zero Bytes were transmitted or received",
    "Transport endpoint is not connected",
    "Message receive failure",
    "Communication shutdown failure",
    "Unexpected message received",
    "Connection reset",
    "Header lengths are longer than data received",
    "Incomplete",
    "not answer",
)


@dataclass(frozen=True)
class Result:
    """A command's result. rc is None if it did not end in time or could not be started."""

    rc: int | None
    out: bytes = b""
    err: str = ""

    @property
    def text(self) -> str:
        """Standard output as text; undecodable bytes are kept as replacement characters."""
        return self.out.decode("utf-8", "replace")


Runner = Callable[..., Result]


class SlurmError(Exception):
    """An error to report to the caller. details goes into the module's result."""

    def __init__(self, message: str, **details: object) -> None:
        super().__init__(message)
        self.details = details


def environment(base: Mapping[str, str], *, query: bool) -> dict[str, str]:
    """Return the environment for a command. A query gets fixed formats; a submission keeps the user's own locale."""
    kept = {key: value for key, value in base.items() if not _SLURM_VARIABLE.match(key) or key in _KEPT}
    if query:
        kept.update(LC_ALL="C", SLURM_TIME_FORMAT="%s")
    return kept


def run(
    argv: list[str],
    *,
    query: bool = True,
    stdin: bytes | None = None,
    seconds: float = QUERY_SECONDS,
    cwd: str | None = None,
) -> Result:
    """Run one command and wait for it for at most `seconds`. The command's own failure never raises."""
    env = environment(os.environ, query=query)
    program = shutil.which(argv[0], path=env.get("PATH"))
    if program is None:
        return Result(None, b"", not_found(argv[0], env.get("PATH", "")))
    try:
        process = subprocess.Popen(
            [program, *argv[1:]],
            env=env,
            cwd=cwd,
            stdin=subprocess.PIPE,  # without input it is closed at once
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
            umask=0o022,  # Slurm creates a job's logs with the umask of the submitter
        )
    except OSError as error:
        return Result(None, b"", f"{argv[0]} could not be started: {error}")
    try:
        out, err = process.communicate(stdin, timeout=seconds)
    except subprocess.TimeoutExpired:
        said = clean(_kill(process).decode("utf-8", "replace"))
        return Result(None, b"", f"{argv[0]} did not answer within {seconds:.0f} s" + (f": {said}" if said else ""))
    except BaseException:
        _kill(process)
        raise
    return Result(process.returncode, out[:OUTPUT_BYTES], err.decode("utf-8", "replace")[:OUTPUT_BYTES])


def _kill(process: subprocess.Popen[bytes]) -> bytes:
    """Kill a command and all that it started; return what it had printed to standard error."""
    with contextlib.suppress(OSError):
        os.killpg(process.pid, signal.SIGKILL)
    with contextlib.suppress(subprocess.TimeoutExpired, ValueError):
        return process.communicate(timeout=2)[1]
    return b""


def not_found(program: str, path: str) -> str:
    """Return a message that a program is missing, where it was looked for, and what to do."""
    return (
        f"{program} was not found on {os.uname().nodename} (PATH={path}). Run this on a Slurm login node, install "
        f"Slurm's client commands there, or name their folder in the task's environment, for example "
        f"environment: {{PATH: \"/opt/slurm/bin:{{{{ ansible_facts['env'].PATH }}}}\"}}"
    )


def is_missing(result: Result) -> bool:
    """Return whether the program could not even be started, so that waiting cannot help."""
    return result.rc is None and ("was not found on" in result.err or "could not be started" in result.err)


def is_unreachable(result: Result) -> bool:
    """Return whether the controller (or its database) did not answer, as opposed to refusing."""
    return (result.rc is None and not is_missing(result)) or any(words in result.err for words in _UNREACHABLE)


def is_ambiguous(result: Result) -> bool:
    """Return whether a failed sbatch may have submitted a job anyway."""
    return (result.rc is None and not is_missing(result)) or any(words in result.err for words in _AMBIGUOUS)


def error_text(result: Result) -> str:
    """Return the command's error as one clean line."""
    return clean(result.err or result.text, 600) or f"exit code {result.rc} without a message"
