# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where a GPU sits on the PCI tree."""

from __future__ import annotations

import typing as t

import pytest
from kit.gpu import nvml, topology
from kit.gpu.reader import Reader

from tests.unit.kit.conftest import FakeNode

SWITCH = "pci0000:00/0000:00:01.0/0000:01:00.0"


def place(node: FakeNode, pci: str | None = "00000000:03:00.0") -> tuple[t.Any, dict[str, str]]:
    reader = Reader(None, nvml.Gpu(0, pci=pci), node.root)
    return topology.place(reader)["topology"], reader.unsupported


def test_the_nearest_nic_is_the_one_below_the_same_switch(fake_node: FakeNode) -> None:
    fake_node.gpu(f"{SWITCH}/0000:02:00.0/0000:03:00.0")
    near = fake_node.pci(f"{SWITCH}/0000:02:01.0/0000:04:00.0")
    far = fake_node.pci("pci0000:00/0000:00:02.0/0000:05:00.0")
    other = fake_node.pci("pci0000:80/0000:80:01.0/0000:81:00.0")
    for name, device in (("mlx5_0", other), ("mlx5_1", far), ("mlx5_2", near)):
        fake_node.network("infiniband", name, device)
    fake_node.network("net", "eth0", near)
    facts, unsupported = place(fake_node)
    assert facts == {"numa_node": 1, "cpu_affinity": "0-15", "pci_root": "pci0000:00", "nic": "mlx5_2"}
    assert unsupported == {}


def test_without_rdma_it_is_a_network_device(fake_node: FakeNode) -> None:
    fake_node.gpu(f"{SWITCH}/0000:03:00.0")
    fake_node.network("net", "eth1", fake_node.pci("pci0000:00/0000:00:02.0/0000:05:00.0"))
    (fake_node.root / "sys/class/net/lo").mkdir()
    assert place(fake_node)[0]["nic"] == "eth1"


def test_below_another_root_complex_nothing_is_near(fake_node: FakeNode) -> None:
    fake_node.gpu(f"{SWITCH}/0000:03:00.0", numa_node="-1\n")
    fake_node.network("infiniband", "mlx5_0", fake_node.pci("pci0000:80/0000:81:00.0"))
    facts, unsupported = place(fake_node)
    assert (facts["nic"], facts["numa_node"]) == (None, None)
    assert unsupported == {"topology.nic": "none below its PCI root", "topology.numa_node": "sysfs does not say"}


@pytest.mark.parametrize("pci", [None, "", "nonsense", "00000000:99:00.0"])
def test_a_gpu_that_sysfs_does_not_know_has_no_place(fake_node: FakeNode, pci: str | None) -> None:
    facts, unsupported = place(fake_node, pci)
    assert facts is None
    assert "topology" in unsupported


def test_nvidias_controllers_are_told_from_its_other_functions(fake_node: FakeNode) -> None:
    assert topology.nvidia_devices(fake_node.root) is None
    fake_node.gpu(f"{SWITCH}/0000:03:00.0")
    fake_node.gpu(f"{SWITCH}/0000:04:00.0", **{"class": "0x030000\n"})
    fake_node.gpu(f"{SWITCH}/0000:04:00.1", **{"class": "0x040300\n"})  # sound
    fake_node.gpu(f"{SWITCH}/0000:05:00.0", **{"class": "0x068000\n"})  # NVSwitch
    fake_node.gpu(f"{SWITCH}/0000:06:00.0", vendor="0x1002\n")
    assert topology.nvidia_devices(fake_node.root) == ["0000:03:00.0", "0000:04:00.0"]


def test_addresses_are_written_as_the_kernel_does() -> None:
    assert topology.sysfs_address("00000000:1B:00.0") == "0000:1b:00.0"
    assert topology.sysfs_address("00010000:01:00.0") == "10000:01:00.0"
