# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""State transitions of a job that is waited for: by its markers, by Slurm's answers, by its clocks.

Pure; time is passed in, in seconds of the controller's monotonic clock. docs/waiting.md has a diagram of the states.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible_collections.mlops.hpc_validation.plugins.module_utils._slurm.job import Job, has_ended
from ansible_collections.mlops.hpc_validation.plugins.module_utils._slurm.nodes import BLOCKED_REMEDY
from ansible_collections.mlops.hpc_validation.plugins.module_utils._slurm.states import UNKNOWN, describe_reason
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._wait.limits import (
    COMPLETING_SECONDS,
    LOST_LOOKS,
    LOST_SECONDS,
)
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._wait.progress import seconds
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._wait.waiting import (
    Completing,
    Doomed,
    Marker,
    Missing,
    Queued,
    Running,
    Script,
    Waiting,
)


def take_markers(one: Waiting, markers: Mapping[str, Marker], now: float) -> None:
    """Apply the current markers. Only a marker of the attempt that Slurm reports starts the run clock."""
    one.script.markers.update(markers)
    begin = markers.get("begin")
    is_current = begin is not None and begin.get("attempt", 0) == one.job["attempt"]
    if is_current and isinstance(one.phase, Queued):
        one.phase = Running(now)


def take_job(one: Waiting, told: Mapping[str, Any], blocked: str, now: float) -> None:
    """Apply Slurm's answer. `blocked` says why the job can never start, if a query of the nodes has shown that."""
    before, job = one.job, {**told, "script_sha256": one.script_sha256}
    job["name"] = job["name"] or one.name
    job["comment"] = job["comment"] or one.comment
    if job["source"] == "sacct":
        job.update({key: before[key] for key in ("stdout", "stderr", "attempt")})
    if job["state"] == UNKNOWN:
        _miss(one, job, now)
        return
    one.job, one.missing = job, None
    # A requeued job gets a new one.
    one.submitted = job["submitted"] or one.submitted
    if job["attempt"] != before["attempt"] and before["source"] != "none":
        _requeue(one, now)
    if has_ended(job):
        _end(one)
        return
    one.script.unconfirmed += one.script.has_ended
    if job["state"] == "PENDING":
        _queue(one, blocked, now)
    else:
        _run(one, now)


def take_nodes(one: Waiting, why: str) -> None:
    """Give up a job that its nodes do not begin; `why` is what a query of the nodes has shown."""
    if not one.script.has_begun and not one.outcome:
        one.job["reason_text"] = why
        one.give_up("node_unavailable", why, BLOCKED_REMEDY)


def check_clocks(one: Waiting, now: float) -> None:
    """Give up if a clock has run out. To be called only right after Slurm has reported the job's state."""
    phase = one.phase
    if isinstance(phase, Completing):
        if now - phase.cleaning_since > COMPLETING_SECONDS:
            why = "it has been COMPLETING for more than five minutes: a process that cannot be killed?"
            one.job.update(state=UNKNOWN, source="none", reason_text=why)
            one.give_up("undetermined", why)
    elif isinstance(phase, Queued):
        if one.state == "PENDING" and now >= one.deadline:
            besides = f", and {seconds(phase.behind)} while others of this task ran" if phase.behind else ""
            why = f"it did not start within {seconds(one.queue_timeout)}{besides}: {one.job['reason_text']}"
            one.give_up("queue_timeout", why, f"raise queue_timeout, or see: squeue --start --jobs={one.job_id}")
    elif isinstance(phase, Running) and now >= one.deadline:
        why = f"it ran for more than {seconds(one.run_timeout)}"
        one.give_up("run_timeout", why, "raise run_timeout, or look at its output")


def _queue(one: Waiting, blocked: str, now: float) -> None:
    if one.script.has_begun:  # later than Slurm's answer
        if isinstance(one.phase, Completing):
            one.phase = Running(one.phase.since)
        return
    if isinstance(one.phase, Running):
        _requeue(one, now)
    if not isinstance(one.phase, Queued):
        return
    reason = describe_reason(str(one.job["reason"]))
    if blocked:
        one.job["reason_text"] = f"{reason.words}; {blocked}"
        one.give_up("never_starts", blocked, BLOCKED_REMEDY)
    elif not reason.never:
        one.phase = Queued(one.phase.since, one.phase.behind)
    elif isinstance(one.phase, Doomed):
        _never_starts(one)
    else:
        one.phase = Doomed(one.phase.since, one.phase.behind)


def _run(one: Waiting, now: float) -> None:
    ran = one.job["run_seconds"]
    since = one.phase.since if isinstance(one.phase, Running) else now
    since = now - ran if isinstance(ran, (int, float)) else since
    if "COMPLETING" in one.job["flags"]:
        cleaning = one.phase.cleaning_since if isinstance(one.phase, Completing) else now
        one.phase = Completing(since, cleaning)
    else:
        one.phase = Running(since)


def _requeue(one: Waiting, now: float) -> None:
    """Reset the clocks and markers: the job runs again from the start."""
    one.phase, one.script = Queued(now), Script()


def _end(one: Waiting) -> None:
    reason = describe_reason(str(one.job["reason"]))
    if reason.never and one.state == "FAILED" and one.job["started"] is None:
        _never_starts(one)
    else:
        one.give_up("ended")


def _never_starts(one: Waiting) -> None:
    reason = describe_reason(str(one.job["reason"]))
    remedy = reason.remedy.format(job_id=one.job_id, partition=one.job["partition"])
    one.give_up("never_starts", reason.words, remedy)


def _miss(one: Waiting, job: Job, now: float) -> None:
    earlier = one.missing or Missing(now, 0)
    one.missing = Missing(earlier.since, earlier.looks + 1)
    if one.missing.looks < LOST_LOOKS or now - one.missing.since < LOST_SECONDS:
        return
    kept = ("stdout", "stderr", "nodes", "partition", "submitted", "started", "attempt")
    one.job = {**job, **{key: one.job[key] for key in kept}}
    one.give_up("lost", str(job["reason_text"]) or "no part of Slurm knows this job")
