# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Progress lines on a few jobs: one for each change, and one at every interval. Pure. many.py has those on many."""

from __future__ import annotations

from dataclasses import dataclass

from ansible_collections.mlops.hpc_validation.plugins.module_utils._slurm.states import UNKNOWN
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._wait.progress import end_line, job_line
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._wait.waiting import Over, Queued, Waiting


@dataclass
class _Shown:
    """What was last printed about a job, and when."""

    key: tuple[object, ...]
    at: float


class News:
    """The record of what was printed about each job."""

    def __init__(self, interval: float) -> None:
        self._shown: list[tuple[Waiting, _Shown]] = []
        self._interval = interval

    def add(self, one: Waiting, now: float) -> None:
        """Take note of a job."""
        self._shown.append((one, _Shown((), now)))

    def lines(self, now: float) -> list[str]:
        """Return a line on each job that has changed or has not been mentioned for an interval."""
        return [_line(one, now) for one, shown in self._shown if self._is_news(one, shown, now)]

    def _is_news(self, one: Waiting, shown: _Shown, now: float) -> bool:
        """Return whether there is something to print, and record it as printed."""
        state = _state(one)
        if state == UNKNOWN and not one.outcome:
            return False
        reason = one.job["reason"] if state == "PENDING" else None
        flags, attempt = tuple(one.job["flags"]), one.job["attempt"]
        key = (state, flags, attempt, one.outcome, reason)
        is_quiet = bool(one.outcome) or now - shown.at < self._interval
        if not shown.key and state == "RUNNING" and len(self._shown) > 1:
            shown.key = key  # of several that start at once, the start is not told
        if key == shown.key and is_quiet:
            return False
        shown.key, shown.at = key, now
        return True


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
