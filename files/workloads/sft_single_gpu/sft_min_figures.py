# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Compute figures from the measured times, tokens and bytes. No PyTorch."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from kit.training.flops import Shape, flops_per_token

WARM_UP_STEPS = 2  # the first loads kernels and creates the optimizer's state, the second is the first to use all of it


@dataclass(frozen=True)
class Batch:
    """Samples of a micro-batch, micro-batches of a step, tokens of a sample."""

    size: int
    accumulation: int
    length: int

    @property
    def samples(self) -> int:
        """Samples that one step learns from."""
        return self.size * self.accumulation

    @property
    def tokens(self) -> int:
        """Tokens that one step computes, including padding and all its micro-batches."""
        return self.samples * self.length


@dataclass
class Steps:
    """Each step's results, one list element each; times in seconds, memory in bytes."""

    loss: list[float] = field(default_factory=list)
    grad_norm: list[float] = field(default_factory=list)
    learning_rate: list[float] = field(default_factory=list)
    epoch: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    tokens_non_padding: list[int] = field(default_factory=list)
    memory_bytes: list[int] = field(default_factory=list)

    def __len__(self) -> int:
        """Completed steps."""
        return len(self.seconds)


def learning_rate(step: int, steps: int, base: float) -> float:
    """Return the rate of ``step`` (from 1): falling linearly from ``base`` to 0 after the last, without warm-up."""
    return base * (steps - step + 1) / steps


def percentile(values: Sequence[float], share: float) -> float:
    """Return the smallest value that ``share`` of the values do not exceed (nearest rank)."""
    return sorted(values)[max(0, math.ceil(share * len(values)) - 1)]


def step_times(seconds: Sequence[float]) -> dict[str, float | None]:
    """Return the median and 95th percentile in seconds, without warm-up, and the latter's excess as a fraction."""
    steady = seconds[WARM_UP_STEPS:]
    if not steady:
        return dict.fromkeys(("step_seconds_median", "step_seconds_p95", "step_seconds_spread"))
    median, p95 = statistics.median(steady), percentile(steady, 0.95)
    return {"step_seconds_median": median, "step_seconds_p95": p95, "step_seconds_spread": p95 / median - 1}


def memory_growth(peaks: Sequence[int]) -> float | None:
    """Return by what fraction the last third of the steps used more memory than the second step; None for under three.

    The first step creates the optimizer's state only at its end, so the second is the first to need everything.
    """
    if len(peaks) < 3 or peaks[1] <= 0:
        return None
    return max(peaks[-max(1, len(peaks) // 3) :]) / peaks[1] - 1


def document_figures(steps: Steps, batch: Batch, runtime: float) -> dict[str, float | int | None]:
    """Return the figures as the document that this workload follows names and counts them.

    ``runtime`` covers training and saving, in seconds, as in the document. Its tokens omit gradient accumulation.
    """
    done = len(steps)
    tokens = done * batch.size * batch.length
    return {
        "train_runtime_s": runtime,
        "train_loss": statistics.fmean(steps.loss[:done]) if done else None,
        "train_samples_per_second": done * batch.samples / runtime if runtime > 0 else None,
        "train_steps_per_second": done / runtime if runtime > 0 else None,
        "approx_tokens": tokens,
        "approx_tokens_per_second": tokens / runtime if runtime > 0 else None,
        "wall_time_s": runtime,
        "approx_tokens_per_s": tokens / runtime if runtime > 0 else None,
    }


def figures(steps: Steps, batch: Batch, shape: Shape, train_seconds: float, peak: float | None) -> dict[str, Any]:
    """Return the actual figures: every computed token, and training time without start-up and saving.

    ``mfu`` relates the median step after the warm-up to ``peak`` (FLOP/s); it is None if ``peak`` is None.
    """
    times = step_times(steps.seconds)
    median = times["step_seconds_median"]
    total = len(steps) * batch.tokens
    steady = batch.tokens / median if median else None
    flops = flops_per_token(shape)
    return {
        **times,
        "tokens_total": total,
        "tokens_non_padding": sum(steps.tokens_non_padding),
        "tokens_per_second": total / train_seconds if train_seconds > 0 else None,
        "tokens_per_second_median": steady,
        "memory_growth": memory_growth(steps.memory_bytes),
        "parameters": shape.parameters,
        "trainable_parameters": shape.trainable,
        "layers": shape.layers,
        "attention_width": shape.width,
        "sequence_length": shape.length,
        "flops_per_token": flops,
        "peak_flops": peak,
        "mfu": steady * flops / peak if steady and peak else None,
    }
