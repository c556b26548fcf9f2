# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Oumi's own training with our clock added: the part that the workloads on one rank and on several share.

Only the functions that train import Oumi and transformers, so that the rest needs neither.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from kit.staged import is_stand_in

WARM_UP = 3  # steps in which kernels are chosen and memory is allocated
ENDS = 5  # steps at each end whose mean loss is compared
# A model with random weights learns nothing in a few hundred steps at a fine-tuning rate.
STAND_IN_LEARNING_RATE = 3e-3


def overrides(model: Path, rows: Path, *, on_cpu: bool) -> list[str]:
    """Return the overrides that depend on the staged model, the file of rows and the device, as Oumi's dotted keys."""
    chosen = [f"model.model_name={model}", f"data.train.datasets[0].dataset_path={rows}"]
    if on_cpu:
        chosen.append("training.mixed_precision_dtype=NONE")
    if is_stand_in(model):
        chosen.append(f"training.learning_rate={STAND_IN_LEARNING_RATE}")
    return chosen


def configuration(path: Path, chosen: list[str]) -> Any:
    """Return the configuration as Oumi reads it, with the overrides ``chosen``; the last one for a key counts."""
    from oumi.core.configs import TrainingConfig  # noqa: PLC0415 - takes seconds, and only training needs it

    config = TrainingConfig.from_yaml_and_arg_list(str(path), chosen)
    config.finalize_and_validate()
    return config


@contextmanager
def watched_by(callback: Any) -> Iterator[None]:
    """Have every Trainer that starts in this context call `callback`.

    Oumi leaves no other way in than the list of callbacks that every Trainer starts with.
    """
    from transformers import trainer  # noqa: PLC0415 - as above

    trainer.DEFAULT_CALLBACKS.append(callback)
    try:
        yield
    finally:
        trainer.DEFAULT_CALLBACKS.remove(callback)


def loss_at_ends(losses: Sequence[Any]) -> tuple[float | None, float | None]:
    """Return the mean loss of the first and of the last steps, or None if there were none."""
    return _mean(losses[:ENDS]), _mean(losses[-ENDS:])


def _mean(losses: Sequence[Any]) -> float | None:
    """Return the mean, which is not finite if one loss is not; JSON holds such numbers as strings."""
    return statistics.fmean(map(float, losses)) if losses else None
