# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Submit with a journal: attach to live jobs, record each submission before it is made, never submit twice."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable
from dataclasses import dataclass

from ansible_collections.mlops.hpc_validation.plugins.module_utils._slurm import refusals
from ansible_collections.mlops.hpc_validation.plugins.module_utils._slurm.cli import (
    SUBMIT_SECONDS,
    Result,
    Runner,
    SlurmError,
    error_text,
    is_ambiguous,
    is_unreachable,
)
from ansible_collections.mlops.hpc_validation.plugins.module_utils._slurm.job import Job
from ansible_collections.mlops.hpc_validation.plugins.module_utils._slurm.journal import Entry, Journal
from ansible_collections.mlops.hpc_validation.plugins.module_utils._slurm.query import Answer, ask
from ansible_collections.mlops.hpc_validation.plugins.module_utils._slurm.script import Submission
from ansible_collections.mlops.hpc_validation.plugins.module_utils._slurm.states import LIVE

# After a failure that may have left a job behind, when to look for it (seconds after the failure).
_LOOKS_AFTER_AMBIGUITY = (0.0, 2.0, 5.0, 10.0, 20.0, 32.0)
_RECENT_SECONDS = 60.0


class RefusedError(SlurmError):
    """sbatch refused one job, for good."""


class HeldError(RefusedError):
    """sbatch refused one job for now: a limit on how many jobs may be in the queue is reached. `said` is its reason."""

    def __init__(self, message: str, said: str) -> None:
        super().__init__(message)
        self.said = said


@dataclass(frozen=True)
class Submitted:
    """A job that Slurm now knows: submitted by this task (perhaps by an earlier try), or attached to.

    If sbatch refused it and the caller goes on with the others, job_id is empty and `refused` says why. If it was not
    submitted yet, `later` has Slurm's words for that, or is empty if there was no room for it.
    """

    job_id: str
    attached: bool
    submission: Submission
    refused: str | None = None
    by: float | None = None  # the latest time at which it can have been submitted
    later: str | None = None

    def as_dict(self) -> dict[str, object]:
        """Return what the waiting side needs."""
        return {
            "refused": self.refused,
            "job_id": self.job_id,
            "attached": self.attached,
            "name": self.submission.name,
            "comment": self.submission.comment,
            "script_sha256": self.submission.script_sha256,
            "submitted_by": self.by,
            "later": self.later,
        }


@dataclass(frozen=True)
class Context:
    """What a submission needs; tests replace it."""

    run: Runner
    journal: Journal
    user: str
    token: str = ""
    now: Callable[[], float] = time.time
    sleep: Callable[[float], None] = time.sleep


@dataclass(frozen=True)
class Room:
    """How many of a call's jobs may be in the queue at once, and for how many seconds the call submits more."""

    jobs: int
    seconds: float


class Queue:
    """The user's jobs when slurmctld was last asked, by the time given or now."""

    def __init__(self, context: Context, looked: float | None = None) -> None:
        self._context = context
        self._live: dict[str, Job] = {}
        self.jobs: list[Job] = []
        if looked is None:
            self.refresh()
        else:
            self.looked = looked  # then none of the jobs to submit was live

    def refresh(self) -> None:
        """Ask slurmctld. Raise SlurmError if it does not answer."""
        self.looked = self._context.now()
        self.jobs = list(look(self._context).others.values())
        self._live = {}
        for job in sorted(self.jobs, key=lambda job: int(str(job["job_id"]))):
            if is_active(job):
                self._live[str(job["comment"])] = job

    def live(self, comment: str) -> Job | None:
        """Return the newest live job with the comment; one that is just ending does not count."""
        return self._live.get(comment)


def look(context: Context) -> Answer:
    """Return the user's jobs; raise SlurmError if slurmctld does not answer."""
    answer = ask(context.run, [], context.user, now=context.now, sleep=context.sleep)
    if answer.controller != "up":
        raise SlurmError(
            f"Slurm does not answer: {answer.error}",
            controller=answer.controller,
            retry=answer.controller == "unreachable",
        )
    return answer


def is_active(job: Job) -> bool:
    """Return whether a job is live and not just ending."""
    return job["state"] in LIVE and job["flags"] != ["COMPLETING"]


