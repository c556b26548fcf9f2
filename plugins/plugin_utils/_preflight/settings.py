# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What of the public settings a preflight depends on. PRIVATE to the collection."""

from __future__ import annotations

import math
import typing as t

Json = dict[str, t.Any]
KEPT = ("accelerator", "nodes", "slurm", "gpu", "node_gpus", "kernel_log", "share_type", "share_expect")
IMAGES = "apptainer"
# Seconds: what the job that compares two nodes takes besides, and how many steps of it wait for the other node.
COHERENCE_BASE, COHERENCE_STEPS = 240, 48
NO_INTERNET = "the inventory says that there is no internet (hpc_validation_air_gap)"
WHEELS = "packages come from a folder of wheels (hpc_validation_wheelhouse)"


def settings(given: Json, selected: t.Sequence[str]) -> Json:
    """Return what plan, jobs and judging of nodes depend on; `given` are the public settings without their prefix.

    `selected`: ids of the run's workloads. Of `given` is kept what `KEPT` names. Besides: `workload_slurm`, the whole
    settings for sbatch of each workload that has some of its own; `apptainer`, required where a workload runs in an
    image; `xid_seconds`, how far back the kernel log is read, 0 being since boot; `coherence` and `coherence_limit`,
    the seconds that one step and the whole job may take that compares two nodes; `no_downloads`, why nothing has to be
    downloaded, empty where something has to be.
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
    """Whether a workload runs in an image; with no workload in particular, whether the inventory wants that for any."""
    by_workload = given["workload_runtime"]
    kinds = [by_workload.get(name, given["runtime"]) for name in selected]
    return IMAGES in (kinds or [given["runtime"], *by_workload.values()])


def _xid_seconds(given: Json) -> int:
    """The longest that is expected of any node."""
    nodes = [expect["xid_since"] for expect in given["node_gpus"].values() if "xid_since" in expect]
    wanted = [given["gpu"].get("xid_since", "boot"), *nodes]
    return 0 if "boot" in wanted else max(map(int, wanted))


def jobs(planned: Json, folder: str) -> list[Json]:
    """Return the jobs of a plan as slurm_job takes them, each with the script in `folder` that it runs."""
    return [
        {"key": job["key"], "path": f"{folder}/{job['script']}", "options": job["options"]} for job in planned["jobs"]
    ]
