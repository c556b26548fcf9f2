# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Submit a training as a chain of jobs, each after the one before it; find it again; stop it.

Only one chain of a name can exist on a share: its record lies there under a lock, and is written before and after each
submission. A submission whose answer was lost is found again by its comment, as in `submit`; the chain has a journal of
its own, which the clean-up does not know.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ansible_collections.mlops.hpc_validation.plugins.module_utils._slurm import chain_folder
from ansible_collections.mlops.hpc_validation.plugins.module_utils._slurm.chain_folder import (
    GOING,
    STOPPED,
    SUBMITTED,
    SUBMITTING,
    Record,
)
from ansible_collections.mlops.hpc_validation.plugins.module_utils._slurm.cli import SlurmError, error_text
from ansible_collections.mlops.hpc_validation.plugins.module_utils._slurm.identity import Identity
from ansible_collections.mlops.hpc_validation.plugins.module_utils._slurm.job import Job, empty
from ansible_collections.mlops.hpc_validation.plugins.module_utils._slurm.job_limits import Asked, tightest
from ansible_collections.mlops.hpc_validation.plugins.module_utils._slurm.nodes import PARTITION_ARGV, parse_partitions
from ansible_collections.mlops.hpc_validation.plugins.module_utils._slurm.query import ask
from ansible_collections.mlops.hpc_validation.plugins.module_utils._slurm.script import (
    COMMENT_PREFIX,
    Submission,
    prepare,
)
from ansible_collections.mlops.hpc_validation.plugins.module_utils._slurm.states import LIVE, TERMINAL
from ansible_collections.mlops.hpc_validation.plugins.module_utils._slurm.submit import (
    Context,
    HeldError,
    Queue,
    look,
    submit_all,
)
from ansible_collections.mlops.hpc_validation.plugins.module_utils._slurm.text import clean, duration, number

LOCK = "chain"
WITHOUT_LIMIT = 86400  # seconds that a link asks for where neither the inventory nor the partition limits it
NOT_KNOWN = "not known"  # of what makes a training this one: data that check mode does not stage
IDLE = "idle"  # what a link says of itself that had nothing to do
_POLL = 2.0
_ENOUGH = 60.0  # seconds in which one call submits links


@dataclass
class Looked:
    """A chain as it is now. `links` are the record's, each with `slurm` (its state) and `said` (by the job itself)."""

    record: Record
    links: list[dict[str, Any]]
    complete: dict[str, Any] | None
    checkpoint: str | None
    notes: list[str] = field(default_factory=list)

    @property
    def live(self) -> list[dict[str, Any]]:
        """The links that wait or run."""
        return [link for link in self.links if link["slurm"] in LIVE]


@dataclass(frozen=True)
class Wanted:
    """What a chain is to be: its script and options, how many links may be in the queue, and what makes it this one."""

    name: str
    script: Mapping[str, object]  # as `script.prepare` takes it
    what: Mapping[str, str]
    links: int
    time: str | None = None  # of each link, as sbatch takes it; None: as much as the partition gives
    go_on: bool = False


def look_at(context: Context, folder: str) -> Looked | None:
    """Return the chain, whoever it belongs to; None if there is none. Raise SlurmError."""
    record = chain_folder.read_record(folder)
    return None if record is None else _looked(context, folder, record)


def _looked(context: Context, folder: str, record: Record) -> Looked:
    said = chain_folder.entries(folder)
    jobs = _jobs(context, record)
    links = [
        {
            **link,
            "slurm": job["state"],
            "reason": job["reason_text"],
            "said": said.get(link["job_id"], {}),
        }
        for link in record["links"]
        for job in [jobs.get(link["job_id"], empty(""))]
    ]
    return Looked(record, links, chain_folder.complete(folder), chain_folder.last_checkpoint(folder))


def _jobs(context: Context, record: Record) -> dict[str, Job]:
    wanted = [
        Identity(link["job_id"], comment_of(record["id"], link["number"]))
        for link in record["links"]
        if link["state"] == SUBMITTED
    ]
    answer = ask(context.run, wanted, str(record["user"]), steps=False, now=context.now, sleep=context.sleep)
    if answer.controller != "up":
        raise SlurmError(f"Slurm does not answer: {answer.error}", retry=answer.controller == "unreachable")
    return answer.jobs


