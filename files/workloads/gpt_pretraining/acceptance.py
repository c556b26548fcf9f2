# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The legs of the acceptance: each a fresh set of processes, which proves one thing about a long training.

shape     the whole configuration, without memory: does it fit?
plain     the same model, not sharded: sharding must change nothing
measured  the training: sharded, with checkpoints and an evaluation at the end
killed    the same, until the last rank is killed in the middle of a save
resumed   goes on from the newest whole checkpoint, to the end
resized   goes on from a checkpoint of the measured leg, on half as many ranks
export    the last checkpoint for Transformers, and all legs compared
"""

from __future__ import annotations

import math
import os
import resource
import shutil
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from importlib import metadata
from pathlib import Path
from typing import Any

import reporting
import torch
from comparisons import apart, spike
from engine import Replicated, Sharded, shape_of
from export import FOLDER, export, use
from gpt import GPT
from kit import strict_json
from kit.errors import KitError
from kit.files import METRICS_FILE, sha256, write_json
from kit.job import current_job
from kit.metrics import write_metrics
from kit.pretraining import checkpoints, shape, tokens
from kit.pretraining.checkpoint_manager import Uploader, not_uploaded
from kit.pretraining.manifest import TRAIN, VALIDATION
from kit.pretraining.monitor import Monitor
from kit.pretraining.store import SCHEME
from kit.ranks.legs import LEGS_FILE
from kit.training import device as training_device
from kit.training.distributed import Group
from kit.training.flops import peak_flops
from loop import Run, Training
from settings import Settings, require_steps
from utils.checkpoint_manager import CheckpointManager, Saver
from utils.data_loader import Loader, held_out
from utils.monitoring import Stall, solo_flops

STARTED = time.monotonic()
CHECKPOINTS = "checkpoints"
FETCHED = "earlier"  # in the job's folder: what came from a bucket, until it is read
PLAIN_MOST, RESIZED_MOST, COMPARED = 30, 10, 10  # steps
MEASURED = "measured"


@dataclass
class Leg:
    """A leg of a job: its ranks, its settings, the job's output folder, and the leg's own."""

    name: str
    joined: Group
    settings: Settings
    data: Path
    job: Path
    output: Path
    accelerator: str
    stall: Stall

    @property
    def manifest(self) -> tokens.Manifest:
        """The tokens' manifest. Raise KitError if the model does not know all of them."""
        found = tokens.read_manifest(self.data)
        vocabulary = self.settings["model.vocab_size"]
        if found.max_token >= vocabulary:
            raise KitError(f"{self.data}: the largest token is {found.max_token}, the model knows {vocabulary} tokens")
        return found

    def of_the_result(self) -> dict[str, Any]:
        """Return what changes the result: settings and data."""
        return {**self.settings.of_the_result(), "data": self.manifest.sha256}

    def loader(self) -> Loader:
        """Return what this rank reads in training."""
        settings, joined = self.settings, self.joined
        split = tokens.Split(self.data, self.manifest, TRAIN)
        return Loader(
            split,
            settings.length,
            settings["training.seed"],
            batch=settings.batch,
            micro=settings.micro,
            rank=joined.rank,
            ranks=joined.size,
        )

    def held_out(self, rank: int) -> list[Any]:
        """Return a rank's part of the evaluation split."""
        split = tokens.Split(self.data, self.manifest, VALIDATION)
        return held_out(
            split,
            self.settings.length,
            batches=self.settings["training.data.validation_batches"],
            micro=self.settings.micro,
            rank=rank,
        )

    def model(self) -> shape.Model:
        """Return the model's numbers."""
        return shape.read_model(self.settings.document()["model"])

    def saver(self, folder: Path, uploader: Uploader | None = None) -> Saver:
        """Return what writes and reads checkpoints in a folder."""
        keep, parameters = self.settings["training.checkpoint.keep"], shape.parameters(self.model())
        settings, length, form = self.of_the_result(), self.settings.length, self.settings["training.checkpoint.format"]
        return Saver(folder / CHECKPOINTS, self.joined, settings, parameters, keep, length, form, uploader)

    def uploader(self) -> Uploader | None:
        """Return what puts this job's checkpoints into the bucket of the settings, on rank 0, if there is one."""
        remote, settings = self.settings["training.checkpoint.remote"], self.settings
        if remote is None or self.joined.rank:
            return None
        key = settings["training.data.credentials"]
        manager = CheckpointManager(
            self.job / CHECKPOINTS,
            remote,
            own_prefix(),
            credentials=Path(key) if key else None,
            deadline=settings["training.data.deadline"],
        )
        return Uploader(manager, settings["training.checkpoint.keep_remote"])

    def uploads(self, uploader: Uploader | None, patience: Callable[[], float]) -> dict[str, dict[str, Any]]:
        """Return each upload's end, on all ranks, once rank 0 has waited ``patience`` seconds for them at most."""
        if self.settings["training.checkpoint.remote"] is None:
            return {}
        self.joined.state.phase("uploading")
        return dict(self.joined.on_first(lambda: uploader.close(patience()) if uploader else {}))

    def evaluation(self, engine: Sharded) -> Callable[[], float]:
        """Return what computes the loss on the tokens that were held out, in which all ranks take part."""
        batches = moved(self.held_out(self.joined.rank), self.joined)
        return lambda: mean(self.joined, engine.loss(batches))

    def training(
        self,
        engine: Replicated | Sharded,
        monitor: Monitor | None = None,
        evaluate: Callable[[], float] | None = None,
    ) -> Training:
        """Return the loop over this leg's loader."""
        peak = peak_flops(torch.cuda.get_device_name(self.joined.device)) if self.joined.device.type == "cuda" else None
        flops = shape.flops_per_token(self.model())
        loader = self.loader()
        return Training(self.joined, self.settings, engine, loader, self.stall, monitor, flops, peak, evaluate)


