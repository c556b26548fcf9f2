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
import sys
from pathlib import Path

import transformers
from kit import strict_json, training_device
from kit.errors import KitError
from kit.files import write_json
from kit.metrics import Progress
from kit.step_clock import NotFiniteError, StepClock, computed

REPORT = "training.json"
# A model of random weights learns nothing in 63 steps at a fine-tuning rate.
STAND_IN_LEARNING_RATE = 3e-3


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
    return bool(strict_json.read(model / "provenance.json")["source"] == "stand-in")


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
