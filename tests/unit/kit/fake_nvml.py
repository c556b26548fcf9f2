# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# ruff: noqa: N801, N818 - names of nvidia-ml-py
"""Stand-in for the ``pynvml`` module: the calls that the kit makes, over a dictionary of GPUs."""

from __future__ import annotations

import types
import typing as t


class NVMLError(Exception):
    """As in nvidia-ml-py, every error is a subclass of this one."""


class NVMLError_NotSupported(NVMLError):
    pass


class NVMLError_GpuIsLost(NVMLError):
    pass


class NVMLError_DriverNotLoaded(NVMLError):
    pass


GPU: dict[str, t.Any] = {
    "name": "Fake GPU",
    "util": 90,
    "memory_used": 5,
    "power": 70_500,
    "temperature": 40,
    "clock": 1500,
    "reasons": 0x1 | 0x40,
}


def gpu(number: int, **changes: t.Any) -> dict[str, t.Any]:
    """Describe one GPU; a value that is an exception is raised by the call that reads it."""
    return {**GPU, "uuid": f"GPU-{number:04d}", "minor": number, "pci": f"00000000:{number:02x}:00.0", **changes}


def fake_pynvml(*gpus: t.Any, init: Exception | None = None) -> types.ModuleType:
    """Return a module to put into ``sys.modules``; an exception in place of a GPU denies its handle."""
    module = types.ModuleType("pynvml")

    def field(name: str) -> t.Callable[..., t.Any]:
        def read(handle: dict[str, t.Any], *_: t.Any) -> t.Any:
            value = handle[name]
            if isinstance(value, Exception):
                raise value
            return value

        return read

    def wrapped(name: str, **shape: str) -> t.Callable[..., t.Any]:
        def read(handle: dict[str, t.Any], *_: t.Any) -> t.Any:
            value = field(name)(handle)
            return types.SimpleNamespace(**dict.fromkeys(shape, value))

        return read

    def handle_by_index(index: int) -> dict[str, t.Any]:
        if isinstance(gpus[index], Exception):
            raise gpus[index]
        return t.cast("dict[str, t.Any]", gpus[index])

    def start() -> None:
        if init:
            raise init

    names: dict[str, t.Any] = {
        "NVMLError": NVMLError,
        "NVML_TEMPERATURE_GPU": 0,
        "NVML_CLOCK_SM": 1,
        "NVML_CLOCK_MEM": 2,
        "nvmlInit": start,
        "nvmlSystemGetDriverVersion": lambda: "570.1",
        "nvmlSystemGetCudaDriverVersion": lambda: 12080,
        "nvmlDeviceGetCount": lambda: len(gpus),
        "nvmlDeviceGetHandleByIndex": handle_by_index,
        "nvmlDeviceGetUUID": field("uuid"),
        "nvmlDeviceGetName": field("name"),
        "nvmlDeviceGetMinorNumber": field("minor"),
        "nvmlDeviceGetPciInfo": wrapped("pci", busId=""),
        "nvmlDeviceGetUtilizationRates": wrapped("util", gpu="", memory=""),
        "nvmlDeviceGetMemoryInfo": wrapped("memory_used", used="", total=""),
        "nvmlDeviceGetPowerUsage": field("power"),
        "nvmlDeviceGetTemperature": field("temperature"),
        "nvmlDeviceGetClockInfo": field("clock"),
        "nvmlDeviceGetCurrentClocksThrottleReasons": field("reasons"),
    }
    for name, value in names.items():
        setattr(module, name, value)
    return module
