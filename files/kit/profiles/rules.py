# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What several keys of a profile must be together, beyond what each may be by itself (model.py)."""

from __future__ import annotations

import datetime
import os
import re
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import urlsplit

from kit.profiles import arithmetic
from kit.profiles.findings import CHECK, WARNING, Finding
from kit.profiles.model import CLASSIFICATION, EMBEDDED, FINE_TUNE, HPC, LOCAL, SCRATCH, TRANSFER, Profile

Findings = Iterator[Finding]

# Micro batch and accumulation for each kind of GPU, and the requirement that says so.
BATCHES = {
    "a100-80": ((128, 256), (2, 4), "S4-13"),
    "a100-40": ((64, 128), (4, 8), "S4-14"),
    "rtx4090": ((32, 64), (8, 16), "S4-15"),
    "jetson": ((8, 16), (16, 32), "S4-16"),
}
MEMORY_GB = {"a100-80": 80, "a100-40": 40, "rtx4090": 24, "jetson": 64}
# Learning rates for each purpose. From scratch the document names 0.001 alone, half and twice of which are usual.
RATES = {SCRATCH: (5e-4, 2e-3, "S4-17"), FINE_TUNE: (1e-4, 5e-4, "S4-18"), TRANSFER: (1e-5, 1e-4, "S4-19")}
FROM_SCRATCH = 1e-3
CHECKPOINT_STEPS, CHECKPOINTS = (1000, 5000), (3, 5)
LOSSES = {"regression": ("mse", "mae"), CLASSIFICATION: ("cross_entropy",)}
METRICS = {"regression": ("loss", "mae", "rmse", "r2"), CLASSIFICATION: ("loss", "accuracy", "f1")}
BETTER = {"validation_loss": "min", "mae": "min", "rmse": "min", "accuracy": "max", "f1": "max"}
EXPORTS = ("onnx", "torchscript", "tensorrt")
DEVICE_MEMORY_GB = 12
OLD = ("jetson", "other")  # kinds of GPU among which are some without bfloat16
LOOPBACK = ("localhost", "127.0.0.1", "::1")  # as trackers/mlflow.py has it, which takes long to import
NARROW = 128  # below it a model of 8 bits is not faster, as measured


def check(profile: Profile, *, on_devices: bool = False) -> list[Finding]:
    """Return what does not fit together; ``on_devices``: for a workload whose model is measured there."""
    rules = (*RULES, measured_there) if on_devices else RULES
    return [finding for rule in rules for finding in rule(profile)]


def _place(path: str) -> tuple[str, ...]:
    return tuple(path.split("."))


def error(path: str, text: str, requirement: str = CHECK) -> Finding:
    """Return an error at a key."""
    return Finding(_place(path), text, requirement=requirement)


def warning(path: str, text: str, requirement: str = CHECK) -> Finding:
    """Return a warning at a key."""
    return Finding(_place(path), text, WARNING, requirement)


def within(path: str, value: float, bounds: tuple[float, float], whose: str, requirement: str) -> Findings:
    """Find a value that is out of bounds."""
    low, high = bounds
    if not low <= value <= high:
        yield error(path, f"{value:g}; {whose} takes {low:g} to {high:g}", requirement)


def shapes(profile: Profile) -> Findings:
    """The model's sizes fit one another, and the data."""
    model = profile.model
    if model.hidden_size % model.num_heads:
        yield error("model.num_heads", f"hidden_size {model.hidden_size} is not divisible by {model.num_heads}", "S4-9")
    if model.window > model.max_position:
        yield error("model.window", f"{model.window} time steps, and max_position is {model.max_position}", "S4-9")
    for name in ("mean", "std"):
        value = getattr(profile.data.normalization, name)
        if isinstance(value, list) and len(value) != model.input_features:
            text = f"{len(value)} values for {model.input_features} features"
            yield error(f"data.normalization.{name}", text, "S4-30")


