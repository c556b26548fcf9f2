# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Wait for any number of jobs: decide what to ask slurm_job_info next, and process its answer. Pure.

All times are seconds of the controller's monotonic clock, passed in. waiting.py and transitions.py have the states of
one job, pace.py decides when to ask about it, limits.py has all time limits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from ansible_collections.mlops.hpc_validation.plugins.module_utils._slurm.arguments import FEW
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._wait import pace, transitions
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._wait.limits import (
    GATHER,
    HOLD,
    MANY_GATHER,
    MANY_GRACE_SPACING,
    MANY_INTERVAL,
    MANY_TAIL,
    NODES_EVERY,
    SETTLE,
    Limits,
)
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._wait.many import Left, ManyNews
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._wait.news import News
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._wait.progress import seconds
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._wait.waiting import Queued, Waiting


class Wait:
    """A wait for any number of jobs: request() says what to ask next, observe() takes the answer."""

    def __init__(self, jobs: Sequence[Waiting], limits: Limits, now: float, total: int | None = None) -> None:
        """Wait for these jobs; `total` is the number of all jobs of the task if others are added later."""
        self.jobs: list[Waiting] = []
        self.many = (len(jobs) if total is None else total) > FEW
        self.limits = replace(limits, tail=min(limits.tail, MANY_TAIL)) if self.many else limits
        self.accounting = True
        self.left = Left()
        self._few = News(limits.progress_interval)
        self._many = ManyNews(limits.progress_interval, now)
        self._lines: list[str] = []
        self._start = self._looked = now
        self._asked: float | None = None
        self._silence: pace.Silence | None = None
        self.add(jobs, now)

    def add(self, jobs: Sequence[Waiting], now: float) -> None:
        """Wait for more jobs, which were submitted just now."""
        for one in jobs:
            self.jobs.append(one)
            if not one.outcome:
                one.phase = Queued(now)
                self._few.add(one, now)

    @property
    def open(self) -> list[Waiting]:
        """Return the jobs whose wait is not over."""
        return [one for one in self.jobs if not one.outcome]

    def request(self, now: float) -> dict[str, object]:
        """Return the arguments of the next slurm_job_info; `hold` is how long it may watch markers."""
        waiting = self.open
        others = pace.Others.of(waiting)
        several = len(waiting) > 1 and others.one_goes_on
        deadline = min((one.deadline for one in waiting), default=now + HOLD)
        interval = min(self.limits.progress_interval, MANY_INTERVAL) if self.many else self.limits.progress_interval
        most = min(HOLD, max(1.0, interval))
        earliest = pace.earliest(self._asked, waiting, many=self.many)
        wanted = max(0.0, min(self._due(waiting, others), max(deadline, now)) - now)
        if self.many:
            wanted = max(wanted, min(earliest, self._grace_ends(waiting)) - now)
        hold = min(wanted, most)
        return {
            "jobs": [_spec(one, self._stuck_after(one, now)) for one in waiting],
            "hold": round(hold, 2),
            "query": wanted <= most,
            "confirm_after": round(max(0.0, earliest - now), 2),
            "gather": MANY_GATHER if self.many else 0.0,
            "settle": GATHER if several else SETTLE,
            "steps": self.accounting,
            "tail": self.limits.tail,
            "nodes": [one.job_id for one in waiting if self._wants_nodes(one, now + hold, others)],
        }

    def _stuck_after(self, one: Waiting, now: float) -> float | None:
        ends = one.grace_ends(self.limits.node_grace, NODES_EVERY)
        # A tenth less, since the request is on its way for longer than that.
        return None if ends == float("inf") else round(max(0.0, ends - now - 0.1), 2)

    def _wants_nodes(self, one: Waiting, now: float, others: pace.Others) -> bool:
        has_grace = self.limits.node_grace is not None and bool(one.needs)
        return not has_grace and pace.wants_nodes(one, now, others)

    def _due(self, waiting: list[Waiting], others: pace.Others) -> float:
        if self._silence is not None:
            return self._silence.due
        dues = (pace.due(one, self._start, self._asked, others) for one in waiting)
        return min([self._grace_ends(waiting), *dues])

    def _grace_ends(self, waiting: list[Waiting]) -> float:
        """Return when nodes are to be looked at without which a job cannot begin; with many jobs not too often."""
        ends = min((one.grace_ends(self.limits.node_grace, NODES_EVERY) for one in waiting), default=float("inf"))
        return max(ends, self._asked + MANY_GRACE_SPACING) if self.many and self._asked is not None else ends

    def observe(self, answer: Mapping[str, Any], request: Mapping[str, Any], now: float) -> None:
        """Process the answer of slurm_job_info to this request."""
        self._count_behind(now)
        for one in self.open:
            transitions.take_markers(one, answer.get("markers", {}).get(one.job_id) or {}, now)
        if answer.get("asked"):
            self._take_answer(answer, request, now)
        self.tell(now)

    def unreachable(self, why: str, now: float) -> None:
        """Record that there was no answer at all, from the login node or the controller."""
        self._bear_silence(why, now)
        self.tell(now)

    def tell(self, now: float) -> None:
        """Add the lines on what is new."""
        if self.many:
            self._lines += self._many.lines(self.jobs, self.left, self.limits.node_grace, now)
        else:
            self._lines += self._few.lines(now)

    def take_lines(self) -> list[str]:
        """Return the lines to print, and clear them."""
        lines, self._lines = self._lines, []
        return lines

    def _count_behind(self, now: float) -> None:
        """Add the time since the last call to `behind` of the jobs that queue while another job of the task runs."""
        if pace.Others.of(self.open).one_runs:
            for one in self.open:
                if isinstance(one.phase, Queued):
                    one.phase = replace(one.phase, behind=one.phase.behind + now - self._looked)
        self._looked = now

    def _take_answer(self, answer: Mapping[str, Any], request: Mapping[str, Any], now: float) -> None:
        self._asked = now
        if answer["controller"] == "missing":
            for one in self.open:
                one.give_up("undetermined", str(answer["error"]))
            return
        if answer["controller"] != "up":
            self._bear_silence(str(answer["error"]), now)
            return
        if self._silence is not None:
            self._lines.append("slurmctld answers again")
            self._silence = None
        if answer.get("accounting") == "down":
            self.accounting = False
        jobs = {str(job["job_id"]): job for job in answer["jobs"]}
        for one in self.open:
            if one.job_id in request["nodes"] or one.job_id in answer.get("nodes_looked", ()):
                one.nodes_asked = now
            if one.job_id in jobs:
                transitions.take_job(one, jobs[one.job_id], str(answer["blocked"].get(one.job_id, "")), now)
            if one.job_id in answer.get("stuck", {}):
                transitions.take_nodes(one, str(answer["stuck"][one.job_id]))
        for one in self.open:
            transitions.check_clocks(one, now)

    def _bear_silence(self, why: str, now: float) -> None:
        """Keep asking for as long as the user allows; after that the jobs are undetermined."""
        earlier = self._silence or pace.Silence(now, now, 0)
        self._silence = pace.Silence(earlier.since, now, earlier.failures + 1)
        left = self.limits.controller_timeout - (now - earlier.since)
        if left > 0:
            self._lines.append(f"Slurm does not answer: {why}. Retrying for {seconds(left)}")
            return
        text = f"Slurm did not answer for {seconds(now - earlier.since)}: {why}"
        for one in self.open:
            one.forget(text)
            one.give_up("undetermined", text)


def _spec(one: Waiting, stuck_after: float | None) -> dict[str, object]:
    """Return the job's entry among the jobs of slurm_job_info."""
    return {
        "job_id": one.job_id,
        "comment": one.comment or None,
        "submitted": one.submitted,
        "submitted_by": one.submitted_by,
        "attempt": one.job["attempt"],
        "needs": one.needs if stuck_after is not None else None,
        "stuck_after": stuck_after,
        "seen": [kind for kind in ("begin", "end") if kind in one.script.markers],
        **{f"{kind}_marker": pattern for kind, pattern in one.patterns.items()},
    }
