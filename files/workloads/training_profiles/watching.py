# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a training tells of itself: rows of figures, histograms of weights, and that each rank is alive.

Rows are appended to files and nothing else is done in the loop: whatever sends them somewhere reads those files.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from evaluation import LOSS
from kit import strict_json
from kit.files import json_line
from kit.job import current_job
from kit.metrics import Progress
from kit.trackers import outbox
from kit.trackers.sinks import Tracker
from torch import nn

ROWS, HISTOGRAMS, HEALTH = "progress.jsonl", "histograms.jsonl", "health-{rank}.jsonl"
BINS = 64
METRICS = ("mae", "rmse", "r2", "accuracy", "f1")


def prepare(output: Path, step: int) -> list[dict[str, Any]]:
    """Make a folder ready for the rows of a training that goes on after ``step``; return those up to it.

    Later rows, which come again, are cut off. Before a training that begins, what another has left is set aside.
    """
    output.mkdir(parents=True, exist_ok=True)
    if not step:
        moment = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
        for name in (ROWS, HISTOGRAMS, outbox.STATE):
            if (output / name).exists():
                (output / name).replace(output / f"{name}.replaced-{moment}-{os.getpid()}")
        return []
    kept = {name: _cut(output / name, step) for name in (ROWS, HISTOGRAMS)}
    outbox.rewind(output)
    return kept[ROWS]


def _cut(path: Path, step: int) -> list[dict[str, Any]]:
    """Leave the whole rows up to a step in a file; return them."""
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return []
    found, size = [], 0
    for line in content.splitlines(keepends=True):
        try:
            row = strict_json.parse(line)
        except ValueError:
            break  # torn: nothing whole comes after it
        if not line.endswith(b"\n") or row["step"] > step:
            break
        found.append(row)
        size += len(line)
    if size < len(content):
        os.truncate(path, size)
    return found


def evaluation_of(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the part of a row that an evaluation gave."""
    return {name: row[name] for name in ("step", LOSS, *METRICS) if name in row}


class Rows:
    """Rank 0's rows; ``seconds`` is what making and writing them has taken."""

    def __init__(self, output: Path, sinks: Sequence[Tracker] = ()) -> None:
        """Go on with the files; ``sinks`` are passed the rows of figures too."""
        self._sinks = sinks
        self._progress = Progress(output / ROWS, append=True, every=1.0)
        self._histograms = (output / HISTOGRAMS).open("ab", buffering=0)
        self.seconds, self.written = 0.0, 0

    def row(self, **figures: Any) -> None:
        """Write a row of figures."""
        began = time.perf_counter()
        self._progress.row(**figures)
        for sink in self._sinks:
            sink.send({"time": time.time(), **figures})
        self._took(began)

    def histograms(self, step: int, model: nn.Module) -> None:
        """Write a row of histograms of a model's weights."""
        began = time.perf_counter()
        found = histograms(model)
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
        counts = None
        if counted:
            bins = ((values.flatten() - low) / (high - low) * BINS).long().clamp(0, BINS - 1)
            counts = torch.bincount(bins, minlength=BINS).tolist()  # histc has no deterministic form on GPUs
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
