# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Asking Slurm about jobs: one squeue for all of them, sacct for what slurmctld has forgotten and for steps."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from ansible_collections.mlops.hpc_validation.plugins.module_utils import _slurm_sacct, _slurm_squeue
from ansible_collections.mlops.hpc_validation.plugins.module_utils._slurm_cli import (
    SUBMIT_SECONDS,
    Result,
    Runner,
    error_text,
    is_missing,
)
from ansible_collections.mlops.hpc_validation.plugins.module_utils._slurm_job import Job, empty, from_row, has_ended
from ansible_collections.mlops.hpc_validation.plugins.module_utils._slurm_text import gres_counts, key_values

_SAME_SUBMISSION_SECONDS = 1.0  # Slurm tells whole seconds
# Between the clocks of this node and slurmctld. With more, a job given the same id soon after could pass for this one.
_CLOCKS_APART_SECONDS = 0.5
_ACCOUNTING_TRIES = 12
_ACCOUNTING_PAUSE = 0.4


@dataclass(frozen=True)
class Wanted:
    """A job to look up. The others tell it from another job of the same id: ids restart when Slurm loses its state.

    submitted is Slurm's own time of it, by the latest that it can have been: when sbatch had returned.
    """

    job_id: str
    comment: str = ""
    submitted: float | None = None
    by: float | None = None

    @property
    def since(self) -> float | None:
        """What is older than this is another job's."""
        return self.by if self.submitted is None else self.submitted


@dataclass
class Answer:
    """What Slurm said. controller: up | unreachable | missing; accounting: up | down | not_asked."""

    controller: str
    error: str = ""
    accounting: str = "not_asked"
    accounting_error: str = ""
    jobs: dict[str, Job] = field(default_factory=dict)
    others: dict[str, Job] = field(default_factory=dict)


def ask(
    run: Runner,
    wanted: list[Wanted],
    user: str,
    *,
    steps: bool = True,
    now: Callable[[], float] = time.time,
    sleep: Callable[[float], None] = time.sleep,
) -> Answer:
    """Return what is known of the wanted jobs; jobs is empty where the controller did not answer."""
    rows, failure = _rows(run(_slurm_squeue.argv(user=user)))
    if failure is not None:
        return failure
    strangers = [one.job_id for one in wanted if one.job_id not in rows and not one.comment]
    if strangers:
        # Perhaps another user's. This loads the whole job table, so it is done for ids given by hand only.
        result = run(_slurm_squeue.argv(job_ids=strangers))
        if "Invalid job id" not in result.err:
            more, failure = _rows(result)
            if failure is not None:
                return failure
            rows.update({key: row for key, row in more.items() if key in strangers})
    answer = Answer("up")
    for one in wanted:
        row = rows.get(one.job_id)
        if row is not None and _is_same(one, row):
            answer.jobs[one.job_id] = from_row(row, "squeue", now())
    ids = {one.job_id for one in wanted}
    answer.others = {key: from_row(row, "squeue", now()) for key, row in rows.items() if key not in ids}
    # An id that another job has now is not asked of accounting, which tells an id's newest job.
    known = [one for one in wanted if one.job_id in answer.jobs or one.job_id not in rows or one.submitted is not None]
    _ask_accounting(run, known, answer, steps, now, sleep)
    for job_id, job in answer.jobs.items():
        if job["gpus"] is None and has_ended(job) and rows.get(job_id, {}).get("asks_gpus"):
            job["gpus"] = _allocated_gpus(run, job_id)
    for one in wanted:
        answer.jobs.setdefault(one.job_id, empty(one.job_id))
    return answer


def _allocated_gpus(run: Runner, job_id: str) -> int | None:
    """Return the GPUs a job was given where no TRES counts them (AccountingStorageTRES lacks gres/gpu)."""
    line = run(["scontrol", "--local", "--oneliner", "--details", "show", "job", job_id]).text
    # The job's name comes first and may hold anything.
    gres = key_values(line[line.rfind(" UserId=") :]).get("JOB_GRES", "") if " UserId=" in line else ""
    return gres_counts(gres).get("gpu")


def _rows(result: Result) -> tuple[dict[str, _slurm_squeue.Row], Answer | None]:
    if result.rc != 0:
        return {}, Answer("missing" if is_missing(result) else "unreachable", error_text(result))
    try:
        return _slurm_squeue.parse(result.out), None
    except _slurm_squeue.UnreadableError as error:
        return {}, Answer("unreachable", str(error))


def _is_same(one: Wanted, row: dict[str, object]) -> bool:
    if one.comment:
        return row["comment"] == one.comment
    submitted = row["submitted"]
    # A requeued job is given a new submission time.
    return (
        one.submitted is None
        or not isinstance(submitted, float)
        or bool(row["attempt"])
        or abs(submitted - one.submitted) < _SAME_SUBMISSION_SECONDS
    )


def _ask_accounting(
    run: Runner,
    wanted: list[Wanted],
    answer: Answer,
    steps: bool,
    now: Callable[[], float],
    sleep: Callable[[float], None],
) -> None:
    """Fill in steps of ended jobs, and jobs that slurmctld forgot. Accounting lags a second or two behind it."""
    forgotten = {one.job_id: one for one in wanted if one.job_id not in answer.jobs}
    ended = {job_id for job_id, job in answer.jobs.items() if steps and has_ended(job)}
    asked = sorted([*forgotten, *ended], key=int)
    if not asked:
        return
    told = _slurm_sacct.Told()
    for attempt in range(_ACCOUNTING_TRIES):
        if attempt:
            sleep(_ACCOUNTING_PAUSE)
        result = run(_slurm_sacct.argv(asked), seconds=_slurm_sacct.SECONDS)
        if result.rc != 0:
            answer.accounting, answer.accounting_error = "down", error_text(result)
            return
        answer.accounting = "up"
        told = _slurm_sacct.parse(result.text, asked)
        whole = not any(told.unread_of(job_id) for job_id in asked)
        if whole and all(key in told.rows and has_ended(from_row(told.rows[key], "sacct", now())) for key in ended):
            break
    for job_id in ended:
        row, unread = told.rows.get(job_id), told.unread_of(job_id)
        if row is not None and has_ended(from_row(row, "sacct", now())):
            answer.jobs[job_id]["steps"] = row["steps"]
        elif unread:
            answer.jobs[job_id]["steps"] = unread
    for job_id, one in forgotten.items():
        row = told.rows.get(job_id)
        if row is None and told.unread_of(job_id):
            unreadable = "slurmctld does not know it any more and what accounting says of it cannot be read"
            answer.jobs[job_id] = {**empty(job_id), "reason_text": unreadable}
        if row is None or not _is_recent(one, row):
            continue
        job = from_row(row, "sacct", now())
        if not has_ended(job):
            job.update(
                state="UNKNOWN",
                reason_text=f"slurmctld does not know it any more and accounting still says {row['state']}",
            )
        answer.jobs[job_id] = job


def _is_recent(one: Wanted, row: dict[str, object]) -> bool:
    """Accounting knows no comments: another submission of this id, earlier or later, is another job."""
    submitted = row["submitted"]
    if not isinstance(submitted, float):
        return True
    if one.submitted is not None:
        return abs(submitted - one.submitted) < _SAME_SUBMISSION_SECONDS
    return one.by is None or -SUBMIT_SECONDS < submitted - one.by < _CLOCKS_APART_SECONDS
