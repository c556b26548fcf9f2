# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# ruff: noqa: E402 - the clock and what libraries read come before their import
"""MLOPS-2.2: fine-tune SmolLM-135M with Oumi on all of a job's GPUs, one rank each, and report the results.

Started by `kit legs` and `kit launch`, which set the ranks' environment. Each leg trains the same rows in the same
steps on any number of ranks, so losses and speeds can be compared. Rank 0 writes metrics.json and progress.jsonl.
"""

from __future__ import annotations

import os
import time

STARTED = time.monotonic()
# DeepSpeed makes PyTorch detect CUDA through NVML, but a node may have NVML without CUDA.
os.environ.setdefault("PYTORCH_NVML_BASED_CUDA_CHECK", "0")

import argparse
import shutil
import sys
from pathlib import Path
from typing import Any

import torch
from kit import strict_json
from kit.errors import KitError
from kit.files import METRICS_FILE
from kit.metrics import Progress, write_metrics
from kit.staged import read_staged
from kit.training import all_reduce, inference
from kit.training import device as training_device
from kit.training.distributed import Group, group
from kit.training.oumi import loss_at_ends
from kit.training.step_clock import NotFiniteError
from oumi_rank import Job, RankClock, train
from oumi_sharding import STRATEGIES
from smollm_checkpointing import compare
from smollm_steady import Steady, accumulation, steady, steps_for
from transformers import AutoTokenizer

ROWS_A_STEP, ROWS_A_PASS = 32, 8  # of all ranks together, which stays equal; of one rank
ROW_TOKENS = 512  # at most


def agree(joined: Group, model: Path, data: Path) -> dict[str, Any]:
    """Check what was staged, on every rank; return its provenance. Raise KitError if a rank has something else."""
    joined.state.phase("reading model and data")
    facts = {"model": read_staged(model, hashed=joined.local_rank == 0), "data": read_staged(data)}
    for name, folder in (("model", model), ("dataset", data)):
        files = strict_json.read(folder / "provenance.json")["files"]
        joined.require_same({f"the files of the {name}": files})
    return facts


def run(joined: Group, job: Job, output: Path, steady_seconds: float) -> tuple[RankClock, Steady]:
    """Train, then continue until the steady window is long enough to measure the speed."""
    joined.state.phase("training")
    progress = Progress(output / "progress.jsonl") if joined.rank == 0 else None
    clock = train(job, joined, progress, f"training.output_dir={output / 'model'}")
    if progress:
        progress.close()
    reached = steady(clock.rows)
    again = output / "speed"
    while (left := steady_seconds - joined.least(reached.seconds)) > 0:
        joined.state.phase("measuring speed")
        steps = int(joined.largest(steps_for(clock.rows, left)))
        more = train(
            job,
            joined,
            None,
            f"training.output_dir={again}",
            f"training.max_steps={steps}",
            "training.save_steps=0",
            "training.save_final_model=false",
        )
        reached += steady(more.rows)
    if joined.rank == 0:
        shutil.rmtree(again, ignore_errors=True)
    return clock, reached


def held_out_loss(model: Path, data: Path, device: torch.device) -> tuple[float, int]:
    """Return the saved model's mean loss per token on rows it was not trained on, and the number of rows."""
    rows = inference.read_rows(data / "held_out.jsonl")
    tokenizer = AutoTokenizer.from_pretrained(model, local_files_only=True)
    return inference.mean_loss(inference.load(model, device), tokenizer, rows), len(rows)


