# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Send rows as they come, until the training has ended and all are sent, or nothing can be sent any more."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from kit import strict_json
from kit.trackers import outbox
from kit.trackers.mlflow import MISSING, RefusedError, Server, UnavailableError

PROFILE = "profile.json"
LOOK = 1.0  # seconds between two looks for rows
PAUSES = (1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0)  # seconds after a failed request; the last one again and again
TIME_IS_UP = "there was no time for the rest"


@dataclass(frozen=True)
class Training:
    """The training whose rows are sent: the folder of its rows, and what it is called."""

    folder: Path
    experiment: str
    name: str


class Sender:
    """Sends one training's rows to one server."""

    def __init__(
        self,
        server: Server,
        training: Training,
        pause: Callable[[float], object] = time.sleep,
        tell: Callable[[str], object] = lambda _why: None,
    ) -> None:
        """Go on from where an earlier sender of this training came to; at another address from the beginning.

        ``tell``: called with why a request failed that is tried again, once until one succeeds. Raise KitError.
        """
        self._server, self._training, self._pause, self._tell = server, training, pause, tell
        state = outbox.read_state(training.folder)
        if state.address not in (None, server.address):
            state = outbox.State(state.identity)
        self._anew = False
        self.state = replace(state, address=server.address)
        self._keep(self.state)

    def follow(
        self,
        ended: Callable[[], bool],
        patience: float,
        outcome: Callable[[], str | None] = lambda: None,
        *,
        renews: bool = False,
    ) -> bool:
        """Send until the training has ended, and then for ``patience`` seconds at most; return whether all was sent.

        ``outcome``: the run's status in the end, None to leave it as it is. ``renews``: patience begins again with all
        that could be sent.
        """
        until: float | None = None
        failures = 0
        while True:
            over = ended()
            if over and until is None:
                until = time.monotonic() + patience
            more = False
            try:
                more = self.step()
                failures = 0
                if more and renews and until is not None:
                    until = time.monotonic() + patience
                if over and not more:
                    self._finish(outcome())
                    return True
            except UnavailableError as error:
                self._note(str(error), failures)
                if not failures:
                    self._tell(str(error))
                failures += 1
            except RefusedError as error:
                if not self._begins_anew(error):
                    self._note(str(error), 0)
                    return False
                more = True
            if until is not None and time.monotonic() >= until:
                if self.state.gap is None:
                    self._note(TIME_IS_UP, 0)
                return False
            if not more:
                self._rest(PAUSES[min(failures, len(PAUSES)) - 1] if failures else LOOK, ended, until)

    def _rest(self, seconds: float, ended: Callable[[], bool], until: float | None) -> None:
        """Wait, but not beyond the end of the training, or of the patience after it."""
        left = seconds
        while left > 0 and (until is not None or left == seconds or not ended()):
            part = min(left, LOOK, LOOK if until is None else max(0.0, until - time.monotonic()))
            self._pause(part)
            left -= part or left

    def _begins_anew(self, error: RefusedError) -> bool:
        """Return whether all can be sent again, once: the server knows nothing of the run, as after a new database."""
        if error.code != MISSING or self._anew or self.state.run is None:
            return False
        self._anew = True
        self._keep(outbox.State(self.state.identity, self._server.address))
        return True

    def step(self) -> bool:
        """Send what is there of some rows; return whether there may be more. Raise UnavailableError, RefusedError."""
        rows = outbox.read_rows(self._training.folder / outbox.ROWS, self.state.offset)
        if rows.offset == self.state.offset:
            return False
        run = self._run(rows.points[0].moment if rows.points else int(time.time() * 1000))
        if not self.state.parameters:
            self._tell_parameters(run)
        self._server.log(run, rows.points)
        self._keep(outbox.moved_on(self.state, rows))
        return True

    def reopen(self) -> None:
        """Say that a run that had ended goes on. Raise UnavailableError, RefusedError."""
        if self.state.run:
            self._server.update(self.state.run, "RUNNING")

    def _finish(self, status: str | None) -> None:
        if status and self.state.run and not self.state.ended:
            self._server.update(self.state.run, status)
            self._keep(replace(self.state, ended=True))

    def _tell_parameters(self, run: str) -> None:
        """Tell what the training was told; where they are refused, the figures come all the same."""
        try:
            self._server.parameters(run, parameters(self._training.folder / PROFILE))
        except RefusedError as error:
            if error.code == MISSING:
                raise
            self._note(str(error), 0)
        self._keep(replace(self.state, parameters=True))

    def _run(self, began: int) -> str:
        if self.state.run is None:
            experiment = self._server.experiment(self._training.experiment)
            tags = {"mlflow.source.name": "mlops.hpc_validation"}
            run = self._server.run(experiment, self._training.name, self.state.identity, began, tags)
            self._keep(replace(self.state, experiment=experiment, run=run))
        return str(self.state.run)

    def _note(self, why: str, failures: int) -> None:
        """Keep why something was not sent; the same again and again is not written each time."""
        state = replace(self.state, refused=self.state.refused + 1, gap=why)
        if failures and state.gap == self.state.gap:
            self.state = state
        else:
            self._keep(state)

    def _keep(self, state: outbox.State) -> None:
        self.state = state
        outbox.write_state(self._training.folder, state)


def parameters(path: Path) -> dict[str, str]:
    """Return what the training was told, by dotted key; nothing where no file says it."""
    try:
        return dict(_flat(strict_json.read(path), ""))
    except (OSError, ValueError):
        return {}


def _flat(value: Any, prefix: str) -> list[tuple[str, str]]:
    if isinstance(value, Mapping):
        return [
            pair for key, inner in value.items() for pair in _flat(inner, f"{prefix}.{key}" if prefix else str(key))
        ]
    return [(prefix, str(value))]
