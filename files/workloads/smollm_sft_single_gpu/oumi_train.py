# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Run Oumi's own training with our clock; write training.json and progress.jsonl.

    python oumi_train.py --config FILE --model FOLDER --data FILE --output FOLDER --report FOLDER --accelerator cuda

Oumi silently replaces a loss that is not a number by an average; the clock switches that off and ends the training at
the first one.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import transformers
from kit.errors import KitError
from kit.files import write_json
from kit.metrics import Progress
from kit.training import device as training_device
from kit.training import oumi as training_oumi
from kit.training.step_clock import NotFiniteError, StepClock, computed

REPORT = "training.json"


def overrides(arguments: argparse.Namespace) -> list[str]:
    """Return the settings that depend on the job, as Oumi's dotted overrides."""
    on_cpu = arguments.accelerator != "cuda"
    return [
        *training_oumi.overrides(arguments.model, arguments.data, on_cpu=on_cpu),
        f"training.output_dir={arguments.output}",
        *(["model.device_map=cpu"] if on_cpu else []),
    ]


def train(arguments: argparse.Namespace) -> int:
    """Train and report; return 0 only after a complete training."""
    device = training_device.choose(arguments.accelerator)
    from oumi.train import train as oumi_train  # noqa: PLC0415 - takes seconds, wasted if there is no GPU

    config = training_oumi.configuration(arguments.config, overrides(arguments))
    error: str | None = None
    with training_device.occupied(arguments.accelerator), Progress(arguments.report / "progress.jsonl") as progress:
        clock = StepClock(progress)
        try:
            with training_oumi.watched_by(clock):
                oumi_train(config)
        except (NotFiniteError, RuntimeError, OSError, ValueError) as problem:  # printed, and reported as not completed
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
        # The device the weights were on, which is where training ran; None if none were loaded.
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
