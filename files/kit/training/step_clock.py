# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A clock for a Trainer of transformers: each step's loss, gradient, tokens and time. Imports transformers.

The Trainer silently replaces a loss that is not a number with an average; the clock switches that off and ends the
training at the first one.
"""

from __future__ import annotations

import math
import time
from typing import Any

from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from kit.metrics import Progress
from kit.training.flops import flops_per_token, peak_flops, shape_of


class NotFiniteError(Exception):
    """A loss or a gradient is not finite: the training is broken."""


class StepClock(TrainerCallback):
    """Times every step with a clock that waits for the device, without the time for saving."""

    def __init__(self, progress: Progress | None) -> None:
        """Report each step to ``progress``, which only one rank has."""
        self.progress = progress
        self.rows: list[dict[str, Any]] = []
        self.save_seconds = 0.0
        self.started: float | None = None
        self.model: Any = None
        self._since = 0.0

    def on_train_begin(self, args: TrainingArguments, *_state: Any, model: Any = None, **_other: Any) -> None:
        """Start the clock; let the log show losses that are not finite."""
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
        """Record one step's row. The Trainer has already read the loss from the device, so the step is complete."""
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
            "ended": time.time(),
        }
        self._since = now
        self.rows.append(row)
        if self.progress:
            self.progress.row(**row)
        for name in ("loss", "grad_norm"):
            if row[name] is not None and not math.isfinite(row[name]):
                raise NotFiniteError(f"{name} is {row[name]} in step {row['step']} of {row['steps']}")

    def on_save(self, *_states: Any, **_other: Any) -> None:
        """Exclude the time for saving from the next step."""
        now = time.monotonic()
        self.save_seconds += now - self._since
        self._since = now


def computed(model: Any, rows: list[dict[str, Any]], trained_rows: int, gpu_name: str | None) -> dict[str, Any]:
    """Return FLOPs per token, by the mean length of a row, and the GPU's peak.

    Nothing if the training ended before this was known.
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
