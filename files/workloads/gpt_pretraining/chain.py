# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A link of a chain of jobs: train until the end, or until the job's time limit comes, then hand over to the next.

All links have one folder of checkpoints. `kit link` has decided that this one has something to do, and has put a link
to that folder into the job's output folder.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import reporting
from acceptance import (
    MEASURED,
    Leg,
    exported,
    forget_fetched,
    found_earlier,
    machine,
    mean,
    moved,
    require_rest,
    restored,
    steps_of,
)
from engine import Sharded
from export import FOLDER
from kit import strict_json
from kit.errors import KitError
from kit.files import METRICS_FILE, write_json
from kit.job import current_job
from kit.metrics import write_metrics
from kit.pretraining import chain, checkpoints, tokens
from kit.pretraining.checkpoint_manager import not_uploaded
from kit.pretraining.monitor import Monitor
from utils.checkpoint_manager import Saver

COMPLETE = "complete"
LAST_WORDS = 15.0  # seconds that a job needs after the last upload


def folder() -> Path | None:
    """Return the folder of the chain that this job belongs to; None if it belongs to none."""
    said = os.environ.get("HPC_VALIDATION_CHAIN")
    return Path(said) if said else None


def run(leg: Leg) -> dict[str, Any] | None:
    """Run a leg of a link on this rank; write what it found, and return it on rank 0."""
    place = folder()
    if place is None:
        raise KitError("HPC_VALIDATION_CHAIN is not set: this job is no link of a chain")
    leg.joined.require_same({"the settings": leg.settings.fingerprint(), "the tokens": leg.manifest.sha256})
    found = trained(leg, place) if leg.name == MEASURED else handed_out(leg, place)
    leg.joined.state.phase("reporting")
    if leg.joined.rank:
        return None
    write_metrics(leg.output / METRICS_FILE, found)
    return found


def trained(leg: Leg, place: Path) -> dict[str, Any]:
    """Go on with the training; evaluate it once it is complete."""
    joined, settings = leg.joined, leg.settings
    steps, every = settings["training.steps"], settings["training.checkpoint.every"]
    joined.state.phase("reading data")
    uploader = leg.uploader()
    saver = leg.saver(leg.job, uploader)
    engine, first, came_from = started(leg, saver)
    monitor = None
    nodes = list(joined.gather(joined.node).values())
    if joined.rank == 0:
        document = settings.document()
        write_json(leg.job / "settings.json", {**document, "chain": str(place), **current_job().stamp})
        monitor = Monitor(
            leg.job,
            current_job(),
            steps,
            document["watch"],
            checkpoint_every=every,
            began_at=first - 1,
            nodes=nodes,
            run=place.name,
        )
    if came_from and joined.rank == 0:
        chain.went_on(place, current_job(), came_from["step"], came_from["refused"])
    if uploader:
        uploader.catch_up(came_from["refused"] if came_from else ())
    joined.state.phase("training")
    training = leg.training(engine, monitor, leg.evaluation(engine))
    done = training.run(
        first,
        steps,
        leg.job,
        lambda step, final: saver.save(engine, step, settings.batch, final=final),
        every,
    )
    broken = done.stopped is not None and done.stopped.startswith("the loss")
    is_complete = not done.stopped and done.last == steps
    found: dict[str, Any] = {
        "completed": is_complete,
        "stopped": done.stopped,
        "planned_steps": steps,
        "first": first,
        "steps": done.last,
        "world_size": joined.size,
        "batch": settings.document()["batch"],
        "precision": settings.precision,
        "skipped_steps": engine.skipped,
        "resumed_from": came_from,
        "saving": {"seconds": done.save_seconds, "checkpoints": saver.saved},
    }
    if done.losses and not broken:
        found.update(steps_of(leg, done))
    if is_complete:
        joined.state.phase("evaluating")
        found["validation_loss"] = mean(joined, engine.loss(moved(leg.held_out(joined.rank), joined)))
        found["entropy"] = leg.manifest.entropy
        found["tokens"] = tokens.describe(leg.manifest)
        found.update(machine(leg))
        found["checkpoints"] = saver.verified()
    if monitor:
        monitor.close(in_order=not broken)
    if joined.rank == 0:
        chain.end(place, current_job(), COMPLETE if is_complete else str(done.stopped), done.last)
        print(f"{place.name}: {'complete' if is_complete else done.stopped} at step {done.last} of {steps}", flush=True)
    found["uploads"] = leg.uploads(uploader, lambda: patience(settings["training.data.deadline"]))
    kept = [path.name for path in checkpoints.listed(saver.folder)]
    found["not_uploaded"] = not_uploaded([name for name in kept if name in found["uploads"]], found["uploads"])
    if joined.rank == 0 and found["not_uploaded"] != "none":
        print(f"{place.name}: not in the bucket: {found['not_uploaded']}", flush=True)
    if broken:
        raise KitError(str(done.stopped))
    return found


