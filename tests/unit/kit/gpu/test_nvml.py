# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The NVML reader, over a stand-in for ``pynvml``."""

from __future__ import annotations

import os
import sys
import zipfile
from pathlib import Path

import pytest
from kit.gpu import nvml

from tests.unit.kit.fake_nvml import (
    NVMLError_DriverNotLoaded,
    NVMLError_GpuIsLost,
    NVMLError_NotSupported,
    fake_pynvml,
    gpu,
)

TWO = fake_pynvml(gpu(0), gpu(1))


def test_gpus_are_known_by_uuid_and_pci_address() -> None:
    assert [(item.uuid, item.pci, item.minor) for item in nvml.list_gpus(TWO)] == [
        ("GPU-0000", "00000000:00:00.0", 0),
        ("GPU-0001", "00000000:01:00.0", 1),
    ]


def test_a_lost_gpu_is_listed_with_its_error_and_hides_no_other() -> None:
    lost, well = nvml.list_gpus(fake_pynvml(NVMLError_GpuIsLost(), gpu(1)))
    assert (lost.handle, lost.error) == (None, "GpuIsLost")
    assert (well.uuid, well.error) == ("GPU-0001", None)


def test_what_is_not_supported_is_none_with_its_reason() -> None:
    module = fake_pynvml(gpu(0, power=NVMLError_NotSupported()))
    handle = module.nvmlDeviceGetHandleByIndex(0)
    assert nvml.ask(module, module.nvmlDeviceGetPowerUsage, handle) == (None, "NotSupported")
    assert nvml.ask(module, module.nvmlDeviceGetName, handle) == ("Fake GPU", None)


@pytest.mark.parametrize(
    ("environment", "denied", "expected", "by"),
    [
        ({"SLURM_JOB_GPUS": "1"}, {0}, ["GPU-0001"], "device access"),
        ({"SLURM_JOB_GPUS": "0,1"}, set(), ["GPU-0000", "GPU-0001"], "device access"),
        ({}, {0, 1}, [], "device access"),
        ({"SLURM_JOB_GPUS": "1", "CUDA_VISIBLE_DEVICES": "0"}, set(), ["GPU-0001"], "SLURM_JOB_GPUS"),
        ({"SLURM_JOB_GPUS": "0", "SLURM_STEP_GPUS": "1"}, set(), ["GPU-0001"], "SLURM_JOB_GPUS"),
        ({"CUDA_VISIBLE_DEVICES": "1"}, set(), ["GPU-0001"], "CUDA_VISIBLE_DEVICES"),
        ({"CUDA_VISIBLE_DEVICES": " GPU-0000"}, set(), ["GPU-0000"], "CUDA_VISIBLE_DEVICES"),
        ({"CUDA_VISIBLE_DEVICES": "7"}, set(), [], "CUDA_VISIBLE_DEVICES"),
        ({}, set(), ["GPU-0000", "GPU-0001"], "every GPU listed"),
    ],
)
def test_only_the_jobs_gpus_are_its_own(
    environment: dict[str, str], denied: set[int], expected: list[str], by: str
) -> None:
    chosen, selected_by = nvml.select(nvml.list_gpus(TWO), environment, lambda minor: minor not in denied)
    assert ([item.uuid for item in chosen], selected_by) == (expected, by)


def test_the_name_of_a_mig_instance_tells_no_gpu_apart() -> None:
    environment = {"CUDA_VISIBLE_DEVICES": "MIG-11111111-2222-3333-4444-555555555555"}
    chosen, selected_by = nvml.select(nvml.list_gpus(TWO), environment, lambda _: True)
    assert (len(chosen), selected_by) == (2, "every GPU listed")


def test_one_listed_gpu_of_a_confined_job_is_its_own() -> None:
    chosen, selected_by = nvml.select(nvml.list_gpus(fake_pynvml(gpu(1))), {"SLURM_JOB_GPUS": "1"}, lambda _: True)
    assert ([item.uuid for item in chosen], selected_by) == (["GPU-0001"], "device access")


def test_without_a_driver_there_are_no_gpus_and_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", fake_pynvml(init=NVMLError_DriverNotLoaded()))
    usable = nvml.usable_gpus()
    assert (usable.gpus, usable.reason) == ([], "DriverNotLoaded")


def test_pynvml_is_imported_from_the_wheel_beside_the_kit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with zipfile.ZipFile(tmp_path / "nvidia_ml_py-1-py3-none-any.whl", "w") as wheel:
        wheel.writestr("pynvml.py", "class NVMLError(Exception): pass\ndef nvmlInit(): pass\nWHERE = __file__\n")
    monkeypatch.setattr(nvml, "WHEELS", tmp_path)
    monkeypatch.setattr(sys, "path", [path for path in sys.path if "site-packages" not in path])
    monkeypatch.delitem(sys.modules, "pynvml", raising=False)
    try:
        assert nvml.load().WHERE.startswith(str(tmp_path))
    finally:
        sys.modules.pop("pynvml", None)


def test_without_the_wheel_the_reason_says_where_it_is_looked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nvml, "WHEELS", tmp_path / "none")
    monkeypatch.setitem(sys.modules, "pynvml", None)  # what import finds when there is no such module
    usable = nvml.usable_gpus()
    assert usable.gpus == []
    assert str(tmp_path / "none") in str(usable.reason)


def test_occupied_holds_the_device_files_and_lets_them_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "gpu0").touch()
    monkeypatch.setattr(nvml, "DEVICE", f"{tmp_path}/gpu{{minor}}")
    monkeypatch.setitem(sys.modules, "pynvml", TWO)

    def held() -> int:
        return sum(os.path.realpath(entry.path) == str(tmp_path / "gpu0") for entry in os.scandir("/proc/self/fd"))

    with nvml.occupied():
        assert held() == 1
    assert held() == 0
