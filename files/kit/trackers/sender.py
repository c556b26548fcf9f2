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
from kit.errors import KitError
from kit.trackers import outbox
from kit.trackers.mlflow import RefusedError, Server, UnavailableError

ROWS, PROFILE = "progress.jsonl", "profile.json"
LOOK = 1.0  # seconds between two looks for rows
PAUSES = (1.0, 2.0, 4.0, 8.0, 15.0)  # seconds after a failed request; the last one again and again


@dataclass(frozen=True)
class Training:
    """The training whose rows are sent: the folder of its rows, and what it is called."""

    folder: Path
    experiment: str
    name: str
    identity: str  # by which its run is found again


class Sender:
    """Sends one training's rows to one server."""

    def __init__(self, server: Server, training: Training, pause: Callable[[float], object] = time.sleep) -> None:
        """Go on from where an earlier sender of this training came to. Raise KitError."""
        self._server, self._training, self._pause = server, training, pause
        self.state = outbox.read_state(training.folder)

    def follow(self, ended: Callable[[], bool], patience: float) -> bool:
        """Send until the training has ended, and then for ``patience`` seconds at most; return whether all was sent."""
        until: float | None = None
        failures = 0
        while True:
            over = ended()
            if over and until is None:
                until = time.monotonic() + patience
            try:
                more = self.step()
                failures = 0
            except UnavailableError as error:
                self._note(error)
                failures += 1
                more = False
            except RefusedError as error:
                self._note(error)
                return False
            if over and not more and not failures:
                return True
            if until is not None and time.monotonic() >= until:
                return False
            if not more:
                wait = PAUSES[min(failures, len(PAUSES)) - 1] if failures else LOOK
                self._pause(min(wait, max(0.0, until - time.monotonic())) if until is not None else min(wait, LOOK))

    def step(self) -> bool:
        """Send what is there of some rows; return whether there may be more. Raise UnavailableError, RefusedError."""
        rows = outbox.read_rows(self._training.folder / ROWS, self.state.offset)
        if not rows.points and rows.offset == self.state.offset:
            return False
        run = self._run(rows.points[0].moment if rows.points else int(time.time() * 1000))
        if not self.state.parameters:
            self._server.parameters(run, parameters(self._training.folder / PROFILE))
            self._keep(replace(self.state, parameters=True))
        self._server.log(run, rows.points)
        self._keep(outbox.moved_on(self.state, rows))
        return True

    def finish(self, failed: bool) -> None:
        """Tell the server how the training ended. Raise UnavailableError, RefusedError."""
        if self.state.run and not self.state.ended:
            self._server.end(self.state.run, "FAILED" if failed else "FINISHED", int(time.time() * 1000))
            self._keep(replace(self.state, ended=True))

    def _run(self, began: int) -> str:
        if self.state.run is None:
            experiment = self._server.experiment(self._training.experiment)
            tags = {"mlflow.source.name": "mlops.hpc_validation"}
            run = self._server.run(experiment, self._training.name, self._training.identity, began, tags)
            self._keep(replace(self.state, experiment=experiment, run=run))
        return str(self.state.run)

    def _note(self, error: KitError) -> None:
        self._keep(replace(self.state, refused=self.state.refused + 1, gap=str(error)))

    def _keep(self, state: outbox.State) -> None:
        self.state = state
        outbox.write_state(self._training.folder, state, self._server.address)


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
