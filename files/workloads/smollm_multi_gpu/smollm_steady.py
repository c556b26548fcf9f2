# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Select the steps whose speed counts: after the warm-up, excluding saving. Pure."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kit.training.oumi import WARM_UP

GAP = 0.05  # seconds between two steps; a longer gap means something other than training ran between them
Row = Mapping[str, Any]  # of kit.training.step_clock


@dataclass(frozen=True)
class Steady:
    """Times in seconds, the windows since the epoch; tokens of all ranks, without padding."""

    windows: list[list[float]]
    seconds: float
    tokens: int
    steps: int

    def __add__(self, other: Steady) -> Steady:
        return Steady(
            self.windows + other.windows,
            self.seconds + other.seconds,
            self.tokens + other.tokens,
            self.steps + other.steps,
        )


def steady(rows: Sequence[Row]) -> Steady:
    """Return the totals of the steps after the warm-up."""
    timed = rows[WARM_UP:]
    if not timed:
        return Steady([], 0.0, 0, 0)
    windows: list[list[float]] = []
    for row in timed:
        begun, ended = row["ended"] - row["step_seconds"], row["ended"]
        if windows and begun - windows[-1][1] <= GAP:
            windows[-1][1] = ended
        else:
            windows.append([begun, ended])
    tokens = (timed[-1]["tokens_seen"] or 0) - (rows[WARM_UP - 1]["tokens_seen"] or 0)
    return Steady(windows, math.fsum(row["step_seconds"] for row in timed), tokens, len(timed))


def steps_for(rows: Sequence[Row], seconds: float) -> int:
    """Return the number of steps, including the warm-up, for a steady window of that many seconds."""
    median = statistics.median(row["step_seconds"] for row in rows[WARM_UP:] or rows)
    return WARM_UP + max(1, math.ceil(1.1 * seconds / median))


def accumulation(rows_a_step: int, rows_a_pass: int, ranks: int) -> int:
    """Return a rank's passes in a step of all ranks together; raise ValueError if they do not divide evenly."""
    passes, rest = divmod(rows_a_step, rows_a_pass * ranks)
    if rest or passes < 1:
        raise ValueError(f"a step of {rows_a_step} rows cannot be split into passes of {rows_a_pass} on {ranks} ranks")
    return passes
