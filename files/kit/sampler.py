# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Sample this job's GPUs on one node at a steady rate into JSON Lines, one flushed row for each GPU and tick.

One process a node, started by the job script. It ends on SIGTERM or SIGINT with a last sample, and by itself when the
job script is gone, however that died: a sampler left behind would hold its node.
"""

from __future__ import annotations

import ctypes
import os
import signal
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Callable

from kit import nvml
from kit.files import json_line
from kit.job import Job

PR_SET_PDEATHSIG = 1


def follow_parent(parent: int) -> Callable[[], bool]:
    """Ask the kernel for SIGTERM when the parent dies; return a test whether it still lives, for where that fails."""
    with suppress(OSError, AttributeError):  # not Linux: the test below remains
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    return lambda: os.getppid() == parent


def read_gpu(pynvml: Any, gpu: nvml.Gpu) -> dict[str, Any]:
    """Return one GPU's readings; what NVML does not give is None, with the reason under ``unsupported``."""
    if gpu.handle is None:
        return {"uuid": gpu.uuid, "pci": gpu.pci, "error": gpu.error}
    handle, unsupported = gpu.handle, {}

    def read(name: str, call: Callable[..., Any], *arguments: Any) -> Any:
        value, reason = nvml.ask(pynvml, call, handle, *arguments)
        if reason:
            unsupported[name] = reason
        return value

    load = read("util", pynvml.nvmlDeviceGetUtilizationRates)
    memory = read("memory_used", pynvml.nvmlDeviceGetMemoryInfo)
    power = read("power_w", pynvml.nvmlDeviceGetPowerUsage)  # milliwatts
    bits = read("throttle_reasons", pynvml.nvmlDeviceGetCurrentClocksThrottleReasons)
    row = {
        "uuid": gpu.uuid,
        "pci": gpu.pci,
        "util": load.gpu if load else None,
        "mem_util": load.memory if load else None,
        "memory_used": memory.used if memory else None,
        "memory_total": memory.total if memory else None,
        "power_w": None if power is None else power / 1000,
        "temperature_c": read("temperature_c", pynvml.nvmlDeviceGetTemperature, pynvml.NVML_TEMPERATURE_GPU),
        "sm_clock_mhz": read("sm_clock_mhz", pynvml.nvmlDeviceGetClockInfo, pynvml.NVML_CLOCK_SM),
        "mem_clock_mhz": read("mem_clock_mhz", pynvml.nvmlDeviceGetClockInfo, pynvml.NVML_CLOCK_MEM),
        "throttle_reasons": None if bits is None else throttle_names(bits),
    }
    if unsupported:
        row["unsupported"] = unsupported
    if "GpuIsLost" in unsupported.values():
        row["error"] = "GpuIsLost"
    return row


def throttle_names(bits: int) -> list[str]:
    """Return the names of the set reasons; unknown ones in hexadecimal."""
    names = [name for bit, name in nvml.THROTTLE_REASONS.items() if bits & bit]
    unknown = bits & ~sum(nvml.THROTTLE_REASONS)
    return [*names, hex(unknown)] if unknown else names


def samples(pynvml: Any, usable: nvml.Usable) -> Iterator[dict[str, Any]]:
    """Yield one row for each of the job's GPUs, or one that says why there is none."""
    if not usable.gpus:
        yield {
            "uuid": None,
            "pci": None,
            "error": usable.reason or f"none of {usable.listed} listed GPUs is this job's",
        }
    for gpu in usable.gpus:
        yield {**read_gpu(pynvml, gpu), "selected_by": usable.selected_by}


def sample(output: Path, interval: float, job: Job, alive: Callable[[], bool], stop: threading.Event) -> None:
    """Write rows to ``output`` every ``interval`` seconds until ``stop`` is set or ``alive`` says no."""
    output.parent.mkdir(parents=True, exist_ok=True)
    try:
        pynvml = nvml.load()
        usable = nvml.usable_gpus(pynvml)
    except nvml.NvmlUnavailableError as error:
        pynvml, usable = None, nvml.Usable(reason=str(error))
    head = {**job.stamp, "node": socket.gethostname()}
    with open(output, "wb", buffering=0) as stream:
        tick = time.monotonic()
        while True:
            now = time.time()
            for row in samples(pynvml, usable):
                stream.write(json_line({**head, "time": now, **row}))
            if stop.is_set() or not alive() or not usable.gpus:
                break  # with no GPU there is nothing to watch: the one row has said so
            tick = max(tick + interval, time.monotonic())
            stop.wait(tick - time.monotonic())
        os.fsync(stream.fileno())


def run(output: Path, interval: float, job: Job, parent: int | None) -> None:
    """Sample until a signal comes or the parent is gone."""
    alive = follow_parent(parent or os.getppid())
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    sample(output, interval, job, alive, stop)
