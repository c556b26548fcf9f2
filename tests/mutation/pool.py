# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""So many trials at once: whoever waits for one sees to the others too, and no processor is idle while one ends."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Protocol


class Runs(Protocol):
    """What a pool asks of a trial."""

    cpu_seconds: float

    def outcome(self) -> str | None:
        """Return killed or survived, or None while it runs."""

    def stop(self) -> None:
        """End it at once."""


class Pool:
    """Trials that run; `stop` leaves none behind."""

    def __init__(self, processes: int) -> None:
        self._processes = processes
        self._running: list[tuple[Runs, Callable[[str, float], None]]] = []

    def start(self, begin: Callable[[], Runs], ended: Callable[[str, float], None]) -> None:
        """Begin a trial as soon as one may; `ended` is called with its outcome and CPU time."""
        self.wait(lambda: len(self._running) < self._processes)
        self._running.append((begin(), ended))

    def wait(self, until: Callable[[], bool]) -> None:
        """Return once it holds, which is looked at whenever trials may have ended."""
        while not until():
            if not self._reaped():
                time.sleep(0.005)

    def finish(self) -> None:
        """Return once no trial runs."""
        self.wait(lambda: not self._running)

    def stop(self) -> None:
        """End all at once."""
        for trial, _ended in self._running:
            trial.stop()

    def _reaped(self) -> bool:
        before, self._running = self._running, []
        for place, (trial, ended) in enumerate(before):
            try:
                outcome = trial.outcome()
            except BaseException:
                self._running += before[place + 1 :]
                raise
            if outcome is None:
                self._running.append((trial, ended))
            else:
                ended(outcome, trial.cpu_seconds)
        return len(self._running) < len(before)
