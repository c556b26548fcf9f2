# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A GPU's place in the machine's PCI tree, from sysfs: NUMA node, CPUs, root complex, nearest network card."""

from __future__ import annotations

import os
import re
from itertools import takewhile
from pathlib import Path
from typing import Any

from kit.gpu.reader import Reader

NVIDIA = "0x10de"
DISPLAY_CLASSES = ("0x0300",)  # VGA controllers: for a screen, or GeForce and workstation cards that compute
GPU_CLASSES = (*DISPLAY_CLASSES, "0x0302")  # and 3D controllers
NIC_CLASSES = ("infiniband", "net")  # RDMA devices first


def sysfs_address(pci: str) -> str:
    """Return NVML's PCI address as the kernel writes it: 00000000:1B:00.0 becomes 0000:1b:00.0."""
    domain, _sep, rest = pci.partition(":")
    return f"{int(domain, 16):04x}:{rest.lower()}"


def nvml_address(device: str) -> str:
    """Return a PCI address of sysfs as NVML writes it."""
    domain, _sep, rest = device.partition(":")
    return f"{int(domain, 16):08X}:{rest.upper()}"


def place(gpu: Reader) -> dict[str, Any]:
    """Return the GPU's place."""
    try:
        device = gpu.root / "sys/bus/pci/devices" / sysfs_address(gpu.gpu.pci or "")
    except ValueError:
        gpu.unsupported["topology"] = "no PCI address"
        return {"topology": None}
    if not device.exists():
        gpu.unsupported["topology"] = "not in /sys/bus/pci/devices"
        return {"topology": None}
    path = os.path.realpath(device).split("/")
    root = next((part for part in path if re.match(r"pci[0-9a-f]+:", part)), None)
    node = _text(device / "numa_node")
    facts = {
        "numa_node": int(node) if node and node.isdigit() else None,  # -1: the firmware does not say
        "cpu_affinity": _text(device / "local_cpulist") or None,
        "pci_root": root,
        "nic": _nearest(gpu.root / "sys/class", path, root),
    }
    for name, value in facts.items():
        if value is None:
            gpu.unsupported[f"topology.{name}"] = "none below its PCI root" if name == "nic" else "sysfs does not say"
    return {"topology": facts}


def _text(path: Path) -> str | None:
    try:
        return path.read_text(errors="replace").strip()
    except OSError:
        return None


def _nearest(classes: Path, path: list[str], root: str | None) -> str | None:
    """Return the network device below the same root complex that shares most of the GPU's path."""
    for kind in NIC_CLASSES:
        near = []
        for device in _entries(classes / kind):
            other = os.path.realpath(device / "device").split("/")
            if root in other:
                near.append((-_shared(path, other), device.name))
        if near:
            return min(near)[1]
    return None


def _shared(path: list[str], other: list[str]) -> int:
    return sum(1 for _each in takewhile(lambda pair: pair[0] == pair[1], zip(path, other)))


def _entries(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except OSError:
        return []


def nvidia_devices(root: Path = Path("/"), classes: tuple[str, ...] = GPU_CLASSES) -> list[str] | None:
    """Return the PCI addresses of NVIDIA's controllers of some classes, or None if sysfs cannot be read."""
    devices = root / "sys/bus/pci/devices"
    try:
        names = sorted(os.listdir(devices))
    except OSError:
        return None
    return [
        name
        for name in names
        if _text(devices / name / "vendor") == NVIDIA and (_text(devices / name / "class") or "").startswith(classes)
    ]
