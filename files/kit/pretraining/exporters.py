# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The ways to Prometheus: a text file for node_exporter's collector, and a small HTTP server.

Neither stops or slows a training: the file is written by a thread of its own, and what goes wrong is told once.
"""

from __future__ import annotations

import os
import stat
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Callable

from kit.errors import KitError
from kit.files import write_atomic
from kit.pretraining.exposition import COUNTER, Family

PATTERN = "hpc_pretraining-*.prom"
EVERY = 5.0  # seconds between two looks for new figures
HEARTBEAT = 30.0  # seconds after which the file is written again, even if nothing is new
DEAD = 300.0  # seconds without a heartbeat after which a file has no process any more
PATIENCE = 5.0  # seconds that the end of a training waits for the last write
Say = Callable[[str], None]


class TextFile:
    """One training's file in the folder that node_exporter's textfile collector reads."""

    def __init__(self, folder: Path, job_id: str) -> None:
        """Remove what trainings left that have ended. Raise KitError if the folder is missing."""
        self.path = folder / PATTERN.replace("*", job_id)
        self._require_folder()
        remove_dead(folder, time.time())

    def write(self, text: str) -> None:
        """Replace the file. Raise KitError if the folder is missing by now, OSError if it cannot be written."""
        self._require_folder()
        write_atomic(self.path, lambda stream: stream.write(text.encode()), mode=0o644, durable=False)

    def _require_folder(self) -> None:
        if not self.path.parent.is_dir():
            raise KitError(
                f"{self.path.parent} (watch.textfile) is not a folder on this node; create it there, and start "
                f"node_exporter with --collector.textfile.directory={self.path.parent}"
            )


def remove_dead(folder: Path, now: float) -> None:
    """Remove this user's files of trainings that have ended: a live one renews its file every `HEARTBEAT` seconds."""
    for path in folder.glob(PATTERN):
        with suppress(OSError):
            found = path.lstat()
            if stat.S_ISREG(found.st_mode) and found.st_uid == os.geteuid() and now - found.st_mtime > DEAD:
                path.unlink()


class Publisher:
    """Writes the current text from a thread: when it has changed, and as a heartbeat."""

    def __init__(
        self,
        text: Callable[[], str],
        write: Callable[[str], None],
        say: Say,
        every: float = EVERY,
        heartbeat: float = HEARTBEAT,
    ) -> None:
        """Start to pass what ``text`` returns to ``write``; ``say`` is told of a first failure, and of its end."""
        self._text, self._write, self._say = text, write, say
        self._every, self._heartbeat = every, heartbeat
        self._failed = False
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="textfile", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        written: str | None = None
        tried = -self._heartbeat
        stopping = False
        while not stopping:
            stopping = self._stop.is_set()  # what was set before the end is written still
            text, now = self._text(), time.monotonic()
            if text != written or now - tried >= self._heartbeat:
                tried = now
                written = text if self._try(text) else None
            if not stopping:
                self._stop.wait(self._every)

    def _try(self, text: str) -> bool:
        try:
            self._write(text)
        except (KitError, OSError) as error:
            if not self._failed:
                self._tell(f"the metrics for Prometheus are not written: {error}; the training goes on without them")
            self._failed = True
            return False
        if self._failed:
            self._tell("the metrics for Prometheus are written again")
        self._failed = False
        return True

    def _tell(self, text: str) -> None:
        with suppress(OSError):  # the training tells of its log's own problems
            self._say(text)

    def close(self, patience: float = PATIENCE) -> None:
        """Write what is current by now; wait ``patience`` seconds at most."""
        self._stop.set()
        self._thread.join(patience)


def serve(found: Callable[[], Sequence[Family]], address: str, port: int) -> Callable[[], None]:
    """Answer GET /metrics at ``address`` and ``port``; return a function that ends it. Imports prometheus_client.

    Raise ImportError, or OSError if the address is not free.
    """
    from prometheus_client import CollectorRegistry, start_http_server  # noqa: PLC0415 - only where it is asked for
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily  # noqa: PLC0415

    class Collector:
        def collect(self) -> Any:
            for family in found():
                kind = CounterMetricFamily if family.kind == COUNTER else GaugeMetricFamily
                names = list(family.samples[0][0])
                metric = kind(family.name, family.text, labels=names)
                for those, value in family.samples:
                    metric.add_metric(list(those.values()), float(value))
                yield metric

    registry = CollectorRegistry()
    registry.register(Collector())
    server, _thread = start_http_server(port, addr=address, registry=registry)

    def end() -> None:
        server.shutdown()
        server.server_close()

    return end
