# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""When to ask Slurm, and when a wait is over: the state machine behind slurm_job. Pure; time is handed in.

All times are seconds of the controller's monotonic clock. An answer is what slurm_job_info returned.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ansible_collections.mlops.hpc_validation.plugins.module_utils._slurm_job import Job, empty, has_ended
from ansible_collections.mlops.hpc_validation.plugins.module_utils._slurm_nodes import BLOCKED_REMEDY
from ansible_collections.mlops.hpc_validation.plugins.module_utils._slurm_state import (
    describe_reason,
    nodes_may_be_gone,
)
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._progress import end_line, job_line, seconds

HOLD = 20.0
# A job usually starts within this time, which its begin marker tells without asking.
_START_GRACE = 1.5
_LOST_SECONDS = 30.0
_LOST_LOOKS = 3
_COMPLETING_SECONDS = 300.0
_NEVER_CONFIRM = 2.0
_NODES_AFTER = 15.0
_NODES_EVERY = 60.0
_CONFIRM_PAUSES = (0.0, 1.0, 1.0, 2.0, 2.0, 5.0, 10.0)
# With other jobs still running, one query serves all the ends of these seconds.
_CONFIRM_SPACING = 2.2
_SETTLE, _GATHER = 0.6, 1.4


@dataclass
class Waiting:
    """One job that is waited for."""

    job_id: str
    name: str = ""
    comment: str = ""
    script_sha256: str | None = None
    ours: bool = False
    queue_timeout: float | None = None
    run_timeout: float | None = None
    patterns: dict[str, str] = field(default_factory=dict)
    job: Job = field(default_factory=dict)
    markers: dict[str, dict[str, Any]] = field(default_factory=dict)
    outcome: str = ""
    why: str = ""
    remedy: str = ""
    queued_at: float = 0.0
    behind: float = 0.0
    running_at: float | None = None
    pending_since: float = 0.0
    completing_at: float | None = None
    missing_at: float | None = None
    missing_looks: int = 0
    never_at: float | None = None
    confirms: int = 0
    nodes_asked: float | None = None
    shown: tuple[object, ...] = ()
    shown_at: float = 0.0
    submitted: float | None = None
    submitted_by: float | None = None
    cancel_asked: bool = False

    def take_cancelled(self, job: Job) -> None:
        """Take the job as it is after it was cancelled; it says why that was done."""
        kept = {key: self.job[key] for key in ("reason", "reason_text", "name", "comment", "script_sha256", "attempt")}
        if self.why not in kept["reason_text"]:
            kept["reason_text"] = self.why
        self.job = {**job, **kept}

    @property
    def state(self) -> str:
        """Slurm's word as last told."""
        return str(self.job.get("state", "UNKNOWN"))

    @property
    def script_ended(self) -> bool:
        """True where the job's own last act is seen but Slurm has not confirmed its end."""
        return "end" in self.markers


@dataclass(frozen=True)
class Limits:
    """What the user set for the whole task; seconds."""

    controller_timeout: float = 300.0
    progress_interval: float = 30.0
    tail: int = 20


