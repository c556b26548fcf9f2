# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Jetson boards, over trees as their kernels show them."""

from __future__ import annotations

import signal
import typing as t

import pytest
from kit.gpu import jetson, nvml, sampler

from tests.unit.kit.conftest import FakeNode
from tests.unit.kit.fake_nvml import (
    HEALTHY,
    NVMLError_DriverNotLoaded,
    NVMLError_NotSupported,
    NVMLError_Unknown,
    fake_pynvml,
    gpu,
)

HWMON = "sys/bus/i2c/devices/1-0040/hwmon/hwmon3"


def rail(node: FakeNode, number: int, name: str, millivolts: int, milliamperes: int) -> None:
    node.write(f"{HWMON}/in{number}_label", f"{name}\n")
    node.write(f"{HWMON}/in{number}_input", f"{millivolts}\n")
    node.write(f"{HWMON}/curr{number}_input", f"{milliamperes}\n")


def zone(node: FakeNode, number: int, name: str, millidegrees: int) -> None:
    node.write(f"sys/class/thermal/thermal_zone{number}/type", f"{name}\n")
    node.write(f"sys/class/thermal/thermal_zone{number}/temp", f"{millidegrees}\n")


@pytest.fixture
def orin(fake_node: FakeNode) -> FakeNode:
    """An Orin of JetPack 5 or 6."""
    fake_node.write("proc/device-tree/model", b"NVIDIA Jetson Orin NX Engineering Reference Developer Kit\0")
    fake_node.write("sys/class/devfreq/17000000.ga10b/device/load", "427\n")
    rail(fake_node, 1, "VDD_IN", 5000, 2000)
    rail(fake_node, 2, "VDD_CPU_GPU_CV", 5000, 800)
    rail(fake_node, 3, "NC", 5000, 1)
    fake_node.write(f"{HWMON}/in7_label", "sum of shunt voltages\n")
    zone(fake_node, 0, "CPU-therm", 45500)
    zone(fake_node, 1, "GPU-therm", 44000)
    zone(fake_node, 2, "CV0-therm", -256000)
    fake_node.write("var/lib/nvpmodel/status", "pmode:0002\n")
    fake_node.write("etc/nvpmodel.conf", "< POWER_MODEL ID=0 NAME=MAXN >\n< POWER_MODEL ID=2 NAME=MODE_15W >\n")
    return fake_node


