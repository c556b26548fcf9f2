# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Run Oumi's own training with a clock of ours beside it; writes training.json and progress.jsonl.

    python oumi_train.py --config FILE --model FOLDER --data FILE --output FOLDER --report FOLDER --accelerator cuda

Oumi replaces a loss that is not a number by an average before anybody sees it; the clock switches that off and ends the
training at the first one.
"""

from __future__ import annotations

import os

# Read when OpenMP is loaded. Threads that spin while they wait halve the speed of a CPU that other work shares.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

import argparse
import json
import math
import sys
import time
from pathlib import Path
from typing import Any

import transformers
from kit import training_device
from kit.errors import KitError
from kit.files import write_json
from kit.flops import flops_per_token, peak_flops, shape_of
from kit.metrics import Progress
from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

REPORT = "training.json"
# A model of random weights learns nothing in 63 steps at a fine-tuning rate.
STAND_IN_LEARNING_RATE = 3e-3


class NotFiniteError(Exception):
    """A loss or a gradient is not a number: the training is broken."""


class StepClock(TrainerCallback):
    """Times every step by a clock that waits for the device, without the time that saving takes."""

    def __init__(self, progress: Progress) -> None:
        self.progress = progress
        self.rows: list[dict[str, Any]] = []
        self.save_seconds = 0.0
        self.started: float | None = None
        self.model: Any = None
        self._since = 0.0

    def on_train_begin(self, args: TrainingArguments, *_state: Any, model: Any = None, **_other: Any) -> None:
        """Start the clock; let losses that are not finite through to the log."""
        args.logging_nan_inf_filter = False
        self.model = model
        self.started = self._since = time.monotonic()

    def on_log(
        self,
        _args: TrainingArguments,
        state: TrainerState,
        _control: TrainerControl,
        logs: dict[str, Any] | None = None,
        **_other: Any,
    ) -> None:
        """Take one step's row. The trainer has read the loss from the device by now, so the step is done."""
        if not logs or "loss" not in logs:
            return
        now = time.monotonic()
        row = {
            "step": state.global_step,
            "steps": state.max_steps,
            "epoch": logs.get("epoch"),
            "loss": float(logs["loss"]),
            "grad_norm": None if logs.get("grad_norm") is None else float(logs["grad_norm"]),
            "learning_rate": logs.get("learning_rate"),
            "tokens_seen": None if logs.get("num_tokens") is None else int(logs["num_tokens"]),
            "step_seconds": now - self._since,
        }
        self._since = now
        self.rows.append(row)
        self.progress.row(**row)
        for name in ("loss", "grad_norm"):
            if row[name] is not None and not math.isfinite(row[name]):
                raise NotFiniteError(f"{name} is {row[name]} in step {row['step']} of {row['steps']}")

    def on_save(self, *_states: Any, **_other: Any) -> None:
        """Leave the time of saving out of the next step's."""
        now = time.monotonic()
        self.save_seconds += now - self._since
        self._since = now


def computed(model: Any, rows: list[dict[str, Any]], trained_rows: int, gpu_name: str | None) -> dict[str, Any]:
    """Return what the training computed for each token: FLOPs by the length of the mean row, and the GPU's peak.

    Nothing where the training did not come so far that this is known.
    """
    if model is None or not rows or not rows[-1]["tokens_seen"]:
        return {}
    shape = shape_of(model, round(rows[-1]["tokens_seen"] / trained_rows))
    return {
        "parameters": shape.parameters,
        "layers": shape.layers,
        "attention_width": shape.width,
        "row_tokens_mean": shape.length,
        "flops_per_token": flops_per_token(shape),
        "peak_flops": peak_flops(gpu_name),
    }


def overrides(arguments: argparse.Namespace, stand_in: bool) -> list[str]:
    """Return what depends on the job, in Oumi's own dotted words."""
    chosen = [
        f"model.model_name={arguments.model}",
        f"data.train.datasets[0].dataset_path={arguments.data}",
        f"training.output_dir={arguments.output}",
    ]
    if arguments.accelerator != "cuda":
        chosen += ["training.mixed_precision_dtype=NONE", "model.device_map=cpu"]
    if stand_in:
        chosen.append(f"training.learning_rate={STAND_IN_LEARNING_RATE}")
    return chosen


def is_stand_in(model: Path) -> bool:
    """Tell whether the staged model says of itself that it is one."""
    return bool(json.loads((model / "provenance.json").read_text())["source"] == "stand-in")


def train(arguments: argparse.Namespace) -> int:
    """Train and report; 0 only after a whole training."""
    device = training_device.choose(arguments.accelerator)
    from oumi.core.configs import TrainingConfig  # noqa: PLC0415 - seconds, not to be spent where there is no GPU
    from oumi.train import train as oumi_train  # noqa: PLC0415

    config = TrainingConfig.from_yaml_and_arg_list(
        str(arguments.config), overrides(arguments, is_stand_in(arguments.model))
    )
    config.finalize_and_validate()
    error: str | None = None
    with training_device.occupied(arguments.accelerator), Progress(arguments.report / "progress.jsonl") as progress:
        clock = StepClock(progress)
        # The only way in that Oumi leaves: the list of callbacks that every Trainer starts from.
        transformers.trainer.DEFAULT_CALLBACKS.append(clock)
        try:
            oumi_train(config)
        except (NotFiniteError, RuntimeError, OSError, ValueError) as problem:  # told, and reported as not completed
            error = f"{type(problem).__name__}: {problem}"
            print(f"the training ended early: {error}", file=sys.stderr)
    facts = training_device.describe(device, arguments.accelerator)
    trained_rows = config.data.train.datasets[0].sample_count
    document = {
        **computed(clock.model, clock.rows, trained_rows, facts["gpu_name"]),
        "completed": error is None,
        "error": error,
        "started": clock.started,
        "rows": clock.rows,
        "save_seconds": clock.save_seconds,
        **facts,
        # The device that the weights were on, which is what trained; None where none were loaded.
        "device": None if clock.model is None else next(clock.model.parameters()).device.type,
        "transformers_version": transformers.__version__,
    }
    write_json(arguments.report / REPORT, document)
    return 0 if error is None else 1


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("config", "model", "data", "output", "report"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    parser.add_argument("--accelerator", choices=("cuda", "simulated", "cpu"), required=True)
    try:
        return train(parser.parse_args())
    except KitError as problem:
        print(f"oumi_train: {problem}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
