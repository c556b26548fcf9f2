# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a training tells of itself: rows of figures, histograms of weights, and that each rank is alive.

Rows are appended to files and nothing else is done in the loop: whatever sends them somewhere reads those files.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from kit.files import json_line
from kit.job import current_job
from kit.metrics import Progress
from kit.trackers.sinks import Tracker
from torch import nn

ROWS, HISTOGRAMS, HEALTH = "progress.jsonl", "histograms.jsonl", "health-{rank}.jsonl"
BINS = 64


class Rows:
    """Rank 0's rows; ``seconds`` is what writing them has taken."""

    def __init__(self, output: Path, sinks: Sequence[Tracker] = ()) -> None:
        """Begin the files; ``sinks`` are passed the rows of figures too."""
        self._sinks = sinks
        output.mkdir(parents=True, exist_ok=True)
        self._progress = Progress(output / ROWS)
        self._histograms = (output / HISTOGRAMS).open("ab", buffering=0)
        self.seconds, self.written = 0.0, 0

    def row(self, **figures: Any) -> None:
        """Write a row of figures."""
        began = time.perf_counter()
        self._progress.row(**figures)
        for sink in self._sinks:
            sink.send({"time": time.time(), **figures})
        self._took(began)

    def histograms(self, step: int, found: dict[str, dict[str, Any]]) -> None:
        """Write a row of histograms."""
        began = time.perf_counter()
        self._histograms.write(json_line({**current_job().stamp, "time": time.time(), "step": step, "weights": found}))
        self._took(began)

    def _took(self, began: float) -> None:
        self.seconds += time.perf_counter() - began
        self.written += 1

    def close(self) -> None:
        """Make the rows durable."""
        self._progress.close()
        self._histograms.close()


def histograms(model: nn.Module) -> dict[str, dict[str, Any]]:
    """Return least, largest and counts of each tensor of weights, in bins of equal width.

    A tensor that is not finite has no counts.
    """
    found = {}
    for name, weight in model.named_parameters():
        values = weight.detach().float()
        low, high = values.min().item(), values.max().item()
        counted = torch.isfinite(values).all().item() and low < high
        counts = torch.histc(values, BINS, low, high).long().tolist() if counted else None
        found[name] = {"min": low, "max": high, "counts": counts, "weights": values.numel()}
    return found


class Health:
    """Says every so often, from a thread, at which step this rank is: so each rank's last sign is known."""

    def __init__(self, output: Path, rank: int, seconds: float, step: Callable[[], int]) -> None:
        """Begin; the first sign comes at once."""
        output.mkdir(parents=True, exist_ok=True)
        self._path, self._rank, self._seconds, self._step = output / HEALTH.format(rank=rank), rank, seconds, step
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="health", daemon=True)
        self._thread.start()

    def _watch(self) -> None:
        while True:
            try:
                with self._path.open("ab") as stream:
                    stream.write(json_line({**current_job().stamp, "time": time.time(), "step": self._step()}))
            except OSError:
                pass  # the training goes on without its sign
            if self._ended.wait(self._seconds):
                return

    def end(self) -> None:
        """Give no more signs."""
        self._ended.set()
        self._thread.join(5)
