# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""GPU samples from the time in which a training ran steadily: start-up, evaluation and saving are not judged."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from kit import strict_json
from kit.gpu.reduce import by_gpu, gpu_of

LEAST_SAMPLES = 20  # fewer are too few for a mean: it is then None, with the reason
LONGEST_GAP = 2.0  # seconds without a sample: what a GPU did then is unknown
Window = Sequence[float]  # begin and end, seconds since the epoch


def read_rows(path: Path) -> Iterator[dict[str, Any]]:
    """Return the sampler's rows, skipping lines that are not rows: the judge counts those. Raise OSError."""
    with open(path, encoding="utf-8", errors="replace") as stream:
        for line in stream:
            try:
                row = strict_json.parse(line)
            except ValueError:
                continue
            if isinstance(row, dict):
                yield row


def within(rows: Iterable[dict[str, Any]], windows: Sequence[Window]) -> Iterator[dict[str, Any]]:
    """Return the rows whose time is in one of the windows."""
    for row in rows:
        moment = row.get("time")
        if isinstance(moment, (int, float)) and any(begin <= moment <= end for begin, end in windows):
            yield row


def reduce(rows: Iterable[dict[str, Any]], windows: Sequence[Window]) -> dict[str, dict[str, Any]]:
    """Return each GPU's quantities over the windows (`kit.gpu.reduce`).

    With too few samples all are None, with ``why``; a quantity missing from some of the samples is None by itself.
    """
    rows = list(rows)
    found: dict[str, dict[str, Any]] = {}
    for key in by_gpu(rows):
        inside = [row for row in within(rows, windows) if gpu_of(row) == key]
        why = _doubt([float(row["time"]) for row in inside], windows)
        quantities = by_gpu(inside).get(key, {"util": None})
        found[key] = {**dict.fromkeys(quantities), "why": why} if why else _whole(quantities, len(inside))
    return found


def _whole(quantities: dict[str, Any], samples: int) -> dict[str, Any]:
    """Drop quantities that are missing from some samples: their values there are unknown."""
    lacking = {name: samples - each["count"] for name, each in quantities.items() if each and each["count"] < samples}
    whole = {name: None if name in lacking else each for name, each in quantities.items()}
    told = ", ".join(f"{number} have no {name}" for name, number in lacking.items())
    return {**whole, "why": f"of {samples} samples in the steady window {told}"} if told else whole


def _doubt(moments: list[float], windows: Sequence[Window]) -> str | None:
    """Return why samples at these times are not enough for the windows, or None if they are."""
    if len(moments) < LEAST_SAMPLES:
        return f"{len(moments)} samples in the steady window, expected at least {LEAST_SAMPLES}"
    for begin, end in windows:
        inside = [begin, *sorted(moment for moment in moments if begin <= moment <= end), end]
        gap = max(later - earlier for earlier, later in zip(inside, inside[1:]))
        if gap > LONGEST_GAP:
            return f"no sample for {gap:.1f} s of the steady window"
    return None
