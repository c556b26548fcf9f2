# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The titles of the GPU checks, by ID."""

from __future__ import annotations

TITLES = {
    "gpu.readable": "NVML answers on the node",
    "gpu.count": "Every GPU of the node is listed",
    "gpu.driver": "The driver is the expected one",
    "gpu.unique": "No two GPUs share a UUID or a PCI address",
    "gpu.kernel_log": "The kernel log can be read",
    "gpu.answers": "The GPU answers",
    "gpu.model": "The GPU is of the expected model",
    "gpu.memory": "The GPU has the expected memory",
    "gpu.ecc_mode": "ECC is as expected, and no change is pending",
    "gpu.ecc_uncorrected_volatile": "No uncorrected ECC errors since the driver was loaded",
    "gpu.ecc_uncorrected_aggregate": "Every uncorrected ECC error of the card's lifetime was dealt with",
    "gpu.ecc_corrected": "Corrected ECC errors since the driver was loaded are few",
    "gpu.sram_threshold": "SRAM errors are below the threshold at which the card is replaced",
    "gpu.retired_pages": "Retired memory pages are below the limit",
    "gpu.retired_pages_pending": "No memory page waits to be retired",
    "gpu.row_remap_pending": "No memory row waits to be remapped",
    "gpu.row_remap_failure": "No memory row failed to be remapped",
    "gpu.row_remap_count": "Rows remapped for uncorrectable errors are below the limit",
    "gpu.row_remap_exhausted": "Every memory bank has spare rows left",
    "gpu.recovery_action": "The driver asks for no recovery of the GPU",
    "gpu.throttle": "Clocks are not lowered because of heat, power supply or hardware protection",
    "gpu.temperature": "The GPU is cooler than its own limit",
    "gpu.memory_temperature": "The GPU's memory is cooler than its own limit",
    "gpu.pcie_width": "PCIe width is that of the card",
    "gpu.pcie_generation": "PCIe generation under load is that of the card",
    "gpu.pcie_replays": "PCIe replays since the driver was loaded are few",
    "gpu.nvlink": "Every NVLink is up",
    "gpu.nvlink_errors": "No NVLink had to recover",
    "gpu.nvlink_retries": "NVLink replays and checksum errors",
    "gpu.fabric": "The GPU has joined its NVLink fabric",
    "gpu.power_limit": "The power limit is not lowered",
    "gpu.persistence": "Persistence mode is as expected",
    "gpu.mig": "MIG is as expected, and no change is pending",
    "gpu.foreign_processes": "No other process uses the GPU",
    "gpu.xid": "No fatal Xid in the kernel log",
    "gpu.xid_warnings": "Xids that are not failures of the GPU",
}
