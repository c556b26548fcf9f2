# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a training leaves to be read, judged and watched: a log, a row for each step, and where the time went.

Only rank 0 writes. Each line is one write, so a killed training leaves whole lines, and carries the job and attempt.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from kit.evidence import markers
from kit.files import json_line
from kit.job import Job

LOG = "training.log"
STEPS = "training_metrics.jsonl"
PERFORMANCE = "performance_metrics.jsonl"
LOG_EVERY = 10  # steps from one line of the log to the next, if nothing happens
MARK_EVERY = 5.0  # seconds between two updates of the job's progress marker


def timestamp(moment: float) -> str:
    """Return seconds since the epoch as ISO 8601, in UTC and milliseconds."""
    return f"{datetime.fromtimestamp(moment, timezone.utc):%Y-%m-%dT%H:%M:%S.%f}"[:-3] + "Z"


class Lines:
    """A file to which whole lines are appended."""

    def __init__(self, path: Path) -> None:
        """Continue the file if it exists; half a line, as a full disk leaves it, is ended first."""
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        size = os.fstat(self._descriptor).st_size
        self._torn = size > 0 and os.pread(self._descriptor, size, size - 1) != b"\n"

    def add(self, line: bytes) -> None:
        """Append one line, which ends with a line break. Raise OSError, also if only a part of it could be written."""
        rest = b"\n" + line if self._torn else line
        self._torn = True
        while rest:
            rest = rest[os.write(self._descriptor, rest) :]
        self._torn = False

    def close(self) -> None:
        """Put the lines onto the disk."""
        os.fsync(self._descriptor)
        os.close(self._descriptor)
        self._descriptor = -1  # another thread's line is refused, and not written into a file that is opened next


class Records:
    """Writes the records of one training into its output folder. What cannot be written raises OSError."""

    def __init__(
        self, output: Path, job: Job, steps: int, *, log_every: int = LOG_EVERY, markers_folder: str | None = None
    ) -> None:
        """``steps`` is the number of the last step. ``markers_folder`` defaults to HPC_VALIDATION_MARKERS, if set."""
        output.mkdir(parents=True, exist_ok=True)
        self._job, self._steps, self._log_every = job, steps, log_every
        self._markers = markers_folder or os.environ.get("HPC_VALIDATION_MARKERS")
        self._marked = -math.inf
        self._began = time.monotonic()
        self._skipped = 0
        self._log, self._rows, self._performance = (Lines(output / name) for name in (LOG, STEPS, PERFORMANCE))

    def say(self, text: str) -> None:
        """Write one line to the log; line breaks and control characters in ``text`` become spaces."""
        shown = " ".join("".join(each if each.isprintable() else " " for each in text).split())
        stamp = f"{timestamp(time.time())} [{self._job.job_id}.{self._job.attempt}]"
        self._log.add(f"{stamp} {shown}\n".encode(errors="backslashreplace"))

    def step(
        self,
        step: int,
        *,
        loss: float,
        learning_rate: float,
        grad_norm: float,
        steps_per_second: float,
        tokens_per_second: float,
        skipped_steps: int,
        memory_bytes: int | None = None,
        loss_scale: float | None = None,
        validation_loss: float | None = None,
        **more: Any,
    ) -> dict[str, Any]:
        """Record a complete step and return its row; ``skipped_steps`` counts from the begin of this job."""
        now = time.time()
        row: dict[str, Any] = {
            **self._job.stamp,
            "time": now,
            "timestamp": timestamp(now),
            "elapsed_seconds": round(time.monotonic() - self._began, 3),
            "step": step,
            "steps": self._steps,
            "loss": loss,
            "learning_rate": learning_rate,
            "grad_norm": grad_norm,
            "steps_per_second": steps_per_second,
            "tokens_per_second": tokens_per_second,
            "memory_bytes": memory_bytes,
            "loss_scale": loss_scale,
            "skipped_steps": skipped_steps,
            **({} if validation_loss is None else {"validation_loss": validation_loss}),
            **more,
        }
        self._rows.add(json_line(row))
        unusual = skipped_steps != self._skipped or "validation_loss" in row or not _finite(loss, grad_norm)
        if unusual or step in (1, self._steps) or step % self._log_every == 0:
            self.say(step_line(row))
        self._skipped = skipped_steps
        self._mark(row)
        return row

    def performance(
        self,
        step: int,
        *,
        data_seconds: float,
        forward_seconds: float,
        backward_seconds: float,
        optimizer_seconds: float,
        step_seconds: float,
        mfu: float | None = None,
        solo_seconds: Sequence[float | None] | None = None,
        **more: Any,
    ) -> None:
        """Record where a step's time went; ``solo_seconds``, by rank, only in steps that were probed."""
        row = {
            **self._job.stamp,
            "time": time.time(),
            "step": step,
            "data_seconds": data_seconds,
            "forward_seconds": forward_seconds,
            "backward_seconds": backward_seconds,
            "optimizer_seconds": optimizer_seconds,
            "step_seconds": step_seconds,
            "mfu": mfu,
            **({} if solo_seconds is None else {"solo_seconds": list(solo_seconds)}),
            **more,
        }
        self._performance.add(json_line(row))

    def _mark(self, row: dict[str, Any]) -> None:
        """Update the marker by which the controller shows the job's progress."""
        now = time.monotonic()
        if not self._markers or (now - self._marked < MARK_EVERY and row["step"] != self._steps):
            return
        self._marked = now
        rate = row["steps_per_second"]
        left = {"eta_seconds": round((self._steps - row["step"]) / rate, 1)} if _finite(rate) and rate > 0 else {}
        markers.progress(self._markers, self._job, {**row, **left})

    def close(self) -> None:
        """Put everything onto the disk."""
        for lines in (self._rows, self._performance, self._log):
            lines.close()


def step_line(row: dict[str, Any]) -> str:
    """Return the log's line about a step."""
    parts = [
        f"loss {row['loss']:.4f}",
        f"learning rate {row['learning_rate']:.3e}",
        f"gradient norm {row['grad_norm']:.3f}",
        f"{row['steps_per_second']:.3f} steps/s",
        f"{row['tokens_per_second']:,.0f} tokens/s",
    ]
    if row["memory_bytes"] is not None:
        parts.append(f"memory {row['memory_bytes'] / 2**30:.1f} GiB")
    if row["loss_scale"] is not None:
        parts.append(f"loss scale {row['loss_scale']:g}")
    if row["skipped_steps"]:
        parts.append(f"skipped steps {row['skipped_steps']}")
    if "validation_loss" in row:
        parts.append(f"validation loss {row['validation_loss']:.4f}")
    return f"step {row['step']} of {row['steps']}: {', '.join(parts)}"


def _finite(*numbers: float) -> bool:
    return all(math.isfinite(number) for number in numbers)
