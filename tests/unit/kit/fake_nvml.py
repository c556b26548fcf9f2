# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# ruff: noqa: N801, N818 - names of nvidia-ml-py
"""Stand-in for the ``pynvml`` module: the calls that the kit makes, over a dictionary of GPUs."""

from __future__ import annotations

import ctypes
import types
import typing as t


class NVMLError(Exception):
    """As in nvidia-ml-py, every error is a subclass of this one, made from its code, and unhashable."""

    def __new__(cls, *arguments: t.Any) -> NVMLError:
        names = {3: NVMLError_NotSupported, 15: NVMLError_GpuIsLost}
        chosen = names.get(arguments[0], cls) if arguments and cls is NVMLError else cls
        return t.cast("NVMLError", Exception.__new__(chosen, *arguments))

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other)

    __hash__ = None  # type: ignore[assignment]


class NVMLError_NotSupported(NVMLError):
    pass


class NVMLError_GpuIsLost(NVMLError):
    pass


class NVMLError_NoPermission(NVMLError):
    pass


class NVMLError_Timeout(NVMLError):
    pass


class NVMLError_DriverNotLoaded(NVMLError):
    pass


class NVMLError_LibRmVersionMismatch(NVMLError):
    def __str__(self) -> str:
        return "RM has detected an NVML/RM version mismatch."


class NVMLError_InvalidArgument(NVMLError):
    pass


class NVMLError_Unknown(NVMLError):
    pass


class c_nvmlEccSramErrorStatus_v1_t(ctypes.Structure):
    _fields_ = (
        ("aggregateUncParity", ctypes.c_ulonglong),
        ("aggregateUncSecDed", ctypes.c_ulonglong),
        ("bThresholdExceeded", ctypes.c_uint),
    )


class c_nvmlGpuFabricInfo_v3_t(ctypes.Structure):
    _fields_ = tuple((name, ctypes.c_uint) for name in ("status", "state", "healthMask", "healthSummary"))


class c_nvmlGpuFabricInfo_v2_t(ctypes.Structure):
    _fields_ = tuple((name, ctypes.c_uint) for name in ("status", "state", "healthMask"))


class c_nvmlGpmMetricsGet_t:
    def __init__(self) -> None:
        self.metrics = [types.SimpleNamespace(metricId=0, nvmlReturn=0, value=0.0) for _each in range(8)]


STRUCTURES = [c_nvmlEccSramErrorStatus_v1_t, c_nvmlGpuFabricInfo_v3_t, c_nvmlGpuFabricInfo_v2_t, c_nvmlGpmMetricsGet_t]


def fill(**values: int) -> t.Callable[..., None]:
    """Return a call that sets fields of the structure it is given by reference."""

    def call(_handle: t.Any, reference: t.Any) -> None:
        for name, value in values.items():
            setattr(reference._obj, name, value)

    return call


class Xids:
    """The Xids that a GPU reports from now on: codes, or an exception that the wait raises."""

    def __init__(self, *events: t.Any) -> None:
        self.events = list(events)

    def next(self) -> t.Any:
        return types.SimpleNamespace(eventData=raised(self.events.pop(0) if self.events else NVMLError_Timeout()))


def fields(known: dict[int, int]) -> t.Callable[..., list[t.Any]]:
    """Return nvmlDeviceGetFieldValues over a table; a field that is not in it is not supported (3)."""

    def call(_handle: t.Any, wanted: list[tuple[int, int]]) -> list[t.Any]:
        return [
            types.SimpleNamespace(
                nvmlReturn=0 if number in known else 3,
                valueType=3,
                value=types.SimpleNamespace(ullVal=known.get(number, 0)),
            )
            for number, _scope in wanted
        ]

    return call


def links(count: int, **faults: t.Any) -> dict[str, t.Any]:
    """Return the calls of a GPU with so many NVLinks; ``state`` may say otherwise by link."""
    states = {**dict.fromkeys(range(count), 1), **faults.get("state", {})}

    def state(_handle: t.Any, link: int) -> int:
        if link not in states:
            raise NVMLError_InvalidArgument
        return raised(states[link])

    return {
        "nvmlDeviceGetNvLinkState": state,
        "nvmlDeviceGetNvLinkRemotePciInfo": types.SimpleNamespace(busId="00000000:20:00.0"),
        "nvmlDeviceGetNvLinkRemoteDeviceType": 2,
        "nvmlDeviceGetNvLinkErrorCounter": 0,
    }


def raised(value: t.Any) -> t.Any:
    if isinstance(value, Exception):
        raise value
    return value