def started(leg: Leg, saver: Saver) -> tuple[Sharded, int, dict[str, Any] | None]:
    """Return the engine, its first step, and the checkpoint that it goes on from.

    That is the chain's newest whole one. A chain without any begins from the checkpoints that it was told to go on
    from, or from the beginning; one whose checkpoints are all damaged does not begin again.
    """
    joined = leg.joined
    if any(joined.gather(bool(checkpoints.listed(saver.folder))).values()):
        earlier, taken = saver, saver.newest()
    else:
        manifest = leg.manifest
        mine = [shard for number, shard in enumerate(manifest.shards) if number % joined.size == joined.rank]
        tokens.verify(leg.data, manifest, mine, scan=True)
        joined.gather(True)  # a rank whose part is damaged has ended by now
        resume = os.environ.get("HPC_VALIDATION_RESUME")
        if not resume:
            joined.state.phase("building")
            return Sharded(leg.settings, joined), 1, None
        earlier, taken = found_earlier(leg, resume)
    require_rest(taken, leg.settings["training.steps"], least=0)  # of the last step it is only handed out anew
    engine, first = restored(leg, earlier, taken)
    forget_fetched(leg)
    return engine, first, {"name": taken.path.name, "step": first - 1, "refused": taken.refused}


def handed_out(leg: Leg, place: Path) -> dict[str, Any]:
    """Export the complete training into the chain's folder; of one that goes on, only say so."""
    entry = next((each for each in chain.read(place) if each["job_id"] == current_job().job_id), {})
    if entry.get("outcome") != COMPLETE:
        print(f"{place.name}: nothing to export yet", flush=True)
        return {"exported": False}
    (place / FOLDER).mkdir(exist_ok=True)
    way = leg.job / FOLDER
    if not way.is_symlink():
        way.symlink_to(os.path.relpath(place / FOLDER, leg.job), target_is_directory=True)
    found = {**strict_json.read(leg.job / METRICS_FILE), **exported(leg)}
    write_metrics(leg.job / METRICS_FILE, found)
    facts = {
        "step": entry["last_step"],
        "checkpoint": found["export"]["from"],
        "export": str(place / FOLDER),
        "not_uploaded": found["not_uploaded"],
    }
    chain.complete(place, current_job(), facts)
    try:
        reporting.write(leg.job, leg.data)  # by the last link's speed
    except (KitError, OSError, ValueError) as error:  # the training is complete whatever becomes of it
        print(f"{place.name}: no cost and no card: {error}", flush=True)
    return {"exported": True, **found["export"]}


def patience(most: float) -> float:
    """Return the seconds to wait for uploads: ``most``, and never past the job's time limit."""
    try:
        left = float(os.environ["SLURM_JOB_END_TIME"]) - time.time() - LAST_WORDS
    except (KeyError, ValueError):
        return most
    return max(1.0, min(most, left))
