# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A clock beside a Trainer of transformers: each step's loss, gradient, tokens and time. Imports transformers.

The Trainer replaces a loss that is not a number by an average before anybody sees it; the clock switches that off and
ends the training at the first one.
"""

from __future__ import annotations

import math
import time
from typing import Any

from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from kit.metrics import Progress
from kit.training.flops import flops_per_token, peak_flops, shape_of


class NotFiniteError(Exception):
    """A loss or a gradient is not a number: the training is broken."""


class StepClock(TrainerCallback):
    """Times every step by a clock that waits for the device, without the time that saving takes."""

    def __init__(self, progress: Progress | None) -> None:
        """Report each step to ``progress``, which one rank alone has."""
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
