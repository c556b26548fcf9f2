# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How fast one GPU trains PRETRAIN-1's model in each way: pretrain_speeds.py OUT [--profile NAME] [--seconds S]

Runs in the workload's folder and its environment, as a rank alone (RANK=0, WORLD_SIZE=1, DATA_DIR). A way is sharded by
DeepSpeed or not, has micro-batches of so many samples, its blocks compiled or not, and waits for the GPU between the
parts of a step, as the workload does to time them, or not. OUT gets a JSON document a line, after each way.
"""

from __future__ import annotations

import argparse
import gc
import itertools
import json
import os
import statistics
import time
from pathlib import Path
from typing import Any

import engine
import torch
from engine import Replicated, Sharded
from kit.pretraining import shape, tokens
from kit.pretraining.manifest import TRAIN
from kit.training.distributed import Group, group
from kit.training.flops import peak_flops
from settings import load
from utils.data_loader import Loader

# sharded, samples in a micro-batch, compiled, waits
WAYS = (
    (True, 4, False, True),
    (True, 4, False, False),
    (True, 8, False, True),
    (True, 16, False, True),
    (False, 4, False, True),
    (False, 16, False, True),
    (False, 16, True, True),
    (False, 4, True, True),
    (True, 16, True, True),
    (True, 4, True, True),
)
WARM, TIMED = 3, 6  # steps
KERNELS = 12  # of a profile, the longest
waiting = engine.now


def main() -> None:
    """Try each way that there is time for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--profile", default="one_gpu")
    parser.add_argument("--seconds", type=float, default=150)
    arguments = parser.parse_args()
    until = time.monotonic() + arguments.seconds
    accelerator = os.environ.get("HPC_VALIDATION_ACCELERATOR") or "cuda"
    with (
        group(accelerator, Path(os.environ["OUTPUT_DIR"])) as joined,
        arguments.out.open("a", encoding="utf-8") as stream,
    ):
        for way in WAYS:
            if time.monotonic() > until:
                break
            began = time.monotonic()
            try:
                found = tried(joined, arguments.profile, *way)
            except Exception as error:  # the next way may do
                found = {"error": f"{type(error).__name__}: {error}"[:400]}
            names = ("sharded", "micro", "compiled", "waits")
            row = {**dict(zip(names, way, strict=True)), **found, "took": round(time.monotonic() - began, 1)}
            print(json.dumps(row), flush=True)
            stream.write(json.dumps(row) + "\n")
            stream.flush()
            release(joined.device)


def release(device: torch.device) -> None:
    """Give back what a way held, so that the next has the memory."""
    gc.collect()
    if device.type == "cuda":
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats(device)


def tried(joined: Group, profile: str, sharded: bool, micro: int, compiled: bool, waits: bool) -> dict[str, Any]:
    """Train a few steps in a way; return its figures."""
    engine.now = waiting if waits else lambda _device: time.perf_counter()
    changes = {"deepspeed": {"train_micro_batch_size_per_gpu": micro}, "training": {"compile": compiled}}
    settings = load(Path("config"), profile, changes, joined.size)
    model = shape.read_model(settings.document()["model"])
    trained = (Sharded if sharded else Replicated)(settings, joined)
    data = Path(os.environ["DATA_DIR"])
    split = tokens.Split(data, tokens.read_manifest(data), TRAIN)
    loader = Loader(split, settings.length, 1, batch=settings.batch, micro=micro, rank=0, ranks=1)
    try:
        for step in range(1, WARM + 1):
            trained.step(loader.read(step, joined.device).batches, 1e-5)
        seconds = []
        for step in range(WARM + 1, WARM + TIMED + 1):
            batches = loader.read(step, joined.device).batches
            began = waiting(joined.device)
            last = trained.step(batches, 1e-5)
            seconds.append(waiting(joined.device) - began)
        on_gpu = joined.device.type == "cuda"
        profiled = kernels(joined, trained, loader) if on_gpu else {}
    finally:
        loader.close()
        destroy(trained)
    each = statistics.median(seconds)
    rate = settings.batch * settings.length / each
    peak = peak_flops(torch.cuda.get_device_name(joined.device)) if on_gpu else None
    return {
        "seconds": [round(value, 4) for value in seconds],
        "tokens_per_second": round(rate),
        "mfu": round(rate * shape.flops_per_token(model) / peak, 4) if peak else None,
        "forward": round(last.forward, 4),
        "backward": round(last.backward, 4),
        "optimizer": round(last.optimizer, 4),
        "loss": round(last.loss, 4),
        "peak_gib": round(torch.cuda.max_memory_allocated(joined.device) / (1 << 30), 2) if on_gpu else None,
        **profiled,
    }


def kernels(joined: Group, trained: Replicated | Sharded, loader: Loader) -> dict[str, Any]:
    """Return how long the GPU computes in a step that is profiled, and its longest kernels, in seconds."""
    activities = [torch.profiler.ProfilerActivity.CUDA]
    batches = loader.read(WARM + TIMED + 1, joined.device).batches
    began = waiting(joined.device)
    with torch.profiler.profile(activities=activities) as taken:
        trained.step(batches, 1e-5)
        took = waiting(joined.device) - began
    spent = sorted(
        ((each.key, each.self_device_time_total / 1e6, each.count) for each in taken.key_averages()),
        key=lambda row: -row[1],
    )
    return {
        "profiled_step": round(took, 4),
        "busy": round(sum(seconds for _name, seconds, _count in spent), 4),
        "kernels": sum(count for _name, _seconds, count in spent),
        "longest": [[name[:80], round(seconds, 4), count] for name, seconds, count in itertools.islice(spent, KERNELS)],
    }


def destroy(trained: Replicated | Sharded) -> None:
    """Let DeepSpeed take its hooks and buffers away."""
    inner = vars(trained).get("_engine")
    if inner is not None:
        inner.destroy()


if __name__ == "__main__":
    main()
