# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Forked processes: each starts with all that is imported here, and nothing that it does is seen here."""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import resource
import select
import signal
import sys
import tempfile
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

MEMORY = 4 << 30
SECONDS = 1800
BROKEN = 70
PR_SET_PDEATHSIG = 1

Note = Callable[..., None]


class ChildError(Exception):
    """A process did not do what it was begun for."""


@dataclass(frozen=True)
class Ended:
    """How a process ended."""

    code: int  # -N: by signal N
    cpu_seconds: float
    notes: list[list[Any]]
    said: str

    @property
    def goes_round(self) -> bool:
        """Say whether it took all the time of a processor that it was given."""
        return self.code == -signal.SIGXCPU


class Child:
    """A process that runs a function; it ends with its parent."""

    def __init__(self, run: Callable[[Note], int], cpu_seconds: int | None = None) -> None:
        """Begin it; it gets a function that takes notes (values that JSON has), and returns its exit status."""
        self._output = tempfile.TemporaryFile()  # noqa: SIM115 - closed by end()
        self._notes = tempfile.TemporaryFile("w+")  # noqa: SIM115
        sys.stdout.flush()
        self._pid = os.fork()
        if self._pid == 0:
            self._live(run, cpu_seconds)
        # By both sides, so that whoever comes second finds it done: the group must be there to be stopped.
        with contextlib.suppress(OSError):
            os.setpgid(self._pid, self._pid)
        self._pidfd = os.pidfd_open(self._pid)

    def fileno(self) -> int:
        """What is readable once it has ended."""
        return self._pidfd

    def end(self) -> Ended:
        """Wait for its end. Raise ChildError if that does not come."""
        if not select.select([self], [], [], SECONDS)[0]:
            os.killpg(self._pid, signal.SIGKILL)
            raise ChildError(f"a process did not end within {SECONDS} s")
        _pid, status, used = os.wait4(self._pid, 0)
        os.close(self._pidfd)
        with self._output as output, self._notes as notes:
            output.seek(0)
            notes.seek(0)
            return Ended(
                os.waitstatus_to_exitcode(status),
                used.ru_utime + used.ru_stime,
                [json.loads(line) for line in notes],
                output.read().decode(errors="replace"),
            )

    def _live(self, run: Callable[[Note], int], cpu_seconds: int | None) -> None:
        code = BROKEN
        try:
            os.setpgid(0, 0)
            ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            for stream in (1, 2):
                os.dup2(self._output.fileno(), stream)
            if cpu_seconds:
                resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
                resource.setrlimit(resource.RLIMIT_CPU, (cpu_seconds, cpu_seconds + 1))
            code = run(lambda *values: print(json.dumps(values), file=self._notes, flush=True))
        except BaseException:
            os.write(2, traceback.format_exc().encode())
        finally:
            sys.stdout.flush()
            os._exit(code)
