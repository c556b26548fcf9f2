# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the jobs of a preflight report on many nodes with eight GPUs each, from the examples of the schemas.

Every GPU has its own UUID, serial number and temperatures; a share of the nodes has faults in one of their GPUs.
"""

from __future__ import annotations

import copy
import json
import random
import typing as t
from pathlib import Path

Json = dict[str, t.Any]
ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "files/schemas/examples"
GPUS = 8
# What preflight_settings makes of an inventory that sets nothing, as far as planning and judging need it.
SETTINGS: Json = {
    "accelerator": "cuda",
    "nodes": [],
    "slurm": {},
    "workload_slurm": [],
    "gpu": {},
    "node_gpus": {},
    "kernel_log": "user",
    "share_type": "beegfs",
    "share_expect": {},
    "apptainer": {},
}
SEED = 20261124


def example(name: str) -> Json:
    """Return the example of a schema."""
    return t.cast(Json, json.loads((EXAMPLES / f"{name}.json").read_text(encoding="utf-8")))


def names(count: int) -> list[str]:
    """Return the names of `count` nodes as Slurm would write them."""
    return [f"n{number:0{max(3, len(str(count)))}d}" for number in range(1, count + 1)]


def cluster(count: int) -> Json:
    """Return what slurm_cluster_info says of the cluster."""
    nodes = [
        {
            "name": name,
            "state": "idle",
            "flags": [],
            "reason": "",
            "gres": {"gpu": GPUS},
            "gres_types": [],
            "gres_allocated": {},
            "cpus": 192,
            "memory_mb": 2_000_000,
            "features": [],
            "partitions": ["gpu"],
            "version": "24.11.5",
        }
        for name in names(count)
    ]
    partition = {"name": "gpu", "state": "up", "default": True, "max_time_seconds": None, "nodes": names(count)}
    return {
        "version": "24.11.5",
        "cluster_name": "scale",
        "controllers": [{"host": "login", "role": "primary", "up": True}],
        "accounting": True,
        "min_job_age_seconds": 300,
        "partitions": [partition],
        "nodes": nodes,
        "user": "admin",
        "problems": [],
    }


def jobs(planned: Json) -> Json:
    """Return what slurm_job says of the planned jobs: all of them ended well."""
    told, now = {}, example("gpus")["time"]
    for number, wanted in enumerate(planned["jobs"]):
        job = {**example("job"), "job_id": str(1000 + number), "key": wanted["key"], "nodes": wanted["nodes"]}
        job.update(state="COMPLETED", exit_code=0, started=now, ended=now + 3)
        told[wanted["key"]] = job
    return {
        "jobs_by_key": told,
        "outcomes": {job["job_id"]: {"outcome": "ended", "why": ""} for job in told.values()},
    }


def report(name: str, now: float, draw: random.Random, *, bad: bool = False) -> Json:
    """Return what the job on one node reports; a `bad` node has an ECC error, a hot GPU or one that is lost."""
    facts = example("gpus")
    base = facts["gpus"][0]
    gpus = [_gpu(base, index, draw) for index in range(GPUS)]
    if bad:
        _break(gpus[draw.randrange(GPUS)], draw)
    devices = [f"/dev/nvidia{index}" for index in range(GPUS)]
    facts.update(node=name, time=now, gpus=gpus, device_files=devices)
    facts["pci_devices"] = [gpu["pci"] for gpu in gpus]
    return {
        "problems": {},
        "messages": "",
        "begin": {"time": now + 0.5},
        "end": {"time": now + 3},
        "host": {**example("host"), "host": name, "hostname": name, "time": now + 1},
        "gpus": facts,
        "confined": {"present": devices, "openable": devices[:1]},
        "without": None,
        "share": {**example("share"), "node": name, "time": now + 1},
        "coherence": None,
    }


def _gpu(base: Json, index: int, draw: random.Random) -> Json:
    gpu = copy.deepcopy(base)
    gpu.update(index=index, minor=index, pci=f"00000000:{index + 1:02X}:00.0", error=None)
    gpu["uuid"] = f"GPU-{draw.getrandbits(32):08x}-1111-2222-3333-{draw.getrandbits(48):012x}"
    gpu["serial"] = f"{draw.getrandbits(40):013d}"
    gpu["temperature"]["gpu_c"] = draw.randint(28, 45)
    return gpu


def _break(gpu: Json, draw: random.Random) -> None:
    kind = draw.randrange(3)
    if kind == 0:
        gpu["ecc"]["uncorrected_volatile"] = draw.randint(1, 9)
    elif kind == 1:
        gpu["temperature"]["gpu_c"] = draw.randint(95, 105)
    else:
        gpu["error"] = "GPU is lost"


def reports(planned: Json, told: Json, bad: float) -> t.Iterator[tuple[str, Json]]:
    """Yield (job ID, report) for every planned job; `bad` is the share of the nodes with a fault."""
    draw, now = random.Random(SEED), example("gpus")["time"]
    single = [wanted for wanted in planned["jobs"] if len(wanted["nodes"]) == 1]
    broken = set(draw.sample(range(len(single)), round(bad * len(single))))
    for number, wanted in enumerate(single):
        job = told["jobs_by_key"][wanted["key"]]["job_id"]
        yield job, report(wanted["nodes"][0], now, draw, bad=number in broken)
    for wanted in planned["jobs"]:
        if len(wanted["nodes"]) == 2:
            job = told["jobs_by_key"][wanted["key"]]["job_id"]
            yield job, {"problems": {}, "messages": "", "coherence": coherence(wanted["nodes"])}


def coherence(nodes: list[str]) -> Json:
    """Return what two nodes report that see each other's files in time."""
    steps = {step: {"seen": True, "seconds": 0.02} for step in ("create", "overwrite", "rename", "unlink")}
    locks = {kind: {"while_held": "refused", "after_release": "granted"} for kind in ("flock", "fcntl")}
    pairs = (nodes, nodes[::-1])
    directions = [{"writer": first, "reader": last, "steps": steps, "locks": locks} for first, last in pairs]
    return {"schema": 1, "nodes": nodes, "error": None, "directions": directions}
