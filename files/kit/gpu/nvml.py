# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The project's only reader of NVML, through nvidia-ml-py's ``pynvml``: on the import path, or a wheel next to the kit.

NVML lists GPUs by index in PCI order regardless of CUDA_VISIBLE_DEVICES; here UUID and PCI address identify a GPU.
Any value may be unsupported on some GPU, so each is read separately: a value or None, with the reason kept.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Callable

WHEELS = Path(__file__).resolve().parents[1] / "wheels"
DEVICE = "/dev/nvidia{minor}"
UNSUPPORTED = (
    "FunctionNotFound",
    "NotSupported",
    "ArgumentVersionMismatch",
)  # card, driver or nvidia-ml-py does not have it

# nvmlClocksEventReason… bits, by nvidia-smi's names
THROTTLE_REASONS = {
    0x1: "gpu_idle",
    0x2: "applications_clocks_setting",
    0x4: "sw_power_cap",
    0x8: "hw_slowdown",
    0x10: "sync_boost",
    0x20: "sw_thermal_slowdown",
    0x40: "hw_thermal_slowdown",
    0x80: "hw_power_brake_slowdown",
    0x100: "display_clocks_setting",
}

THROTTLE_CALLS = ("nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetCurrentClocksThrottleReasons")  # new, old
TEMPERATURE_CALLS = ("nvmlDeviceGetTemperatureV", "nvmlDeviceGetTemperature")


class NvmlUnavailableError(Exception):
    """NVML cannot be used on this node; the message is the reason."""


@dataclass
class Gpu:
    """One GPU as NVML lists it; ``error`` is set if it has no handle (a GPU that fell off the bus)."""

    index: int
    handle: Any = None
    uuid: str | None = None
    pci: str | None = None
    name: str | None = None
    minor: int | None = None
    error: str | None = None


@dataclass
class Usable:
    """The GPUs this job may use, and how they were determined."""

    gpus: list[Gpu] = field(default_factory=list)
    listed: int = 0  # GPUs that NVML shows this process
    selected_by: str = "none"
    reason: str | None = None  # why there are none


def find_library() -> Any:
    """Return the ``pynvml`` module, not initialised. Raise NvmlUnavailableError with the reason."""
    wheels = [str(path) for path in sorted(WHEELS.glob("nvidia_ml_py-*.whl"))]
    sys.path.extend(path for path in wheels if path not in sys.path)  # a pure wheel is importable as it is
    try:
        import pynvml  # noqa: PLC0415 - its path was only just added
    except ImportError as error:
        raise NvmlUnavailableError(f"nvidia-ml-py is neither installed nor in {WHEELS}") from error
    return pynvml


def load() -> Any:
    """Return the ``pynvml`` module, initialised. Raise NvmlUnavailableError with the reason."""
    pynvml = find_library()
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        raise NvmlUnavailableError(_sentence(error)) from error
    return pynvml


def throttle_names(bits: int) -> list[str]:
    """Return the names of the reasons that are set; unknown ones in hexadecimal."""
    names = [name for bit, name in THROTTLE_REASONS.items() if bits & bit]
    unknown = bits & ~sum(THROTTLE_REASONS)
    return [*names, hex(unknown)] if unknown else names


def reason_of(error: Exception) -> str:
    """Return an NVML error's class name, such as ``NotSupported`` or ``GpuIsLost``, or its text if it has no class."""
    name = type(error).__name__.replace("NVMLError_", "")
    return str(error) or name if name == "NVMLError" else name


def _sentence(error: Exception) -> str:
    """Return the error's name, and its text if that says more."""
    name, text = reason_of(error), str(error)
    says_more = text.replace(" ", "").lower() not in ("", name.lower())
    return f"{name}: {text}" if says_more else name


def ask(pynvml: Any, call: Callable[..., Any], *arguments: Any) -> tuple[Any, str | None]:
    """Return (value, None), or (None, reason) if NVML answers with an error."""
    try:
        value = call(*arguments)
    except pynvml.NVMLError as error:
        return None, reason_of(error)
    except UnicodeDecodeError:  # pynvml decodes every text
        return None, "NotUtf8"
    return (value.decode(errors="backslashreplace") if isinstance(value, bytes) else value), None


def driver_version() -> str | None:
    """Return the version of this node's driver, or None if it is unknown."""
    try:
        pynvml = load()
    except NvmlUnavailableError:
        return None
    version: str | None = ask(pynvml, pynvml.nvmlSystemGetDriverVersion)[0]
    return version


