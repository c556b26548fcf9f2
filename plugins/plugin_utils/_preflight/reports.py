# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Read what `kit reports` gathered, one report at a time: reports.jsonl.gz, a JSON object per line with `job`."""

from __future__ import annotations

import gzip
import typing as t
import zlib
from pathlib import Path

from ansible_collections.mlops.hpc_validation.plugins.module_utils._common import scalars, strict_json

Json = dict[str, t.Any]
FILE = "reports.jsonl.gz"
# The kit bounds each part of a report; no line of ours is longer.
LINE_BYTES = 48_000_000


class Reports:
    """The reports of a file; once they were read, `problems` says what could not be."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.problems: list[str] = []

    def __iter__(self) -> t.Iterator[tuple[str, Json]]:
        """Yield (job ID, report). Whatever is wrong with the file ends or thins the stream and raises nothing."""
        try:
            with gzip.open(self._path) as stream:
                yield from self._lines(stream)
        except (OSError, EOFError, zlib.error) as exc:
            self.problems.append(f"{self._path}: {exc}")

    def _lines(self, stream: gzip.GzipFile) -> t.Iterator[tuple[str, Json]]:
        seen: set[str] = set()
        while line := stream.readline(LINE_BYTES + 1):
            if len(line) > LINE_BYTES:
                self.problems.append(f"{self._path}: a report is larger than {LINE_BYTES} bytes")
                return
            try:
                report = strict_json.parse(line)
            except (ValueError, RecursionError) as exc:
                self.problems.append(f"{self._path}: a report cannot be read: {exc}")
                continue
            job = report.get("job") if isinstance(report, dict) else None
            if not isinstance(job, str) or job in seen:
                self.problems.append(f"{self._path}: unexpected report of job {scalars.show(job)}")
                continue
            seen.add(job)
            yield job, report
