# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Query Slurm about jobs: one squeue for all of them, sacct for what slurmctld has forgotten and for steps."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from ansible_collections.mlops.hpc_validation.plugins.module_utils._slurm import sacct, squeue
from ansible_collections.mlops.hpc_validation.plugins.module_utils._slurm.cli import (
    Result,
    Runner,
    error_text,
    is_missing,
)
from ansible_collections.mlops.hpc_validation.plugins.module_utils._slurm.identity import Identity
from ansible_collections.mlops.hpc_validation.plugins.module_utils._slurm.job import Job, empty, from_row, has_ended
from ansible_collections.mlops.hpc_validation.plugins.module_utils._slurm.text import (
    after_the_name,
    gres_counts,
    key_values,
)

_ACCOUNTING_TRIES = 12
_ACCOUNTING_PAUSE = 0.4


@dataclass
class Answer:
    """What Slurm reported. controller: up | unreachable | missing; accounting: up | down | not_asked."""

    controller: str
    error: str = ""
    accounting: str = "not_asked"
    accounting_error: str = ""
    jobs: dict[str, Job] = field(default_factory=dict)
    others: dict[str, Job] = field(default_factory=dict)


def ask(
    run: Runner,
    wanted: list[Identity],
    user: str,
    *,
    steps: bool = True,
    now: Callable[[], float] = time.time,
    sleep: Callable[[float], None] = time.sleep,
) -> Answer:
    """Return what is known of the wanted jobs; jobs is empty if the controller did not answer."""
    rows, failure = _listed(run, wanted, user)
    if failure is not None:
        return failure
    answer = Answer("up")
    for one in wanted:
        row = rows.get(one.job_id)
        if row is not None and one.matches(row):
            answer.jobs[one.job_id] = from_row(row, "squeue", now())
    ids = {one.job_id for one in wanted}
    answer.others = {key: from_row(row, "squeue", now()) for key, row in rows.items() if key not in ids}
    # Accounting is not asked about an ID that another job has now: it reports only the ID's newest job.
    known = [one for one in wanted if one.job_id not in rows or one.submitted is not None]
    _ask_accounting(run, known, answer, steps, now, sleep)
    _count_gpus(run, rows, answer)
    for one in wanted:
        answer.jobs.setdefault(one.job_id, empty(one.job_id))
    return answer


def _listed(run: Runner, wanted: list[Identity], user: str) -> tuple[dict[str, squeue.Row], Answer | None]:
    """Return the rows of the user's jobs and of jobs wanted by their ID alone; or the answer that there are none."""
    rows, failure = _rows(run(squeue.argv(user=user)))
    strangers = [one.job_id for one in wanted if one.job_id not in rows and not one.comment]
    if failure is not None or not strangers:
        return rows, failure
    # Perhaps another user's. This loads the whole job table, so it is done only for IDs given by hand.
    result = run(squeue.argv(job_ids=strangers))
    if "Invalid job id" in result.err:
        return rows, None
    more, failure = _rows(result)
    rows.update({key: row for key, row in more.items() if key in strangers})
    return rows, failure


def _count_gpus(run: Runner, rows: dict[str, squeue.Row], answer: Answer) -> None:
    """Fill in the GPUs of ended jobs that asked for some, where no TRES counts them."""
    for job_id, job in answer.jobs.items():
        if job["gpus"] is None and has_ended(job) and rows.get(job_id, {}).get("asks_gpus"):
            job["gpus"] = _allocated_gpus(run, job_id)


def _allocated_gpus(run: Runner, job_id: str) -> int | None:
    """Return the GPUs allocated to a job if no TRES counts them (AccountingStorageTRES without gres/gpu)."""
    line = run(["scontrol", "--local", "--oneliner", "--details", "show", "job", job_id]).text
    return gres_counts(key_values(after_the_name(line)).get("JOB_GRES", "")).get("gpu")


def _rows(result: Result) -> tuple[dict[str, squeue.Row], Answer | None]:
    if result.rc != 0:
        return {}, Answer("missing" if is_missing(result) else "unreachable", error_text(result))
    try:
        return squeue.parse(result.out), None
    except squeue.UnreadableError as error:
        return {}, Answer("unreachable", str(error))


def _ask_accounting(
    run: Runner,
    wanted: list[Identity],
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
    told = _accounts(run, answer, asked, ended, now, sleep)
    if told is None:
        return
    for job_id in ended:
        row, unread = told.rows.get(job_id), told.unread_of(job_id)
        if row is not None and has_ended(from_row(row, "sacct", now())):
            answer.jobs[job_id]["steps"] = row["steps"]
        elif unread:
            answer.jobs[job_id]["steps"] = unread
    for job_id, one in forgotten.items():
        row = told.rows.get(job_id)
        if told.unread_of(job_id):
            unreadable = "slurmctld no longer knows it, and accounting's record of it cannot be read"
            answer.jobs[job_id] = {**empty(job_id), "reason_text": unreadable}
        if row is None or not one.matches(row):
            continue
        job = from_row(row, "sacct", now())
        if not has_ended(job):
            job.update(
                state="UNKNOWN",
                reason_text=f"slurmctld no longer knows it, and accounting still reports {row['state']}",
            )
        answer.jobs[job_id] = job


def _accounts(
    run: Runner,
    answer: Answer,
    asked: list[str],
    ended: set[str],
    now: Callable[[], float],
    sleep: Callable[[float], None],
) -> sacct.Told | None:
    """Return what accounting reports once it has caught up with slurmctld; None if it is down."""
    told = sacct.Told()
    for attempt in range(_ACCOUNTING_TRIES):
        if attempt:
            sleep(_ACCOUNTING_PAUSE)
        result = run(sacct.argv(asked), seconds=sacct.SECONDS)
        if result.rc != 0:
            answer.accounting, answer.accounting_error = "down", error_text(result)
            return None
        answer.accounting = "up"
        told = sacct.parse(result.text, asked)
        whole = not any(told.unread_of(job_id) for job_id in asked)
        if whole and all(key in told.rows and has_ended(from_row(told.rows[key], "sacct", now())) for key in ended):
            break
    return told
