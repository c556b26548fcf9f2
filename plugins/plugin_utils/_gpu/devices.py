# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The number of GPUs a node has according to the kernel, whatever NVML lists and Slurm allocates."""

from __future__ import annotations

import typing as t

from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._gpu.facts import LIST, TEXT, mig_on, read
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._gpu.xids import address
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._judge.reading import Reading

Json = dict[str, t.Any]


def is_jetson(facts: t.Any) -> bool:
    """Return whether the facts come from a board whose GPU is part of the chip."""
    return read(facts, "source", TEXT).value == "jetson"


def mig_enabled(facts: t.Any) -> bool:
    """Return whether MIG splits any GPU of the node: Slurm may then count instances, not whole GPUs."""
    return any(mig_on(entry) for entry in read(facts, "gpus", LIST).value or [])


def device_count(facts: t.Any) -> int | None:
    """Return how many GPUs the node has, or None if the facts do not say."""
    count = devices(facts)
    if count.missing or (count.value == 0 and facts["pci_devices"] is None):
        return None
    return int(count.value)


def devices(facts: t.Any) -> Reading:
    """Count device files, or PCI devices if there are more: a dead card stays on the bus but loses its device file.

    A display controller that NVML does not list drives a screen and is not one of the GPUs for jobs.
    """
    if is_jetson(facts):
        return Reading(1)
    files, buses = _texts(facts, "device_files"), pci_gpus(facts)
    damaged = files.missing or buses.missing
    return Reading(missing=damaged) if damaged else Reading(max(len(set(files.value)), len(buses.value)))


def pci_gpus(facts: t.Any) -> Reading:
    """Return the PCI addresses of the node's GPUs as the kernel writes them; empty if the bus is hidden."""
    buses = _texts(facts, "pci_devices", hidden=True)
    displays = _texts(facts, "pci_displays", hidden=True, absent=True)
    if buses.missing or displays.missing:
        return buses if buses.missing else displays
    strange = [bus for bus in buses.value if address(bus) is None]
    if strange:
        return Reading(missing=f"pci_devices: expected a PCI address, found {strange[0]!r}", damaged=True)
    entries = read(facts, "gpus", LIST).value or []
    listed = {address(read(entry, "pci", TEXT).value) for entry in entries}
    screens = {address(display) for display in displays.value} - listed
    return Reading([bus for bus in dict.fromkeys(buses.value) if address(bus) not in screens])


def _texts(facts: t.Any, key: str, *, hidden: bool = False, absent: bool = False) -> Reading:
    """Return a list of strings; null is read as empty if `hidden`, and a missing key if `absent`."""
    if isinstance(facts, dict) and facts.get(key, 0) is None and hidden:
        return Reading([])
    if isinstance(facts, dict) and key not in facts and absent:
        return Reading([])
    told = read(facts, key, LIST)
    if not told.missing and not all(isinstance(text, str) and text for text in told.value):
        return Reading(missing=f"{key}: expected a list of strings", damaged=True)
    return told