def extend(context: Context, folder: str, wanted: Wanted, *, change: bool = True) -> tuple[Looked | None, list[str]]:
    """Begin the chain, or find it and submit the links that it lacks; return it, and the IDs of the new jobs.

    Without `change` nothing is submitted or written: it is returned as it is, None if there is none yet. Raise
    SlurmError, also for a chain that is another training than `wanted` describes, unless it may go on as this one.
    """
    there = chain_folder.read_record(folder)
    if there is not None and there["user"] != context.user:
        found = _looked(context, folder, there)
        found.notes.append(f"it belongs to {there['user']}, who alone can add to it or stop it")
        return found, []
    if not change:
        if there is None:
            return None, []
        _differs(context, folder, there, wanted)
        return _looked(context, folder, there), []
    with _locked(context, folder):
        record = chain_folder.read_record(folder) or _new(context, wanted)
        notes = _agree(context, folder, record, wanted)
        if record["state"] == STOPPED or chain_folder.complete(folder) is not None:
            found = _looked(context, folder, record)
            found.notes += [*notes, _why_not(found)]
            return found, []
        chain_folder.write_record(folder, record)
        halted = _halted(folder, record)
        if halted:
            found = _looked(context, folder, record)
            found.notes += [*notes, f"{halted}. Once that is repaired, go on with: -e go_on=true"]
            return found, []
        # A token of the chain's own: what it submitted is found in its journal even if it has ended.
        context = replace(context, token=str(record["id"]))
        submitted, said = _fill(context, folder, record, wanted)
        found = _looked(context, folder, record)
        found.notes += [*notes, *said]
        return found, submitted


def _why_not(found: Looked) -> str:
    if found.complete is not None:
        return "the training is complete: nothing was submitted"
    return "it was stopped: nothing was submitted. Go on with: -e go_on=true"


@contextlib.contextmanager
def _locked(context: Context, folder: str) -> Iterator[None]:
    try:
        os.makedirs(folder, mode=0o755, exist_ok=True)
    except OSError as error:
        raise SlurmError(f"The chain's folder {folder} cannot be made: {error}. Look at: df {folder}") from error
    context.journal.prepare()
    with context.journal.lock(LOCK, clock=context.now, sleep=context.sleep):
        yield


def _new(context: Context, wanted: Wanted) -> Record:
    return {
        "schema": chain_folder.SCHEMA,
        "id": uuid.uuid4().hex,
        "name": wanted.name,
        "user": context.user,
        "state": GOING,
        "round": 1,
        "created": float(context.now()),
        "what": dict(wanted.what),
        "links": [],
    }


def _differs(context: Context, folder: str, record: Record, wanted: Wanted) -> list[str] | None:
    """Return how a chain that is to go on anew differs from then on; None if it goes on as it does.

    Raise SlurmError if it is another training's, or if it cannot go on anew as links of it wait or run.
    """
    other = differences(record["what"], wanted.what)
    if not wanted.go_on:
        if other:
            raise SlurmError(
                f"The chain {wanted.name} is another training: {'; '.join(other)}. Give hpc_validation_chain another "
                "name, or, if this one is to go on so, run again with: -e go_on=true"
            )
        return None
    is_over = record["state"] == STOPPED or chain_folder.complete(folder) is not None or _halted(folder, record)
    if not is_over and not other:
        return None
    alive = [link["number"] for link in _looked(context, folder, record).live]
    if alive:
        raise SlurmError(
            f"The chain {wanted.name} cannot begin to go on while links of it wait or run (number "
            f"{', '.join(map(str, alive))}); stop it first: playbooks/pretrain_stop.yml"
        )
    return other


def _agree(context: Context, folder: str, record: Record, wanted: Wanted) -> list[str]:
    """Let a chain go on if it may; return what that changed. Raise SlurmError if it may not."""
    other = _differs(context, folder, record, wanted)
    if other is None:
        return []
    try:
        chain_folder.let_go_on(folder, record["round"])
    except OSError as error:
        raise SlurmError(f"The chain in {folder} cannot be told to go on: {error}") from error
    record.update(state=GOING, round=record["round"] + 1, what=dict(wanted.what))
    return ["it goes on", *(f"it differs from now on: {each}" for each in other)]


def differences(before: Mapping[str, object], now: Mapping[str, object]) -> list[str]:
    """Return what differs between two descriptions of a training, in words."""
    return [
        f"{key} is {clean(now.get(key, 'nothing'), 200)}, the chain has {clean(before.get(key, 'nothing'), 200)}"
        for key in sorted({*before, *now})
        if before.get(key) != now.get(key) and now.get(key) != NOT_KNOWN
    ]


