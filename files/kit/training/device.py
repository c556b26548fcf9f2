# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The device for a training: chosen without a fallback, described for metrics.json, and kept busy.

Imports PyTorch, so it is only for scripts that run in a runtime, not for the rest of the kit.
"""

from __future__ import annotations

import os
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch

from kit.errors import KitError
from kit.gpu import nvml


def choose(accelerator: str, local_rank: int = 0) -> torch.device:
    """Return the device that a node's rank trains on.

    With ``cuda``, raise KitError for a missing or surplus GPU or one of another job, and never fall back to the CPU.
    """
    if accelerator != "cuda":
        allowed = len(os.sched_getaffinity(0))
        torch.set_num_threads(max(1, min(allowed, int(os.environ.get("SLURM_CPUS_PER_TASK") or allowed))))
        return torch.device("cpu")
    if not torch.cuda.is_available():
        raise KitError(
            "expected a CUDA GPU, but PyTorch sees none: check that the job requested one (--gres=gpu:1), then "
            "`nvidia-smi` and the driver on this node. On a cluster without GPUs set hpc_validation_accelerator: cpu"
        )
    allocated = os.environ.get("SLURM_GPUS_ON_NODE")
    if allocated and int(allocated) != torch.cuda.device_count():
        raise KitError(
            f"Slurm allocated {allocated} GPU(s) on this node, but PyTorch sees {torch.cuda.device_count()}: "
            "check gres.conf and ConstrainDevices in cgroup.conf"
        )
    if local_rank >= torch.cuda.device_count():
        raise KitError(
            f"local rank {local_rank} has no GPU of its own: this node gave the job {torch.cuda.device_count()}"
        )
    device = torch.device("cuda", local_rank)
    torch.cuda.set_device(device)
    _require_allocated(uuid_of(device))
    return device


def uuid_of(device: torch.device) -> str:
    """Return a GPU's UUID as NVML writes it."""
    return f"GPU-{torch.cuda.get_device_properties(device).uuid}"


def _require_allocated(uuid: str) -> None:
    """Raise KitError if this job's GPUs are known and this is not one of them.

    Slurm numbers device files, CUDA counts in its own order: if nothing confines the job, the two may differ.
    """
    allocated = [gpu.uuid for gpu in nvml.usable_gpus().gpus if gpu.uuid]
    instance = "MIG-" in os.environ.get(
        "CUDA_VISIBLE_DEVICES", ""
    )  # CUDA then reports the UUID of the instance, NVML that of the whole GPU
    if allocated and uuid not in allocated and not instance:
        raise KitError(
            f"CUDA's device is {uuid}, but the job was allocated {', '.join(allocated)}: set ConstrainDevices=yes in "
            "cgroup.conf, and compare gres.conf with `nvidia-smi -L` and CUDA_VISIBLE_DEVICES in provenance.json"
        )


def describe(device: torch.device, accelerator: str) -> dict[str, Any]:
    """Return the facts on hardware and PyTorch for metrics.json; memory in bytes, None without a GPU."""
    facts: dict[str, Any] = {
        "device": device.type,
        "accelerator": accelerator,
        "device_count": 0,
        "gpu_name": None,
        "gpu_uuids": [],
        "gpu_memory_total_bytes": None,
        "gpu_memory_peak_bytes": None,
        "torch_version": torch.__version__,
        "cuda_version": torch.version.cuda,
        "cpu_threads": torch.get_num_threads(),
    }
    if device.type == "cuda":
        properties = [torch.cuda.get_device_properties(index) for index in range(torch.cuda.device_count())]
        facts["device_count"] = len(properties)
        facts["gpu_name"] = properties[device.index].name
        facts["gpu_uuids"] = [uuid_of(torch.device("cuda", index)) for index in range(len(properties))]
        facts["gpu_memory_total_bytes"] = properties[device.index].total_memory
        facts["gpu_memory_peak_bytes"] = torch.cuda.max_memory_allocated(device)
    elif accelerator == "simulated":
        gpus = nvml.usable_gpus().gpus
        facts["device_count"] = len(gpus)
        facts["gpu_name"] = gpus[0].name if gpus else None
        facts["gpu_uuids"] = [gpu.uuid for gpu in gpus]
    return facts


def occupied(accelerator: str, local_rank: int | None = None) -> AbstractContextManager[object]:
    """Keep the simulated GPUs, or one rank's, busy while the CPU does their work; no effect on real GPUs."""
    return nvml.occupied(local_rank) if accelerator == "simulated" else nullcontext()