# What a healthy card answers, by call: a value, an exception to raise, or a function to call.
HEALTHY: dict[str, t.Any] = {
    "nvmlDeviceGetSerial": "165",
    "nvmlDeviceGetVbiosVersion": "96.00.99.00.01",
    "nvmlDeviceGetCudaComputeCapability": (9, 0),
    "nvmlDeviceGetMigMode": [0, 0],
    "nvmlDeviceGetPersistenceMode": 1,
    "nvmlDeviceGetComputeMode": 0,
    "nvmlDeviceGetEccMode": [1, 1],
    "nvmlDeviceGetTotalEccErrors": 0,
    "nvmlDeviceGetSramEccErrorStatus": fill(bThresholdExceeded=0),
    "nvmlDeviceGetRetiredPages": NVMLError_NotSupported(),
    "nvmlDeviceGetRetiredPagesPendingStatus": NVMLError_NotSupported(),
    "nvmlDeviceGetRemappedRows": (0, 0, 0, 0),
    "nvmlDeviceGetRowRemapperHistogram": types.SimpleNamespace(none=0),
    "nvmlDeviceGetFieldValues": fields({230: 0, 82: 45}),
    "nvmlDeviceGetMaxClockInfo": 1980,
    "nvmlDeviceGetPerformanceState": 0,
    "nvmlDeviceGetTemperatureThreshold": 90,
    "nvmlDeviceGetMarginTemperature": 50,
    "nvmlDeviceGetEnforcedPowerLimit": 700_000,
    "nvmlDeviceGetPowerManagementDefaultLimit": 700_000,
    "nvmlDeviceGetPowerManagementLimitConstraints": [200_000, 700_000],
    "nvmlDeviceGetCurrPcieLinkGeneration": 5,
    "nvmlDeviceGetMaxPcieLinkGeneration": 5,
    "nvmlDeviceGetCurrPcieLinkWidth": 16,
    "nvmlDeviceGetMaxPcieLinkWidth": 16,
    "nvmlDeviceGetPcieReplayCounter": 0,
    "nvmlDeviceGetComputeRunningProcesses": [],
    "nvmlDeviceGetGraphicsRunningProcesses": [],
    "nvmlDeviceGetMPSComputeRunningProcesses": [],
    "nvmlDeviceGetGpuFabricInfoV": fill(status=0, state=3, healthMask=0, healthSummary=1),
    "nvmlDeviceRegisterEvents": lambda handle, _types, events: events.append(handle["xids"]),
    "nvmlGpmQueryDeviceSupport": types.SimpleNamespace(isSupportedDevice=1),
    "nvmlGpmSampleGet": lambda _handle, buffer: buffer,
    **links(18),
}

GPU: dict[str, t.Any] = {
    "name": "Fake GPU",
    "util": 90,
    "memory_used": 5,
    "power": 70_500,
    "temperature": 40,
    "clock": 1500,
    "reasons": 0x1 | 0x40,
}


class Handle(dict[str, t.Any]):
    """A GPU's handle; like a pointer it cannot be copied."""

    def __deepcopy__(self, _memo: t.Any) -> t.NoReturn:
        raise ValueError("ctypes objects containing pointers cannot be pickled")


def gpu(number: int, **changes: t.Any) -> Handle:
    """Describe one GPU; a value that is an exception is raised by the call that reads it; ``calls`` change HEALTHY."""
    calls = {**HEALTHY, **changes.pop("calls", {})}
    identity = {"uuid": f"GPU-{number:04d}", "minor": number, "pci": f"00000000:{number:02x}:00.0"}
    return Handle({**GPU, "xids": Xids(), "calls": calls, **identity, **changes})


def fake_pynvml(*gpus: t.Any, init: t.Any = None, without: t.Collection[str] = ()) -> types.ModuleType:
    """Return a module to put into ``sys.modules``; an exception in place of a GPU denies its handle.

    ``init`` is raised or called by nvmlInit; the functions ``without`` are missing, as in an old nvidia-ml-py.
    """
    module = types.ModuleType("pynvml")

    def field(name: str) -> t.Callable[..., t.Any]:
        def read(handle: dict[str, t.Any], *_other: t.Any) -> t.Any:
            value = handle[name]
            if isinstance(value, Exception):
                raise value
            return value

        return read

    def wrapped(name: str, **shape: str) -> t.Callable[..., t.Any]:
        def read(handle: dict[str, t.Any], *_other: t.Any) -> t.Any:
            value = field(name)(handle)
            return types.SimpleNamespace(**dict.fromkeys(shape, value))

        return read

    def call(name: str) -> t.Callable[..., t.Any]:
        def read(handle: dict[str, t.Any], *arguments: t.Any) -> t.Any:
            value = raised(handle["calls"][name])
            return value(handle, *arguments) if callable(value) else value

        return read

    def metrics_between(wanted: t.Any) -> None:
        for metric in wanted.metrics[: wanted.numMetrics]:
            metric.value = metric.metricId * 10.0

    def handle_by_index(index: int) -> dict[str, t.Any]:
        if isinstance(gpus[index], Exception):
            raise gpus[index]
        return t.cast("dict[str, t.Any]", gpus[index])

    def start() -> None:
        if callable(init):
            init()
        raised(init)

    names: dict[str, t.Any] = {
        **{name: call(name) for name in HEALTHY},
        **{structure.__name__: structure for structure in STRUCTURES},
        "nvmlEventSetCreate": list,
        "nvmlEventSetWait_v2": lambda events, _milliseconds: events[0].next(),
        "nvmlGpmSampleAlloc": object,
        "nvmlGpmMetricsGet": metrics_between,
        "nvmlSystemGetNVMLVersion": lambda: "12.570.1",
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
        "nvmlDeviceGetMemoryInfo": wrapped("memory_used", used="", total="", reserved=""),
        "nvmlDeviceGetPowerUsage": field("power"),
        "nvmlDeviceGetTemperature": field("temperature"),
        "nvmlDeviceGetClockInfo": field("clock"),
        "nvmlDeviceGetCurrentClocksThrottleReasons": field("reasons"),
    }
    for name, value in names.items():
        if name not in without:
            setattr(module, name, value)
    return module