def _halted(folder: str, record: Record) -> str | None:
    """Return why the links of this round end at once, if the last that began did so; else None."""
    said = chain_folder.entries(folder)
    of_round = [
        said[link["job_id"]] for link in record["links"] if link["round"] == record["round"] and link["job_id"] in said
    ]
    if of_round and of_round[-1].get("outcome") == IDLE:
        return clean(of_round[-1].get("why", "its last link had nothing to do"))
    return None


def _fill(context: Context, folder: str, record: Record, wanted: Wanted) -> tuple[list[str], list[str]]:
    """Submit links until as many wait or run as are wanted or allowed; return the new jobs' IDs, and what to say."""
    began = context.now()
    submission = prepare(wanted.script, context.user)
    asked = Asked.of(submission.argv, submission.script)
    submission = _with(submission, [f"--time={_time(wanted.time, _most_seconds(context, asked.partition))}"])
    done: list[str] = []
    lost = [link for link in record["links"] if link["state"] == SUBMITTING]  # their answers were, or they never were
    for link in lost:
        queue = Queue(context)
        later = _submit(context, folder, record, link, submission, queue, _alive(queue))
        if later is not None:
            return done, [_later(later)]
        done.append(str(link["job_id"]))
    queue = Queue(context)  # a lost link that was found again may be there, or have ended
    alive = _alive(queue)
    room = wanted.links - sum(link["job_id"] in alive for link in record["links"])
    limit = tightest(context.run, context.user, [asked], queue.jobs, together=False)
    notes = []
    if limit is not None and limit.jobs < room:
        notes.append(f"there is room for {limit.jobs} of {room} links ({limit.why}); the next call adds the others")
        room = limit.jobs
    for _each in range(room):
        if context.now() - began > _ENOUGH:
            notes.append(f"{_ENOUGH:.0f} s have passed: the next call adds the others")
            break
        link = {"number": len(record["links"]) + 1, "round": record["round"], "state": SUBMITTING, "job_id": None}
        record["links"].append(link)
        chain_folder.write_record(folder, record)
        later = _submit(context, folder, record, link, submission, queue, alive)
        if later is not None:
            notes.append(_later(later))
            break
        done.append(str(link["job_id"]))
    return done, notes


def _alive(queue: Queue) -> set[str]:
    return {str(job["job_id"]) for job in queue.jobs if job["state"] in LIVE}


def _later(said: str) -> str:
    return f"Slurm takes no more jobs for now ({clean(said, 200)}); the next call adds the others"


def _submit(
    context: Context,
    folder: str,
    record: Record,
    link: dict[str, Any],
    submission: Submission,
    queue: Queue,
    alive: set[str],
) -> str | None:
    """Submit one link after the one before it; return why Slurm does not take it now, else None. Raise SlurmError."""
    earlier = record["links"][: link["number"] - 1]
    before = earlier[-1]["job_id"] if earlier else None
    more = [f"--dependency={dependency(before if before in alive else None)}"]
    try:
        (one,) = submit_all(context, [as_link(submission, record["id"], link["number"], more)], queue=queue)
    except HeldError as error:
        return error.said
    link.update(state=SUBMITTED, job_id=one.job_id, submitted=context.now(), script_sha256=submission.script_sha256)
    alive.add(one.job_id)
    chain_folder.write_record(folder, record)
    return None


def dependency(before: str | None) -> str:
    """Return what a link waits for: the link `before` it, unless that has ended and slurmctld may have forgotten it.

    And for all earlier jobs of its name: when a link that waits is cancelled by hand, the one behind it must not train
    beside the one that runs.
    """
    return "singleton" if before is None else f"afterany:{before},singleton"


def as_link(submission: Submission, chain_id: str, link: int, more: Sequence[str]) -> Submission:
    """Return the submission of one link. Its comment depends on chain and number alone, whatever the script."""
    content_hash = _hash(chain_id, link)
    argv = tuple(word for word in submission.argv if not word.startswith("--comment="))
    named = replace(submission, argv=argv, content_hash=content_hash)
    return _with(named, [f"--comment={comment_of(chain_id, link)}", *more])


def _with(submission: Submission, more: Sequence[str]) -> Submission:
    """Return the submission with more options of sbatch."""
    sbatch, parsable, *others = submission.argv
    return replace(submission, argv=(sbatch, parsable, *more, *others))


