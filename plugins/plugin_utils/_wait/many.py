# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Progress lines on many jobs: one on all of them at every interval, and failures as they come. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from ansible_collections.mlops.hpc_validation.plugins.module_utils._slurm.hostlist import fold_nodes
from ansible_collections.mlops.hpc_validation.plugins.module_utils._slurm.text import clean
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._wait import limits
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._wait.progress import end_line, seconds
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._wait.waiting import Queued, Waiting

# With the task's name before it, a line stays within 120 columns.
WIDTH = 108
_HANDFUL = 5  # failures that have a line of their own in each interval
_TELLING = 10  # one job in so many must have ended: the pace of the first is mostly that of submitting and starting
# Reasons for which every job waits at first.
_USUAL = ("", "None", "Priority", "Resources")


@dataclass(frozen=True)
class Left:
    """Jobs that are not submitted yet, and Slurm's words if they are held back."""

    jobs: int = 0
    held: str = ""


class ManyNews:
    """What was printed about many jobs."""

    def __init__(self, interval: float, now: float) -> None:
        self._interval = min(interval, limits.MANY_INTERVAL)
        self._start = self._last = now
        self._over: set[int] = set()
        self._failed: list[Waiting] = []
        self._alone = 0
        self._text = ""  # of the last line on all

    def lines(self, jobs: Sequence[Waiting], left: Left, grace: float | None, now: float) -> list[str]:
        """Return a line on each new failure, a handful in an interval, and one on all jobs at its end."""
        new = [number for number, one in enumerate(jobs) if one.outcome and number not in self._over]
        self._over.update(new)
        self._failed += [jobs[number] for number in new if not _is_well(jobs[number])]
        alone = self._failed[: _HANDFUL - self._alone]
        self._alone += len(alone)
        self._failed = self._failed[len(alone) :]
        lines = [_failure(one) for one in alone]
        is_end = len(self._over) == len(jobs) and not left.jobs
        if not (is_end or now - self._last >= self._interval):
            return lines
        if self._failed:
            lines.append(clean(f"{len(self._failed)} more did not end well: {_names(self._failed)}", WIDTH))
        self._failed, self._alone, self._last = [], 0, now
        text, before = summary(jobs, left, grace, now - self._start, now), self._text
        self._text = text
        return lines if text == before and is_end else [*lines, text]


def summary(jobs: Sequence[Waiting], left: Left, grace: float | None, elapsed: float, now: float) -> str:
    """Return the line on all jobs."""
    total = len(jobs) + left.jobs
    over = [one for one in jobs if not one.in_queue]
    bad = sum(bool(one.outcome) and not _is_well(one) for one in over)
    waits = [one for one in jobs if one.in_queue]
    pending = [one for one in waits if isinstance(one.phase, Queued)]
    parts = [f"{len(over)} of {total} jobs ended" + (f" ({bad} not well)" if bad else "")]
    if len(waits) > len(pending):
        parts.append(f"{len(waits) - len(pending)} running")
    if left.jobs:
        parts.append(f"{left.jobs} to be submitted" + (f" (held back: {clean(left.held, 28)})" if left.held else ""))
    if pending:
        parts.append(f"{len(pending)} pending: {_names(pending, 40)}{_reason(pending)}")
    time_left = _time_left(len(over), total, waits, left, grace, elapsed, now)
    tail = "" if time_left is None else f"; about {seconds(time_left)} left"
    return clean(", ".join(parts), WIDTH - len(tail)) + tail


def _is_well(one: Waiting) -> bool:
    return one.outcome == "ended" and one.state == "COMPLETED"


def _reason(pending: Sequence[Waiting]) -> str:
    """Return why most of the jobs wait that have an unusual reason."""
    words = Counter(str(one.job["reason_text"]).partition(":")[0] for one in pending if one.job["reason"] not in _USUAL)
    return f" {clean(words.most_common(1)[0][0], 40)}" if words else ""


def _time_left(
    over: int, total: int, waits: Sequence[Waiting], left: Left, grace: float | None, elapsed: float, now: float
) -> float | None:
    ends = max((one.grace_ends(grace, limits.NODES_EVERY) for one in waits), default=float("inf"))
    if not left.jobs and ends < float("inf"):
        return max(0.0, ends - now)  # none has begun: their nodes are being waited for
    return (total - over) * elapsed / over if total <= over * _TELLING and over < total else None


def _names(jobs: Sequence[Waiting], most: int = 60) -> str:
    """Return the callers' names of jobs, as Slurm folds nodes, as far as they fit."""
    return clean(fold_nodes(one.key or one.name or one.job_id for one in jobs), most)


def _failure(one: Waiting) -> str:
    if one.outcome == "ended":
        return clean(": ".join(filter(None, (end_line(one.job), str(one.job["reason_text"])))), WIDTH)
    return clean(f"job {one.job_id} {one.name}: given up as {one.state}: {one.why}".replace(" :", ":"), WIDTH)
