# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the files of a job's output folder say about its cost.

From ``settings.json``: model, batch, precision, price, interval between checkpoints. From ``training_metrics.jsonl``:
the speed and how far it is. From ``metrics.json``, which only a finished job has: ``gpu_name``,
``gpu_memory_total_bytes``, each rank's ``node`` in ``ranks``, ``data.tokens`` (of an epoch),
``checkpoint.blocking_seconds`` (for which one stops the training) and ``checkpoint.restart_seconds`` (from a failure to
the next step). Before that the nodes are those in ``ranks/``.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kit.errors import KitError
from kit.evidence import reports
from kit.files import METRICS_FILE
from kit.pretraining import cost, failures, pace, price, rows, shape
from kit.ranks import state

SETTINGS, ROWS = "settings.json", "training_metrics.jsonl"
MOST_RANKS = 1 << 20  # and sequences of a step, as the settings of a training have it
VALUE_BYTES = {"bf16": 2, "fp16": 2, "fp32": 4}


@dataclass(frozen=True)
class Given:
    """What a person states instead of the files, or because they do not; None leaves it to the files."""

    price: dict[str, Any] | None = None
    gpu_name: str | None = None
    nodes: int | None = None
    epoch_tokens: int | None = None
    blocking: float | None = None
    restart: float | None = None
    mtbf_hours: tuple[float, ...] = failures.MTBF_HOURS


def read(folder: Path, given: Given = Given()) -> cost.Facts:
    """Return what is known of the job. Raise KitError for files that are damaged, and without settings."""
    _require_sensible(given)
    settings, problem = reports.read(folder / SETTINGS)
    if problem:
        raise KitError(f"{problem}: expected the output folder of a pretraining job, job-<ID>")
    if not isinstance(settings, dict):
        raise KitError(f"{folder / SETTINGS}: expected an object, found {type(settings).__name__}")
    metrics = _metrics(folder / METRICS_FILE)
    batch, checkpoint = _part(settings, "batch"), _part(settings, "checkpoint")
    zero, measured = _part(settings, "zero"), _part(metrics, "checkpoint")
    ranks = _count(batch, "ranks", "batch.")
    history = pace.History()
    for row in rows.read(folder / ROWS):
        history.add(row)
    return cost.Facts(
        model=shape.read_model(settings.get("model")),
        training=shape.Training(
            ranks=ranks,
            micro=_count(batch, "micro", "batch."),
            value_bytes=_value_bytes(settings.get("precision")),
            offloaded=zero.get("offload", "none") != "none",
            recomputed=zero.get("checkpoint_activations", False) is True,
        ),
        sequences=_count(batch, "global", "batch."),
        every=_whole(checkpoint.get("every")),
        price=price.read(given.price or settings.get("cost")),
        nodes=given.nodes or _nodes(folder, metrics, ranks),
        gpu_name=given.gpu_name or _text(metrics.get("gpu_name")),
        device_bytes=_whole(metrics.get("gpu_memory_total_bytes")),
        epoch_tokens=given.epoch_tokens or _whole(_part(metrics, "data").get("tokens")),
        blocking=_seconds(given.blocking, measured.get("blocking_seconds")),
        restart=_seconds(given.restart, measured.get("restart_seconds")),
        mtbf_hours=given.mtbf_hours,
        history=history,
    )


def _metrics(path: Path) -> dict[str, Any]:
    found, problem = reports.read(path)
    if problem and os.path.lexists(path):
        raise KitError(problem)
    return found if isinstance(found, dict) else {}


def _nodes(folder: Path, metrics: dict[str, Any], ranks: int) -> int | None:
    """Return on how many nodes the ranks are, or None unless each of them names its own."""
    for states in (_part(metrics, "ranks"), state.read(folder, ranks)):
        names = [_text(each.get("node")) for each in states.values() if isinstance(each, dict)]
        if len(names) == ranks and all(names):
            return len(set(names))
    return None


def _part(document: dict[str, Any], name: str) -> dict[str, Any]:
    found = document.get(name)
    return found if isinstance(found, dict) else {}


def _require_sensible(given: Given) -> None:
    """Raise KitError for a number that is too large to be meant, and to be computed with."""
    numbers = [
        ("nodes", given.nodes),
        ("tokens", given.epoch_tokens),
        ("blocking-seconds", given.blocking),
        ("restart-seconds", given.restart),
        *(("mtbf-hours", hours) for hours in given.mtbf_hours),
    ]
    for name, number in numbers:
        if number is not None and not pace.is_number(number):
            raise KitError(f"--{name}: expected at most {pace.LARGEST:g}, found {number!r}")


def _count(document: dict[str, Any], name: str, prefix: str) -> int:
    found = _whole(document.get(name))
    if found is None or found > MOST_RANKS:
        raise KitError(
            f"{SETTINGS}: {prefix}{name}: expected a whole number from 1 to {MOST_RANKS}, found {document.get(name)!r}"
        )
    return found


def _whole(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 < value <= pace.LARGEST else None


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None


def _seconds(*values: Any) -> float | None:
    """Return the first that is a number of at least 0."""
    return next((float(each) for each in values if pace.is_number(each) and each >= 0), None)


def _value_bytes(precision: Any) -> int:
    if not isinstance(precision, str) or precision not in VALUE_BYTES:
        raise KitError(f"{SETTINGS}: precision: expected one of {', '.join(VALUE_BYTES)}, found {precision!r}")
    return VALUE_BYTES[precision]