def own_prefix() -> str:
    """Return what this training's checkpoints have to themselves in a bucket: the chain's name, else the job's."""
    chain = os.environ.get("HPC_VALIDATION_CHAIN")
    return Path(chain).name if chain else f"job-{current_job().job_id}"


def run(leg: Leg) -> dict[str, Any] | None:
    """Run a leg on this rank; write what it found, and return it on rank 0."""
    leg.joined.require_same({"the settings": leg.settings.fingerprint(), "the tokens": leg.manifest.sha256})
    require_steps(leg.settings)
    found = LEGS[leg.name](leg)
    leg.joined.state.phase("reporting")
    if leg.joined.rank:
        return None
    if leg.name == "export":  # the last one: what the measured leg found, and how all compare
        whole = {**strict_json.read(leg.job / METRICS_FILE), **found}
        write_metrics(leg.job / METRICS_FILE, whole)
        write_metrics(leg.job / METRICS_FILE, {**whole, "cost": reporting.write(leg.job, leg.data)})
    else:
        write_metrics(leg.output / METRICS_FILE, found)
    return found


def require_rest(taken: checkpoints.Taken, steps: int, least: int = 1) -> None:
    """Raise KitError if the checkpoint leaves fewer than ``least`` steps."""
    if steps - taken.manifest["step"] < least:
        raise KitError(f"{taken.path} is of step {taken.manifest['step']}, and training.steps is {steps}: raise it")


def looked_at_shape(leg: Leg) -> dict[str, Any]:
    """Count the model on the meta device, and what its training takes."""
    settings, joined = leg.settings, leg.joined
    with torch.device("meta"):
        model = GPT(shape_of(settings))
        sample = torch.zeros(1, settings.length, dtype=torch.long)
    model(sample, sample).backward()
    ranks = int(settings.document()["batch"]["ranks"])
    memory = torch.cuda.get_device_properties(joined.device).total_memory if joined.device.type == "cuda" else None
    planned = shape.Training(ranks, settings.micro, 4 if settings.precision == "fp32" else 2)
    return {
        "shape": {
            **shape.describe(leg.model(), planned, memory),
            "counted_parameters": sum(parameter.numel() for parameter in model.parameters()),
            "gradients": all(parameter.grad is not None for parameter in model.parameters()),
        }
    }