def submit_all(
    context: Context,
    submissions: list[Submission],
    *,
    go_on: bool = False,
    queue: Queue | None = None,
    room: Room | None = None,
) -> list[Submitted]:
    """Submit or attach each. SlurmError has `submitted`: what this call had submitted before it failed.

    With `go_on` a job that sbatch refuses does not keep the others from being submitted. With `room` live jobs are
    attached to first, then jobs are submitted in order; those for which there is no room, or no time, are for later, as
    is one that sbatch refuses for now, with all that follow it.
    """
    context.journal.prepare()
    context.journal.sweep(context.now())
    queue = queue or Queue(context)
    began = context.now()
    left = len(submissions) if room is None else room.jobs
    left -= sum(queue.live(comment) is not None for comment in {each.comment for each in submissions})
    done: list[Submitted] = []
    ours: dict[str, Submitted] = {}
    for submission in submissions:
        if submission.comment in ours:
            first = ours[submission.comment]
            done.append(Submitted(first.job_id, True, submission, by=first.by))
            continue
        attaches = queue.live(submission.comment) is not None
        if room is not None and not attaches and (left < 1 or (ours and context.now() - began > room.seconds)):
            done.append(Submitted("", False, submission, later=""))
            continue
        try:
            one = _submit_one(context, submission, queue)
        except RefusedError as error:
            if room is not None and isinstance(error, HeldError):
                done.append(Submitted("", False, submission, later=error.said))
                left = 0
                continue
            if not go_on:
                error.details["submitted"] = [each.as_dict() for each in done]
                raise
            done.append(Submitted("", False, submission, str(error)))
            continue
        except SlurmError as error:
            error.details["submitted"] = [each.as_dict() for each in done]
            raise
        left -= not attaches
        ours[submission.comment] = one
        done.append(one)
    return done


def _submit_one(context: Context, submission: Submission, queue: Queue) -> Submitted:
    journal = context.journal
    with journal.lock(submission.content_hash):
        earlier = journal.read(submission.content_hash)
        if earlier is not None and _may_be_newer(earlier, context.token, queue.looked):
            queue.refresh()  # another task submitted the same job while this one waited for the lock
        found = queue.live(submission.comment)
        if found is None and earlier is not None and earlier.get("state") == "submitting":
            found = _settle(context, submission, earlier)
        if found is not None:
            job_id = str(found["job_id"])
            submitter = _submitter(earlier, job_id)
            attached = not context.token or submitter != context.token
            if earlier is None or earlier.get("job_id") != job_id:
                journal.write(
                    _entry(context, submission, "submitted", job_id=job_id, token=submitter, attached=attached)
                )
            return Submitted(job_id, attached, submission, by=_number(found["submitted"]) or None)
        if earlier is not None and earlier.get("state") == "submitted" and context.token:
            own = earlier.get("job_id")
            if isinstance(own, str) and earlier.get("token") == context.token:
                # The answer to this very task was lost, and the job has ended.
                return Submitted(own, False, submission, by=_number(earlier.get("written")) or None)
        started = context.now()
        journal.write(_entry(context, submission, "submitting"))
        if journal.is_revoked(context.token):
            journal.write(_entry(context, submission, "refused", error="interrupted before it was submitted"))
            raise SlurmError("The task was interrupted before it submitted the job; nothing was submitted.")
        result = context.run(list(submission.argv), query=False, stdin=submission.stdin, seconds=SUBMIT_SECONDS)
        job_id_or_none = parse_job_id(result)
        if job_id_or_none is None:
            job_id_or_none = _after_failure(context, submission, result, started)
        journal.write(_entry(context, submission, "submitted", job_id=job_id_or_none))
        return Submitted(job_id_or_none, False, submission, by=context.now())


def _may_be_newer(earlier: Entry, token: str, looked: float) -> bool:
    """Return whether an entry may be about a job that was submitted after slurmctld was asked."""
    held = earlier.get("state") == "refused" and earlier.get("token") == token
    return not held and _number(earlier.get("written")) >= looked - 1


def _submitter(earlier: Entry | None, job_id: str) -> str:
    """Return the token of the task that submitted this live job; empty if the journal does not have it.

    It may be the calling task itself, whose connection broke after sbatch. And a task that attaches must not overwrite
    the token of a submitter that got no further than "submitting", which could then not find its own job.
    """
    if earlier is None or (earlier.get("state") != "submitting" and earlier.get("job_id") != job_id):
        return ""
    token = earlier.get("token")
    return token if isinstance(token, str) else ""


def parse_job_id(result: Result) -> str | None:
    """Return the job ID that sbatch --parsable printed; None if it printed none."""
    match = re.search(r"^(\d{1,18})(?:;[^\n]*)?$", result.text.strip(), re.ASCII) if result.rc == 0 else None
    return match[1] if match else None