def collect(
    joined: Group, clock: RankClock, reached: Steady, communication: dict[str, Any] | None, accelerator: str
) -> dict[str, Any]:
    """Return the metrics, except for what only rank 0 knows. Rates are for all ranks together; times in seconds."""
    names = ("memory_share", "parameters_share", "device", "compute_seconds")
    ranks = joined.gather({"gpu": joined.gpu, "node": joined.node, **{name: getattr(clock, name) for name in names}})
    sums = joined.gather(clock.checksum)
    computing = [figures["compute_seconds"] for figures in ranks.values()]
    for name, figures in ranks.items():
        figures["same_parameters"] = sums[name] and sums[name] == next(iter(sums.values()))
        figures["pace"] = min(computing) / figures["compute_seconds"] if all(computing) else None
    losses = [row["loss"] for row in clock.rows]
    first, last = loss_at_ends(losses)
    seconds = joined.largest(reached.seconds)
    return {
        "world_size": joined.size,
        "steps": len(clock.rows),
        "planned_steps": clock.rows[-1]["steps"] if clock.rows else None,
        "loss": losses,
        "grad_norm": [row["grad_norm"] for row in clock.rows],
        "loss_first": first,
        "final_loss": last,
        "training_time_seconds": sum(row["step_seconds"] for row in clock.rows) + clock.save_seconds,
        "save_seconds": clock.save_seconds,
        "tokens": clock.rows[-1]["tokens_seen"],
        "tokens_per_second": reached.tokens / seconds,
        "steady": {"seconds": seconds, "steps": reached.steps, "tokens": reached.tokens, "windows": reached.windows},
        "batch": ROWS_A_STEP,
        "batch_per_rank": ROWS_A_STEP // joined.size,
        "init_seconds": joined.largest(joined.init_seconds),
        "process_group": "formed by this project's launcher, not by Oumi",
        "ranks": ranks,
        "distinct_gpus": len({(figures["node"], figures["gpu"]) for figures in ranks.values() if figures["gpu"]}),
        "all_reduce": communication,
        **training_device.describe(joined.device, accelerator),
        "device": clock.device,
        "gpu_uuids": [figures["gpu"] for figures in ranks.values() if figures["gpu"]],
    }


def main() -> int:
    """Run this rank; return 0 after a complete run, else 1 with a line on stderr."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steady-seconds", type=float, default=os.environ.get("HPC_VALIDATION_STEADY_SECONDS", "30"))
    parser.add_argument(
        "--strategy", choices=STRATEGIES, default="ddp", help="for several ranks; a single one has the whole model"
    )
    chosen = parser.parse_args()
    model, data, output = (Path(os.environ[name]) for name in ("MODEL_DIR", "DATA_DIR", "OUTPUT_DIR"))
    accelerator = os.environ["HPC_VALIDATION_ACCELERATOR"]
    config = Path(os.environ.get("CONFIG_FILE") or Path(__file__).with_name("smollm_multi_gpu.yaml"))
    try:
        with group(accelerator, output) as joined:
            facts = agree(joined, model, data)
            communication = None
            if joined.size > 1:
                joined.state.phase("checking the all-reduce")
                parameters = strict_json.read(model / "provenance.json")["parameters"]
                communication = all_reduce.check(joined, 4 * parameters)
            passes = accumulation(ROWS_A_STEP, ROWS_A_PASS, joined.size)
            strategy = chosen.strategy if joined.size > 1 else "ddp"
            job = Job(config, model, data, str(joined.device), passes, strategy)
            clock, reached = run(joined, job, output, chosen.steady_seconds)
            joined.state.phase("reporting")
            metrics = collect(joined, clock, reached, communication, accelerator)
            if joined.rank == 0:
                loss, rows = held_out_loss(output / "model", data, joined.device)
                metrics.update({"completed": True, "held_out_loss": loss, "held_out_rows": rows, **facts})
                metrics["wall_time_seconds"] = time.monotonic() - STARTED
                write_metrics(output / METRICS_FILE, metrics)
                if joined.size > 1:
                    metrics["checkpointing"] = compare(output / "model", joined.device, ROWS_A_PASS, ROW_TOKENS)
                    write_metrics(output / METRICS_FILE, metrics)
                print(f"{joined.size} ranks: {metrics['tokens_per_second']:.0f} tokens/s", flush=True)
    except (KitError, NotFiniteError, OSError, ValueError, RuntimeError) as error:
        print(f"smollm_multi_gpu: {type(error).__name__}: {error}", file=sys.stderr, flush=True)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
