# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Simulated GPUs: the state files that the stand-in NVML library reads (`nvml/` says what each key means)."""

from __future__ import annotations

import re

from hpcval_cluster.state import COMPUTE, GPUS_PER_NODE, ClusterError, gpu_uuid

SYSTEM = {"driver_version": "570.133.20", "nvml_version": "12.570.133.20", "cuda_version": "12080"}
MIB = 1024 * 1024
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
    "power_mw": "70000/420000",
    "power_limit_mw": "700000",
    "power_default_limit_mw": "700000",
    "power_min_limit_mw": "200000",
    "power_max_limit_mw": "700000",
    "energy_mj": "1000000",
    "performance_state": "0",
    "temperature": "32/58",
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
    "ecc_mode": "1",
    "ecc_mode_pending": "1",
    "ecc_corrected_volatile": "0",
    "ecc_uncorrected_volatile": "0",
    "ecc_corrected_aggregate": "0",
    "ecc_uncorrected_aggregate": "0",
    "remapped_corrected": "0",
    "remapped_uncorrected": "0",
    "remapped_pending": "0",
    "remapped_failed": "0",
    "present": "1",
    "fail": "",
}
# Keys made of a word and a number or name: the failure of one call, the value of one NVML field.
PATTERNS = re.compile(r"fail\.nvml[A-Za-z0-9_]+|field\.[0-9]+")


def _text(values: dict[str, str]) -> str:
    return "".join(f"{key}={value}\n" for key, value in values.items())


def initial_states(cluster: str, machine: str) -> dict[str, str]:
    """File name → text of a healthy node's state files."""
    files = {"system.state": _text(SYSTEM)}
    number = COMPUTE.index(machine)
    for index in range(GPUS_PER_NODE):
        values = dict(HEALTHY)
        values["uuid"] = gpu_uuid(cluster, machine, index)
        values["serial"] = f"{1320000000000 + number * 100 + index}"
        values["bus_id"] = f"00000000:{0x10 + index * 0x10:02X}:00.0"
        files[f"gpu{index}.state"] = _text(values)
    return files


def parse_changes(words: list[str]) -> dict[str, str]:
    """`key=value` words as a dictionary; refuses unknown keys and values that would not stay on their line."""
    changes = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not equals or not (key in HEALTHY or PATTERNS.fullmatch(key)):
            known = ", ".join([*sorted(HEALTHY), "fail.FUNCTION", "field.NUMBER"])
            raise ClusterError(f"{word!r}: expected key=value with one of these keys: {known}")
        if "\n" in value:
            raise ClusterError(f"{key}: a value is one line")
        changes[key] = value
    return changes


def apply_changes(text: str, changes: dict[str, str]) -> str:
    """A state file's text with some values replaced or added."""
    values = dict(line.split("=", 1) for line in text.splitlines() if "=" in line)
    values.update(changes)
    return _text(values)
