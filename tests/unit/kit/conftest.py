# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A node's /proc, /sys and /dev as a folder, for the tests of the GPU probe."""

from __future__ import annotations

import json
import sys
import types
import typing as t
from pathlib import Path

import pytest
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._common import schema
from kit.gpu import probe

ROOT_COMPLEX = "sys/devices/pci0000:00"


class FakeNode:
    """Writes files below a folder that stands for the root of a node's file system."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.write("proc/stat", "cpu 1\nbtime 1000\n")
        self.write("proc/meminfo", "MemTotal: 2048 kB\nMemAvailable: 1024 kB\n")

    def write(self, path: str, text: str | bytes) -> Path:
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(text.encode() if isinstance(text, str) else text)
        return target

    def pci(self, path: str, **files: str) -> Path:
        """Put a device at a place of the PCI tree."""
        device = self.root / "sys/devices" / path
        for name, text in files.items():
            self.write(f"sys/devices/{path}/{name}", text)
        device.mkdir(parents=True, exist_ok=True)
        link = self.root / "sys/bus/pci/devices" / device.name
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(device)
        return device

    def gpu(self, path: str, **files: str) -> Path:
        """Put one of NVIDIA's 3D controllers at a place of the PCI tree."""
        known = {"vendor": "0x10de\n", "class": "0x030200\n", "numa_node": "1\n", "local_cpulist": "0-15\n"}
        return self.pci(path, **{**known, **files})

    def network(self, kind: str, name: str, device: Path) -> None:
        """Let a network device of a class sit on a PCI device."""
        place = self.root / f"sys/class/{kind}/{name}"
        place.mkdir(parents=True)
        (place / "device").symlink_to(device)


@pytest.fixture
def fake_node(tmp_path: Path) -> FakeNode:
    """A node with nothing but a boot time and memory."""
    return FakeNode(tmp_path / "node")


Document = dict[str, t.Any]


@pytest.fixture
def collect(fake_node: FakeNode, monkeypatch: pytest.MonkeyPatch) -> t.Callable[..., Document]:
    """Probe a node whose ``pynvml`` is the given module; the document fits its schema."""
    for name in ("SLURM_JOB_GPUS", "SLURM_STEP_GPUS", "CUDA_VISIBLE_DEVICES"):
        monkeypatch.delenv(name, raising=False)

    def run(module: types.ModuleType | None, **options: t.Any) -> Document:
        monkeypatch.setitem(sys.modules, "pynvml", module)
        times = {"deadline": 0.2, "init_deadline": 0.4, "limit": 5.0}
        settings = {**times, "kernel_log": "none", "root": fake_node.root, **options}
        document = json.loads(json.dumps(probe.collect(probe.Options(**settings))))
        assert schema.problems("gpus", document) == []
        every_null_has_its_reason(document)
        return t.cast("Document", document)

    return run


def every_null_has_its_reason(document: Document) -> None:
    identity = {"minor", "uuid", "pci", "name", "error"}
    for item in document["gpus"]:
        for key, value in item.items():
            if value is None and key not in identity:
                assert key in item["unsupported"], key
            if isinstance(value, dict) and key != "unsupported":
                for part, inner in value.items():
                    assert inner is not None or f"{key}.{part}" in item["unsupported"], (key, part)
