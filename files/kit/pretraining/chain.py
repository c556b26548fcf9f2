# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A training as a chain of jobs: what the links leave for one another, and whether one has anything to do.

The chain's folder has its record (`chain.json`, which the login node writes), `checkpoints/`, one file in `links/` for
each job that began, `stop` once it is to stop, and `complete.json` once nothing is left to do.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kit import strict_json
from kit.errors import KitError
from kit.files import write_json
from kit.job import Job
from kit.pretraining import checkpoints
from kit.pretraining.checkpoints import DamagedError

RECORD, LINKS, STOP, COMPLETE = "chain.json", "links", "stop", "complete.json"
CHECKPOINTS = "checkpoints"
IDLE, RUNNING = "idle", "running"  # outcomes of a link; those of one that trained are words for people
WITHOUT_PROGRESS = 2  # links in a row, after which the others end at once
LINK_FILE = re.compile(r"[0-9]+\.json")

Entry = dict[str, Any]


@dataclass(frozen=True)
class Decision:
    """Whether a link trains, from which step it goes on (0: from the beginning), and why it does not or goes back."""

    trains: bool
    step: int
    why: str = ""


def begin(chain: Path, output: Path, job: Job) -> Decision:
    """Let a job take its place in the chain; return whether it has anything to do.

    Its output folder gets a link to the chain's checkpoints, so that whatever reads a job's folder finds them. Raise
    KitError if the record or a link's file cannot be read, and if checkpoints that there were are gone.
    """
    round_now = _round(chain)
    step = newest_step(chain)
    before = read(chain)
    trained = [entry for entry in before if entry["round"] == round_now and entry["outcome"] != IDLE]
    decision = _decide(chain, step, trained, job.job_id)
    (chain / CHECKPOINTS).mkdir(exist_ok=True)
    way = output / CHECKPOINTS
    if not way.is_symlink():
        way.symlink_to(os.path.relpath(chain / CHECKPOINTS, output))
    outcome = RUNNING if decision.trains else IDLE
    turn = 1 + max((entry["turn"] for entry in before), default=0)
    facts = {"round": round_now, "turn": turn, "began": time.time(), "newest_step": step, "from_step": step}
    words = {"outcome": outcome, "why": decision.why}
    write_json(chain / LINKS / f"{job.job_id}.json", {"schema": 1, **job.stamp, **facts, **words})
    return decision


def went_on(chain: Path, job: Job, step: int, refused: Mapping[str, str]) -> None:
    """Say from which step a link really goes on, and which newer checkpoints it refused: name → reason.

    ``begin`` compares sizes only, and knows nothing of other jobs' checkpoints. Raise KitError if the link never began.
    """
    path = chain / LINKS / f"{job.job_id}.json"
    found = _document(path)
    write_json(path, {**found, "from_step": step, "why": "; ".join(refused.values()) or found["why"]})


def end(chain: Path, job: Job, outcome: str, last_step: int) -> None:
    """Say how a link ended that trained. Raise KitError if it never began."""
    path = chain / LINKS / f"{job.job_id}.json"
    write_json(path, {**_document(path), "outcome": outcome, "last_step": last_step, "ended": time.time()})


def complete(chain: Path, job: Job, facts: Mapping[str, Any]) -> None:
    """Say that nothing is left to do: the links that follow end at once."""
    write_json(chain / COMPLETE, {"schema": 1, **job.stamp, "time": time.time(), **facts})


def read(chain: Path) -> list[Entry]:
    """Return what the links said of themselves, in the order in which they began. Raise KitError.

    Not by their clocks, of which one that is wrong would hide that those after it make no progress.
    """
    return sorted(_entries(chain), key=lambda entry: (entry["turn"], entry["began"], int(entry["job_id"])))


def newest_step(chain: Path) -> int:
    """Return the step of the newest whole checkpoint, by the sizes of its files; 0 if there is none."""
    for path in checkpoints.listed(chain / CHECKPOINTS):
        try:
            return int(checkpoints.verify(path, hashed=False)["step"])
        except DamagedError:
            continue
    return 0


def _decide(chain: Path, step: int, trained: list[Entry], job_id: str) -> Decision:
    """Return a job's decision at a step, after these links of the same round that trained, perhaps itself before.

    Raise KitError if there are no whole checkpoints any more.
    """
    if (chain / STOP).exists():
        return Decision(False, step, "the chain was stopped")
    if (chain / COMPLETE).exists():
        return Decision(False, step, "the training is complete")
    reached = max((entry["newest_step"] for entry in trained), default=0)
    if step == 0 < reached:
        raise KitError(
            f"{chain / CHECKPOINTS}: a link went on from step {reached}, and now no checkpoint is whole; bring one "
            "back, or, to begin again, move what is left of them away, stop the chain (playbooks/pretrain_stop.yml), "
            "and let it go on: playbooks/pretrain.yml -e go_on=true"
        )
    last = [entry for entry in trained if entry["job_id"] != job_id][-WITHOUT_PROGRESS:]
    began_at = [entry["from_step"] for entry in last if entry["newest_step"] == step]
    if len(began_at) == WITHOUT_PROGRESS and len({*began_at}) == 1:
        jobs, at = " and ".join(entry["job_id"] for entry in last), began_at.pop()
        return Decision(
            False, step, f"the two links before it, jobs {jobs}, made no progress beyond step {at}; read their logs"
        )
    back = f"a link went on from step {reached}, and the newest whole checkpoint now is of step {step}"
    return Decision(True, step, back if step < reached else "")


def _entries(chain: Path) -> Iterator[Entry]:
    try:
        names = sorted(name for name in os.listdir(chain / LINKS) if LINK_FILE.fullmatch(name))
    except FileNotFoundError:
        return
    for name in names:
        path = chain / LINKS / name
        entry = _document(path)
        try:
            yield {
                **entry,
                "job_id": str(int(entry["job_id"])),
                "round": int(entry["round"]),
                "turn": int(entry.get("turn", 0)),  # an older version wrote none
                "began": float(entry["began"]),
                "from_step": int(entry["from_step"]),
                "newest_step": int(entry.get("newest_step", entry["from_step"])),  # nor this
                "outcome": str(entry["outcome"]),
            }
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise KitError(f"{path} is damaged: {error!r}") from error


def _round(chain: Path) -> int:
    """Return how often the chain was told to go on: links of an earlier round do not count."""
    path = chain / RECORD
    try:
        return int(_document(path)["round"])
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise KitError(f"{path} is damaged: {error!r}") from error


def _document(path: Path) -> dict[str, Any]:
    try:
        found = strict_json.read(path)
    except (OSError, ValueError, RecursionError) as error:
        raise KitError(f"{path} cannot be read: {error}") from error
    if not isinstance(found, dict):
        raise KitError(f"{path}: expected an object, found {type(found).__name__}")
    return found