def comment_of(chain_id: str, link: int) -> str:
    """Return the comment by which a link is found in Slurm."""
    return COMMENT_PREFIX + _hash(chain_id, link)[:16]


def _hash(chain_id: str, link: int) -> str:
    return hashlib.sha256(json.dumps({"chain": chain_id, "link": link}).encode()).hexdigest()


def _most_seconds(context: Context, partition: str) -> int | None:
    """Return the partition's time limit, that of the default partition if none is named; None without one."""
    result = context.run(PARTITION_ARGV)
    if result.rc != 0:
        raise SlurmError(f"Slurm does not tell the partitions' time limits: {error_text(result)}", retry=True)
    names = partition.split(",") if partition else []
    found = [each for each in parse_partitions(result.text) if (each["name"] in names if names else each["default"])]
    limits = [limit for each in found if isinstance(limit := each["max_time_seconds"], int)]
    return min(limits, default=None)


def _time(asked: str | None, most: int | None) -> str:
    """Return the time that a link asks for. Raise SlurmError if the partition gives less."""
    if asked is None:
        return as_time(most or WITHOUT_LIMIT)
    seconds = seconds_of(asked)
    if seconds is None or seconds < 60:
        raise SlurmError(
            f"hpc_validation_chain.time: expected [days-]hours:minutes:seconds, a minute at least: {asked!r}"
        )
    if most is not None and seconds > most:
        raise SlurmError(f"hpc_validation_chain.time is {asked}, the partition gives a job {as_time(most)} at most")
    return as_time(seconds)


def seconds_of(text: str) -> int | None:
    """Return the seconds of a time as sbatch takes it; None for another text."""
    minutes = number(text)
    if minutes is not None:
        return 60 * minutes
    return duration(text)


def as_time(seconds: int) -> str:
    """Return [days-]hours:minutes:seconds."""
    days, rest = divmod(seconds, 86400)
    hours, rest = divmod(rest, 3600)
    return (f"{days}-" if days else "") + f"{hours:02d}:{rest // 60:02d}:{rest % 60:02d}"


def stop(context: Context, folder: str, output: str, seconds: float) -> tuple[Looked, list[str]]:
    """Stop the chain: cancel the links that wait, and let the one that trains end with a checkpoint.

    `output` is the output folder of its jobs, with %j. Wait for the end for up to `seconds`; return the chain, and the
    IDs of the jobs that still run. Raise SlurmError, also if there is no chain, or if it is another user's.
    """
    _own(context, folder)  # where there is none, or another user's, there is nothing to lock
    with _locked(context, folder):
        record = _own(context, folder)
        record["state"] = STOPPED
        chain_folder.write_record(folder, record)
        _ask_to_stop(folder)
    end = context.now() + seconds
    while True:
        running = _stopped(context, record, output)
        if not running or context.now() >= end:
            found = _looked(context, folder, record)
            # What waited until now is cancelled, and only what Slurm says so of has ended.
            ended = {link["job_id"] for link in found.links if link["slurm"] in TERMINAL}
            return found, [each for each in running if each not in ended]
        context.sleep(_POLL)


def _own(context: Context, folder: str) -> Record:
    record = chain_folder.read_record(folder)
    if record is None:
        raise SlurmError(f"There is no chain in {folder}.")
    if record["user"] != context.user:
        raise SlurmError(f"The chain in {folder} belongs to {record['user']}, who alone can stop it.")
    return record


def _stopped(context: Context, record: Record, output: str) -> list[str]:
    """Cancel the links that wait and ask those that run to end; return the IDs of all that have not ended."""
    ours = {comment_of(record["id"], link["number"]) for link in record["links"]}
    live = [job for job in look(context).others.values() if job["comment"] in ours and job["state"] in LIVE]
    waiting = [str(job["job_id"]) for job in live if job["state"] == "PENDING"]
    if waiting:
        result = context.run(["scancel", "--state=PENDING", *waiting])
        if result.rc != 0:
            raise SlurmError(f"scancel did not cancel the links that wait: {error_text(result)}", retry=True)
    for job in live:
        folder = output.replace("%j", str(job["job_id"]))
        if os.path.isdir(folder):
            _ask_to_stop(folder)
    return [str(job["job_id"]) for job in live]


def _ask_to_stop(folder: str) -> None:
    try:
        chain_folder.ask_to_stop(folder)
    except OSError as error:
        raise SlurmError(f"{folder}/{chain_folder.STOP} could not be written: {error}") from error
