# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# ruff: noqa: E402 - the clock and OpenMP's setting come before PyTorch's import
"""MLOPS-2.1: train ResNet-18 on CIFAR-10 on all of a job's GPUs, one rank each, and report the results.

Started by `kit legs` and `kit launch`, which set the ranks' environment. On fewer ranks, before and after the measured
run, it trains only as long as measuring the speed takes. Rank 0 writes metrics.json, the model and progress.jsonl.
"""

from __future__ import annotations

import os
import time

STARTED = time.monotonic()

import argparse
import sys
from pathlib import Path
from typing import Any

import torch
from cifar10_data import TEST, TRAIN, load
from cifar10_training import Settings, Training, gradient_bytes
from kit import strict_json
from kit.errors import KitError
from kit.evidence.publishing import publish
from kit.files import METRICS_FILE, write_atomic
from kit.metrics import Progress, write_metrics
from kit.staged import read_staged
from kit.training import all_reduce
from kit.training import device as training_device
from kit.training.distributed import Group, checksum, group

MODEL_FILE = "resnet18_multi_gpu.pt"
PROGRESS_FILE = "progress.jsonl"
PUBLISHED = (METRICS_FILE, MODEL_FILE)  # in models/cifar10 itself, as the documents require
BATCH_SIZE, LEARNING_RATE = 128, 0.01
# A CPU trains on a few thousand stand-ins: smaller batches give enough steps to learn them.
CPU_BATCH_SIZE, CPU_LEARNING_RATE = 32, 0.05


def run(joined: Group, settings: Settings, data: Path, output: Path, accelerator: str, whole: bool) -> dict[str, Any]:
    """Run this rank's part; return the metrics, the same on every rank. ``whole``: train epochs, not only for speed."""
    joined.state.phase("reading data")
    facts = read_staged(data)
    joined.require_same({"the dataset's files": strict_json.read(data / "provenance.json")["files"]})
    train, test = load(data, TRAIN, joined.device), load(data, TEST, joined.device)
    training = Training(joined, settings, train, test)
    if training.steps_per_epoch < 1:
        raise KitError(f"{len(train)} images are fewer than a batch of {settings.batch_size} for each of {joined.size}")
    communication = None
    if joined.size > 1:
        joined.state.phase("checking the all-reduce")
        communication = all_reduce.check(joined, gradient_bytes(training.model.module))
        communication["exposed_share"] = training.exposed_share()
        communication["nccl_tests"] = all_reduce.by_nccl_tests(joined) if whole else None
    joined.state.phase("training")
    began = time.monotonic()
    seconds = None
    if whole:
        train_epochs(joined, training, output)
        seconds = time.monotonic() - began
        joined.state.phase("saving")
        if joined.rank == 0:
            save(training, output / MODEL_FILE)
    joined.state.phase("measuring speed")
    training.run_until_steady()
    joined.state.phase("reporting")
    return collect(joined, training, facts, seconds, communication, accelerator)


def train_epochs(joined: Group, training: Training, output: Path) -> None:
    """Train and test for all epochs."""
    epochs = training.settings.epochs
    progress = Progress(output / PROGRESS_FILE) if joined.rank == 0 else None
    for epoch in range(1, epochs + 1):
        loss, accuracy = training.run_epoch()
        if progress:
            progress.row(epoch=epoch, epochs=epochs, step=epoch, steps=epochs, loss=loss, test_accuracy=accuracy)
            print(f"epoch {epoch}/{epochs}: loss {loss:.4f}, test accuracy {accuracy:.4f}", flush=True)
    if progress:
        progress.close()


def save(training: Training, path: Path) -> None:
    """Save the model atomically."""
    state = {name: value.cpu().contiguous() for name, value in training.model.module.state_dict().items()}
    write_atomic(path, lambda stream: torch.save(state, stream))


def collect(
    joined: Group,
    training: Training,
    data: dict[str, Any],
    seconds: float | None,
    communication: dict[str, Any] | None,
    accelerator: str,
) -> dict[str, Any]:
    """Return the metrics document. Rates are of all ranks together; times in seconds."""
    device = training_device.describe(joined.device, accelerator)
    own = {"gpu": joined.gpu, "node": joined.node, "device_count": device["device_count"]}
    ranks = joined.gather({**training.figures(), **own})
    sums = joined.gather(checksum(training.model.module))
    fastest = min(figures["compute_seconds"] for figures in ranks.values())
    for name, figures in ranks.items():
        figures["pace"] = fastest / figures["compute_seconds"]
        figures["same_parameters"] = sums[name] == sums[next(iter(sums))]
    steady = training.steady
    steady_seconds = joined.largest(steady.seconds)
    samples = int(joined.sum(steady.samples))
    done = len(training.losses)
    return {
        "completed": True,
        "world_size": joined.size,
        "epochs": list(range(1, done + 1)),
        "loss": training.losses,
        "final_loss": training.losses[-1] if done else None,
        "test_accuracy_per_epoch": training.accuracies,
        "test_accuracy": training.accuracies[-1] if done else None,
        "final_accuracy": training.accuracies[-1] if done else None,
        "training_time_seconds": seconds,
        "wall_time_seconds": time.monotonic() - STARTED,
        "init_seconds": joined.largest(joined.init_seconds),
        "batch_per_rank": training.settings.batch_size,
        "batch": training.settings.batch_size * joined.size,
        "learning_rate": training.settings.learning_rate,
        "seed": training.settings.seed,
        "samples_per_second": samples / steady_seconds,
        "steady": {
            "seconds": steady_seconds,
            "samples": samples,
            "steps": len(steady.steps),
            "windows": steady.windows,
        },
        "ranks": ranks,
        "distinct_gpus": len({(figures["node"], figures["gpu"]) for figures in ranks.values() if figures["gpu"]}),
        "all_reduce": communication,
        "data": data,
        **device,
        "gpu_uuids": [figures["gpu"] for figures in ranks.values() if figures["gpu"]],
    }


def main() -> int:
    """Run this rank; return 0 after a complete run, else 1 with a line on stderr."""
    environment = os.environ
    accelerator = environment.get("HPC_VALIDATION_ACCELERATOR") or "cuda"
    on_gpu = accelerator == "cuda"
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch-size", type=int, default=BATCH_SIZE if on_gpu else CPU_BATCH_SIZE, help="per rank")
    parser.add_argument("--learning-rate", type=float, default=LEARNING_RATE if on_gpu else CPU_LEARNING_RATE)
    parser.add_argument("--steady-seconds", type=float, default=environment.get("HPC_VALIDATION_STEADY_SECONDS", "30"))
    parser.add_argument("--seed", type=int, default=42)
    settings = Settings(**vars(parser.parse_args()))
    data, output = Path(environment["DATA_DIR"]), Path(environment["OUTPUT_DIR"])
    whole = environment.get("HPC_VALIDATION_LEG", "measured") == "measured"
    try:
        with group(accelerator, output) as joined:
            metrics = run(joined, settings, data, output, accelerator, whole)
            if joined.rank == 0:
                write_metrics(output / METRICS_FILE, metrics)
                if whole and environment.get("HPC_VALIDATION_SHARE"):
                    publish(output, Path(environment["HPC_VALIDATION_SHARE"], "models/cifar10"), PUBLISHED)
                print(f"{joined.size} ranks: {metrics['samples_per_second']:.0f} images/s", flush=True)
    except (KitError, OSError, ValueError) as error:
        print(f"cifar10_multi_gpu: {error}", file=sys.stderr, flush=True)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
