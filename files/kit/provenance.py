# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the job ran on: node, driver, GPUs, libraries, environment, data. Chosen facts, never the environment whole."""

from __future__ import annotations

import json
import os
import platform
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from kit.gpu import nvml
from kit.job import Job
from kit.staged import FACTS

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

# Runs in the runtime's Python. From the packages' metadata where it can: importing PyTorch takes seconds.
LIBRARIES = """
import importlib.metadata, importlib.util, json, pathlib, platform, re
def version(name):
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None
found = {"python": platform.python_version(), "torch": version("torch"), "torchvision": version("torchvision")}
found.update({name: version(name) for name in ("numpy", "transformers", "accelerate", "peft", "trl", "oumi")})
found.update(cuda=None, cudnn=None, nccl=None)
spec = importlib.util.find_spec("torch")
if spec:
    text = (pathlib.Path(spec.origin).parent / "version.py").read_text()
    said = re.search(r"^cuda\\b[^=]*= *'([0-9.]+)'", text, re.MULTILINE)
    found["cuda"] = said.group(1) if said else None
    if said:
        suffix = "-cu" + said.group(1).split(".")[0]
        found.update(cudnn=version("nvidia-cudnn" + suffix), nccl=version("nvidia-nccl" + suffix))
    if said and not (found["cudnn"] and found["nccl"]):  # a container's build, with its libraries elsewhere
        import torch
        found["cudnn"] = found["cudnn"] or torch.backends.cudnn.version()
        found["nccl"] = found["nccl"] or ".".join(map(str, torch.cuda.nccl.version()))
print(json.dumps(found))
"""


def gpu_facts() -> dict[str, Any]:
    """Return driver and GPUs by NVML; what it does not say is None, and ``nvml_reason`` says why there is no NVML."""
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


def library_facts(python: str) -> dict[str, Any]:
    """Return the versions that the runtime's Python finds; ``error`` when it does not answer."""
    try:
        done = subprocess.run([python, "-I", "-c", LIBRARIES], capture_output=True, timeout=120, check=True)
        return dict(json.loads(done.stdout))
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        return {"error": str(error)}


def read_json(path: Path) -> Any:
    """Return a JSON document, or None where there is none to read."""
    try:
        return json.loads(path.read_text())
    except (OSError, ValueError):
        return None


def os_name(path: Path = Path("/etc/os-release")) -> str | None:
    """Return the distribution's own name for itself."""
    try:
        said = dict(line.split("=", 1) for line in path.read_text().splitlines() if "=" in line)
    except OSError:
        return None
    return said.get("PRETTY_NAME", "").strip('"') or None


def staged_facts(folder: Path | None) -> dict[str, Any] | None:
    """Return what a staged dataset or model says of itself; None where there is none to ask."""
    said = read_json(folder / "provenance.json") if folder else None
    return {name: said.get(name) for name in (*FACTS, "files")} if isinstance(said, dict) else None


def collect(job: Job, python: str | None, data: Path | None, model: Path | None = None) -> dict[str, Any]:
    """Return the provenance document of this job on this node."""
    runtime = read_json(Path(python).parent.parent / "runtime.json") if python else None
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
        "libraries": library_facts(python or sys.executable),
        "runtime": {key: runtime[key] for key in ("key", "lock_sha256", "installer", "installed") if key in runtime}
        if isinstance(runtime, dict)
        else None,
        "slurm": {name: os.environ[name] for name in SLURM_FACTS if name in os.environ},
        "data": staged_facts(data),
        "model": staged_facts(model),
    }
