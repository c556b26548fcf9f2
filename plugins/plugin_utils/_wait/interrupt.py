# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Handle interrupts in an Ansible worker: Ctrl-C, SIGTERM and the death of the controller process, once."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from types import FrameType, TracebackType

_PARENT_SECONDS = 1.0


class Interrupted(BaseException):
    """Raised in the task's own code. Not an Exception, so that no handler treats it as an error."""


class InterruptGuard:
    """Context in which the first SIGINT or SIGTERM raises Interrupted; later ones are ignored, so that clean-up ends.

    Workers of ansible-core 2.19 and later kill themselves on a signal without running any finally. They outlive a
    controller that is killed and get another parent; this is noticed within a second and raises Interrupted too.
    """

    def __init__(self) -> None:
        self.cause = ""
        self._parent = os.getppid()
        self._done = threading.Event()
        self._before: dict[int, object] = {}
        self._screen: int | None = None

    def __enter__(self) -> InterruptGuard:
        for number in (signal.SIGINT, signal.SIGTERM):
            self._before[number] = signal.signal(number, self._on_signal)
        # After a signal the controller process prints nothing more, and a worker has no terminal of its own.
        with contextlib.suppress(OSError):
            self._screen = os.open(
                f"/proc/{self._parent}/fd/2", os.O_WRONLY | os.O_APPEND | os.O_NOCTTY | os.O_NONBLOCK
            )
        threading.Thread(target=self._watch_parent, name="slurm_job parent watch", daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._done.set()
        if self._screen is not None:
            os.close(self._screen)
        for number, handler in self._before.items():
            signal.signal(number, handler)  # type: ignore[arg-type]

    def last_words(self, line: str) -> None:
        """Write a line to the controller process's stderr, bypassing the process."""
        if self._screen is not None:
            with contextlib.suppress(OSError):
                os.write(self._screen, f"{line}\n".encode())

    def orphaned(self) -> bool:
        """Return whether the parent process has exited, so that nobody reads what is printed."""
        return os.getppid() != self._parent

    def _on_signal(self, number: int, _frame: FrameType | None) -> None:
        if self.cause:
            return
        self.cause = "the controller process has exited" if self.orphaned() else signal.Signals(number).name
        raise Interrupted(self.cause)

    def _watch_parent(self) -> None:
        while not self._done.wait(_PARENT_SECONDS):
            if self.orphaned():
                os.kill(os.getpid(), signal.SIGTERM)
                return
