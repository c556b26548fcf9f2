# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Cancel jobs: only those named or recorded in the journal as ours, and check until they have ended."""

from __future__ import annotations

from collections.abc import Iterable

from ansible_collections.mlops.hpc_validation.plugins.module_utils._slurm.cli import (
    SlurmError,
    error_text,
    is_unreachable,
)
from ansible_collections.mlops.hpc_validation.plugins.module_utils._slurm.identity import Identity
from ansible_collections.mlops.hpc_validation.plugins.module_utils._slurm.job import Job
from ansible_collections.mlops.hpc_validation.plugins.module_utils._slurm.journal import Entry
from ansible_collections.mlops.hpc_validation.plugins.module_utils._slurm.query import Answer, ask
from ansible_collections.mlops.hpc_validation.plugins.module_utils._slurm.script import COMMENT_PREFIX
from ansible_collections.mlops.hpc_validation.plugins.module_utils._slurm.states import LIVE
from ansible_collections.mlops.hpc_validation.plugins.module_utils._slurm.submit import Context

_PAUSES = (0.3, 0.7, 2.0, 3.0, 4.0, 10.0, 10.0)
_PATIENT_LOOKS = 4
_LOCK_SECONDS = 30.0
# As many IDs as one command line takes anywhere.
_MOST_IDS = 4000


def journal_comments(context: Context, token: str, *, change: bool = True) -> set[str]:
    """Return the comments of the journal's entries that may be live: all of this user's, or those of one task.

    With a token, that task is first barred from submitting more, and a submission in progress is waited for.
    """
    if token and change:
        context.journal.revoke(token)
    comments: set[str] = set()
    for entry in context.journal.entries():
        if entry.get("user") != context.user or (token and entry.get("token") != token):
            continue
        comment = str(entry.get("comment"))
        if entry.get("state") in ("submitting", "submitted") and comment.startswith(COMMENT_PREFIX):
            comments.add(comment)
        if entry.get("state") == "submitting" and change:
            with context.journal.lock(str(entry["hash"]), _LOCK_SECONDS):
                pass  # its holder has submitted or given up by now; slurmctld knows which
    return comments


def cancel(context: Context, job_ids: Iterable[str], comments: set[str]) -> tuple[list[Job], list[Job]]:
    """Cancel these jobs; return (cancelled, still live after looking for about half a minute)."""
    targets = {str(job["job_id"]): job for job in live_targets(context, job_ids, comments)}
    ids = list(targets)
    for first in range(0, len(ids), _MOST_IDS):
        # --ctld would batch, but 22.05 does not have it; the IDs are digits from squeue.
        result = context.run(["scancel", *ids[first : first + _MOST_IDS]])
        if result.rc != 0 and is_unreachable(result):
            raise SlurmError(f"scancel could not reach slurmctld: {error_text(result)}", retry=True)
        if result.rc != 0:
            raise SlurmError(f"scancel refused to cancel {_some(ids)}: {error_text(result)}")
    left, gone, ended = dict(targets), {}, set()
    for look, pause in enumerate(_PAUSES):
        if not left:
            break
        context.sleep(pause)
        answer = _look(context, [Identity(key, str(job["comment"])) for key, job in left.items()])
        for key in list(left):
            job = answer.jobs[key]
            # A job that stays COMPLETING is cancelled too: its nodes are still cleaning up.
            completing = job["flags"] == ["COMPLETING"] and look >= _PATIENT_LOOKS
            if job["state"] not in LIVE or completing:
                gone[key] = {**job, "state": "CANCELLED"} if completing else job
                del left[key]
            if job["state"] not in LIVE:
                ended.add(str(job["comment"]))
    # Slurm may put a job whose node does not answer back into the queue, held: the journal keeps it for the clean-up.
    _remember(context, ended)
    return list(gone.values()), list(left.values())


def _some(ids: list[str]) -> str:
    return ", ".join(ids[:8]) + (f" and {len(ids) - 8} more" if len(ids) > 8 else "")


def live_targets(context: Context, job_ids: Iterable[str], comments: set[str]) -> list[Job]:
    """Return the live jobs among these ids and those of this user that carry one of these comments."""
    answer = _look(context, [Identity(job_id) for job_id in job_ids])
    named = [job for job in answer.jobs.values() if job["state"] in LIVE]
    return named + [job for job in answer.others.values() if job["comment"] in comments and job["state"] in LIVE]


def _look(context: Context, wanted: list[Identity]) -> Answer:
    answer = ask(context.run, wanted, context.user, steps=False, now=context.now, sleep=context.sleep)
    if answer.controller != "up":
        raise SlurmError(f"Slurm does not answer: {answer.error}", retry=answer.controller == "unreachable")
    return answer


def _remember(context: Context, comments: set[str]) -> None:
    for entry in context.journal.entries():
        if entry.get("comment") in comments and entry.get("user") == context.user:
            cancelled: Entry = {**entry, "state": "cancelled", "written": context.now()}
            context.journal.write(cancelled)
