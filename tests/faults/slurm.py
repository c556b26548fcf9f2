# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the cluster's Slurm itself says, past the collection."""

from __future__ import annotations

import time

from tests.integration.conftest import cluster


def at_rest() -> bool:
    """True where no job is left and every node is idle."""
    jobs = cluster("login", "squeue", "--noheader", "--format=%i", check=False)
    states = cluster("login", "sinfo", "--noheader", "--Node", "--format=%T", check=False).split()
    return not jobs.strip() and bool(states) and set(states) == {"idle"}


def submissions(name: str, since: float, expected: int, patience: float = 60) -> int:
    """How many jobs of that name were submitted since then: slurmctld forgets, and accounting lags behind."""
    common = ["--noheader", f"--name={name}"]
    start = f"--starttime=now-{int(time.time() - since) + 1}seconds"
    sacct = ["sacct", *common, "--allusers", "--allocations", "--parsable2", start, "--format=JobIDRaw,Submit"]
    squeue = ["squeue", *common, "--states=all", "--format=%i|%V"]
    end = time.monotonic() + patience
    while True:
        told = [cluster("login", "env", "SLURM_TIME_FORMAT=%s", *argv, check=False) for argv in (sacct, squeue)]
        rows = [line.split("|") for line in "".join(told).splitlines()]
        count = len({job for job, submitted in rows if float(submitted) >= since - 1})
        if count >= expected or time.monotonic() > end:
            return count
        time.sleep(1)