def tasks(profile: Profile) -> Findings:
    """Answers, loss and metrics are those of the task."""
    model, task = profile.model, profile.model.task
    needed, other = ("num_classes", "outputs") if task == CLASSIFICATION else ("outputs", "num_classes")
    if getattr(model, needed) is None:
        yield error(f"model.{needed}", f"missing for {task}", "S4-9")
    if getattr(model, other) is not None:
        yield error(f"model.{other}", f"{getattr(model, other)}; {task} has none: expected null", "S4-9")
    loss = profile.training.loss.name
    if loss not in LOSSES[task]:
        yield error("training.loss.name", f"{loss} does not fit {task}; expected {' or '.join(LOSSES[task])}", "S4-30")
    for position, metric in enumerate(profile.validation.metrics):
        if metric not in METRICS[task]:
            text = f"{metric} does not fit {task}; expected some of {', '.join(METRICS[task])}"
            yield Finding(("validation", "metrics", position), text, requirement="S4-24")
    metrics = profile.validation.metrics
    for metric in sorted({each for each in metrics if metrics.count(each) > 1}):
        yield error("validation.metrics", f"{metric} is there {metrics.count(metric)} times; expected once", "S4-24")


def stopping(profile: Profile) -> Findings:
    """Early stopping looks at something that is computed, in the right direction, and can act."""
    early = profile.training.early_stopping
    if early.monitor != "validation_loss" and early.monitor not in profile.validation.metrics:
        text = f"{early.monitor} is not computed; expected validation_loss or one of validation.metrics"
        yield error("training.early_stopping.monitor", text, "S4-23")
    if early.mode != BETTER[early.monitor]:
        text = f"{early.mode}, but a better {early.monitor} is {'higher' if early.mode == 'min' else 'lower'}; "
        yield error("training.early_stopping.mode", f"{text}expected {BETTER[early.monitor]}", "S4-23")
    if early.monitor in ("accuracy", "f1") and early.min_delta >= 1:
        text = f"{early.min_delta:g}; {early.monitor} is 1 at most, and would never improve: expected less than 1"
        yield error("training.early_stopping.min_delta", text, "S4-23")
    # One at the last step ends nothing; the first is the best so far.
    evaluations = max(0, arithmetic.steps(profile) - 1) // profile.training.evaluation.every_steps
    if early.enabled and early.patience >= evaluations:
        text = (
            f"{early.patience} evaluations, and {evaluations} come before the last step: it can never end the training"
        )
        yield warning("training.early_stopping.patience", text, "S4-23")


def rates(profile: Profile) -> Findings:
    """The learning rate is what the purpose needs, and its course possible."""
    purpose, optimizer, scheduler = profile.metadata.purpose, profile.training.optimizer, profile.training.scheduler
    low, high, requirement = RATES[purpose]
    yield from within("training.optimizer.lr", optimizer.lr, (low, high), purpose, requirement)
    if purpose == SCRATCH:
        if low <= optimizer.lr <= high and optimizer.lr != FROM_SCRATCH:
            yield warning("training.optimizer.lr", f"{optimizer.lr:g}; the document says {FROM_SCRATCH:g}", requirement)
        if not scheduler.warmup_steps:
            yield error("training.scheduler.warmup_steps", "0; from scratch it needs a warm-up", requirement)
    begins_with = profile.training.begins_with
    if purpose == SCRATCH and begins_with is not None:
        yield error("training.begins_with", f"{begins_with}; from scratch it begins with none: expected null", "S4-17")
    own = profile.training.checkpointing.directory
    if begins_with is not None and _folder(os.path.dirname(_folder(begins_with))) == _folder(own):
        text = f"{own}; begins_with is in it, and a training does not go on from another's: expected another folder"
        yield error("training.checkpointing.directory", text, "S4-18")
    if purpose != SCRATCH and begins_with is None:
        yield error("training.begins_with", f"null; {purpose} begins with a checkpoint's weights", requirement)
    if optimizer.name == "adam" and optimizer.weight_decay:
        text = f"adam with weight_decay {optimizer.weight_decay:g} is L2, not decay; expected adamw, or weight_decay 0"
        yield error("training.optimizer.name", text, "S4-9")
    if scheduler.eta_min > optimizer.lr:
        yield error("training.scheduler.eta_min", f"{scheduler.eta_min:g} is above lr {optimizer.lr:g}", "S4-9")
    if scheduler.name == "cosine" and scheduler.t_max <= scheduler.warmup_steps:
        yield error(
            "training.scheduler.t_max", f"{scheduler.t_max} ends before warmup_steps {scheduler.warmup_steps}", "S4-9"
        )


