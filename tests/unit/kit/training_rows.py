# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rows of a training that goes well, for tests that break them."""

from __future__ import annotations

from typing import Any

BEGAN = 1_800_000_000.0  # seconds since the epoch

Row = dict[str, Any]


def step_row(step: int, time: float, **changed: Any) -> Row:
    """A row of training_metrics.jsonl."""
    return {
        "job_id": "12",
        "attempt": 0,
        "time": time,
        "timestamp": "2027-01-15T08:00:00.000Z",
        "step": step,
        "steps": 1000,
        "loss": 3.0,
        "learning_rate": 3e-4,
        "grad_norm": 0.5,
        "steps_per_second": 0.5,
        "tokens_per_second": 1000.0,
        "memory_bytes": None,
        "loss_scale": None,
        "skipped_steps": 0,
        "checkpoint_step": 0,
        **changed,
    }


def step_rows(count: int, every: float = 10.0, **changed: Any) -> list[Row]:
    """Rows of steps 1 to ``count``, ``every`` so many seconds."""
    return [step_row(step, BEGAN + step * every, **changed) for step in range(1, count + 1)]


def probe_row(step: int, time: float, solo: list[float | None], **changed: Any) -> Row:
    """A row of performance_metrics.jsonl whose step was probed."""
    return {
        "job_id": "12",
        "attempt": 0,
        "time": time,
        "step": step,
        "data_seconds": 0.01,
        "forward_seconds": 0.5,
        "backward_seconds": 1.0,
        "optimizer_seconds": 0.2,
        "step_seconds": 2.0,
        "mfu": 0.4,
        "solo_seconds": solo,
        **changed,
    }
