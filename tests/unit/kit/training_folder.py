# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A share with the folder of a job that trains, for tests that look at it or break it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.unit.kit.training_rows import BEGAN, probe_row, step_rows

GIB = 2**30
SETTINGS = {
    "batch": {"global": 512, "micro": 4, "accumulation": 32, "ranks": 4},
    "steps": 1000,
    "checkpoint": {"format": "own", "every": 50, "keep": 5},
    "cost": {"price_per_hour": 7.92, "price_of": "node", "currency": "USD", "scenarios": []},
}


def write(path: Path, document: Any) -> Path:
    """Write JSON."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(document))
    return path


def write_lines(path: Path, rows: list[dict[str, Any]]) -> Path:
    """Write JSON Lines."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def rank_state(rank: int, **changed: Any) -> dict[str, Any]:
    """What a rank reports: two on each node."""
    return {
        "job_id": "12",
        "attempt": 0,
        "rank": rank,
        "node": f"compute{rank // 2 + 1:02}",
        "gpu": f"GPU-{rank}",
        "phase": "training",
        "step": 400,
        "error": None,
        "time": BEGAN + 4000,
        **changed,
    }


def gpu_row(rank: int, time: float, **changed: Any) -> dict[str, Any]:
    """A row of the kit's sampler."""
    return {
        "job_id": "12",
        "attempt": 0,
        "node": "host",
        "time": time,
        "uuid": f"GPU-{rank}",
        "util": 97,
        "memory_used": (60 + rank) * GIB,
        "memory_total": 80 * GIB,
        **changed,
    }


def checkpoint(folder: Path, called: str, /, **changed: Any) -> Path:
    """A whole checkpoint of one rank."""
    path = folder / called
    path.mkdir(parents=True)
    (path / "rank-0000-of-0001.safetensors").write_bytes(b"x" * 100)
    step = int(called.rpartition("_")[2])
    files = [{"name": "rank-0000-of-0001.safetensors", "bytes": 100, "sha256": "0" * 64}]
    write(
        path / "manifest.json",
        {"schema": 1, "name": called, "step": step, "time": BEGAN + 10 * step, "files": files, **changed},
    )
    return path


def training(share: Path) -> Path:
    """The folder of job 12 after 400 steps of 1000 on 4 ranks of two nodes, 4000 s after its first step."""
    folder = share / "models/gpt-pretraining/job-12"
    write(folder / "settings.json", SETTINGS)
    rows = step_rows(400)
    for row in rows:
        row["checkpoint_step"] = row["step"] // 50 * 50
    rows[299]["validation_loss"] = 3.25
    write_lines(folder / "training_metrics.jsonl", rows)
    probes = [probe_row(step, BEGAN + step * 10, [0.1] * 4) for step in range(20, 401, 20)]
    write_lines(folder / "performance_metrics.jsonl", probes)
    for rank in range(4):
        write(folder / f"ranks/rank-{rank}.json", rank_state(rank))
    for node in range(2):
        samples = [gpu_row(rank, BEGAN + 4000) for rank in (2 * node, 2 * node + 1)]
        write_lines(folder / f"nodes/compute{node + 1:02}/gpu.jsonl", samples)
    checkpoint(folder / "checkpoints", "checkpoint_step_350")
    checkpoint(folder / "checkpoints", "checkpoint_step_400")
    write(share / "jobs/.markers/12.begin.json", {"job_id": "12", "attempt": 0, "host": "a", "time": BEGAN - 500})
    return folder
