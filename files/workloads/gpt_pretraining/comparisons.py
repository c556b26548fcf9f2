# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Compare the legs of a job: the same training, done in another way, must have the same losses on the same samples."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any


def apart(one: Mapping[str, Any], other: Mapping[str, Any], most: int | None = None) -> dict[str, Any]:
    """Return how far two runs are apart over the steps that both made: {steps, first, last, loss, samples}.

    With ``most`` only the first so many steps count: where sums are rounded differently, the difference grows.

    A run is {first, loss, checksums}, by step from ``first``. ``loss`` is the largest difference, in either direction;
    ``samples`` is the number of steps that read other tokens. Without a step in common both are None.
    """
    first = max(one["first"], other["first"])
    last = min(end_of(one), end_of(other), math.inf if most is None else first + most - 1)
    if last < first:
        return {"steps": 0, "first": None, "last": None, "loss": None, "samples": None}
    steps = range(first, int(last) + 1)
    differences = [abs(_at(one, "loss", step) - _at(other, "loss", step)) for step in steps]
    return {
        "steps": len(steps),
        "first": first,
        "last": int(last),
        # What is no number is as far apart as can be, and no maximum hides it.
        "loss": max(differences) if all(map(math.isfinite, differences)) else math.inf,
        "samples": sum(_at(one, "checksums", step) != _at(other, "checksums", step) for step in steps),
    }


def end_of(run: Mapping[str, Any]) -> int:
    """Return a run's last step."""
    return int(run["first"]) + len(run["loss"]) - 1


def _at(run: Mapping[str, Any], key: str, step: int) -> float:
    return float(run[key][step - run["first"]])


def spike(losses: list[float], window: int = 100, steps: int = 5) -> float | None:
    """Return by which factor ``steps`` losses in a row were at least above the mean of the ``window`` before them.

    None if there are too few. 2 is where others stop a training (llm-foundry's KillLossSpike).
    """
    window = min(window, max(1, len(losses) // 4))
    factors = [
        min(losses[at : at + steps]) / (sum(losses[at - window : at]) / window)
        for at in range(window, len(losses) - steps + 1)
    ]
    return max(factors) if factors else None
