# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run a program so that nothing of it stays: it ends with this process, and this process with whoever started it.

A program gets a pipe as its standard input and ends when that is closed, as it is however this process ends.
"""

from __future__ import annotations

import fcntl
import os
import select
import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from problem import Problem

CLEANING = 60  # seconds for what is done after the end has been asked for
WORDS = {
    signal.SIGHUP: ("killed", "whoever started it has gone: standard input is closed"),
    signal.SIGINT: ("killed", "it was told to end (SIGINT)"),
    signal.SIGTERM: ("killed", "it was told to end (SIGTERM)"),
    signal.SIGALRM: ("limit", "the time is up"),
}
TAIL = 600  # bytes of a log that are told


class Device:
    """What this process does, and that it can be told to end at any moment: Problem is raised then."""

    def __init__(self) -> None:
        """Nothing is done yet."""
        self.doing = "starting"
        self._woken, wake = os.pipe()
        for end in (self._woken, wake):
            fcntl.fcntl(end, fcntl.F_SETFL, os.O_NONBLOCK)
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda _number, _frame: None)  # wakes up `_wait`
        for number in WORDS:
            signal.signal(number, self._end)
        threading.Thread(target=_end_with_starter, args=(threading.get_ident(),), daemon=True).start()

    def _end(self, number: int, _frame: Any) -> None:
        """Raise Problem, and no second one."""
        problem, text = WORDS[signal.Signals(number)]
        self.closing()
        raise Problem(problem, f"{text}, while {self.doing}")

    def closing(self) -> None:
        """Be told nothing any more: what is done now has its own time, and then this process is ended."""
        for each in WORDS:
            signal.signal(each, signal.SIG_IGN)
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(CLEANING)

    @contextmanager
    def running(self, command: list[str], folder: Path, site: Path, log: Path) -> Iterator[subprocess.Popen[bytes]]:
        """Start a Python that sees the packages in ``site`` and no others; at the end, end all that it started."""
        environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
        # One thread: the memory that OpenBLAS takes depends on their number.
        environment.update(PYTHONPATH=str(site), OPENBLAS_NUM_THREADS="1", OMP_NUM_THREADS="1")
        with log.open("wb") as stream:
            process = subprocess.Popen(
                command,
                cwd=folder,
                env=environment,
                stdin=subprocess.PIPE,
                stdout=stream,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        try:
            yield process
        finally:
            with suppress(OSError):  # its group stays as long as it is not waited for
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            if process.stdin:
                process.stdin.close()

    def ended(self, process: subprocess.Popen[bytes]) -> int:
        """Wait for the end of a process; return its exit code, or the number of the signal that ended it, negative."""
        ask = os.WEXITED | os.WNOWAIT | os.WNOHANG
        while True:
            found = os.waitid(os.P_PID, process.pid, ask)
            if found:
                return found.si_status if found.si_code == os.CLD_EXITED else -found.si_status
            select.select([self._woken], [], [], 10.0)
            with suppress(BlockingIOError):
                os.read(self._woken, 512)


def _end_with_starter(main: int) -> None:
    """Tell the main thread to end when standard input is closed."""
    with suppress(OSError):
        while os.read(0, 1 << 12):
            pass
    signal.pthread_kill(main, signal.SIGHUP)


def tail(log: Path) -> str:
    """Return the last that a program said, on one line."""
    try:
        with log.open("rb") as stream:
            stream.seek(max(0, log.stat().st_size - TAIL))
            said = stream.read().decode("utf-8", "replace")
    except OSError:
        said = ""
    return " | ".join(line.strip() for line in said.splitlines() if line.strip())[-TAIL:] or "it said nothing"
