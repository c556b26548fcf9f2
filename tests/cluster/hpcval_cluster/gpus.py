# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Simulated GPUs: the state files that the stand-in NVML library reads (`nvml/` says what each key means). Pure."""

from __future__ import annotations

import re

from hpcval_cluster.state import GPUS_PER_NODE, Cluster, ClusterError, gpu_uuid

MIB = 1024 * 1024
# No GPU's: what the driver says of itself, and whether the kernel log may be read.
SYSTEM = {
    "driver_version": "570.133.20",
    "nvml_version": "12.570.133.20",
    "cuda_version": "12080",
    "fail": "",
    "hang": "",
    "kernel_log": "readable",
}
# A healthy GPU. `a/b` is a while nothing holds the device open and b while something does; empty: not supported.
HEALTHY = {
    "name": "Simulated GPU 80GB",
    "uuid": "",
    "serial": "",
    "vbios_version": "96.00.00.00.01",
    "brand": "14",
    "architecture": "9",
    "compute_capability_major": "9",
    "compute_capability_minor": "0",
    "cores": "16896",
    "persistence_mode": "1",
    "compute_mode": "0",
    "numa_node": "",
    "mig_mode": "",
    "mig_mode_pending": "",
    "bus_id": "",
    "pci_device_id": "0xffff10de",
    "pci_subsystem_id": "0xffff10de",
    "memory_total": str(81920 * MIB),
    "memory_used": f"{4 * MIB}/{8192 * MIB}",
    "memory_reserved": str(512 * MIB),
    "utilization_gpu": "0/90",
    "utilization_memory": "0/40",
    "processes_compute": "",
    "processes_graphics": "",
    "processes_mps": "",
    "power_mw": "70000/420000",
    "power_limit_mw": "700000",
    "power_default_limit_mw": "700000",
    "power_min_limit_mw": "200000",
    "power_max_limit_mw": "700000",
    "energy_mj": "1000000",
    "performance_state": "0",
    "temperature": "32/58",
    "temperature_margin": "55/29",
    "temperature_shutdown": "95",
    "temperature_slowdown": "90",
    "temperature_memory_max": "95",
    "temperature_gpu_max": "87",
    "clock_graphics": "345/1755",
    "clock_sm": "345/1755",
    "clock_memory": "2619",
    "clock_video": "765/1365",
    "clock_graphics_max": "1980",
    "clock_sm_max": "1980",
    "clock_memory_max": "2619",
    "clock_video_max": "1545",
    "clocks_event_reasons": "1/0",
    "clocks_event_reasons_supported": "0x1ff",
    "pcie_generation": "1/5",
    "pcie_generation_max": "5",
    "pcie_width": "16",
    "pcie_width_max": "16",
    "pcie_replays": "0",
    "topology_level": "30",
    "ecc_mode": "1",
    "ecc_mode_pending": "1",
    "ecc_corrected_volatile": "0",
    "ecc_uncorrected_volatile": "0",
    "ecc_corrected_aggregate": "0",
    "ecc_uncorrected_aggregate": "0",
    "sram_corrected": "0",
    "sram_uncorrected": "0",
    "sram_threshold_exceeded": "0",
    "retired_single_bit": "",
    "retired_double_bit": "",
    "retired_pending": "",
    "remapped_corrected": "0",
    "remapped_uncorrected": "0",
    "remapped_pending": "0",
    "remapped_failed": "0",
    "remap_banks_max": "640",
    "remap_banks_high": "0",
    "remap_banks_partial": "0",
    "remap_banks_low": "0",
    "remap_banks_none": "0",
    "nvlinks": "18",
    "nvlink_peer": "",
    "nvlink_peer_type": "0",
    "nvlink_version": "6",
    "fabric_state": "3",
    "fabric_status": "0",
    "fabric_health_mask": "0",
    "fabric_health": "1",
    "gpm_supported": "1",
    "gpm.1": "0/88",
    "gpm.2": "0/85",
    "gpm.3": "0/55",
    "gpm.5": "0/40",
    "field.82": "38/64",
    "field.230": "0",
    "xids": "none",
    "present": "1",
    "fail": "",
    "hang": "",
}
# Keys made of a word and a number or name: one call's failure, one NVML field, one GPM metric, one link.
OF_ONE_CALL = re.compile(r"(?:fail|hang)\.nvml[A-Za-z0-9_]+")
OF_ONE_GPU = re.compile(
    rf"{OF_ONE_CALL.pattern}|field\.[0-9]+|gpm\.[0-9]+|nvlink\.[0-9]+\.(?:state|replay|recovery|crc_flit|crc_data|ecc_data)"
)
KERNEL_LOG = "[    0.000000] Linux version 6.1.0-simulated (stand-in for a node's kernel log)\n"


def bus_id(index: int) -> str:
    """The PCI address of a node's GPU of that index, as NVML writes it."""
    return f"00000000:{0x10 + index * 0x10:02X}:00.0"


def as_text(values: dict[str, str]) -> str:
    """A state file's text."""
    return "".join(f"{key}={value}\n" for key, value in values.items())


def as_values(text: str) -> dict[str, str]:
    """What a state file says."""
    return dict(line.split("=", 1) for line in text.splitlines() if "=" in line)


def initial_states(cluster: Cluster, machine: str) -> dict[str, str]:
    """File name → text of a healthy node's state files."""
    files = {"system.state": as_text(SYSTEM), "kernel.log": KERNEL_LOG}
    number = cluster.compute.index(machine)
    for index in range(GPUS_PER_NODE):
        values = dict(HEALTHY)
        values["uuid"] = gpu_uuid(cluster.name, machine, index)
        values["serial"] = f"{1320000000000 + number * 100 + index}"
        values["bus_id"] = bus_id(index)
        values["nvlink_peer"] = bus_id((index + 1) % GPUS_PER_NODE)
        files[f"gpu{index}.state"] = as_text(values)
    return files


def check_key(key: str, value: str, known: dict[str, str], pattern: re.Pattern[str]) -> None:
    """Refuse an unknown key, and a value that would not stay on its line or in the library's memory."""
    if key not in known and not pattern.fullmatch(key):
        raise ClusterError(f"{key!r}: unknown; these keys are known: {', '.join(sorted(known))}, {pattern.pattern}")
    if "\n" in value or len(value) > 255:
        raise ClusterError(f"{key}: a value is one line of at most 255 characters")