def reachable(profile: Profile) -> Findings:
    """What is to happen at a step happens."""
    training, total = profile.training, arithmetic.steps(profile)
    if not total:
        step = f"{arithmetic.samples_per_step(profile)} (batch x accumulation x ranks)"
        yield error("data.train_samples", f"{profile.data.train_samples}, and a step takes {step}", "S4-9")
        return
    how = (
        f"{profile.data.train_samples} samples / {arithmetic.samples_per_step(profile)} x {training.epochs} epochs"
        if total < training.max_steps
        else f"max_steps {training.max_steps}"
    )
    only = f"but only {total} steps happen ({how})"
    for path, value in (
        ("training.evaluation.every_steps", training.evaluation.every_steps),
        ("training.checkpointing.every_steps", training.checkpointing.every_steps),
        ("training.log_every_steps", training.log_every_steps),
        ("monitoring.gradient_norm_every_steps", profile.monitoring.gradient_norm_every_steps),
        ("monitoring.weight_histogram_every_steps", profile.monitoring.weight_histogram_every_steps),
    ):
        if value > total:
            yield error(path, f"{value}, {only}", "S4-9")
    scheduler = training.scheduler
    if scheduler.warmup_steps >= total:
        yield error("training.scheduler.warmup_steps", f"{scheduler.warmup_steps}, {only}", "S4-9")
    if scheduler.name == "cosine" and scheduler.t_max < total:
        text = f"{scheduler.t_max}, and {total} steps happen: the learning rate stays at eta_min from there on"
        yield warning("training.scheduler.t_max", text, "S4-9")
    for path, value in (
        ("training.max_steps", training.max_steps),
        ("training.scheduler.t_max", training.scheduler.t_max),
    ):
        if value > total:
            yield warning(path, f"{value}, {only}", "S4-9")
    by_epochs = profile.validation.every_epochs
    if by_epochs is not None:
        expected = by_epochs * arithmetic.steps_per_epoch(profile)
        if expected != training.evaluation.every_steps:
            text = f"{by_epochs} are {expected} steps, and training.evaluation.every_steps is "
            yield error(
                "validation.every_epochs",
                f"{text}{training.evaluation.every_steps}; leave one to the other (null)",
                "S4-9",
            )


def batches(profile: Profile) -> Findings:
    """The batch is one for that kind of GPU, and checkpoints come as often as they should."""
    if profile.metadata.target == LOCAL:
        return
    training, kind = profile.training, profile.resources.gpu_type
    if kind in BATCHES:
        batch, accumulation, requirement = BATCHES[kind]
        yield from within("training.batch_size", training.batch_size, batch, kind, requirement)
        path = "training.gradient_accumulation_steps"
        yield from within(path, training.gradient_accumulation_steps, accumulation, kind, requirement)
    saved = training.checkpointing
    fewest, most = CHECKPOINT_STEPS
    fewest = min(fewest, max(1, arithmetic.steps(profile)))  # a short training has one at its end
    yield from within("training.checkpointing.every_steps", saved.every_steps, (fewest, most), "the document", "S4-20")
    yield from within("training.checkpointing.keep", saved.keep, CHECKPOINTS, "the document", "S4-21")


