# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Decide when to ask Slurm about a job again, depending on its phase. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ansible_collections.mlops.hpc_validation.plugins.module_utils._slurm.states import nodes_may_be_gone
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._wait import limits
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._wait.waiting import (
    Completing,
    Doomed,
    Over,
    Queued,
    Running,
    Waiting,
)


@dataclass(frozen=True)
class Silence:
    """Slurm does not answer: since when, the time of the last attempt, and the number of attempts."""

    since: float
    last: float
    failures: int

    @property
    def due(self) -> float:
        """Return when to try again."""
        return self.last + min(limits.SILENCE_MOST, 2.0**self.failures)


@dataclass(frozen=True)
class Others:
    """How the other jobs of a task affect when to ask about one."""

    one_runs: bool
    one_goes_on: bool  # its script has not ended

    @staticmethod
    def of(jobs: Sequence[Waiting]) -> Others:
        """Return the instance for the jobs that are still waited for."""
        return Others(
            any(isinstance(one.phase, Running) for one in jobs), any(not one.script.has_ended for one in jobs)
        )


def due(one: Waiting, start: float, asked: float | None, others: Others) -> float:
    """Return the latest time to ask Slurm about this job; `asked` is when it was last asked."""
    if asked is None and not one.script.markers.keys() & {"begin", "end"}:
        return start + (limits.START_GRACE if "begin" in one.patterns else 0.0)
    last = start if asked is None else asked
    return last + _pause(one, last, others)


def _pause(one: Waiting, asked: float, others: Others) -> float:
    if one.script.has_ended:
        pause = limits.CONFIRM_PAUSES[min(one.script.unconfirmed, len(limits.CONFIRM_PAUSES) - 1)]
        return max(pause, limits.CONFIRM_SPACING) if others.one_goes_on else pause
    if one.missing is not None:
        return limits.LOST_SECONDS / (2 * limits.LOST_LOOKS)
    phase = one.phase
    if isinstance(phase, Over):
        return float("inf")
    if isinstance(phase, Doomed):
        return limits.DOOMED_CONFIRM
    if isinstance(phase, Completing):
        return min(limits.COMPLETING_MOST, max(limits.COMPLETING_LEAST, asked - phase.cleaning_since))
    if isinstance(phase, Queued) and not one.script.has_begun:
        if others.one_runs:
            return min(limits.QUEUE_MOST, max(limits.QUEUE_LEAST_BEHIND, asked - phase.since))
        return min(limits.QUEUE_MOST, max(limits.QUEUE_LEAST, asked - phase.since - phase.behind))
    return _running_pause(one, asked - phase.since)


def _running_pause(one: Waiting, elapsed: float) -> float:
    if "end" not in one.patterns:
        return min(limits.UNMARKED_MOST, max(limits.UNMARKED_LEAST, limits.UNMARKED_SHARE * elapsed))
    pause = min(limits.MARKED_MOST, max(limits.MARKED_LEAST, limits.MARKED_SHARE * elapsed))
    limit = one.job["time_limit_seconds"]
    if isinstance(limit, (int, float)) and elapsed < limit + limits.AFTER_TIME_LIMIT:
        pause = min(pause, limit + limits.AFTER_TIME_LIMIT - elapsed)
    return pause


def earliest(asked: float | None, jobs: Sequence[Waiting], *, many: bool) -> float:
    """Return the earliest time to ask Slurm again, with others of several jobs still going on."""
    goes_on = len(jobs) > 1 and Others.of(jobs).one_goes_on
    if asked is None or not goes_on:
        return 0.0
    marked = all("end" in one.patterns for one in jobs)  # else nothing but a query shows that one has ended
    return asked + (limits.MANY_SPACING if many and marked else limits.CONFIRM_SPACING)


def wants_nodes(one: Waiting, now: float, others: Others) -> bool:
    """Return whether to query the nodes, to find out whether the job waits for them or can never start."""
    reason = str(one.job["reason"])
    if not isinstance(one.phase, Queued) or one.state != "PENDING" or not nodes_may_be_gone(reason):
        return False
    if one.nodes_asked is not None and now - one.nodes_asked < limits.NODES_EVERY:
        return False
    at_once = reason.startswith(("ReqNodeNotAvail", "Nodes required"))
    return at_once or (not others.one_runs and now - one.phase.since > limits.NODES_AFTER)
