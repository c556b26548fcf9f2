# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the job ran on: node, driver, GPUs, libraries, environment, data. Selected facts, never all variables."""

from __future__ import annotations

import os
import platform
import socket
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kit import strict_json
from kit.files import sha256
from kit.gpu import nvml
from kit.host.facts import os_name, read_json
from kit.job import Job
from kit.runtime import image_record
from kit.staged import FACTS

SECONDS = 120  # for the runtime's Python to answer: it may be in an image that is mounted first
SLURM_FACTS = [
    "SLURM_CLUSTER_NAME",
    "SLURM_JOB_ID",
    "SLURM_JOB_NAME",
    "SLURM_JOB_PARTITION",
    "SLURM_JOB_NODELIST",
    "SLURM_JOB_NUM_NODES",
    "SLURM_NTASKS",
    "SLURM_CPUS_PER_TASK",
    "SLURM_MEM_PER_NODE",
    "SLURM_JOB_GPUS",
    "SLURM_GPUS_ON_NODE",
    "SLURM_RESTART_COUNT",
    "CUDA_VISIBLE_DEVICES",
]


@dataclass(frozen=True)
class Image:
    """The image that a job runs in, and the folder with its record."""

    name: str
    path: Path
    folder: Path


def gpu_facts() -> dict[str, Any]:
    """Return driver and GPUs from NVML; unknown facts are None, and ``nvml_reason`` says why NVML is not usable."""
    facts: dict[str, Any] = {"driver_version": None, "cuda_driver_version": None, "nvml_reason": None}
    try:
        pynvml = nvml.load()
    except nvml.NvmlUnavailableError as error:
        return {**facts, "nvml_reason": str(error), "gpus": [], "gpus_listed": 0, "gpus_selected_by": "none"}
    facts["driver_version"], _other = nvml.ask(pynvml, pynvml.nvmlSystemGetDriverVersion)
    number, _other = nvml.ask(pynvml, pynvml.nvmlSystemGetCudaDriverVersion)
    facts["cuda_driver_version"] = None if number is None else f"{number // 1000}.{number % 1000 // 10}"
    usable = nvml.usable_gpus(pynvml)
    gpus = [{"uuid": gpu.uuid, "pci": gpu.pci, "name": gpu.name, "error": gpu.error} for gpu in usable.gpus]
    return {
        **facts,
        "nvml_reason": usable.reason,
        "gpus": gpus,
        "gpus_listed": usable.listed,
        "gpus_selected_by": usable.selected_by,
    }


def inside_facts(runtime: Sequence[str]) -> dict[str, Any]:
    """Return the runtime's facts (`kit inside`), or ``error`` if it does not answer.

    ``runtime`` is the command that starts its Python; for a container it uses the job's launcher.
    """
    unanswered: dict[str, Any] = {"container": None, "python": None, "gpus": None, "runtime": None, "libraries": None}
    try:
        done = subprocess.run([*runtime, "-m", "kit", "inside"], capture_output=True, timeout=SECONDS, check=False)
        if done.returncode == 0:
            return {**unanswered, **strict_json.parse(done.stdout)}
        said = done.stderr.decode(errors="replace").strip()[-500:]
        return {**unanswered, "error": f"{runtime[0]} ended with exit code {done.returncode}: {said}"}
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        return {**unanswered, "error": f"{runtime[0]}: {error}"}


def image_facts(image: Image, inside: dict[str, Any]) -> dict[str, Any]:
    """Return the image that the job runs in: the file outside, and what was seen inside it.

    ``unchanged`` is whether the file is the staged one; only then is ``sha256`` its hash.
    """
    known, why = image_record.known(image_record.record_path(image.folder, image.name, image.path), image.path)
    return {
        "path": str(image.path),
        "unchanged": known is not None,
        "reason": why,
        "sha256": known["sha256"] if known else None,
        "uuid": known["uuid"] if known else None,
        "entered": inside["container"] == str(image.path),
        "entered_path": inside["container"],
        **{key: inside.get(key) for key in ("python", "os", "gpus")},
    }


def staged_facts(folder: Path | None) -> dict[str, Any] | None:
    """Return the provenance of a staged dataset or model, or None if there is none."""
    said = read_json(folder / "provenance.json") if folder else None
    return {name: said.get(name) for name in (*FACTS, "files")} if isinstance(said, dict) else None


def runtime_facts(said: Any, lock: Path | None) -> dict[str, Any] | None:
    """Return what the runtime was installed from, and whether that is the current lock on the share."""
    if not isinstance(said, dict):
        return None
    try:
        current = sha256(lock) if lock else None
    except OSError:
        current = None
    return {**said, "lock_is_current": None if current is None else said.get("lock_sha256") == current}


def collect(
    job: Job,
    runtime: Sequence[str],
    *,
    lock: Path | None = None,
    data: Path | None = None,
    model: Path | None = None,
    image: Image | None = None,
) -> dict[str, Any]:
    """Return the provenance document of this job on this node; ``runtime`` as `inside_facts` takes it."""
    inside = inside_facts(runtime)
    return {
        **job.stamp,
        "time": time.time(),
        "node": socket.gethostname(),
        "kernel": platform.release(),
        "machine": platform.machine(),
        "os": os_name(),
        "cpus_allowed": len(os.sched_getaffinity(0)),
        "system_python": platform.python_version(),
        "accelerator": os.environ.get("HPC_VALIDATION_ACCELERATOR"),
        **gpu_facts(),
        "runtime_python": inside["python"],
        "runtime_error": inside.get("error"),
        "libraries": inside["libraries"],
        "runtime": runtime_facts(inside["runtime"], lock),
        "container": image_facts(image, inside) if image else None,
        "slurm": {name: os.environ[name] for name in SLURM_FACTS if name in os.environ},
        "data": staged_facts(data),
        "model": staged_facts(model),
    }