def memory(profile: Profile) -> Findings:
    """The training fits into a GPU's memory."""
    needed, there = arithmetic.memory_bytes(profile) / arithmetic.GIB, profile.resources.gpu_memory_gb
    kind, optimizations = profile.resources.gpu_type, profile.embedded_optimizations
    if optimizations:
        if optimizations.max_memory_gb > there:
            text = f"{optimizations.max_memory_gb:g}; resources.gpu_memory_gb is {there:g}"
            yield error("embedded_optimizations.max_memory_gb", text, "S4-6")
        there = min(there, optimizations.max_memory_gb)
    given = profile.resources.gpu_memory_gb
    if given > MEMORY_GB.get(kind, given):
        yield error("resources.gpu_memory_gb", f"{given:g}; {kind} has {MEMORY_GB[kind]}", "S4-13")
    text = f"needs about {needed:.2f} GiB of {there:g}"
    if needed > there:
        yield error("training.batch_size", f"{text}; lower it, or turn activation_checkpointing on", "S4-28")
    elif needed > 0.9 * there:
        yield warning("training.batch_size", text, "S4-28")


def precision(profile: Profile) -> Findings:
    """Half precision has the scale that it needs."""
    mixed = profile.training.mixed_precision
    path = "training.mixed_precision.loss_scale"
    if mixed.enabled and mixed.dtype == "float16" and mixed.loss_scale is None:
        yield error(path, "null; float16 needs one: expected dynamic", "S4-3")
    if mixed.dtype == "bfloat16" and mixed.loss_scale is not None:
        yield error(path, f"{mixed.loss_scale}; bfloat16 needs none: expected null", "S4-3")
    kind = profile.resources.gpu_type
    if mixed.enabled and mixed.dtype == "bfloat16" and kind in OLD and profile.metadata.target != LOCAL:
        text = f"bfloat16, which a GPU of the kind {kind} may lack: Volta, Turing and Xavier have none"
        yield warning("training.mixed_precision.dtype", text, "S4-3")


def ranks(profile: Profile) -> Findings:
    """One rank for each GPU, of a kind that the class of machine has."""
    kind, target = profile.resources.gpu_type, profile.metadata.target
    if target == EMBEDDED and kind not in ("jetson", "other"):
        yield error("resources.gpu_type", f"{kind} on embedded; expected jetson or other", "S4-16")
    if target == HPC and kind == "jetson":
        yield error("resources.gpu_type", "jetson in a cluster of target hpc", "S4-13")
    distributed, gpus = profile.distributed, profile.resources.num_gpus
    if distributed.enabled and gpus == 1:
        yield error("distributed.enabled", "true on one GPU; expected false", "S4-3")
    elif distributed.enabled and distributed.world_size != gpus:
        yield error("distributed.world_size", f"{distributed.world_size} ranks on {gpus} GPUs", "S4-3")
    elif not distributed.enabled and gpus > 1:
        yield error("distributed.enabled", f"false with {gpus} GPUs: {gpus - 1} would idle", "S4-3")
    if not distributed.enabled and distributed.world_size != 1:
        yield error("distributed.world_size", f"{distributed.world_size}; it is off: expected 1", "S4-3")
    if distributed.find_unused_parameters:
        text = "true; it costs a search in each step, and every weight of this model is used: expected false"
        yield error("distributed.find_unused_parameters", text, "S4-9")


def reading(profile: Profile) -> Findings:
    """Data is read by as many processes as there are CPUs for, and validated on other data."""
    data, cpus = profile.data, profile.resources.cpus_per_gpu
    if data.num_workers > cpus:
        text = f"{data.num_workers} for each rank, which has {cpus} CPUs (resources.cpus_per_gpu)"
        yield warning("data.num_workers", text, "S4-29")
    if not data.num_workers and data.prefetch_factor is not None:
        yield error(
            "data.prefetch_factor",
            f"{data.prefetch_factor}; nobody reads ahead without num_workers: expected null",
            "S4-29",
        )
    folders = {"train": data.train, "validation": data.validation, "test": data.test}
    for name, other in (("validation", "train"), ("test", "train"), ("test", "validation")):
        if _folder(folders[name]) == _folder(folders[other]):
            yield error(f"data.{name}", f"the folder of data.{other}: what was trained on proves nothing", "S4-24")
    calibration = profile.post_training.quantization.calibration_data
    if calibration is not None and _folder(calibration) == _folder(data.test):
        text = "the folder of data.test: what was calibrated with proves nothing"
        yield error("post_training.quantization.calibration_data", text, "S4-5")


