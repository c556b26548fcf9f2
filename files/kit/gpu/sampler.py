# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Sample this job's GPUs on one node at a steady rate into JSON Lines, one flushed row for each GPU and tick.

The job script starts one process per node. It ends on SIGUSR1, SIGTERM or SIGINT with a last sample, and also when the
job script ends for any reason: a sampler left behind would hold its node. (`srun` passes SIGUSR1 on to the other
nodes; on SIGTERM it kills there.)
"""

from __future__ import annotations

import os
import signal
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Callable

from kit.files import json_line
from kit.gpu import facts, jetson, nvml
from kit.gpu.gpm import Gpm
from kit.gpu.reader import Reader
from kit.gpu.xid_events import XidEvents
from kit.job import Job
from kit.process.bounded import die_with_parent

# With any of these the driver lowers the clocks because of a problem: heat, power, hardware.
SLOWDOWNS = {"hw_slowdown", "sw_thermal_slowdown", "hw_thermal_slowdown", "hw_power_brake_slowdown"}
LOST = {"GpuIsLost", "ResetRequired"}
# Refusing an ordinary user, as a GPU in MIG mode does, is an answer too.
ANSWERS = {*nvml.UNSUPPORTED, "NoPermission"}


def follow_parent(parent: int) -> Callable[[], bool]:
    """Ask the kernel for SIGTERM when the parent dies; return a test whether it is alive, in case that fails."""
    die_with_parent(signal.SIGTERM)
    return lambda: os.getppid() == parent


class Watch:
    """The state of one GPU from row to row: its performance monitoring, and its Xids."""

    def __init__(self, pynvml: Any, gpu: nvml.Gpu) -> None:
        """Start to watch a GPU that has a handle."""
        self.gpm = Gpm(pynvml, gpu.handle)
        self.xids = XidEvents(pynvml, gpu.handle)
        self.first_xid = 0


def read_gpu(pynvml: Any, gpu: nvml.Gpu, watch: Watch | None = None) -> dict[str, Any]:
    """Return one GPU's readings; what NVML does not report is None, with the reason under ``unsupported``.

    SM occupancy, tensor activity and ``xids``, if present, cover the time since the last row. ``lost``, ``answers``
    (everything else that it supports could be read) and ``slowdown`` are 0 or 1, to be counted.
    """
    if gpu.handle is None:
        return {"uuid": gpu.uuid, "pci": gpu.pci, "error": gpu.error, "lost": 1, "answers": 0}
    unsupported: dict[str, str] = {}

    def read(key: str, *names: str, arguments: tuple[Any, ...] = ()) -> Any:
        value, reason = nvml.ask_first(pynvml, [(name, (gpu.handle, *arguments)) for name in names])
        if reason:
            unsupported[key] = reason
        return value

    load = read("util", "nvmlDeviceGetUtilizationRates")
    memory = read("memory_used", "nvmlDeviceGetMemoryInfo")
    power = read("power_w", "nvmlDeviceGetPowerUsage")  # milliwatts
    bits = read("throttle_reasons", *nvml.THROTTLE_CALLS)
    row = {
        "uuid": gpu.uuid,
        "pci": gpu.pci,
        "util": load.gpu if load else None,
        "mem_util": load.memory if load else None,
        "memory_used": memory.used if memory else None,
        "memory_total": memory.total if memory else None,
        "power_w": None if power is None else power / 1000,
        "temperature_c": read("temperature_c", *nvml.TEMPERATURE_CALLS, arguments=(pynvml.NVML_TEMPERATURE_GPU,)),
        "sm_clock_mhz": read("sm_clock_mhz", "nvmlDeviceGetClockInfo", arguments=(pynvml.NVML_CLOCK_SM,)),
        "mem_clock_mhz": read("mem_clock_mhz", "nvmlDeviceGetClockInfo", arguments=(pynvml.NVML_CLOCK_MEM,)),
        "throttle_reasons": None if bits is None else nvml.throttle_names(bits),
        "slowdown": None if bits is None else int(not SLOWDOWNS.isdisjoint(nvml.throttle_names(bits))),
        "ecc_uncorrected": read(
            "ecc_uncorrected", "nvmlDeviceGetTotalEccErrors", arguments=(facts.UNCORRECTED, facts.VOLATILE)
        ),
    }
    answers = set(unsupported.values()) <= ANSWERS
    watch = watch or Watch(pynvml, gpu)
    metrics, reason = watch.gpm.read()  # not judged
    row.update(metrics)
    if reason:
        unsupported.update({name: reason for name, value in metrics.items() if value is None})
    xids = watch.xids.new()
    if xids:
        row["xids"] = xids
        watch.first_xid = watch.first_xid or xids[0]
    if watch.xids.reason:
        unsupported["xid"] = watch.xids.reason
    if unsupported:
        row["unsupported"] = unsupported
    lost = sorted(LOST.intersection(unsupported.values()))
    if lost:
        row["error"] = lost[0]
    row.update(lost=int(bool(lost)), answers=int(answers and not lost))
    return row


def at_the_end(reader: Reader, watch: Watch) -> dict[str, Any]:
    """Return what a GPU's last row has in addition.

    ``xid`` is the code of the first Xid, 0 if there was none, None if not all of the time was watched.
    ``needs_repair`` is 1 if the driver reports that the GPU needs a recovery, or a reset to map out faulty memory, else
    0; None if something could not be read, or the card supports none of it.
    """
    found = {**facts.recovery_action(reader), **facts.remapped_rows(reader), **facts.retired_pages(reader)}
    rows, pages = found["remapped_rows"] or {}, found["retired_pages"] or {}
    action = found["recovery_action"]
    said = [None if action is None else action != "none", rows.get("pending"), rows.get("failed"), pages.get("pending")]
    readable = set(reader.unsupported.values()) <= ANSWERS and any(each is not None for each in said)
    found["needs_repair"] = 1 if any(said) else 0 if readable else None
    found["xid"] = watch.first_xid or (None if watch.xids.reason else 0)
    return found


class NewErrors:
    """Counts uncorrected memory errors since the first sample of each GPU."""

    def __init__(self) -> None:
        self._before: dict[str | None, int] = {}

    def of(self, row: dict[str, Any]) -> int | None:
        """Return how many are new in this row, or None if they cannot be read."""
        count = row.get("ecc_uncorrected")
        return None if count is None else count - self._before.setdefault(row["uuid"], count)


def samples(
    pynvml: Any, usable: nvml.Usable, watches: dict[int, Watch] | None = None, last: bool = False
) -> Iterator[dict[str, Any]]:
    """Yield one row for each of the job's GPUs, or one with the reason if there are none."""
    board = jetson.row()
    if not usable.gpus:
        yield board or {
            "uuid": None,
            "pci": None,
            "error": usable.reason or f"none of the {usable.listed} listed GPUs belongs to this job",
        }
    for gpu in usable.gpus:
        watch = watches.get(gpu.index) if watches else None
        row = {**read_gpu(pynvml, gpu, watch), "selected_by": usable.selected_by}
        if last and watch:
            reader = Reader(pynvml, gpu)
            row.update(at_the_end(reader, watch))
            if row["needs_repair"] is None:
                row["unsupported"] = {**row.get("unsupported", {}), **reader.unsupported}
        yield jetson.filled(row, board) if board else row


