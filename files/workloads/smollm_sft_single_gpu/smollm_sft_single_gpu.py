# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""MLOPS-1.2: fine-tune SmolLM-135M with Oumi on one GPU, run inference with it, and report the results.

The job script sets the environment (MODEL_DIR, DATA_DIR, OUTPUT_DIR, CONFIG_FILE, HPC_VALIDATION_ACCELERATOR). Runs
oumi_train.py and then kit.training.inference, each in its own process, so that the second sees only what the first
saved. Writes metrics.json from both reports. Exit code 0 only if both succeeded.
"""

from __future__ import annotations

import os
import signal
import statistics
import subprocess
import sys
import time
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

from kit import strict_json
from kit.errors import KitError
from kit.files import METRICS_FILE
from kit.metrics import write_metrics
from kit.process.bounded import end
from kit.staged import read_staged
from kit.training.oumi import WARM_UP, loss_at_ends

HERE = Path(__file__).resolve().parent
CHILD_PATIENCE = 8  # seconds: the job script kills this process 10 s after asking it to end


def summarise(rows: list[dict[str, Any]], save_seconds: float) -> dict[str, Any]:
    """Summarise the steps' rows. Times in seconds; tokens without padding, as counted by the trainer."""
    seconds = [row["step_seconds"] for row in rows]
    losses = [row["loss"] for row in rows]
    first, last = loss_at_ends(losses)
    timed = rows[WARM_UP:]
    tokens = [row["tokens_seen"] for row in rows]
    seen = tokens[-1] if tokens else None
    rate = None
    if timed and seen is not None and tokens[WARM_UP - 1] is not None:
        rate = (seen - tokens[WARM_UP - 1]) / sum(row["step_seconds"] for row in timed)
    return {
        "steps": len(rows),
        "planned_steps": rows[-1]["steps"] if rows else None,
        "loss": losses,
        "grad_norm": [row["grad_norm"] for row in rows],
        "loss_first": first,
        "loss_last": last,
        "learning_rate_highest": max((row["learning_rate"] for row in rows), default=None),
        "epochs": rows[-1]["epoch"] if rows else None,
        "training_time_seconds": sum(seconds) + save_seconds if rows else None,
        "save_seconds": save_seconds,
        "first_step_seconds": seconds[0] if seconds else None,
        "step_seconds_median": statistics.median(seconds[WARM_UP:]) if timed else None,
        "tokens": seen,
        "tokens_per_second": rate,
    }


class Children:
    """Run scripts one after another; end the running one when this process is asked to end."""

    def __init__(self) -> None:
        self._running: subprocess.Popen[bytes] | None = None
        signal.signal(signal.SIGTERM, self._terminated)

    def run(self, *script: str, **options: Path | str) -> int:
        """Run a script in this folder, or a module (-m NAME), with options; return its exit code."""
        named = [word for name, value in options.items() for word in (f"--{name.replace('_', '-')}", str(value))]
        self._running = subprocess.Popen([sys.executable, *script, *named], cwd=HERE)
        return self._running.wait()

    def _terminated(self, number: int, _frame: FrameType | None) -> NoReturn:
        if self._running is not None:
            end(self._running, CHILD_PATIENCE)
        raise SystemExit(128 + number)


def utilisation(training: dict[str, Any], tokens_per_second: float | None) -> float | None:
    """Return model FLOPs utilisation as a fraction of the GPU's dense bf16 peak; None if either is unknown."""
    flops, peak = training.get("flops_per_token"), training.get("peak_flops")
    return tokens_per_second * flops / peak if tokens_per_second and flops and peak else None


def read_report(path: Path) -> dict[str, Any]:
    """Return a script's report; an empty dict if it wrote none."""
    try:
        return dict(strict_json.read(path))
    except (OSError, ValueError):
        return {}


def main() -> int:
    """Run the whole workload."""
    began = time.monotonic()
    model, data, output = (Path(os.environ[name]) for name in ("MODEL_DIR", "DATA_DIR", "OUTPUT_DIR"))
    accelerator = os.environ["HPC_VALIDATION_ACCELERATOR"]
    trained = output / "model"
    facts = {"model": read_staged(model), "data": read_staged(data)}
    print(f"fine-tuning {facts['model']['description']} on {facts['data']['description']}", flush=True)
    children = Children()
    status = children.run(
        "oumi_train.py",
        config=Path(os.environ.get("CONFIG_FILE") or HERE / "smollm_sft_single_gpu.yaml"),
        model=model,
        data=data / "train.jsonl",
        output=trained,
        report=output,
        accelerator=accelerator,
    )
    training = read_report(output / "training.json")
    if status == 0:
        status = children.run(
            "-m",
            "kit.training.inference",
            untrained=model,
            trained=trained,
            held_out=data / "held_out.jsonl",
            report=output,
            accelerator=accelerator,
        )
    rows, save_seconds = training.pop("rows", []), training.pop("save_seconds", 0.0)
    started = training.pop("started", None)
    inference = read_report(output / "inference.json")
    reached = summarise(rows, save_seconds)
    metrics = {
        **training,
        **reached,
        "mfu": utilisation(training, reached["tokens_per_second"]),
        "startup_seconds": None if started is None else started - began,
        "wall_time_seconds": time.monotonic() - began,
        "inference": inference or None,
        "checkpoints": inference.get("checkpoints"),
        **facts,
    }
    write_metrics(output / METRICS_FILE, metrics)
    return status


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (KitError, OSError) as problem:
        sys.exit(f"MLOPS-1.2: {problem}")