def _folder(path: str) -> str:
    return os.path.normpath("/" + path.lstrip("/"))


def times(profile: Profile) -> Findings:
    """Days are in the calendar, limits of time limit, and what is started again goes on."""
    created = profile.metadata.created
    try:
        datetime.date.fromisoformat(created)
    except ValueError:
        yield error("metadata.created", f"{created}; there is no such day")
    if not any(part.strip("0") for part in re.split("[-:]", profile.resources.time)):
        yield error("resources.time", f"{profile.resources.time}; Slurm takes it for no limit")
    faults = profile.fault_tolerance
    if faults.max_restarts and not faults.resume:
        text = f"false with max_restarts {faults.max_restarts}: an attempt refuses the checkpoints of the one before"
        yield error("fault_tolerance.resume", f"{text}; expected true, or max_restarts 0", "S4-9")


def watching(profile: Profile) -> Findings:
    """Switches agree, and those for finding faults are off."""
    if profile.reproducibility.deterministic and profile.reproducibility.benchmark:
        text = "true, and deterministic too: cuDNN's choice differs from run to run"
        yield error("reproducibility.benchmark", text, "S4-9")
    for name in ("profiler", "detect_anomaly"):
        if getattr(profile.debug, name):
            yield warning(
                f"debug.{name}", "true: steps take up to twice as long; not for a training that is judged", "S4-29"
            )
    if profile.debug.limit_batches is not None:
        text = f"{profile.debug.limit_batches}: the training ends there, whatever it has learnt"
        yield warning("debug.limit_batches", text, "S4-29")
    monitoring = profile.monitoring
    for name in ("temperature", "power"):
        if getattr(monitoring, name) and not monitoring.gpu:
            text = "true, and gpu is false: nothing samples it"
            yield warning(f"monitoring.{name}", text, "S4-25")
    if monitoring.stall_seconds < monitoring.health_check_seconds:
        text = f"{monitoring.stall_seconds:g}, and the ranks are looked at every {monitoring.health_check_seconds:g} s"
        yield error("monitoring.stall_seconds", text, "S4-9")


def exports(profile: Profile) -> Findings:
    """What becomes of the model is offered, and has what it needs."""
    after = profile.post_training
    for position, kind in enumerate(after.export):
        place = ("post_training", "export", position)
        if kind in after.export[:position]:
            yield Finding(place, f"{kind!r} is there twice", requirement="S4-22")
        if kind not in EXPORTS:
            offered = "executorch is not offered" if kind == "executorch" else "an unknown form"
            yield Finding(place, f"{offered}; expected some of {', '.join(EXPORTS)}", requirement="S4-22")
        elif kind == "torchscript":
            yield Finding(place, "torchscript is deprecated in PyTorch; onnx serves the same", WARNING, "S4-22")
        elif kind == "tensorrt" and profile.environment.tensorrt is None:
            yield Finding(place, "tensorrt without environment.tensorrt", requirement="S4-22")
    if "onnx" not in after.export:
        yield error("post_training.export", "onnx is missing, of which everything else is made", "S4-22")
    quantization = after.quantization
    if quantization.enabled:
        if quantization.method == "static" and quantization.calibration_data is None:
            yield error("post_training.quantization.calibration_data", "missing; static needs it", "S4-5")
        if profile.model.hidden_size < NARROW:
            text = f"true at a hidden_size of {profile.model.hidden_size}: INT8 will not be faster"
            yield warning("post_training.quantization.enabled", text, "S4-5")