def plain(leg: Leg) -> dict[str, Any]:
    """Train without sharding, and compute one micro batch twice."""
    leg.joined.state.phase("building")
    engine = Replicated(leg.settings, leg.joined)
    loader = leg.loader()
    replayed = [engine.gradients(loader.read(1, leg.joined.device).batches[0]) for _each in range(2)]
    loader.close()
    leg.joined.state.phase("training")
    steps = min(PLAIN_MOST, 3 * leg.settings["training.steps"] // 8)
    done = to_its_end(leg.training(engine).run(1, steps, leg.job), steps)
    same = leg.joined.gather(replayed[0] == replayed[1])
    return {**steps_of(leg, done), "replayed_equal": {name: {"equal": equal} for name, equal in same.items()}}


def measured(leg: Leg) -> dict[str, Any]:
    """Train sharded, with checkpoints, and evaluate."""
    joined, settings = leg.joined, leg.settings
    steps = settings["training.steps"]
    resume = os.environ.get("HPC_VALIDATION_RESUME")
    earlier = taken = came_from = None
    if resume:  # before what takes its time
        joined.state.phase("reading checkpoints")
        earlier, taken = found_earlier(leg, resume)
        require_rest(taken, steps)
        came_from = origin(taken)  # as long as it is there
    joined.state.phase("reading data")
    manifest = leg.manifest
    mine = [shard for number, shard in enumerate(manifest.shards) if number % joined.size == joined.rank]
    verified = sum(joined.gather(tokens.verify(leg.data, manifest, mine, scan=True)["verified_shards"]).values())
    joined.state.phase("building")
    uploader = leg.uploader()
    saver = leg.saver(leg.job, uploader)
    if earlier and taken:
        engine, first = restored(leg, earlier, taken)
        forget_fetched(leg)
    else:
        engine, first = Sharded(settings, joined), 1
    monitor = None
    if joined.rank == 0:
        write_json(leg.job / "settings.json", {**settings.document(), **current_job().stamp})
    nodes = list(joined.gather(joined.node).values())
    if joined.rank == 0:
        watch = settings.document()["watch"]
        every = settings["training.checkpoint.every"]
        monitor = Monitor(leg.job, current_job(), steps, watch, checkpoint_every=every, began_at=first - 1, nodes=nodes)
    joined.state.phase("training")
    restart = time.monotonic() - STARTED
    began = time.monotonic()
    evaluate = leg.evaluation(engine)
    training = leg.training(engine, monitor, evaluate)
    done = training.run(
        first,
        steps,
        leg.job,
        lambda step, final: saver.save(engine, step, settings.batch, final=final),
        settings["training.checkpoint.every"],
    )
    seconds = time.monotonic() - began
    joined.state.phase("evaluating")
    validation = evaluate()
    if monitor:
        monitor.close(in_order=done.stopped is None)
    own = {"gpu": joined.gpu, "node": joined.node, "parameters_share": engine.share()}
    own["solo_seconds"] = statistics.median(done.solo)
    digest = engine.digest()
    ranks = joined.gather({**own, "digest": digest})
    fastest = min(each["solo_seconds"] for each in ranks.values())
    first_digest = next(iter(ranks.values()))["digest"]
    for each in ranks.values():
        each["pace"] = fastest / each["solo_seconds"]
        each["same_parameters"] = each.pop("digest") == first_digest
    kept = saver.verified()
    blocking, typical = done.save_seconds / max(1, len(saver.saved)), done_seconds(done)
    uploaded = leg.uploads(uploader, lambda: settings["training.data.deadline"])
    found = {
        **steps_of(leg, done),
        "completed": done.stopped is None and done.last == steps,
        "stopped": done.stopped,
        "planned_steps": steps - first + 1,
        "world_size": joined.size,
        "batch": settings.document()["batch"],
        "samples_a_step": done.samples[0][1] - done.samples[0][0] + 1,
        "mfu": training.mfu(typical),
        "share_of_measured": training.flops_per_second(typical) * fastest / solo_flops(joined.device),
        "precision": settings.precision,
        "repeats_exactly": torch.are_deterministic_algorithms_enabled(),
        "settings": {"fingerprint": settings.fingerprint()},
        "skipped_steps": engine.skipped,
        "alerts": None if joined.rank else reporting.alerts_of(leg.job, settings["training.checkpoint.every"]),
        "first_loss_above_uniform": done.losses[0] - math.log(settings["model.vocab_size"]),
        "spike": spike(done.losses),
        "validation_loss": validation,
        "entropy": manifest.entropy,
        "above_entropy": validation - (manifest.entropy or 0.0),
        "tokens": {
            **tokens.describe(manifest),
            "verified_shards": verified,
            "above_vocabulary": manifest.max_token - settings["model.vocab_size"],
            "left_out": training.loader.order.left_out,
        },
        "ranks": ranks,
        "distinct_gpus": len({(each["node"], each["gpu"]) for each in ranks.values() if each["gpu"]}),
        "training_time_seconds": seconds,
        "wall_time_seconds": time.monotonic() - STARTED,
        "data": {"tokens": manifest.tokens(TRAIN)},
        "checkpoint": {
            "blocking_seconds": blocking,
            "share_at_thousand": blocking / (blocking + 1000 * typical),
            "restart_seconds": restart,
            "saved": saver.saved,
        },
        "checkpoints": kept,
        "checkpoints_to_keep": settings["training.checkpoint.keep"],
        "checkpoints_due": checkpoints.due(
            first, steps, settings["training.checkpoint.every"], settings["training.checkpoint.keep"]
        ),
        "uploads": uploaded,
        "not_uploaded": not_uploaded(kept, uploaded) if settings["training.checkpoint.remote"] else "none",
        "resumed_from": came_from,
        "refused": "; ".join(taken.refused.values()) if taken and taken.refused else "none",
        **machine(leg),
        "gpu_uuids": [each["gpu"] for each in ranks.values() if each["gpu"]],
    }
    if done.stopped and done.stopped.startswith("the loss"):
        if joined.rank == 0:
            write_metrics(leg.output / METRICS_FILE, found)
        raise KitError(done.stopped)
    return found


def machine(leg: Leg) -> dict[str, Any]:
    """Return the facts on hardware and versions for metrics.json."""
    return {
        **training_device.describe(leg.joined.device, leg.accelerator),
        "deepspeed_version": metadata.version("deepspeed"),
    }


def origin(taken: checkpoints.Taken) -> dict[str, Any]:
    """Return what a run card and a verdict say of the checkpoint that a training goes on from."""
    return {
        "job_id": taken.manifest.get("job_id"),
        "name": taken.path.name,
        "step": taken.manifest["step"],
        "manifest_sha256": sha256(taken.path / checkpoints.MANIFEST),
        "refused": taken.refused,
    }


def found_earlier(leg: Leg, resume: str) -> tuple[Saver, checkpoints.Taken]:
    """Return what reads the checkpoint to go on from, and that one, fetched before if it is in a bucket.

    Raise NoneWholeError if there is none, KitError if the bucket cannot be read.
    """
    if not resume.startswith(SCHEME):
        saver = leg.saver(Path(resume))
        return saver, saver.newest()
    saver = leg.saver(leg.job / FETCHED)
    leg.joined.state.phase("fetching a checkpoint")

    def fetch() -> dict[str, str]:
        key = leg.settings["training.data.credentials"]
        manager = CheckpointManager(
            saver.folder,
            resume,
            credentials=Path(key) if key else None,
            deadline=leg.settings["training.data.deadline"],
        )
        return manager.download_newest().refused

    refused = leg.joined.on_first(fetch)
    taken = saver.newest()
    return saver, replace(taken, refused={**refused, **taken.refused})


def forget_fetched(leg: Leg) -> None:
    """Remove what was fetched from a bucket, once all ranks have read it."""
    leg.joined.gather(True)
    if leg.joined.rank == 0:
        shutil.rmtree(leg.job / FETCHED, ignore_errors=True)  # it is in the bucket


def killed(leg: Leg) -> dict[str, Any]:
    """Train until the second checkpoint, in the middle of which the last rank is killed."""
    leg.joined.state.phase("building")
    engine = Sharded(leg.settings, leg.joined)
    saver, every = leg.saver(leg.output), leg.settings["training.checkpoint.every"]
    leg.joined.state.phase("training")
    done = leg.training(engine).run(
        1,
        2 * every,
        leg.job,
        lambda step, _final: saver.save(engine, step, leg.settings.batch, dies=step == 2 * every),
        every,
    )
    return steps_of(leg, done)


def resumed(leg: Leg) -> dict[str, Any]:
    """Go on from the newest whole checkpoint of the leg that was killed."""
    saver = leg.saver(leg.job / "killed")
    taken = saver.newest()
    engine, first = restored(leg, saver, taken)
    steps = leg.settings["training.steps"]
    restart = time.monotonic() - STARTED
    done = leg.training(engine).run(
        first,
        steps,
        leg.job,
        lambda step, final: saver.save(engine, step, leg.settings.batch, final=final),
        leg.settings["training.checkpoint.every"],
    )
    to_its_end(done, steps)
    left = [path.name for path in saver.folder.glob(f"{checkpoints.INCOMPLETE}*")]
    return {
        **steps_of(leg, done),
        "from": taken.path.name,
        "from_step": first - 1,
        # The leg was killed in its second save, so that only the first is whole.
        "from_expected": first - 1 == leg.settings["training.checkpoint.every"],
        "refused": taken.refused,
        "left": left,
        "restart_seconds": leg.joined.largest(restart),
    }


def resized(leg: Leg) -> dict[str, Any]:
    """Go on from a checkpoint of the measured leg, on fewer ranks, for some steps that it did as well."""
    saver, settings = leg.saver(leg.job), leg.settings
    steps = min(RESIZED_MOST, settings["training.checkpoint.every"])
    path = checkpoints.newest_until(saver.folder, settings["training.steps"] - steps)
    taken = checkpoints.Taken(path, saver.check(path))
    engine, first = restored(leg, saver, taken)
    last = first - 1 + steps
    done = to_its_end(leg.training(engine).run(first, last, leg.job), last)
    return {**steps_of(leg, done), "from": path.name, "from_ranks": taken.manifest["ranks"]}


def to_its_end(done: Run, last: int) -> Run:
    """Return the run. Raise KitError if it ended early: over fewer steps two runs would be compared too kindly."""
    if done.stopped or done.last != last:
        raise KitError(f"it ended in step {done.last} of {last}: {done.stopped or 'for no known reason'}")
    return done


def restored(leg: Leg, saver: Saver, taken: checkpoints.Taken) -> tuple[Sharded, int]:
    """Return an engine with a checkpoint's state, and the step that comes next."""
    leg.joined.state.phase("building")
    engine = Sharded(leg.settings, leg.joined)
    leg.joined.state.phase("restoring")
    step = saver.restore(engine, taken, leg.output)
    leg.joined.state.phase("training")
    return engine, step + 1


def exported(leg: Leg) -> dict[str, Any]:
    """Export the measured leg's last checkpoint, use it, and compare all legs."""
    saver = leg.saver(leg.job)
    taken = saver.newest()
    leg.joined.state.phase("exporting")
    file = export(saver.weights(taken), leg.settings, leg.job / FOLDER)
    of_the_measured = strict_json.read(leg.job / METRICS_FILE)
    leg.joined.state.phase("using the export")
    ranks = of_the_measured["world_size"]
    used = use(leg.job / FOLDER, [leg.held_out(rank) for rank in range(ranks)])
    size, counted = file.stat().st_size, read(leg.job / "shape").get("shape")
    found: dict[str, Any] = {
        "shape": counted,
        "export": {
            "from": taken.path.name,
            "bytes": size,
            "bytes_a_parameter": size / counted["counted_parameters"] if counted else None,
            **used,
            "loss_apart": abs(used["held_out_loss"] - of_the_measured["validation_loss"]),
        },
    }
    failure = strict_json.read(leg.job / LEGS_FILE).get("killed", {}).get("first_failure")
    found["killed"] = {"first_failure": failure, "as_intended": is_as_intended(str(failure), ranks)}
    for name in ("plain", "resumed", "resized"):
        other = read(leg.job / name)
        found[name] = {
            **{key: value for key, value in other.items() if key not in of_the_measured or key == "ranks"},
            # Half as many ranks, or none that share, add up in another order.
            "apart": apart(of_the_measured, other, None if name == "resumed" else COMPARED) if other else None,
            **{key: other.get(key) for key in ("tokens_per_second", "cpu_seconds_per_token")},
        }
    behind = (found["resumed"].get("from_step") or 0) - of_the_measured["first"]
    if behind >= 0:
        before = of_the_measured["samples"][behind][1]
        found["resumed"]["samples_skipped"] = read(leg.job / "resumed")["samples"][0][0] - before - 1
    return found


def is_as_intended(failure: str, ranks: int) -> bool:
    """Return whether it was the last rank that was killed, and in the middle of a save."""
    return failure.startswith(f"rank {ranks - 1} ") and "killed by SIGKILL, last in saving" in failure


def read(folder: Path) -> Mapping[str, Any]:
    """Return a leg's metrics; empty if there are none, as for a leg that is not part of this job."""
    try:
        return dict(strict_json.read(folder / METRICS_FILE))
    except FileNotFoundError:
        return {}


def done_seconds(done: Run) -> float:
    """Return the mean seconds of a steady step."""
    steady = done.steady()
    return sum(steady) / len(steady)


def moved(batches: list[Any], joined: Group) -> list[Any]:
    """Return the batches on this rank's device."""
    return [(one.to(joined.device), other.to(joined.device)) for one, other in batches]


def mean(joined: Group, value: float) -> float:
    """Return the mean of all ranks' values."""
    return joined.sum(value) / joined.size


def steps_of(leg: Leg, done: Run) -> dict[str, Any]:
    """Return what every training leg says of its steps, the same on all ranks."""
    settings, joined = leg.settings, leg.joined
    steady = done.steady()
    seconds = joined.largest(sum(steady))
    samples = len(steady) * settings.batch
    rate = samples * settings.length / seconds
    return {
        "first": done.first,
        "steps": done.last,
        "loss": done.losses,
        "grad_norm": done.norms,
        "checksums": done.checksums,
        "samples": done.samples,
        "tokens_per_second": rate,
        "steps_per_hour": len(steady) / seconds * 3600,
        "cpu_seconds_per_token": joined.sum(done.cpu_seconds) / (len(done.losses) * settings.batch * settings.length),
        "input_share": joined.largest(sum(done.data_seconds) / sum(done.seconds)),
        "steady": {"seconds": seconds, "steps": len(steady), "windows": done.windows},
        "memory_bytes": peak_memory(joined),
    }


def peak_memory(joined: Group) -> dict[str, dict[str, int]]:
    """Return the most memory that each rank's process had, in bytes."""
    return joined.gather({"resident": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024})


LEGS: dict[str, Callable[[Leg], dict[str, Any]]] = {
    "shape": looked_at_shape,
    "plain": plain,
    MEASURED: measured,
    "killed": killed,
    "resumed": resumed,
    "resized": resized,
    "export": exported,
}