def _after_failure(context: Context, submission: Submission, result: Result, started: float) -> str:
    text = error_text(result)
    if result.rc == 0 or is_ambiguous(result):
        return _find_after_ambiguity(context, submission, text, started)
    context.journal.write(_entry(context, submission, "refused", error=text))
    if is_unreachable(result) and not refusals.is_for_now(text):
        raise SlurmError(f"sbatch could not reach slurmctld: {text}", controller="unreachable", retry=True)
    if refusals.is_for_now(text):
        raise _held(submission, text)
    advice = refusals.remedy(text)
    raise RefusedError(
        f"sbatch on {os.uname().nodename} refused the job {submission.name!r}: {text}."
        + (f" Do this: {advice}." if advice else ""),
        rc=result.rc,
        argv=list(submission.argv),
    )


def _held(submission: Submission, text: str) -> HeldError:
    said = text.replace("sbatch: error: ", "")
    return HeldError(f"sbatch on {os.uname().nodename} refused the job {submission.name!r} for now: {said}.", said)


def _find_after_ambiguity(context: Context, submission: Submission, text: str, started: float) -> str:
    """Look for the job, which may exist although sbatch failed. Never submit it again here."""
    failed = context.now()
    problem = "slurmctld has no such job yet, but may still accept it"
    for after in _LOOKS_AFTER_AMBIGUITY:
        context.sleep(max(0.0, failed + after - context.now()))
        try:
            found = _recent_job(look(context), submission.comment, started)
        except SlurmError as error:
            problem = str(error)
            continue
        if found is not None:
            return str(found["job_id"])
    if refusals.is_for_now(text):  # the journal still has it as being submitted: before it is, it is looked for again
        raise _held(submission, f"{text}; {problem}")
    raise SlurmError(
        f"It is not known whether the job {submission.name!r} was submitted: sbatch said: {text}; {problem}. "
        "Look for its comment: squeue --me --states=all --Format=JobID,State,Name:40,Comment:40 | "
        f"grep {submission.comment}. The journal remembers it: if it exists, the next run attaches to it instead of "
        "submitting a second one.",
        state="UNKNOWN",
        comment=submission.comment,
        name=submission.name,
    )


def _settle(context: Context, submission: Submission, earlier: Entry) -> Job | None:
    """Give slurmctld time to show the job: an earlier task recorded only that it was submitting it."""
    written = _number(earlier.get("written"))
    while True:
        found = Queue(context).live(submission.comment)
        if found is not None or context.now() - written > _LOOKS_AFTER_AMBIGUITY[-1] or written > context.now():
            return found
        context.sleep(2.0)


def _recent_job(answer: Answer, comment: str, started: float) -> Job | None:
    found = [
        job
        for job in answer.others.values()
        if job["comment"] == comment and _number(job["submitted"]) > started - _RECENT_SECONDS
    ]
    alive = [job for job in found if job["state"] in LIVE]
    return max(alive or found, key=lambda job: int(str(job["job_id"])), default=None)


def _entry(context: Context, submission: Submission, state: str, **more: object) -> Entry:
    entry: Entry = {
        "schema": 1,
        "hash": submission.content_hash,
        "comment": submission.comment,
        "name": submission.name,
        "user": context.user,
        "host": os.uname().nodename,
        "state": state,
        "job_id": None,
        "token": context.token,
        "written": context.now(),
        "argv": list(submission.argv),
        "script_sha256": submission.script_sha256,
        "script": submission.script.decode("utf-8", "replace"),
    }
    entry.update(more)
    return entry


def _number(value: object) -> float:
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else 0.0


def last_script(journal: Journal, submission: Submission, user: str) -> str:
    """Return the text of the last script submitted under this name; empty if there was none."""
    same = [entry for entry in journal.entries() if entry.get("name") == submission.name and entry.get("user") == user]
    return str(same[-1].get("script", "")) if same else ""


def test_only(context: Context, submission: Submission, queue: Queue) -> dict[str, object]:
    """Return what would happen: attach, or submit with sbatch's own estimate. Nothing is submitted."""
    found = queue.live(submission.comment)
    plan: dict[str, object] = {
        "job_id": "",
        "name": submission.name,
        "comment": submission.comment,
        "script_sha256": submission.script_sha256,
        "attached": found is not None,
    }
    if found is not None:
        return {**plan, "job_id": found["job_id"], "plan": f"would attach to job {found['job_id']}"}
    argv = [submission.argv[0], "--test-only", *submission.argv[1:]]
    result = context.run(argv, query=False, stdin=submission.stdin, seconds=SUBMIT_SECONDS)
    text = error_text(result)
    if result.rc != 0:
        _refuse_plan(submission, result, text)
    return {**plan, "plan": f"would submit: {text}"}


def _refuse_plan(submission: Submission, result: Result, text: str) -> None:
    advice = refusals.remedy(text)
    raise SlurmError(
        f"sbatch --test-only refuses the job {submission.name!r}: {text}." + (f" Do this: {advice}." if advice else ""),
        rc=result.rc,
        retry=is_unreachable(result),
        argv=list(submission.argv),
    )
