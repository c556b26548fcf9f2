# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reduction of the sampler's rows: count, mean, min, p5 and p95 per GPU and quantity."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

QUANTITIES = ("util", "memory_used", "power_w", "temperature_c", "sm_clock_mhz", "sm_occupancy", "tensor_activity")


def percentile(ordered: Sequence[float], per_cent: float) -> float:
    """Return a percentile of sorted values, interpolated linearly between the two nearest."""
    place = (len(ordered) - 1) * per_cent / 100
    low, high = math.floor(place), math.ceil(place)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)


def reduced(values: Iterable[Any]) -> dict[str, float] | None:
    """Return the reduction of the values that are numbers, or None if there are none."""
    ordered = sorted(value for value in values if _is_number(value))
    if not ordered:
        return None
    return {
        "count": len(ordered),
        "mean": math.fsum(ordered) / len(ordered),
        "min": ordered[0],
        "p5": percentile(ordered, 5),
        "p95": percentile(ordered, 95),
    }


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def gpu_of(row: dict[str, Any]) -> str | None:
    """Return the GPU of a row: its UUID, else its PCI address, else its name; None if the row names none."""
    return row.get("uuid") or row.get("pci") or row.get("name") or None


def by_gpu(rows: Iterable[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return the reductions of each GPU that the rows name, by its name from `gpu_of`."""
    grouped: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        key = gpu_of(row)
        if key:
            grouped.setdefault(key, []).append(row)
    return {
        key: {quantity: reduced(row.get(quantity) for row in group) for quantity in QUANTITIES}
        for key, group in grouped.items()
    }