def device(profile: Profile) -> Findings:
    """A device has bounds, and they are looked at."""
    embedded = profile.metadata.target == EMBEDDED
    for name in ("power_management", "embedded_optimizations"):
        if getattr(profile, name) is not None and profile.metadata.target not in (EMBEDDED, LOCAL):
            yield error(name, f"belongs to target embedded, and this is {profile.metadata.target}", "S4-5")
    optimizations = profile.embedded_optimizations
    if optimizations and optimizations.memory_efficient_attention and profile.model.attention == "math":
        yield error("model.attention", "math keeps a matrix of all pairs; expected sdpa", "S4-5")
    if not embedded:
        return
    yield from _without_bounds(profile, "on embedded")
    for name in ("temperature", "power"):
        if not getattr(profile.monitoring, name):
            yield error(f"monitoring.{name}", "false on embedded", "S4-5")
    yield from _cannot_pass(profile)
    if profile.resources.num_gpus > 1:
        yield error("resources.num_gpus", f"{profile.resources.num_gpus} on embedded; expected 1", "S4-5")
    if optimizations and optimizations.max_memory_gb > DEVICE_MEMORY_GB:
        text = f"{optimizations.max_memory_gb:g}; the document says 8 to {DEVICE_MEMORY_GB}"
        yield warning("embedded_optimizations.max_memory_gb", text, "S4-6")


def _cannot_pass(profile: Profile) -> Findings:
    """Find what is left out that a measurement on devices judges."""
    after = profile.post_training
    for name, step in (("pruning", after.pruning), ("quantization", after.quantization)):
        if not step.enabled:
            text = "false: PROFILE-EMBEDDED cannot pass, since it judges what that gains"
            yield warning(f"post_training.{name}.enabled", text, "S4-5")
    if (
        after.quantization.enabled
        and after.quantization.method == "dynamic"
        and not after.quantization.calibration_data
    ):
        text = "missing: PROFILE-EMBEDDED cannot pass, since it compares that with the training data"
        yield warning("post_training.quantization.calibration_data", text, "S4-5")


def _without_bounds(profile: Profile, where: str) -> Findings:
    """Find bounds of a device that are missing."""
    for name in ("power_management", "embedded_optimizations"):
        if getattr(profile, name) is None:
            yield error(name, f"missing {where}", "S4-5")
    for name in ("max_latency_ms", "max_size_mb"):
        if getattr(profile.post_training, name) is None:
            yield error(f"post_training.{name}", f"missing {where}: nothing would be judged", "S4-6")
    if profile.power_management and profile.power_management.max_power_w is None:
        yield error("power_management.max_power_w", f"missing {where}: nothing would be judged", "S4-5")


def measured_there(profile: Profile) -> Findings:
    """A model that is measured on devices has bounds there, and the error by which its forms are compared."""
    if profile.metadata.target != EMBEDDED:  # of which `device` has told
        yield from _without_bounds(profile, "for a model that is measured on devices")
        yield from _cannot_pass(profile)
    if profile.model.task == CLASSIFICATION:
        text = "classification; a model that is measured on devices is judged by its mean absolute error"
        yield error("model.task", f"{text}: expected regression", "S4-24")
    elif "mae" not in profile.validation.metrics:
        text = "mae is missing, by which a model that is measured on devices is judged"
        yield error("validation.metrics", text, "S4-24")


def transfers(profile: Profile) -> Findings:
    """Blocks that are frozen open again, in order, within the training."""
    transfer, purpose = profile.transfer_learning, profile.metadata.purpose
    if purpose == TRANSFER and transfer is None:
        yield error("transfer_learning", "missing for the purpose transfer", "S4-5")
    if transfer is None:
        return
    if purpose != TRANSFER:
        yield error("transfer_learning", f"belongs to the purpose transfer, and this is {purpose}", "S4-5")
    layers, epochs = profile.model.num_layers, transfer.unfreeze_epochs
    if transfer.freeze_layers >= layers:
        text = f"{transfer.freeze_layers} of {layers} layers; expected at most {layers - 1}"
        yield error("transfer_learning.freeze_layers", text, "S4-5")
    path = "transfer_learning.unfreeze_epochs"
    if epochs != sorted(set(epochs)):
        yield error(path, f"{', '.join(map(str, epochs))}; expected each once, ascending", "S4-5")
    last = (arithmetic.steps(profile) - 1) // max(1, arithmetic.steps_per_epoch(profile)) + 1
    if epochs and max(epochs) > last:
        yield error(path, f"{max(epochs)}, but only {last} epochs happen", "S4-5")
    if transfer.freeze_layers and not epochs:
        yield warning(path, "empty: what is frozen never opens", "S4-5")
    if transfer.freeze_layers and epochs[-1:] == [1]:
        yield warning(path, "1 is the last, at which all are open: nothing is ever frozen", "S4-5")
    if len(epochs) > transfer.freeze_layers:
        yield error(path, f"{len(epochs)} times, and {transfer.freeze_layers} layers are frozen", "S4-5")


