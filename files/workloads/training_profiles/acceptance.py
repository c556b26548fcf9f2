# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The legs of a job that validates a profile, each a fresh set of processes.

`measured` trains as the profile says. `restarted` is the same training, in which the last rank dies once: started
again, it must come out bit by bit as the other. `single` trains on one rank for the speed of one. `adapted` trains
models on little data of another kind: from scratch, fine-tuned, and transferred with frozen blocks; then it compares
all legs.
"""

from __future__ import annotations

import os
import platform
import signal
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import expectations
import torch
from evaluation import LOSS
from kit import strict_json
from kit.errors import KitError
from kit.files import METRICS_FILE, write_json
from kit.pretraining import checkpoints
from kit.profiles import arithmetic, rules
from kit.profiles.check import merged
from kit.profiles.findings import errors
from kit.profiles.model import FINE_TUNE, SCRATCH, TRANSFER, Profile
from kit.training import device as training_device
from kit.training.distributed import Group, checksum
from kit.training.stall import Stall
from saving import MODEL, Saver
from tracking import told
from training import COMPLETE, EARLY, Done, Trainer
from watching import HISTOGRAMS
from windows import Windows

CHECKPOINTS = "checkpoints"
MEASURED, RESTARTED, SINGLE, ADAPTED = "measured", "restarted", "single", "adapted"
SOURCE = "source"
SINGLE_STEPS = 60  # of one rank, for its speed
NEAR = 0.05  # share by which the losses of two trainings may differ whose operations do not give the same each time
# What models are adapted with: few samples of another kind.
ADAPTED_BATCH, EPOCHS = 80, 8
FREEZE, UNFREEZE = 2 / 3, [2, 4, 6]  # share of the blocks that is frozen, and epochs at which one more opens
RATES = {SCRATCH: 1e-3, FINE_TUNE: 5e-4, TRANSFER: 1e-4}


@dataclass(frozen=True)
class Leg:
    """One leg on this rank: ``job`` is the output folder of the whole job, ``output`` that of the leg.

    ``kept`` is the folder of the checkpoints of the measured leg.
    """

    name: str
    joined: Group
    profile: Profile
    facts: dict[str, Any]  # what changes the result
    job: Path
    output: Path
    kept: Path
    accelerator: str
    stall: Stall

    def data(self, stem: str, profile: Profile | None = None) -> Windows:
        """Return the windows of a path."""
        return Windows(Path(stem), profile or self.profile)

    def saver(self, folder: Path) -> Saver:
        """Return what saves into a folder and reads from it."""
        saved = self.profile.training.checkpointing
        return Saver(folder, self.joined, self.facts, saved.keep, best_only=saved.best_only)

    def trainer(self, saver: Saver | None = None) -> Trainer:
        """Return a trainer of the profile's own data, and of the model that it begins with."""
        train, validation = self.data(self.profile.data.train), self.data(self.profile.data.validation)
        begins_with = self.beginning()
        return Trainer(
            self.joined,
            self.profile,
            train,
            validation,
            self.output,
            saver=saver,
            stall=self.stall,
            begins_with=weights(begins_with) if begins_with else None,
        )

    def beginning(self) -> Path | None:
        """Return the checkpoint that the profile's model begins with: one that this job made, or the profile's."""
        made = self.job / SOURCE / CHECKPOINTS
        if checkpoints.listed(made):
            return self.saver(made).best()
        begins_with = self.profile.training.begins_with
        return Path(begins_with) if begins_with else None


def figures(done: Done) -> dict[str, Any]:
    """Return what every training says of itself."""
    logged = [row for row in done.rows if "loss" in row]
    return {
        "ended": done.ended,
        "first": done.first,
        "steps": done.last,
        "train_loss": [row["loss"] for row in logged],
        "learning_rates": [row["lr"] for row in logged],
        "grad_norms": [row["grad_norm"] for row in done.rows if "grad_norm" in row],
        "evaluations": done.evaluations,
        "steady": {"windows": [done.window]},
        "samples_per_second": rate(logged, "samples_per_second"),
        "steps_per_second": rate(logged, "steps_per_second"),
        "seconds": done.seconds,
        "sinks": {"seconds": done.sink_seconds, "rows": done.sink_rows, "share": done.sink_seconds / done.seconds},
    }