def ticks(
    pynvml: Any, usable: nvml.Usable, interval: float, alive: Callable[[], bool], stop: threading.Event
) -> Iterator[list[dict[str, Any]]]:
    """Yield the rows of one sample every ``interval`` seconds, and a last time after ``stop`` or ``not alive()``."""
    watches = {gpu.index: Watch(pynvml, gpu) for gpu in usable.gpus if gpu.handle is not None}
    watchable = bool(usable.gpus) or jetson.row() is not None  # without a GPU, one row reports it
    errors = NewErrors()
    tick = time.monotonic()
    count = 0
    while True:
        now = time.time()
        count += 1
        # The last row of a job that ended normally is marked: without it the sampler was killed, or hung. It also has
        # the time that the samples cover: a driver that answers slowly leaves few.
        ended = {"ended": 1, "sampled_seconds": count * interval} if stop.is_set() else {}
        if ended and count == 1:
            return  # the job ended before its GPUs were watched: no row may hide that
        rows = list(samples(pynvml, usable, watches, last=bool(ended)))
        yield [{"time": now, **row, "ecc_uncorrected_new": errors.of(row), **ended} for row in rows]
        if ended or not alive() or not watchable:
            return
        tick = max(tick + interval, time.monotonic())
        stop.wait(tick - time.monotonic())


def open_gpus() -> tuple[Any, nvml.Usable]:
    """Return the ``pynvml`` module and this job's GPUs; none, with the reason, if NVML is not usable."""
    try:
        pynvml = nvml.load()
        return pynvml, nvml.usable_gpus(pynvml)
    except nvml.NvmlUnavailableError as error:
        return None, nvml.Usable(reason=str(error))


def sample(output: Path, interval: float, job: Job, alive: Callable[[], bool], stop: threading.Event) -> None:
    """Write rows to ``output`` every ``interval`` seconds until ``stop`` is set or ``alive`` returns False."""
    output.parent.mkdir(parents=True, exist_ok=True)
    head = {**job.stamp, "node": socket.gethostname()}
    pynvml, usable = open_gpus()
    with open(output, "wb", buffering=0) as stream:
        for rows in ticks(pynvml, usable, interval, alive, stop):
            for row in rows:
                stream.write(json_line({**head, **row}))
        os.fsync(stream.fileno())


def run(output: Path, interval: float, job: Job, parent: int | None) -> None:
    """Sample until a signal arrives or the parent has ended."""
    alive = follow_parent(parent or os.getppid())
    stop = threading.Event()
    for number in (signal.SIGUSR1, signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    sample(output, interval, job, alive, stop)
