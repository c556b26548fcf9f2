# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Derive the settings of a preflight from the public ones. PRIVATE to the collection."""

from __future__ import annotations

import math
import typing as t

Json = dict[str, t.Any]
KEPT = ("accelerator", "nodes", "slurm", "gpu", "node_gpus", "kernel_log", "share_type", "share_expect")
IMAGES = "apptainer"
# Of the job that compares two nodes: its fixed part in seconds, and how many of its steps wait for the other node.
COHERENCE_BASE, COHERENCE_STEPS = 240, 48
NO_INTERNET = "the inventory says that there is no internet (hpc_validation_air_gap)"
WHEELS = "packages come from a folder of wheels (hpc_validation_wheelhouse)"


def settings(given: Json, selected: t.Sequence[str]) -> Json:
    """Return the settings for planning and judging; `given` are the public settings without their prefix.

    `selected` are the IDs of the run's workloads. The result has the settings of `KEPT` unchanged, and:
    `workload_slurm`, the complete sbatch settings of each selected workload that overrides some; `apptainer`, required
    if a workload runs in an image; `xid_seconds`, how far back the kernel log is read, 0 for since boot; `coherence`
    and `coherence_limit`, the time limits in seconds of one step and of the whole job that compares two nodes;
    `no_downloads`, why nothing has to be downloaded, empty if something has to be.
    """
    wait = max(math.ceil(float(given["share_expect"].get("coherence_seconds", 5))), 1)
    required = {"required": True} if _in_images(given, selected) else {}
    own = given["workload_slurm"]
    return {
        **{key: given[key] for key in KEPT},
        "workload_slurm": [{**given["slurm"], **(own[name] or {})} for name in selected if name in own],
        "apptainer": {**given["apptainer"], **required},
        "xid_seconds": _xid_seconds(given),
        "coherence": wait,
        "coherence_limit": COHERENCE_BASE + COHERENCE_STEPS * wait,
        "no_downloads": NO_INTERNET if given["air_gap"] else WHEELS if given["wheelhouse"] else "",
    }


def _in_images(given: Json, selected: t.Sequence[str]) -> bool:
    """Return whether a selected workload runs in an image; if none is selected, whether any of the inventory does."""
    by_workload = given["workload_runtime"]
    kinds = [by_workload.get(name, given["runtime"]) for name in selected]
    return IMAGES in (kinds or [given["runtime"], *by_workload.values()])


def _xid_seconds(given: Json) -> int:
    """Return the longest time expected for any node, 0 for since boot."""
    nodes = [expect["xid_since"] for expect in given["node_gpus"].values() if "xid_since" in expect]
    wanted = [given["gpu"].get("xid_since", "boot"), *nodes]
    return 0 if "boot" in wanted else max(map(int, wanted))


def jobs(planned: Json, folder: str) -> list[Json]:
    """Return the jobs of a plan as slurm_job takes them, each with the script in `folder` that it runs."""
    return [
        {"key": job["key"], "path": f"{folder}/{job['script']}", "options": job["options"]} for job in planned["jobs"]
    ]
