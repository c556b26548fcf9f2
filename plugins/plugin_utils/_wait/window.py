# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Submit the jobs of a task through a sliding window: which to submit next, and those that Slurm holds back. Pure.

All times are seconds of the controller's monotonic clock.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ansible_collections.mlops.hpc_validation.plugins.module_utils._slurm.arguments import DEFAULT_QUEUE_TIMEOUT
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._wait import results
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._wait.limits import HELD_EVERY
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._wait.many import Left
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._wait.progress import seconds
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._wait.waiting import Waiting

Json = dict[str, Any]
# A submission costs the start of a module: it waits until this part of the window is free.
_PART = 8


@dataclass(frozen=True)
class Held:
    """sbatch refuses for now: its words, when it last did, and how many of the task's jobs were in the queue then.

    `alone_since` is when it was first seen refusing with none of them in the queue.
    """

    words: str
    tried: float
    in_queue: int
    alone_since: float | None

    def seen(self, in_queue: int, now: float) -> Held:
        """Return it with so many of the task's jobs in the queue now."""
        since = now if self.alone_since is None else self.alone_since
        return replace(self, alone_since=None if in_queue else since)


class Window:
    """The jobs of a task in the order given: those submitted so far, and those that are not."""

    def __init__(self, specs: Sequence[Mapping[str, Any]], size: int) -> None:
        self._specs = list(specs)
        self._made: list[Waiting | None] = [
            results.waiting_for(spec, None) if spec.get("job_id") else None for spec in specs
        ]
        self.size = size
        self._held: Held | None = None

    @property
    def jobs(self) -> list[Waiting]:
        """Return the jobs that were submitted, attached to or refused."""
        return [one for one in self._made if one is not None]

    @property
    def unsubmitted(self) -> list[int]:
        """Return the positions of the jobs that are not submitted yet."""
        return [number for number, one in enumerate(self._made) if one is None]

    @property
    def left(self) -> Left:
        """Return what is not submitted yet."""
        return Left(len(self.unsubmitted), self._held.words if self._held else "")

    def take(self, positions: Sequence[int], entries: Sequence[Json], now: float) -> list[Waiting]:
        """Process the result of a submission of the jobs at these positions; return the new jobs."""
        new: list[Waiting] = []
        held = None
        for position, entry in zip(positions, entries):
            if entry.get("later") is None:
                one = results.waiting_for(self._specs[position], entry)
                self._made[position] = one
                new.append(one)
            else:
                held = held or entry["later"]
        count = self._in_queue()
        earlier = self._held.alone_since if self._held else None
        self._held = Held(held, now, count, earlier).seen(count, now) if held else None
        return new

    def next(self, now: float) -> list[int]:
        """Return the positions of the jobs to submit now."""
        left, count = self.unsubmitted, self._in_queue()
        if self._held and count >= self._held.in_queue and now < self._held.tried + HELD_EVERY:
            return []
        free = max(0, min(self.size - count, len(left)))
        return left[:free] if free == len(left) or free * _PART >= self.size else []

    def wake(self, now: float) -> float:
        """Return for how many seconds there is nothing to do where no job is in the queue."""
        return max(0.0, self._held.tried + HELD_EVERY - now) if self._held else 0.0

    def give_up(self, now: float) -> list[Waiting]:
        """Refuse the jobs that were held back for the time they may queue, with none of the task's in the queue."""
        if not self._held:
            return []
        self._held = self._held.seen(self._in_queue(), now)
        if self._held.alone_since is None:
            return []
        waited = now - self._held.alone_since
        refused: list[Waiting] = []
        for position in self.unsubmitted:
            spec = self._specs[position]
            if waited >= (spec.get("queue_timeout") or DEFAULT_QUEUE_TIMEOUT):
                why = f"it was held back for {seconds(waited)}, with none of this task's jobs in the queue"
                told = f"{why}: {self._held.words}. Do this: wait for other jobs to end, or raise the limit."
                one = results.waiting_for(spec, {"refused": told, "name": str(spec.get("key") or "")})
                self._made[position] = one
                refused.append(one)
        return refused

    def _in_queue(self) -> int:
        return sum(one.in_queue for one in self.jobs)
