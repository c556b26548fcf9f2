# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a training must have left, worked out from its profile and its rows alone, to compare with what it did leave."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from kit import strict_json
from kit.profiles.model import Profile

Rows = Sequence[Mapping[str, Any]]


def steps_of(every: int, last: int) -> list[int]:
    """Return each so-manieth step, and the last."""
    return sorted({*range(every, last + 1, every), last})


def improving(profile: Profile, evaluations: Rows) -> list[int]:
    """Return the steps whose evaluation was the best so far, by more than what counts."""
    rule = profile.training.early_stopping
    sign = 1 if rule.mode == "min" else -1
    best, found = math.inf, []
    for row in evaluations:
        value = sign * float(row[rule.monitor])
        if value < best - (0 if best == math.inf else rule.min_delta):
            best = value
            found.append(int(row["step"]))
    return found


def stops_at(profile: Profile, evaluations: Rows) -> int | None:
    """Return the step at which early stopping has to end the training; None if it must not."""
    rule = profile.training.early_stopping
    if not rule.enabled:
        return None
    better = {*improving(profile, evaluations)}
    without = 0
    for row in evaluations:
        without = 0 if row["step"] in better else without + 1
        if without >= rule.patience:
            return int(row["step"])
    return None


def saved_at(profile: Profile, last: int, evaluations: Rows) -> list[int]:
    """Return the steps at which checkpoints have to be saved."""
    saved = profile.training.checkpointing
    best = improving(profile, evaluations) if saved.best_only else []
    return sorted({*steps_of(saved.every_steps, last), *best})


def kept_of(profile: Profile, saved: Sequence[int], evaluations: Rows) -> list[int]:
    """Return the steps whose checkpoints have to be there in the end: the newest, and the best of those saved."""
    rule = profile.training.checkpointing
    best = [step for step in improving(profile, evaluations) if step in {*saved}][-1:]
    return sorted({*sorted(saved)[-(1 if rule.best_only else rule.keep) :], *best})


def histograms(path: Path) -> dict[str, dict[str, Any]]:
    """Return of each step's histograms how many weights there are, and how many no bin counts.

    A tensor whose weights are all equal has no bins. Raise OSError, ValueError.
    """
    found = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        row = strict_json.parse(line)
        tensors = [*row["weights"].values()]
        weights = sum(each["weights"] for each in tensors)
        found[f"step {row['step']}"] = {"weights": weights, "uncounted": weights - sum(map(_counted, tensors))}
    return found


def _counted(tensor: Mapping[str, Any]) -> int:
    if tensor["counts"] is None:
        return int(tensor["weights"]) if tensor["min"] == tensor["max"] else 0
    return sum(tensor["counts"])


def differing(one: Iterable[int], other: Iterable[int]) -> list[int]:
    """Return what only one of both has."""
    return sorted({*one} ^ {*other})
