# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Gather what the jobs of a preflight wrote, one folder per job, into one compressed file for the controller."""

from __future__ import annotations

import contextlib
import errno
import gzip
import json
import os
import shutil
import stat
from collections.abc import Iterable
from pathlib import Path
from typing import Any, BinaryIO

from kit import strict_json

BYTES = 4 * 1024 * 1024
PARTS = ("host", "gpus", "confined", "without", "share", "coherence")
TAIL = 4000  # characters of a job's own messages


def _open(path: Path) -> BinaryIO:
    """Open a regular file, never a link, and never wait for a FIFO's other end. Raise OSError for anything else."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "is not a regular file")
    return os.fdopen(descriptor, "rb")


def read(path: Path) -> tuple[Any, str | None]:
    """Return (document, None), or (None, why it could not be read)."""
    try:
        with _open(path) as stream:
            content = stream.read(BYTES + 1)
        if len(content) > BYTES:
            return None, f"{path} is larger than {BYTES} bytes"
        return strict_json.parse(content), None
    except FileNotFoundError:
        return None, f"{path} was not written"
    except OSError as error:
        return None, f"{path}: {error.strerror}"
    except (ValueError, RecursionError) as error:
        return None, f"{path} is incomplete: {error}"


def gather(folder: Path, markers: Path, job_id: str) -> dict[str, Any]:
    """Return what a job wrote: {job, part: document or null, begin, end, problems: {part: why}, messages}."""
    found: dict[str, Any] = {"job": job_id, "problems": {}, "messages": _tail(folder / job_id / "messages.txt")}
    paths = {part: folder / job_id / f"{part}.json" for part in PARTS}
    paths.update({kind: markers / f"{job_id}.{kind}.json" for kind in ("begin", "end")})
    for part, path in paths.items():
        found[part], problem = read(path)
        if problem:
            found["problems"][part] = problem
    return found


def reported(folder: Path) -> list[str]:
    """Return the IDs of the jobs that wrote anything. Raise OSError."""
    return sorted((path.name for path in folder.iterdir() if path.name.isdecimal()), key=int)


def write(into: Path, folder: Path, markers: Path, jobs: Iterable[str]) -> int:
    """Write what the jobs wrote to the file `into`, a line for each job, and return its size. Raise OSError.

    Only one job's report is in memory at a time; the file is complete, or it does not exist.
    """
    temporary = into.with_name(f".{into.name}.tmp")
    try:
        with temporary.open("wb") as raw:
            with gzip.GzipFile(fileobj=raw, mode="wb", compresslevel=6, mtime=0, filename="") as stream:
                for job_id in jobs:
                    line = json.dumps(gather(folder, markers, job_id), separators=(",", ":"))
                    stream.write(line.encode("ascii") + b"\n")
            raw.flush()
            os.fsync(raw.fileno())
        temporary.replace(into)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise
    return into.stat().st_size


def remove(folder: Path, markers: Path, jobs: Iterable[str]) -> None:
    """Remove what the jobs wrote; ignore errors, since it has been read."""
    for job_id in jobs:
        shutil.rmtree(folder / job_id, ignore_errors=True)
    for job_id in jobs:
        for kind in ("begin", "end"):
            with contextlib.suppress(OSError):
                (markers / f"{job_id}.{kind}.json").unlink()


def _tail(path: Path) -> str:
    try:
        with _open(path) as stream:
            stream.seek(max(0, os.fstat(stream.fileno()).st_size - TAIL))
            return stream.read(TAIL).decode("utf-8", "replace")
    except OSError:
        return ""
