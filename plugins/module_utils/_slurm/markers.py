# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Read the marker files that a job writes on the share. They cost Slurm nothing, and are only hints."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable, Iterable

from ansible_collections.mlops.hpc_validation.plugins.module_utils._common import strict_json
from ansible_collections.mlops.hpc_validation.plugins.module_utils._slurm.identity import Identity
from ansible_collections.mlops.hpc_validation.plugins.module_utils._slurm.text import clean, clean_lines

KINDS = ("begin", "end", "progress")
MARKER_BYTES = 65536
TAIL_BYTES = 65536
# More files than this in one folder are looked for in one listing of it.
_FEW = 16
# Watching takes at most this part of the time.
_SHARE_OF_TIME = 0.1
_SLOWEST = 5.0
_NUMBERS = ("attempt", "time", "exit_code", "epoch", "epochs", "step", "steps", "loss", "eta_seconds")
_TEXTS = ("host", "leg")

Marker = dict[str, object]


def expand(pattern: str | None, job_id: str) -> str | None:
    """Return a marker's path for one job: %j is the job ID, %% a percent sign."""
    if not pattern:
        return None
    return "%".join(part.replace("%j", job_id) for part in pattern.split("%%"))


def read_regular(path: str, limit: int, *, from_end: bool = False) -> bytes | None:
    """Return at most `limit` bytes of a regular file; None for anything else (missing, a FIFO, a device or a link)."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return None
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        os.close(descriptor)
        return None
    with os.fdopen(descriptor, "rb") as stream:
        try:
            if from_end and status.st_size > limit:
                stream.seek(-limit, os.SEEK_END)
            return stream.read(limit)
        except OSError:
            return None


def read(path: str, job: Identity, attempt: int = 0) -> Marker | None:
    """Return the marker's known fields; None if it is missing, unreadable, or not from this job and attempt."""
    content = read_regular(path, MARKER_BYTES)
    if content is None:
        return None
    try:
        document = strict_json.parse(content)
    except (ValueError, RecursionError):
        return None
    if not isinstance(document, dict):
        return None
    marker: Marker = {}
    for key in _NUMBERS:
        value = document.get(key)
        if isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < 1e15:
            marker[key] = value
    for key in _TEXTS:
        if isinstance(document.get(key), str):
            marker[key] = clean(document[key], 80)
    return marker if job.wrote(document.get("job_id"), marker, attempt) else None


def read_all(paths: dict[str, str], job: Identity, attempt: int = 0) -> dict[str, Marker]:
    """Return one job's markers by kind."""
    found = {kind: read(path, job, attempt) for kind, path in paths.items()}
    return {kind: marker for kind, marker in found.items() if marker is not None}


def present(paths: Iterable[str]) -> set[str]:
    """Return those of the paths at which there is a file, with one request to the file system for many of a folder."""
    names: dict[str, list[str]] = {}
    for path in paths:
        folder, _sep, name = path.rpartition("/")
        names.setdefault(folder, []).append(name)
    found: set[str] = set()
    for folder, wanted in names.items():
        there = _listed(folder or "/") if len(wanted) > _FEW else None
        found.update(
            f"{folder}/{name}"
            for name in wanted
            if (os.path.lexists(f"{folder}/{name}") if there is None else name in there)
        )
    return found


def _listed(folder: str) -> set[str]:
    try:
        return set(os.listdir(folder))
    except OSError:
        return set()


def watch(
    changed: Callable[[], bool],
    seconds: float,
    count: int,
    *,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> bool:
    """Poll until changed() holds or `seconds` have passed.

    The more files (count), and the slower the file system, the longer the interval.
    """
    interval = min(1.0, max(0.2, 0.01 * count))
    end = clock() + seconds
    while True:
        began = clock()
        if changed():
            return True
        now = clock()
        left = end - now
        if left <= 0:
            return False
        sleep(min(max(interval, min(_SLOWEST, (now - began) / _SHARE_OF_TIME)), left))


def tail(path: str, count: int) -> list[str]:
    """Return the last count lines of a log, cleaned; [] if it cannot be read."""
    content = read_regular(path, TAIL_BYTES, from_end=True) if path and count > 0 else None
    return clean_lines(content.decode("utf-8", "replace"), count) if content else []
