# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The output of a training script: one metrics document and a stream of progress rows.

Both carry the job and the attempt that wrote them, and are valid JSON for any numbers (see ``files.plain``).
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

from kit.evidence import markers
from kit.files import json_line, write_json
from kit.job import Job, current_job


def write_metrics(path: str | os.PathLike[str], metrics: dict[str, Any], job: Job | None = None) -> None:
    """Write the metrics document atomically, stamped with job and attempt."""
    write_json(path, {**metrics, **(job or current_job()).stamp})


class Progress:
    """JSON Lines, one row per report, flushed as a complete line; the latest row is also the job's progress marker."""

    def __init__(
        self,
        path: str | os.PathLike[str],
        markers_folder: str | None = None,
        job: Job | None = None,
        *,
        append: bool = False,
        every: float = 0.0,
    ) -> None:
        """Start a new file at ``path``, or ``append`` to one.

        ``markers_folder`` defaults to HPC_VALIDATION_MARKERS, if set. ``every``: seconds between two updates of the
        marker, for rows that come faster than a share takes it.
        """
        self.job = job or current_job()
        self.markers_folder = markers_folder or os.environ.get("HPC_VALIDATION_MARKERS")
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        self._every, self._marked = every, -every
        self._stream = open(path, "ab" if append else "wb", buffering=0)  # noqa: SIM115 - closed by close(); unbuffered: a row is one write
        self._started = time.monotonic()

    def row(self, **fields: Any) -> None:
        """Write one row; if ``step`` and ``steps`` are among the fields, estimate the time left."""
        step, steps = fields.get("step"), fields.get("steps")
        if step and steps and "eta_seconds" not in fields:
            fields["eta_seconds"] = round((time.monotonic() - self._started) / step * (steps - step), 1)
        row = {**self.job.stamp, "time": time.time(), **fields}
        self._stream.write(json_line(row))
        now = time.monotonic()
        if self.markers_folder and now - self._marked >= self._every:
            self._marked = now
            markers.progress(self.markers_folder, self.job, row)

    def close(self) -> None:
        """Make the rows durable."""
        os.fsync(self._stream.fileno())
        self._stream.close()

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_other: object) -> None:
        self.close()