def rate(rows: list[dict[str, Any]], name: str) -> float | None:
    """Return the mean of a rate over the second half of the rows."""
    values = [row[name] for row in rows[len(rows) // 2 :] if name in row]
    return sum(values) / len(values) if values else None


def measured(leg: Leg) -> dict[str, Any]:
    """Train as the profile says."""
    joined, profile = leg.joined, leg.profile
    saver = leg.saver(leg.kept)
    trainer = leg.trainer(saver)
    joined.state.phase("training")
    said: dict[str, Any] = {}
    if joined.rank == 0:
        write_json(leg.output / "profile.json", profile.model_dump(mode="json"))
    with told(leg.output, profile, said) if joined.rank == 0 else nullcontext([]) as sinks:
        done = trainer.run(sinks=sinks)
        leg.stall.rest()  # others are told the rest, which no rank stands still for
    joined.state.phase("evaluating")
    mine = {"gpu": joined.gpu, "node": joined.node, "weights": checksum(trainer.module), "samples": done.samples}
    ranks = joined.gather(mine)
    final = trainer.evaluate()
    best = saver.best()
    trainer.module.load_state_dict(weights(best))
    validation, test = trainer.evaluate(), trainer.evaluate(leg.data(profile.data.test))
    leg.stall.rest()
    hashes = [each["weights"] for each in ranks.values()]
    for each in ranks.values():
        each["same_weights"] = each.pop("weights") == hashes[0]
    described = training_device.describe(joined.device, leg.accelerator)
    kept = joined.on_first(lambda: {path.name: verified(path) for path in checkpoints.listed(saver.folder)})
    steps = done.last - done.first + 1
    return {
        **figures(done),
        "completed": done.ended == EARLY or (done.ended == COMPLETE and done.last == arithmetic.steps(profile)),
        "planned_steps": arithmetic.steps(profile),
        "world_size": joined.size,
        "backend": torch.distributed.get_backend(),
        "dtype": done.dtype,
        "samples_per_step": sum(each["samples"] for each in ranks.values()) / steps if steps else None,
        "scale_falls": done.scale_falls,
        "parameters": sum(weight.numel() for weight in trainer.module.parameters()),
        "test": test,
        "tested": best.name,
        "told": said,
        "gap": test[LOSS] - validation[LOSS],
        "final": final,
        "best": done.best,
        **left(profile, done, saver.saved, kept),
        "histograms": counted(leg.output, profile, done) if joined.rank == 0 else {},
        "environment": environment(profile, described["gpu_name"]),
        "weights_sha256": hashes[0],
        "ranks": ranks,
        "distinct_gpus": len({(each["node"], each["gpu"]) for each in ranks.values() if each["gpu"]}),
        **described,
        "gpu_uuids": [each["gpu"] for each in ranks.values() if each["gpu"]],
        "profile": {"document": profile.metadata.document, "name": profile.metadata.name},
    }


def left(profile: Profile, done: Done, saved: list[int], kept: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Return what the training left, beside what it has to leave; rank 0 knows."""
    every = profile.training.evaluation.every_steps
    due = expectations.saved_at(profile, done.last, done.evaluations)
    kept_due = expectations.kept_of(profile, due, done.evaluations)
    stop = expectations.stops_at(profile, done.evaluations)
    stopped = done.last if done.ended == EARLY else None
    return {
        "evaluated_otherwise": expectations.differing(
            expectations.steps_of(every, done.last), (int(row["step"]) for row in done.evaluations)
        ),
        "early_stopping": {
            "stopped_at": stopped,
            "due_at": stop,
            "as_due": stopped == stop or (stopped is None and stop == arithmetic.steps(profile)),
        },
        "checkpoints": {
            "saved": saved,
            "saved_otherwise": expectations.differing(due, saved),
            "kept": kept,
            "due": len(kept_due),
            "kept_otherwise": expectations.differing(kept_due, (int(each["step"]) for each in kept.values())),
        },
    }


def counted(output: Path, profile: Profile, done: Done) -> dict[str, Any]:
    """Return how many weights the histograms of each step count."""
    every = profile.monitoring.weight_histogram_every_steps
    return {"steps": expectations.histograms(output / HISTOGRAMS), "due": done.last // every}


def environment(profile: Profile, gpu: str | None) -> dict[str, Any]:
    """Return versions and GPU that the profile was written for, beside those that are here."""
    here = {
        "python": platform.python_version(),
        "torch": torch.__version__,
        "cuda": torch.version.cuda,
        "cudnn": torch.backends.cudnn.version(),
    }
    wanted = profile.environment
    names = ("python", "torch", "cuda", "cudnn", "tensorrt")
    found = {name: {"profile": getattr(wanted, name), "here": here.get(name)} for name in names}
    return {**found, "gpu": {"profile": profile.resources.gpu_type, "here": gpu}}


def verified(path: Path) -> dict[str, Any]:
    """Return a checkpoint's step, and what is wrong with it."""
    try:
        return {"step": checkpoints.verify(path)["step"], "problem": "none"}
    except checkpoints.DamagedError as error:
        return {"step": checkpoints.step_of(path.name), "problem": str(error)}


def restarted(leg: Leg) -> dict[str, Any]:
    """Train again; the first time the last rank dies behind the first checkpoint."""
    trainer = leg.trainer(leg.saver(leg.output / CHECKPOINTS))
    every = leg.profile.training.checkpointing.every_steps
    first = os.environ.get("HPC_VALIDATION_RESTART") == "0"

    def die(step: int) -> None:
        if first and step == every + 1 and leg.joined.rank == leg.joined.size - 1:
            os.kill(os.getpid(), signal.SIGKILL)

    leg.joined.state.phase("training")
    done = trainer.run(before_step=die)
    leg.stall.rest()
    found = {**figures(done), "came_from": trainer.came_from, "weights_sha256": checksum(trainer.module)}
    return {**found, "final": trainer.evaluate()}


def single(leg: Leg) -> dict[str, Any]:
    """Train on one rank for its speed."""
    profile = on_one_rank(leg.profile)
    train, validation = leg.data(profile.data.train), leg.data(profile.data.validation)
    trainer = Trainer(leg.joined, profile, train, validation, leg.output, stall=leg.stall)
    leg.joined.state.phase("training")
    done = trainer.run(min(SINGLE_STEPS, arithmetic.steps(profile)))
    leg.stall.rest()
    return figures(done)


def on_one_rank(profile: Profile) -> Profile:
    """Return the profile for one rank, whose epochs have more steps: max_steps must not leave out the last of them."""
    return changed(
        profile,
        training={"log_every_steps": min(10, arithmetic.steps(profile)), "max_steps": 10**9},
        distributed={"enabled": False, "world_size": 1},
        resources={"num_gpus": 1},
        validation={"every_epochs": None},
    )


def adapted(leg: Leg) -> dict[str, Any]:
    """Adapt the trained model to data of another kind, near and far; compare all legs."""
    joined = leg.joined
    source = leg.saver(leg.kept).best()
    found: dict[str, Any] = {}
    near = Path(leg.profile.data.train).with_name("near-train")
    far = near.with_name("far-train")
    for name, purpose, stem in (
        ("scratch", SCRATCH, near),
        ("fine", FINE_TUNE, near),
        ("transfer", TRANSFER, near),
        ("far", TRANSFER, far),
    ):
        joined.state.phase(f"training {name}")
        found[name] = adapt(leg, purpose, stem, None if purpose == SCRATCH else source)
    leg.stall.rest()
    found["far_scratch"] = adapt(leg, SCRATCH, far, None)
    for name, each in found.items():
        beside = found["far_scratch" if name.startswith("far") else "scratch"]
        each["gain"] = beside["after"]["mae"] - each["after"]["mae"]
        each["learnt"] = each["before"]["mae"] - each["after"]["mae"]
    return {"adapted": found, **compared(leg, leg.profile)}


def adapt(leg: Leg, purpose: str, stem: Path, source: Path | None) -> dict[str, Any]:
    """Train a model on little data; return its metrics, those before, and what became of frozen weights."""
    profile = purposes_profile(leg.profile, purpose, stem, source)
    test = leg.data(str(stem.with_name(stem.name.replace("train", "test"))), profile)
    trainer = Trainer(
        leg.joined,
        profile,
        leg.data(str(stem), profile),
        test,
        leg.output / stem.name / purpose,
        begins_with=weights(source) if source else None,
    )
    before = trainer.evaluate(test)
    frozen = {name for name, weight in trainer.module.named_parameters() if not weight.requires_grad}
    kept = {name: weight.detach().clone() for name, weight in trainer.module.named_parameters()}
    steps = arithmetic.steps_per_epoch(profile)
    trainer.run(steps * (UNFREEZE[0] - 1))  # until the first block opens
    moved = {name for name, weight in trainer.module.named_parameters() if not torch.equal(weight, kept[name])}
    trainer.run()
    late = {name for name, weight in trainer.module.named_parameters() if not torch.equal(weight, kept[name])}
    return {
        "before": before,
        "after": trainer.evaluate(test),
        "frozen": len(frozen),
        "frozen_that_moved": len(frozen & moved),
        "frozen_that_never_opened": len(frozen - late),
        "learning_rate": profile.training.optimizer.lr,
    }


def purposes_profile(profile: Profile, purpose: str, stem: Path, source: Path | None) -> Profile:
    """Return the profile for a purpose on little data; it is checked as any other."""
    frozen = max(1, round(profile.model.num_layers * FREEZE))
    samples = len(Windows(stem, profile))
    steps = samples // ADAPTED_BATCH * EPOCHS
    lowest = min(profile.training.scheduler.eta_min, RATES[purpose])
    return changed(
        profile,
        metadata={"purpose": purpose, "target": "local"},
        training={
            "begins_with": str(source) if source else None,
            "epochs": EPOCHS,
            "max_steps": steps,
            "batch_size": ADAPTED_BATCH,
            "gradient_accumulation_steps": 1,
            "log_every_steps": 10,
            "optimizer": {"lr": RATES[purpose]},
            "scheduler": {"name": "cosine", "warmup_steps": 20, "t_max": steps, "eta_min": lowest},
            "evaluation": {"every_steps": steps},
            "early_stopping": {"enabled": False},
            "checkpointing": {"every_steps": steps},
        },
        data={"train": str(stem), "train_samples": samples},
        distributed={"enabled": False, "world_size": 1},
        resources={"num_gpus": 1},
        monitoring={"gradient_norm_every_steps": steps, "weight_histogram_every_steps": steps},
        validation={"every_epochs": None, "metrics": [*dict.fromkeys([*profile.validation.metrics, "mae"])]},
        transfer_learning={"freeze_layers": frozen, "unfreeze_epochs": UNFREEZE[-frozen:]}
        if purpose == TRANSFER
        else None,
    )


def changed(profile: Profile, **sections: Any) -> Profile:
    """Return the profile with other keys. Raise KitError if they do not fit."""
    found = Profile.model_validate(merged(profile.model_dump(mode="json"), sections))
    wrong = errors(rules.check(found))
    if wrong:
        raise KitError("; ".join(str(each) for each in wrong))
    return found


def weights(path: Path) -> dict[str, torch.Tensor]:
    """Return the weights of a checkpoint."""
    from safetensors.torch import load_file  # noqa: PLC0415

    ranks = int(checkpoints.verify(path, hashed=False)["ranks"])
    tensors = load_file(path / checkpoints.rank_file(0, ranks))
    return {name[len(MODEL) :]: value for name, value in tensors.items() if name.startswith(MODEL)}


def alike(profile: Profile, whole: dict[str, Any], again: dict[str, Any]) -> bool:
    """Return whether the training in which a rank died came out as the other.

    Bit by bit where the profile asks for operations that give the same each time; else a loss that is near.
    """
    if profile.reproducibility.deterministic:
        return bool(again["weights_sha256"] == whole["weights_sha256"])
    return abs(again["final"][LOSS] - whole["final"][LOSS]) <= NEAR * whole["final"][LOSS]


def compared(leg: Leg, profile: Profile) -> dict[str, Any]:
    """Return the other legs' metrics with what they are compared by, for the job's own metrics."""
    whole = strict_json.read(leg.job / METRICS_FILE)
    found = {name: strict_json.read(leg.job / name / METRICS_FILE) for name in (RESTARTED, SINGLE)}
    again, one = found[RESTARTED], found[SINGLE]
    return {
        **{key: value for key, value in whole.items() if key not in ("job_id", "attempt")},
        "restarted": {
            "as_measured": alike(profile, whole, again),
            "same_weights": again["weights_sha256"] == whole["weights_sha256"],
            "from_step": (again["came_from"] or {}).get("step"),
        },
        "single": {"samples_per_second": one["samples_per_second"]},
    }