def validated(profile: Profile) -> Findings:
    """The profile of a cluster can pass its validation, PROFILE-HPC; it trains all the same."""
    if profile.metadata.target != HPC:
        return
    cannot = "PROFILE-HPC cannot pass"
    if profile.model.task == CLASSIFICATION:
        yield warning("model.task", f"classification: {cannot}, which judges the mean absolute error", "S4-24")
    elif "mae" not in profile.validation.metrics:
        yield warning("validation.metrics", f"mae is missing: {cannot}, which judges it", "S4-24")
    if profile.metadata.purpose != SCRATCH:
        text = f"{profile.metadata.purpose}: {cannot}, which trains at {FROM_SCRATCH:g}, as from scratch"
        yield warning("metadata.purpose", text, "S4-17")
    mixed = profile.training.mixed_precision
    computes = mixed.dtype if mixed.enabled else "float32"
    if computes != "float16":
        text = f"computes in {computes}: {cannot}, which expects float16"
        yield warning("training.mixed_precision", text, "S4-3")
    saved = profile.training.checkpointing.every_steps
    if saved == arithmetic.steps(profile):
        text = f"{saved}, at the last step: {cannot}, which goes on from a checkpoint before the end"
        yield warning("training.checkpointing.every_steps", text, "S4-11")
    if not profile.monitoring.throughput:
        yield warning("monitoring.throughput", f"false: {cannot}, which judges that it was measured", "S4-26")
    if profile.model.num_layers == 1:
        yield warning("model.num_layers", f"1: {cannot}, which freezes a part of the blocks", "S4-19")


def trackers(profile: Profile) -> Findings:
    """W&B ends a training that is online without a key, and a token is sent where nobody else reads it."""
    wandb = profile.logging.wandb
    if wandb.enabled and wandb.mode == "online" and wandb.key_file is None:
        yield error("logging.wandb.mode", "online without key_file; expected offline", "S4-3")
    if wandb.enabled and wandb.mode == "offline" and wandb.key_file is not None:
        yield warning("logging.wandb.key_file", f"{wandb.key_file}; mode is offline: nobody reads it", "S4-3")
    mlflow = profile.logging.mlflow
    for name in ("token_file", "ca_file"):
        file = getattr(mlflow, name)
        if mlflow.enabled and mlflow.tracking_uri is None and file is not None:
            yield warning(f"logging.mlflow.{name}", f"{file}; without tracking_uri nobody reads it", "S4-3")
    if mlflow.tracking_uri is None:
        return
    if not _reachable(mlflow.tracking_uri):
        text = "no host, or a port that is none; expected https://HOST or https://HOST:PORT"
        yield error("logging.mlflow.tracking_uri", text, "S4-3")
    elif mlflow.token_file is not None and _in_the_clear(mlflow.tracking_uri):
        text = "begins with http: the token would cross the network in the clear; expected https"
        yield error("logging.mlflow.tracking_uri", text, "S4-12")


def _reachable(address: str) -> bool:
    """Return whether an address has a host, and a port that is one if it has any."""
    try:
        parts = urlsplit(address)
        return bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


def _in_the_clear(address: str) -> bool:
    """Return whether others on the network could read what is sent to an address."""
    parts = urlsplit(address)
    return parts.scheme == "http" and parts.hostname not in LOOPBACK


RULES: tuple[Callable[[Profile], Any], ...] = (
    *(shapes, tasks, stopping, rates, reachable, batches, memory, precision, ranks),
    *(reading, times, watching, exports, device, transfers, validated, trackers),
)
