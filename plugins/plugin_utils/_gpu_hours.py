# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a run cost the cluster."""

from __future__ import annotations

import typing as t

from ansible_collections.mlops.hpc_validation.plugins.module_utils import _numbers


def gpu_hours(workloads: t.Iterable[dict[str, t.Any]]) -> float | None:
    """The hours for which the workloads' jobs held GPUs, times the GPUs; None where Slurm does not say it of a job."""
    total = 0.0
    for workload in workloads:
        job = workload["job"]
        if job is None:
            continue
        gpus, seconds = job.get("gpus"), job.get("run_seconds")
        if not _numbers.is_number(gpus) or not _numbers.is_number(seconds):
            return None
        total += gpus * seconds / 3600
    return total
