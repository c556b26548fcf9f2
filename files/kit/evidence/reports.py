# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Gather what the jobs of a preflight wrote, one folder per job, into one document for the controller."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import stat
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


def gather(folder: Path, markers: Path, jobs: list[str]) -> dict[str, Any]:
    """Return {job id: {part: document or null, begin, end, problems: {part: why}, messages}} for `jobs`."""
    gathered = {}
    for job_id in jobs:
        found: dict[str, Any] = {"problems": {}, "messages": _tail(folder / job_id / "messages.txt")}
        paths = {part: folder / job_id / f"{part}.json" for part in PARTS}
        paths.update({kind: markers / f"{job_id}.{kind}.json" for kind in ("begin", "end")})
        for part, path in paths.items():
            found[part], problem = read(path)
            if problem:
                found["problems"][part] = problem
        gathered[job_id] = found
    return gathered


def remove(folder: Path, markers: Path, jobs: list[str]) -> None:
    """Remove what the jobs wrote; ignore errors, since it has been read."""
    shutil.rmtree(folder, ignore_errors=True)
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
