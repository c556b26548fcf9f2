# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The job dictionary (files/schemas/job.json): the only form in which a job goes from Slurm to the judge. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible_collections.mlops.hpc_validation.plugins.module_utils._slurm.states import (
    LIVE,
    UNKNOWN,
    describe_reason,
    is_terminal,
)

Job = dict[str, Any]


def empty(job_id: str) -> Job:
    """Return the dictionary of a job of which nothing is known."""
    return {
        "job_id": job_id,
        "attempt": 0,
        "name": "",
        "user": "",
        "state": UNKNOWN,
        "flags": [],
        "exit_code": None,
        "signal": None,
        "derived_exit_code": None,
        "reason": "",
        "reason_text": "neither slurmctld nor accounting knows this job",
        "nodes": [],
        "gpus": None,
        "partition": "",
        "submitted": None,
        "started": None,
        "ended": None,
        "queued_seconds": None,
        "run_seconds": None,
        "time_limit_seconds": None,
        "stdout": "",
        "stderr": "",
        "steps": None,
        "tail": [],
        "script_sha256": None,
        "comment": "",
        "source": "none",
    }


def from_row(row: Mapping[str, object], source: str, now: float) -> Job:
    """Return the dictionary for one row of squeue or sacct. now is epoch seconds on the host that asked."""
    job = empty(str(row["job_id"]))
    job.update({key: value for key, value in row.items() if key in job})
    job["source"] = source
    state, nodes = str(job["state"]), job["nodes"]
    if state in LIVE or state == UNKNOWN:
        # Until it has ended, its exit code is a meaningless zero, and its end is the scheduler's guess.
        job.update(exit_code=None, signal=None, derived_exit_code=None, ended=None)
    if state == "PENDING" or (state != UNKNOWN and state not in LIVE and not nodes):
        job.update(started=None)
    submitted, started, ended = job["submitted"], job["started"], job["ended"]
    if isinstance(submitted, float):
        until = started if isinstance(started, float) else ended if isinstance(ended, float) else now
        job["queued_seconds"] = max(0.0, until - submitted)
    if isinstance(started, float):
        job["run_seconds"] = _run_seconds(started, ended, now)
    job["reason_text"] = _words(state, str(job["reason"]), job["flags"])
    return job


def _run_seconds(started: float, ended: object, now: float) -> float | None:
    """Return how long a job ran; None if a clock was set back meanwhile.

    Slurm's times are whole seconds: a job that began and ended in the same one ran for up to a second, not for zero.
    """
    if not isinstance(ended, float):
        return max(0.0, now - started)
    return max(1.0, ended - started) if ended >= started else None


def _words(state: str, reason: str, flags: object) -> str:
    if state == UNKNOWN:
        return "Slurm printed a state that is not one of its own"
    if state == "PENDING" or reason not in ("", "None"):
        return describe_reason(reason).words
    return ", ".join(str(flag).lower() for flag in flags) if isinstance(flags, list) else ""


def has_ended(job: Mapping[str, object]) -> bool:
    """Return whether the job has ended for good."""
    flags = job["flags"]
    return is_terminal(str(job["state"]), flags if isinstance(flags, list) else ["?"])
