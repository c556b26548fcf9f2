# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A pretraining for the tests of its cost: the document's model on one node of 8 H100, 7.92 USD an hour."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from kit.pretraining import cost, pace, price, shape

GPT = shape.Model(n_embd=1536, n_layer=24, n_head=24, n_positions=2048, vocab_size=50_000)
EIGHT = shape.Training(ranks=8, micro=4)
H100 = "NVIDIA H100 80GB HBM3"

SETTINGS: dict[str, Any] = {
    "model": {
        "n_embd": 1536,
        "n_layer": 24,
        "n_head": 24,
        "n_positions": 2048,
        "vocab_size": 50_000,
        "bos_token_id": 0,
        "eos_token_id": 0,
    },
    "batch": {"global": 512, "micro": 4, "accumulation": 16, "ranks": 8},
    "steps": 49_209,
    "schedule": {"lr": 3e-4, "warmup": 2000},
    "optimizer": {"eps": 1e-8, "weight_decay": 0.1},
    "precision": "bf16",
    "data": {"source": "share"},
    "checkpoint": {"format": "own", "every": 1000, "keep": 5},
    "cost": {"price_per_hour": 7.92, "price_of": "node", "currency": "USD", "scenarios": [350, 2500]},
    "seed": 42,
    "fingerprint": "f" * 64,
}
METRICS: dict[str, Any] = {
    "gpu_name": H100,
    "gpu_memory_total_bytes": 80 << 30,
    "world_size": 8,
    "torch_version": "2.10.0",
    "deepspeed_version": "0.19.8",
    "cuda_version": None,
    "ranks": {f"rank {number}": {"node": "gpu01"} for number in range(8)},
    "data": {"tokens": 51_600_000_000},
    "tokens": {"manifest_sha256": "d" * 64},
    "checkpoint": {"blocking_seconds": 9.0, "restart_seconds": 90.0},
}


def rows(seconds: Iterable[float], first: int = 1, attempt: int = 0, **fields: Any) -> list[dict[str, Any]]:
    """Rows of steps that took so long, one right after the other."""
    found, time = [], 1000.0
    for step, each in enumerate(seconds, first):
        time += each
        row = {
            "job_id": "12",
            "attempt": attempt,
            "time": time,
            "step": step,
            "steps": 49_209,
            "loss": 10.0 - step / 100,
        }
        found.append({**row, "steps_per_second": 1 / each, **fields})
    return found


def history(found: Sequence[dict[str, Any]]) -> pace.History:
    """What is kept of rows."""
    kept = pace.History()
    for row in found:
        kept.add(row)
    return kept


def facts(**changed: Any) -> cost.Facts:
    """The training after 100 steps of 1.8 s: 2,000 steps/h."""
    whole = cost.Facts(
        model=GPT,
        training=EIGHT,
        sequences=512,
        every=1000,
        price=price.Price(7.92, "node", "USD", (350.0, 2500.0)),
        nodes=1,
        gpu_name=H100,
        device_bytes=80 << 30,
        epoch_tokens=51_600_000_000,
        blocking=9.0,
        restart=90.0,
        mtbf_hours=(24.0,),
        history=history(rows([1.8] * 100)),
    )
    return dataclasses.replace(whole, **changed)


def write(folder: Path, settings: Any = None, metrics: Any = None, found: Sequence[dict[str, Any]] = ()) -> Path:
    """A job's output folder with these documents and rows."""
    (folder / "settings.json").write_text(json.dumps(SETTINGS if settings is None else settings))
    if metrics is not None:
        (folder / "metrics.json").write_text(json.dumps(metrics))
    if found:
        (folder / "training_metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in found))
    return folder
