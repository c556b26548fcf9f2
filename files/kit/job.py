# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The job, and the attempt, that this process belongs to."""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from kit.errors import KitError


class Job(NamedTuple):
    """A Slurm job's ID and its attempt (0, then one more for each requeue)."""

    job_id: str
    attempt: int

    @property
    def stamp(self) -> dict[str, str | int]:
        """Return the fields that every judged file carries."""
        return {"job_id": self.job_id, "attempt": self.attempt}


def node_name(environment: Mapping[str, str] | None = None) -> str:
    """Return this node's name; inside a job this is Slurm's name, which may differ from the host's."""
    return (os.environ if environment is None else environment).get("SLURMD_NODENAME") or socket.gethostname()


def node_file(path: Path) -> Path:
    """Return the path with %N replaced by this node's name, as in Slurm's own patterns."""
    return Path(str(path).replace("%N", node_name()))


def current_job(environment: Mapping[str, str] | None = None) -> Job:
    """Read the job from the environment that the job script sets; outside Slurm the ID is ``manual``."""
    environment = os.environ if environment is None else environment
    job_id = environment.get("SLURM_JOB_ID") or "manual"
    attempt = environment.get("HPC_VALIDATION_ATTEMPT") or environment.get("SLURM_RESTART_COUNT") or "0"
    if not re.fullmatch(r"[A-Za-z0-9_+]{1,64}", job_id):  # it becomes part of file names
        raise KitError(f"SLURM_JOB_ID: expected a job ID, found {job_id!r}")
    if not re.fullmatch(r"[0-9]{1,9}", attempt):
        raise KitError(f"HPC_VALIDATION_ATTEMPT: expected a whole number, found {attempt!r}")
    return Job(job_id, int(attempt))
