# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Progress lines on jobs that are waited for. Pure.

Of a few jobs there is a line for each change and at every interval; of many one line for all of them at every interval,
and one for each that did not end well.
"""

from __future__ import annotations

from dataclasses import dataclass

from ansible_collections.mlops.hpc_validation.plugins.module_utils._slurm.hostlist import fold_nodes
from ansible_collections.mlops.hpc_validation.plugins.module_utils._slurm.states import UNKNOWN
from ansible_collections.mlops.hpc_validation.plugins.module_utils._slurm.text import clean
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._wait.progress import end_line, job_line, seconds
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._wait.waiting import Over, Queued, Waiting

# With more jobs, lines for every change of a pending reason would bury the others.
_FEW = 8
_MANY_SECONDS = 10.0  # between two lines on many jobs
_FAILURES = 5  # lines at once
_NAMES = 60  # characters


@dataclass
class _Shown:
    """What was last printed about a job, and when."""

    key: tuple[object, ...]
    at: float


class News:
    """The record of what was printed about each job."""

    def __init__(self, jobs: list[Waiting], interval: float, now: float) -> None:
        self._shown = [(one, _Shown((), now)) for one in jobs]
        self._interval = interval
        self._began = self._told = now
        self._blamed: set[int] = set()

    def lines(self, now: float) -> list[str]:
        """Return what there is to say."""
        if len(self._shown) > _FEW:
            return [*self._failures(now), *self._sums(now)]
        return [_line(one, now) for one, shown in self._shown if self._is_news(one, shown, now)]

    def _failures(self, now: float) -> list[str]:
        """Return a line on each of many jobs that has just not ended well, up to a number at once."""
        new = [
            (number, one)
            for number, (one, _shown) in enumerate(self._shown)
            if number not in self._blamed and one.outcome and not _is_well(one)
        ]
        self._blamed |= {number for number, _one in new}
        lines = [_line(one, now) for _number, one in new[:_FAILURES]]
        others = [one for _number, one in new[_FAILURES:]]
        return [*lines, f"{len(others)} more did not end well: {_names(others)}"] if others else lines

    def _sums(self, now: float) -> list[str]:
        """Return one line on many jobs if it is time for one, and at their end."""
        jobs = [one for one, _shown in self._shown]
        over = [one for one in jobs if one.outcome]
        is_due = now - self._told >= min(self._interval, _MANY_SECONDS)
        is_end = len(over) == len(jobs) and self._told != float("inf")
        if not is_due and not is_end:
            return []
        self._told = float("inf") if is_end else now
        waiting = [one for one in jobs if not one.outcome and _state(one) != "RUNNING"]
        running = len(jobs) - len(over) - len(waiting)
        parts = [f"{len(over)} of {len(jobs)} jobs ended"]
        parts += [f"{running} running"] if running else []
        parts += [f"{len(waiting)} pending: {_names(waiting)}"] if waiting else []
        line = ", ".join(parts)
        if over and not is_end:
            line += f"; about {seconds((now - self._began) / len(over) * (len(jobs) - len(over)))} left"
        return [line]

    def _is_news(self, one: Waiting, shown: _Shown, now: float) -> bool:
        """Return whether there is something to print, and record it as printed."""
        state = _state(one)
        if state == UNKNOWN and not one.outcome:
            return False
        reason = one.job["reason"] if state == "PENDING" and len(self._shown) <= _FEW else None
        flags, attempt = tuple(one.job["flags"]), one.job["attempt"]
        key = (state, flags, attempt, one.outcome, one.script.has_ended, reason)
        is_quiet = bool(one.outcome) or now - shown.at < self._interval
        if not shown.key and state == "RUNNING" and len(self._shown) > 1 and not one.script.has_ended:
            shown.key = key  # of several that start at once, the start is not told
        if key == shown.key and is_quiet:
            return False
        shown.key, shown.at = key, now
        return True


def _is_well(one: Waiting) -> bool:
    return one.outcome == "ended" and one.state == "COMPLETED"


def _names(jobs: list[Waiting]) -> str:
    """Return the callers' names of jobs, as Slurm folds nodes, as far as they fit."""
    folded = fold_nodes(clean(one.key or one.name or one.job_id, 60) for one in jobs)
    return folded if len(folded) <= _NAMES else folded[: _NAMES - 1] + "…"


def _state(one: Waiting) -> str:
    """Return Slurm's state, except for a job whose begin marker was seen before Slurm reported its start."""
    return "RUNNING" if one.has_run and one.state in ("PENDING", UNKNOWN) else one.state


def _line(one: Waiting, now: float) -> str:
    phase, state = one.phase, _state(one)
    if isinstance(phase, Over):
        if phase.outcome == "ended":
            return end_line(one.job)
        return f"job {one.job_id} {one.name}: given up as {state}: {phase.why}".replace(" :", ":")
    limit = one.queue_timeout if isinstance(phase, Queued) else one.run_timeout or one.job["time_limit_seconds"]
    elapsed = now - phase.since
    return job_line({**one.job, "state": state}, one.script.markers, elapsed, limit)
