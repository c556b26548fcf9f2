# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Begin, progress and end markers: small files that inform the controller about a job without asking Slurm."""

from __future__ import annotations

import contextlib
import errno
import os
import socket
import sys
import time
from pathlib import Path
from typing import Any

from kit.errors import KitError
from kit.files import write_json
from kit.job import Job


def marker_path(folder: str | os.PathLike[str], job: Job, kind: str) -> Path:
    """Return ``<folder>/<job id>.<kind>.json``."""
    return Path(folder) / f"{job.job_id}.{kind}.json"


def begin(folder: str | os.PathLike[str], job: Job) -> None:
    """Mark that the job's script has started; remove an earlier attempt's markers first."""
    for kind in ("end", "progress"):
        with contextlib.suppress(FileNotFoundError):
            marker_path(folder, job, kind).unlink()
    write_json(marker_path(folder, job, "begin"), {**job.stamp, "host": socket.gethostname(), "time": time.time()})


def end(folder: str | os.PathLike[str], job: Job, exit_code: int) -> None:
    """Close the job's logs with the end line, then write the end marker: once it exists, the logs are complete.

    Both have a nonce created here, after the job's program has ended, so that its output cannot forge the line.
    """
    if not 0 <= exit_code <= 255:
        raise KitError(f"expected an exit code from 0 to 255, found {exit_code}")
    nonce = os.urandom(16).hex()
    line = f"hpc-validation-end job={job.job_id} attempt={job.attempt} exit={exit_code} nonce={nonce}"
    for stream in (sys.stdout, sys.stderr):
        # The job's last output may have no newline; the end line must be a line of its own.
        stream.write(f"\n{line}\n")
        stream.flush()
        try:
            os.fsync(stream.fileno())
        except OSError as error:
            if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # a pipe or a terminal; anything else lost the log
                raise
    marker = {**job.stamp, "exit_code": exit_code, "nonce": nonce, "time": time.time()}
    write_json(marker_path(folder, job, "end"), marker)


def progress(folder: str | os.PathLike[str], job: Job, row: dict[str, Any]) -> None:
    """Publish the latest progress row."""
    write_json(marker_path(folder, job, "progress"), row)