def test_orin_without_nvml_has_one_gpu_from_sysfs(
    orin: FakeNode,
    collect: t.Callable[..., t.Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(nvml, "WHEELS", orin.root / "none")
    document = collect(None)
    assert (document["source"], document["error"], document["listed"]) == ("jetson", None, 1)
    (one,) = document["gpus"]
    assert one["name"].startswith("NVIDIA Jetson Orin NX")
    assert (one["utilization"]["gpu"], one["temperature"]["gpu_c"], one["power"]["draw_w"]) == (42.7, 44.0, 10.0)
    assert "nvidia-ml-py" in one["unsupported"]["ecc"]
    assert one["memory"]["unified"] is True
    assert document["jetson"] == {
        "power_mode": "MODE_15W",
        "rails": [{"name": "VDD_IN", "milliwatts": 10000}, {"name": "VDD_CPU_GPU_CV", "milliwatts": 4000}],
        "zones": [{"name": "CPU-therm", "celsius": 45.5}, {"name": "GPU-therm", "celsius": 44.0}],
    }


def test_orin_with_an_empty_nvml_is_filled_from_sysfs(
    orin: FakeNode,
    collect: t.Callable[..., t.Any],
) -> None:
    assert jetson.model(orin.root)
    nothing = dict.fromkeys(HEALTHY, NVMLError_NotSupported())
    weak = {
        "util": NVMLError_NotSupported(),
        "power": NVMLError_NotSupported(),
        "temperature": NVMLError_NotSupported(),
    }
    document = collect(fake_pynvml(gpu(0, calls=nothing, **weak)), deadline=3.0)
    (one,) = document["gpus"]
    assert (document["source"], one["uuid"], one["name"]) == ("jetson", "GPU-0000", "Fake GPU")
    assert (one["utilization"]["gpu"], one["temperature"]["gpu_c"], one["power"]["draw_w"]) == (42.7, 44.0, 10.0)
    assert one["unsupported"]["power.limit_w"] == "NotSupported"


def test_thor_keeps_what_nvml_gives(fake_node: FakeNode, collect: t.Callable[..., t.Any]) -> None:
    fake_node.write("proc/device-tree/model", b"NVIDIA Jetson AGX Thor Developer Kit\0")
    (fake_node.root / "sys/class/devfreq/gpu-gpc-0").mkdir(parents=True)  # its load file is gone
    rail(fake_node, 1, "VDD_GPU", 12000, 1000)
    rail(fake_node, 2, "VDD_CPU_SOC_MSS", 12000, 500)
    zone(fake_node, 0, "gpu-thermal", 51000)
    document = collect(fake_pynvml(gpu(0)))
    (one,) = document["gpus"]
    assert (document["source"], one["utilization"]["gpu"], one["power"]["draw_w"]) == ("jetson", 90, 70.5)
    assert document["jetson"]["power_mode"] is None
    assert jetson.draw_w(document["jetson"]["rails"]) == 18.0


def test_a_bare_board_gives_null(fake_node: FakeNode, collect: t.Callable[..., t.Any]) -> None:
    fake_node.write("proc/device-tree/model", "NVIDIA Tegra\0")
    document = collect(fake_pynvml())
    (one,) = document["gpus"]
    assert (one["utilization"], one["power"], one["temperature"]) == (None, None, None)
    assert document["jetson"] == {"power_mode": None, "rails": [], "zones": []}


@pytest.mark.parametrize("model", [None, "Raspberry Pi 5", ""])
def test_another_board_is_no_jetson(fake_node: FakeNode, model: str | None) -> None:
    if model is not None:
        fake_node.write("proc/device-tree/model", model)
    assert jetson.model(fake_node.root) is None
    assert jetson.row(fake_node.root) is None


def test_the_sampler_reads_a_jetson(orin: FakeNode, monkeypatch: pytest.MonkeyPatch) -> None:
    row = jetson.row(orin.root)
    monkeypatch.setattr(jetson, "row", lambda: row)
    (sampled,) = sampler.samples(None, nvml.Usable(reason="LibraryNotFound"))
    assert (sampled["util"], sampled["power_w"], sampled["temperature_c"]) == (42.7, 10.0, 44.0)
    assert sampled["unsupported"]["memory_used"] == "not in sysfs"
    weak = fake_pynvml(gpu(0, util=NVMLError_NotSupported()))
    (sampled,) = sampler.samples(weak, nvml.Usable(nvml.list_gpus(weak), 1))
    assert (sampled["util"], sampled["power_w"], sampled["unsupported"]) == (42.7, 70.5, {})


def test_probing_a_jetson_samples_it(
    orin: FakeNode,
    collect: t.Callable[..., t.Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    row = jetson.row(orin.root)
    monkeypatch.setattr(jetson, "row", lambda: row)
    monkeypatch.setattr(nvml, "WHEELS", orin.root / "none")
    samples = collect(None, sample=0.1, interval=0.05)["samples"]
    (one,) = samples["gpus"].values()
    assert (samples["error"], one["util"]["mean"], one["memory_used"]) == (None, pytest.approx(42.7), None)


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        (NVMLError_DriverNotLoaded(), None),
        (NVMLError_Unknown(), "Unknown"),
        (signal.pause, "nvmlInit did not answer in 0.4 s"),
    ],
)
@pytest.mark.usefixtures("orin")
def test_an_nvml_that_is_absent_is_no_fault_of_a_board_but_one_that_hangs_is(
    collect: t.Callable[..., t.Any], fault: t.Any, error: str | None
) -> None:
    document = collect(fake_pynvml(init=fault))
    assert (document["source"], document["error"], len(document["gpus"])) == ("jetson", error, 1)


def test_a_board_whose_sysfs_knows_no_gpu_needs_its_driver(
    fake_node: FakeNode, collect: t.Callable[..., t.Any]
) -> None:
    fake_node.write("proc/device-tree/model", b"NVIDIA Jetson AGX Thor Developer Kit\0")
    assert collect(fake_pynvml(init=NVMLError_DriverNotLoaded()))["error"] == "DriverNotLoaded"


def test_a_load_that_is_no_number_is_null(orin: FakeNode) -> None:
    orin.write("sys/class/devfreq/17000000.ga10b/device/load", "n/a\n")
    assert jetson.load(orin.root) is None