def ask_first(pynvml: Any, calls: Sequence[tuple[str, tuple[Any, ...]]]) -> tuple[Any, str | None]:
    """Try the calls in turn until one exists and is supported; return (None, reason) if none is.

    Calls are given by name, since nvidia-ml-py may be too old to have them.
    """
    reason = "FunctionNotFound"
    for name, arguments in calls:
        call = getattr(pynvml, name, None)
        value, why = (None, "FunctionNotFound") if call is None else ask(pynvml, call, *arguments)
        if why is None:
            return value, None
        if why not in UNSUPPORTED:
            return None, why
        reason = reason if why == "FunctionNotFound" else why
    return None, reason


def count_gpus(pynvml: Any) -> int:
    """Return how many GPUs NVML shows this process."""
    count, reason = ask(pynvml, pynvml.nvmlDeviceGetCount)
    if reason:
        raise NvmlUnavailableError(f"the GPUs cannot be counted: {reason}")
    return int(count)


def list_gpus(pynvml: Any) -> list[Gpu]:
    """Return every GPU that NVML shows this process."""
    return [describe(pynvml, index) for index in range(count_gpus(pynvml))]


def describe(pynvml: Any, index: int) -> Gpu:
    """Return the GPU with that index."""
    handle, reason = ask(pynvml, pynvml.nvmlDeviceGetHandleByIndex, index)
    if reason:
        return Gpu(index, error=reason)
    uuid, reason = ask(pynvml, pynvml.nvmlDeviceGetUUID, handle)
    pci, _other = ask(pynvml, lambda: pynvml.nvmlDeviceGetPciInfo(handle).busId)
    name, _other = ask(pynvml, pynvml.nvmlDeviceGetName, handle)
    minor, _other = ask(pynvml, pynvml.nvmlDeviceGetMinorNumber, handle)
    return Gpu(index, handle, uuid, pci, name, minor, reason)


def select(gpus: list[Gpu], environment: Mapping[str, str], may_open: Callable[[int], bool]) -> tuple[list[Gpu], str]:
    """Return the GPUs of this job among those listed, and what decided it.

    The devices cgroup decides if it confines; if it lets everything open, Slurm's own list of device numbers does,
    then CUDA's; without any of them every GPU counts.
    """
    openable = [gpu for gpu in gpus if gpu.minor is None or may_open(gpu.minor)]
    wanted = environment.get("SLURM_STEP_GPUS") or environment.get("SLURM_JOB_GPUS")
    if len(openable) < len(gpus) or (wanted and len(openable) == len(wanted.split(","))):
        return openable, "device access"
    visible = environment.get("CUDA_VISIBLE_DEVICES")
    for source, listed in (("SLURM_JOB_GPUS", wanted), ("CUDA_VISIBLE_DEVICES", visible)):
        if listed and "MIG-" not in listed:  # the name of an instance does not say which GPU it belongs to
            return [gpu for gpu in openable if _is_named(gpu, listed.split(","))], source
    return openable, "every GPU listed"


def _is_named(gpu: Gpu, names: list[str]) -> bool:
    number = gpu.index if gpu.minor is None else gpu.minor
    return any(
        name == str(number) or (len(name) > 4 and gpu.uuid is not None and gpu.uuid.startswith(name))
        for name in (word.strip() for word in names)
    )


def may_open(minor: int) -> bool:
    """Return whether the devices cgroup lets this process open a GPU; absent hardware is not a refusal."""
    try:
        os.close(os.open(DEVICE.format(minor=minor), os.O_RDWR | os.O_CLOEXEC))
    except PermissionError:
        return False
    except OSError:
        return True
    return True


def usable_gpus(pynvml: Any = None) -> Usable:
    """Return this job's GPUs; none, with a reason, if NVML is not usable."""
    try:
        pynvml = pynvml or load()
        gpus = list_gpus(pynvml)
    except NvmlUnavailableError as error:
        return Usable(reason=str(error))
    chosen, selected_by = select(gpus, os.environ, may_open)
    return Usable(chosen, len(gpus), selected_by)


@contextmanager
def occupied(only: int | None = None) -> Iterator[None]:
    """Keep this job's GPU device files, or one of them, open: a simulated GPU is busy while a process holds it."""
    held = []
    for gpu in usable_gpus().gpus[slice(only, None if only is None else only + 1)]:
        with suppress(OSError):  # it then shows as idle, which the criteria judge
            held.append(os.open(DEVICE.format(minor=gpu.minor), os.O_RDWR | os.O_CLOEXEC))
    try:
        yield
    finally:
        for descriptor in held:
            os.close(descriptor)