class Wait:
    """Waits for any number of jobs: request() says what to ask next, observe() takes the answer."""

    def __init__(self, jobs: list[Waiting], limits: Limits, now: float) -> None:
        self.jobs = jobs
        self.limits = limits
        self.lines: list[str] = []
        self.asked_at: float | None = None
        self.failed_at: float | None = None
        self.failures = 0
        self.accounting = True
        self.start = self.looked_at = now
        for one in jobs:
            one.queued_at = one.pending_since = one.shown_at = now
            if not one.job:
                one.job = empty(one.job_id)
                one.job.update(name=one.name, comment=one.comment, script_sha256=one.script_sha256)

    @property
    def open(self) -> list[Waiting]:
        """Jobs whose wait is not over."""
        return [one for one in self.jobs if not one.outcome]

    def request(self, now: float) -> dict[str, object]:
        """Return the arguments of the next slurm_job_info; its hold is how long to let it watch markers."""
        waiting = self.open
        due = min(self._due(one) for one in waiting)
        deadline = min((self._deadline(one) for one in waiting), default=now + HOLD)
        most = min(HOLD, max(1.0, self.limits.progress_interval))
        wanted = max(0.0, min(due, max(deadline, now)) - now)
        hold = min(wanted, most)
        others_run = any(not one.script_ended for one in waiting)
        spaced = (self.asked_at + _CONFIRM_SPACING - now) if others_run and self.asked_at and len(waiting) > 1 else 0.0
        return {
            "jobs": [self._spec(one) for one in waiting],
            "hold": round(hold, 2),
            "query": wanted <= most,
            "confirm_after": round(max(0.0, spaced), 2),
            "settle": _GATHER if others_run and len(waiting) > 1 else _SETTLE,
            "steps": self.accounting,
            "tail": self.limits.tail,
            "nodes": [one.job_id for one in waiting if self._wants_nodes(one, now + hold)],
        }

    def _spec(self, one: Waiting) -> dict[str, object]:
        return {
            "job_id": one.job_id,
            "comment": one.comment or None,
            "submitted": one.submitted,
            "submitted_by": one.submitted_by,
            "attempt": one.job["attempt"],
            "seen": [kind for kind in ("begin", "end") if kind in one.markers],
            **{f"{kind}_marker": pattern for kind, pattern in one.patterns.items()},
        }

    def _due(self, one: Waiting) -> float:
        """Return when Slurm should be asked about this job at the latest."""
        if self.failed_at is not None:
            return self.failed_at + min(20.0, 2.0**self.failures)
        asked = self.asked_at
        if one.script_ended:
            pause = _CONFIRM_PAUSES[min(one.confirms, len(_CONFIRM_PAUSES) - 1)]
            if any(not other.script_ended for other in self.open):
                pause = max(pause, _CONFIRM_SPACING)
            return (self.start if asked is None else asked) + pause
        if asked is None and "begin" not in one.markers:
            return self.start + (_START_GRACE if "begin" in one.patterns else 0.0)
        asked = self.start if asked is None else asked
        if one.missing_at is not None:
            return asked + _LOST_SECONDS / (2 * _LOST_LOOKS)
        if one.never_at is not None:
            return asked + _NEVER_CONFIRM
        if one.completing_at is not None:
            return asked + min(10.0, max(1.0, asked - one.completing_at))
        if one.running_at is None and self._is_pending(one):
            busy = any(other.running_at is not None for other in self.open)
            return asked + min(60.0, max(10.0 if busy else 2.0, asked - one.pending_since))
        began = one.running_at if one.running_at is not None else one.pending_since
        elapsed = asked - began
        if "end" in one.patterns:
            due = asked + min(60.0, max(20.0, 0.1 * elapsed))
            limit = one.job.get("time_limit_seconds")
            if isinstance(limit, (int, float)) and elapsed < limit + 2:
                due = min(due, began + limit + 2)
            return due
        return asked + min(30.0, max(1.5, 0.02 * elapsed))

    @staticmethod
    def _is_pending(one: Waiting) -> bool:
        return one.state in ("PENDING", "UNKNOWN") and "begin" not in one.markers

    def _deadline(self, one: Waiting) -> float:
        if one.running_at is not None:
            return one.running_at + one.run_timeout if one.run_timeout else float("inf")
        return one.queued_at + one.behind + one.queue_timeout if one.queue_timeout else float("inf")

    def _wants_nodes(self, one: Waiting, now: float) -> bool:
        reason = str(one.job.get("reason", ""))
        if one.state != "PENDING" or not nodes_may_be_gone(reason) or one.running_at is not None:
            return False
        if one.nodes_asked is not None and now - one.nodes_asked < _NODES_EVERY:
            return False
        at_once = reason.startswith(("ReqNodeNotAvail", "Nodes required"))
        busy = any(other.running_at is not None and not other.outcome for other in self.jobs)
        return at_once or (not busy and now - one.pending_since > _NODES_AFTER)

    def observe(self, answer: Mapping[str, Any], request: Mapping[str, Any], now: float) -> None:
        """Take one answer of slurm_job_info to that request."""
        self._count_behind(now)
        for one in self.open:
            markers = answer.get("markers", {}).get(one.job_id) or {}
            one.markers.update(markers)
            if "begin" in markers and one.running_at is None and self._is_attempt(one, markers["begin"]):
                one.running_at = now
        if answer.get("asked"):
            self._observe_slurm(answer, request, now)
        for one in self.open:
            self._check_clocks(one, now, asked=bool(answer.get("asked")) and answer.get("controller") == "up")
        self._report(now)

    def _count_behind(self, now: float) -> None:
        """Add what the last look is ago to the jobs that queue while another of the same task runs."""
        running = any(one.running_at is not None for one in self.open)
        for one in self.open:
            if running and one.running_at is None:
                one.behind += now - self.looked_at
        self.looked_at = now

    def unreachable(self, why: str, now: float) -> None:
        """Take it that there was no answer at all: login node or controller."""
        self._controller_failed(why, now)
        self._report(now)

    @staticmethod
    def _is_attempt(one: Waiting, marker: Mapping[str, Any]) -> bool:
        return marker.get("attempt", 0) == one.job.get("attempt", 0)

    def _observe_slurm(self, answer: Mapping[str, Any], request: Mapping[str, Any], now: float) -> None:
        self.asked_at = now
        if answer["controller"] == "missing":
            for one in self.open:
                self._finish(one, "undetermined", str(answer["error"]))
            return
        if answer["controller"] != "up":
            self._controller_failed(str(answer["error"]), now)
            return
        if self.failed_at is not None:
            self.lines.append("slurmctld answers again")
        self.failed_at, self.failures = None, 0
        self._first_failure = None
        if answer.get("accounting") == "down":
            self.accounting = False
        jobs = {str(job["job_id"]): job for job in answer["jobs"]}
        for one in self.open:
            if one.job_id in request["nodes"]:
                one.nodes_asked = now
            job = jobs.get(one.job_id)
            if job is not None:
                self._observe_job(one, dict(job), str(answer["blocked"].get(one.job_id, "")), now)

    def _observe_job(self, one: Waiting, job: Job, blocked: str, now: float) -> None:
        before = one.job
        job["name"] = job["name"] or one.name
        job["comment"] = job["comment"] or one.comment
        job["script_sha256"] = one.script_sha256
        if job["source"] == "sacct":
            job["stdout"], job["stderr"] = before.get("stdout", ""), before.get("stderr", "")
            job["attempt"] = before.get("attempt", 0)
        if job["state"] == "UNKNOWN":
            self._observe_missing(one, job, now)
            return
        one.job = job
        one.missing_at, one.missing_looks = None, 0
        # A requeued job is given a new one.
        one.submitted = job["submitted"] or one.submitted
        if job["attempt"] != before.get("attempt", 0) and before.get("source") != "none":
            self._requeued(one, now)
        if has_ended(job):
            reason = describe_reason(str(job["reason"]))
            if reason.never and job["state"] == "FAILED" and job["started"] is None:
                fields = {"job_id": one.job_id, "partition": job["partition"]}
                self._finish(one, "never_starts", reason.words, reason.remedy.format(**fields))
            else:
                self._finish(one, "ended", "")
            return
        one.confirms += one.script_ended
        completing = "COMPLETING" in job["flags"]
        one.completing_at = (one.completing_at or now) if completing else None
        if job["state"] == "PENDING" and "begin" not in one.markers:
            if one.running_at is not None:
                self._requeued(one, now)
            self._observe_pending(one, blocked, now)
        elif job["state"] != "PENDING":
            one.never_at = None
            run = job["run_seconds"]
            one.running_at = now - run if isinstance(run, (int, float)) else one.running_at or now

    def _requeued(self, one: Waiting, now: float) -> None:
        """The job runs again from its beginning: its clocks and markers do too."""
        one.queued_at = one.pending_since = now
        one.running_at = one.completing_at = None
        one.behind = 0.0
        one.confirms = 0
        one.markers = {}

    def _observe_pending(self, one: Waiting, blocked: str, now: float) -> None:
        reason = describe_reason(str(one.job["reason"]))
        if blocked:
            one.job["reason_text"] = f"{reason.words}; {blocked}"
            self._finish(one, "never_starts", blocked, BLOCKED_REMEDY)
        elif not reason.never:
            one.never_at = None
        elif one.never_at is None:
            one.never_at = now  # asked once more, since a scheduler that has just started may still be finding out
        else:
            fields = {"job_id": one.job_id, "partition": one.job["partition"]}
            self._finish(one, "never_starts", reason.words, reason.remedy.format(**fields))

    def _observe_missing(self, one: Waiting, job: Job, now: float) -> None:
        one.missing_at = one.missing_at if one.missing_at is not None else now
        one.missing_looks += 1
        if one.missing_looks < _LOST_LOOKS or now - one.missing_at < _LOST_SECONDS:
            return
        kept = {
            key: one.job[key] for key in ("stdout", "stderr", "nodes", "partition", "submitted", "started", "attempt")
        }
        one.job = {**job, **kept}
        self._finish(one, "lost", str(job["reason_text"]) or "no part of Slurm knows this job")

    _first_failure: float | None = None

    def _controller_failed(self, why: str, now: float) -> None:
        if self._first_failure is None:
            self._first_failure = now
        self.failed_at = now
        self.failures += 1
        since = now - self._first_failure
        if since < self.limits.controller_timeout:
            left = self.limits.controller_timeout - since
            self.lines.append(f"Slurm does not answer: {why}. Trying for {seconds(left)} more")
            return
        for one in self.open:
            kept = dict(one.job)
            kept.update(
                state="UNKNOWN",
                flags=[],
                exit_code=None,
                signal=None,
                derived_exit_code=None,
                source="none",
                reason_text=f"Slurm did not answer for {seconds(since)}: {why}",
            )
            one.job = kept
            self._finish(one, "undetermined", str(kept["reason_text"]))

    def _check_clocks(self, one: Waiting, now: float, *, asked: bool) -> None:
        """Judge the two clocks, but only right after Slurm has told the job's state."""
        if not asked or one.outcome:
            return
        stuck = one.completing_at is not None and now - one.completing_at > _COMPLETING_SECONDS
        if stuck:
            one.job["state"], one.job["source"] = "UNKNOWN", "none"
            one.job["reason_text"] = (
                "it has been COMPLETING for more than five minutes: a process that cannot be killed?"
            )
            self._finish(one, "undetermined", str(one.job["reason_text"]))
        elif one.running_at is None and one.state == "PENDING" and now >= self._deadline(one):
            besides = f", and {seconds(one.behind)} while others of this task ran" if one.behind else ""
            why = f"it did not start within {seconds(one.queue_timeout)}{besides}: {one.job['reason_text']}"
            self._finish(one, "queue_timeout", why, "raise queue_timeout, or see: squeue --start --jobs=" + one.job_id)
        elif one.running_at is not None and one.completing_at is None and now >= self._deadline(one):
            why = f"it ran for more than {seconds(one.run_timeout)}"
            self._finish(one, "run_timeout", why, "raise run_timeout, or look at its output")

    def _finish(self, one: Waiting, outcome: str, why: str, remedy: str = "") -> None:
        one.outcome, one.why, one.remedy = outcome, why, remedy

    def _report(self, now: float) -> None:
        for one in self.jobs:
            job = one.job
            state = "RUNNING" if one.state in ("PENDING", "UNKNOWN") and one.running_at is not None else one.state
            shown_job = {**job, "state": state}
            key: tuple[object, ...] = (state, tuple(job["flags"]), job["attempt"], one.outcome, one.script_ended)
            if state == "PENDING" and len(self.jobs) <= 8:
                key += (job["reason"],)
            if state == "UNKNOWN" and not one.outcome:
                continue
            quiet = now - one.shown_at < self.limits.progress_interval
            if key == one.shown and (quiet or one.outcome):
                continue
            one.shown, one.shown_at = key, now
            if one.outcome == "ended":
                self.lines.append(end_line(job))
                continue
            begin = one.running_at if one.running_at is not None else one.queued_at
            limit = one.run_timeout or job["time_limit_seconds"] if one.running_at is not None else one.queue_timeout
            if one.outcome:
                self.lines.append(f"job {one.job_id} {one.name}: given up as {state}: {one.why}".replace(" :", ":"))
                continue
            self.lines.append(
                job_line(shown_job, one.markers, now - begin, limit if isinstance(limit, (int, float)) else None)
            )

    def take_lines(self) -> list[str]:
        """Return what is to be printed, and forget it."""
        lines, self.lines = self.lines, []
        return lines
