# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Making a device's model with a fault in it: faulty_embedded.py FAULT and what train.py is told.

It stands in for train.py. Each puts one thing wrong from outside. The plays of tests/faults/edge.yml use it.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Any

import embedded
import exporting
import numpy as np
import quantising
import torch
import train
from encoder import Encoder

NAME = sys.argv.pop(1)


def calibrated_with(change: Any) -> None:
    """Change what it is calibrated with."""
    samples_of = embedded.samples_of

    def changed(windows: Any, *given: Any) -> tuple[np.ndarray, np.ndarray]:
        inputs, truth = samples_of(windows, *given)
        return (change(inputs) if Path(windows.inputs.filename).name.startswith("calibration") else inputs), truth

    embedded.samples_of = changed


def calibration_shifted() -> None:
    """Calibrate with windows that are all shifted."""
    calibrated_with(lambda inputs: inputs + 2)


def calibration_small() -> None:
    """Calibrate with windows that are all smaller."""
    calibrated_with(lambda inputs: inputs * np.float32(0.3))


def still_floating() -> None:
    """Call the floating-point model one of whole numbers."""

    def copied(path: Path, target: Path, method: str, _calibration: Any) -> dict[str, Any]:
        shutil.copy(path, target)
        left, due = quantising.left_out(path)
        return {"method": method, "due": due, **quantising.products(target, left)}

    quantising.quantize = copied


def other_weights_exported() -> None:
    """Export the weights of another step."""
    export = exporting.export

    def changed(model: Encoder, *given: Any) -> dict[str, Any]:
        with torch.no_grad():
            kept = model.head.bias.clone()
            model.head.bias += 0.01
            found = export(model, *given)
            model.head.bias.copy_(kept)
        return found

    exporting.export = changed


def not_pruned() -> None:
    """Take nothing away."""
    prune = embedded.prune
    embedded.prune = lambda model, _amount, example: prune(model, 0.0, example)


def not_tuned() -> None:
    """Prune without training afterwards."""
    tuned = embedded.tuned

    def changed(leg: Any, model: Encoder, name: str) -> dict[str, float]:
        if name != embedded.PRUNED:
            return tuned(leg, model, name)
        with torch.no_grad():
            for weight in model.parameters():
                weight.mul_(0.7)  # as if much more had been taken away
        return embedded.tested(leg, embedded.Trainer(*_given(leg, name), stall=leg.stall, module=model))

    embedded.tuned = changed


def _given(leg: Any, name: str) -> tuple[Any, ...]:
    profile = embedded.short(leg.profile, embedded.FINE_TUNE, embedded.EXTRA_STEPS, embedded.EXTRA_RATE, {})
    data = [leg.data(stem, profile) for stem in (profile.data.train, profile.data.validation)]
    return (leg.joined, profile, *data, leg.output / name)


FAULTS = (
    calibration_shifted,
    calibration_small,
    still_floating,
    other_weights_exported,
    not_pruned,
    not_tuned,
)

if __name__ == "__main__":
    {fault.__name__: fault for fault in FAULTS}[NAME]()
    sys.exit(train.main())
