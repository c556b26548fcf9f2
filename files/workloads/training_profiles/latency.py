# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How long an inference takes, of several models in turn: minutes apart a machine's own speed differs by half."""

from __future__ import annotations

import gc
import time
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from sessions import INPUT, OUTPUT, session

WARM_UP, ROUND = 20, 25  # inferences


def interleaved(models: Mapping[str, Path], windows: np.ndarray, count: int) -> dict[str, dict[str, float]]:
    """Return of each model the 50th and 99th percentile of ``count`` inferences (ms), some of each in turn."""
    sessions = {name: session(path) for name, path in models.items()}
    inputs = [{INPUT: windows[at % len(windows)][None]} for at in range(count)]
    times: dict[str, list[int]] = {name: [] for name in models}
    for running in sessions.values():
        for each in inputs[:WARM_UP]:
            running.run([OUTPUT], each)
    gc.disable()
    try:
        for begin in range(0, count, ROUND):
            for name, running in sessions.items():
                for each in inputs[begin : begin + ROUND]:
                    since = time.perf_counter_ns()
                    running.run([OUTPUT], each)
                    times[name].append(time.perf_counter_ns() - since)
    finally:
        gc.enable()
    return {
        name: {"p50": float(np.percentile(each, 50)) / 1e6, "p99": float(np.percentile(each, 99)) / 1e6}
        for name, each in times.items()
    }
