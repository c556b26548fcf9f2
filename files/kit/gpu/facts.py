# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The facts of one GPU, in groups that are read one by one, so that a blocking driver costs only one group.

A group returns its facts; one that could not be read is None, and the reader keeps NVML's reason by dotted key.
"""

from __future__ import annotations

import time
from ctypes import byref
from pathlib import Path
from typing import Any, Callable

from kit.gpu import nvlink, nvml, processes, topology
from kit.gpu.reader import Reader

RECOVERY_ACTIONS = dict(
    enumerate(
        ("none", "reset", "reboot", "drain_p2p", "drain_and_reset", "recover_imex_domain", "bus_reset", "system_reboot")
    )
)
FABRIC_STATES = {1: "not_started", 2: "in_progress", 3: "completed"}
THRESHOLDS = {"shutdown_c": 0, "slowdown_c": 1, "memory_max_c": 2, "gpu_max_c": 3}
# Fields of nvmlDeviceGetFieldValues
MEMORY_TEMPERATURE = 82
SHUTDOWN_MARGIN, SLOWDOWN_MARGIN = 193, 194
RESET_NEEDED, DRAIN_AND_RESET_NEEDED = 226, 227  # for drivers before 565, which do not know the next
RECOVERY_ACTION = 230
CORRECTED, UNCORRECTED = 0, 1
VOLATILE, AGGREGATE = 0, 1
SINGLE_BIT, DOUBLE_BIT = 0, 1
SM_CLOCK, MEMORY_CLOCK = 1, 2
HW_SLOWDOWN, HW_CAUSES = 0x8, 0x40 | 0x80  # nvmlClocksEventReason… bits; the causes are heat and the power brake
AGAIN, PAUSE = 3, 0.1  # times, seconds between them


def board(gpu: Reader) -> dict[str, Any]:
    """Return what identifies this board."""
    return {
        "serial": gpu.read("serial", "nvmlDeviceGetSerial"),
        "vbios": gpu.read("vbios", "nvmlDeviceGetVbiosVersion"),
        "compute_capability": gpu.read(
            "compute_capability", "nvmlDeviceGetCudaComputeCapability", shape=lambda pair: f"{pair[0]}.{pair[1]}"
        ),
    }


def memory(gpu: Reader) -> dict[str, Any]:
    """Return memory in bytes; the system's, if the GPU has none of its own."""
    version = getattr(gpu.pynvml, "nvmlMemory_v2", 0x02000028)
    info, why = gpu.ask_first(("nvmlDeviceGetMemoryInfo", (version,)), ("nvmlDeviceGetMemoryInfo", ()))
    if why is not None:
        system = system_memory(gpu.root) if why in nvml.UNSUPPORTED else None
        gpu.unsupported["memory.reserved" if system else "memory"] = why
        return {"memory": system}
    reserved = getattr(info, "reserved", None)
    if reserved is None:
        gpu.unsupported["memory.reserved"] = "FunctionNotFound"
    return {"memory": {"total": info.total, "used": info.used, "reserved": reserved, "unified": False}}


def system_memory(root: Path) -> dict[str, Any] | None:
    """Return the node's memory in bytes, which a GPU without its own memory shares."""
    try:
        lines = (root / "proc/meminfo").read_text().splitlines()
        kibibytes = {name: int(rest.split()[0]) for name, _sep, rest in (line.partition(":") for line in lines) if rest}
        total, free = kibibytes["MemTotal"] * 1024, kibibytes["MemAvailable"] * 1024
    except (OSError, ValueError, KeyError, IndexError):
        return None
    return {"total": total, "used": total - free, "reserved": None, "unified": True}


def mig(gpu: Reader) -> dict[str, Any]:
    """Return the MIG mode now and after the next reset."""
    pair = gpu.read("mig", "nvmlDeviceGetMigMode")
    return {"mig": pair and {"current": bool(pair[0]), "pending": bool(pair[1])}}


def modes(gpu: Reader) -> dict[str, Any]:
    """Return the modes that the administrator sets."""
    return {
        "persistence_mode": gpu.read("persistence_mode", "nvmlDeviceGetPersistenceMode", shape=bool),
        "compute_mode": gpu.read("compute_mode", "nvmlDeviceGetComputeMode"),
    }


def ecc(gpu: Reader) -> dict[str, Any]:
    """Return the ECC mode and counters; volatile ones count since the driver was loaded."""
    pair = gpu.read("ecc.mode", "nvmlDeviceGetEccMode")
    facts: dict[str, Any] = {"mode": pair and bool(pair[0]), "pending": pair and bool(pair[1])}
    if pair is None:
        gpu.unsupported["ecc.pending"] = gpu.unsupported["ecc.mode"]
    for name, error, counter in (
        ("corrected_volatile", CORRECTED, VOLATILE),
        ("uncorrected_volatile", UNCORRECTED, VOLATILE),
        ("corrected_aggregate", CORRECTED, AGGREGATE),
        ("uncorrected_aggregate", UNCORRECTED, AGGREGATE),
    ):
        facts[name] = gpu.read(f"ecc.{name}", "nvmlDeviceGetTotalEccErrors", error, counter)
    facts.update(_sram(gpu))
    return {"ecc": gpu.collapsed("ecc", facts)}


def _sram(gpu: Reader) -> dict[str, Any]:
    """Return the SRAM part of the aggregate counter, by parity and by ECC, and whether it exceeds the threshold."""
    status = gpu.structure("c_nvmlEccSramErrorStatus_v1_t")
    if status is None:
        why: str | None = "FunctionNotFound"
    else:
        _other, why = gpu.ask_first(("nvmlDeviceGetSramEccErrorStatus", (byref(status),)))
    if why:
        names = ("sram_uncorrected_aggregate", "sram_threshold_exceeded")
        gpu.unsupported.update({f"ecc.{name}": why for name in names})
        return dict.fromkeys(names)
    return {
        "sram_uncorrected_aggregate": status.aggregateUncParity + status.aggregateUncSecDed,
        "sram_threshold_exceeded": bool(status.bThresholdExceeded),
    }


def retired_pages(gpu: Reader) -> dict[str, Any]:
    """Return how many memory pages are retired (before Ampere)."""

    def pages(name: str, cause: int) -> int | None:
        key = f"retired_pages.{name}"
        # The order matters: nvidia-ml-py calls the second with one argument too few.
        value = gpu.read_first(key, ("nvmlDeviceGetRetiredPages", (cause,)), ("nvmlDeviceGetRetiredPages_v2", (cause,)))
        return None if value is None else len(value)

    facts = {
        "single_bit": pages("single_bit", SINGLE_BIT),
        "double_bit": pages("double_bit", DOUBLE_BIT),
        "pending": gpu.read("retired_pages.pending", "nvmlDeviceGetRetiredPagesPendingStatus", shape=bool),
    }
    return {"retired_pages": gpu.collapsed("retired_pages", facts)}


def remapped_rows(gpu: Reader) -> dict[str, Any]:
    """Return how many memory rows are remapped, and how many banks have no spare row left (Ampere and later)."""
    rows = gpu.read("remapped_rows", "nvmlDeviceGetRemappedRows")
    if rows is None:
        return {"remapped_rows": None}
    facts = dict(zip(("corrected", "uncorrected"), rows))
    facts.update(pending=bool(rows[2]), failed=bool(rows[3]))
    facts["banks_exhausted"] = gpu.read(
        "remapped_rows.banks_exhausted", "nvmlDeviceGetRowRemapperHistogram", shape=lambda histogram: histogram.none
    )
    return {"remapped_rows": facts}


def recovery_action(gpu: Reader) -> dict[str, Any]:
    """Return the recovery that the driver asks for."""
    number = gpu.field("recovery_action", RECOVERY_ACTION)
    if number is not None:
        return {"recovery_action": RECOVERY_ACTIONS.get(number, str(number))}
    why = gpu.unsupported["recovery_action"]
    if why not in (*nvml.UNSUPPORTED, "InvalidArgument"):  # the latter for a field that the driver does not know
        return {"recovery_action": None}
    reset = gpu.field("recovery_action", RESET_NEEDED)
    drain = gpu.field("recovery_action", DRAIN_AND_RESET_NEEDED)
    if reset is None or drain is None:
        if gpu.unsupported["recovery_action"] == "InvalidArgument":
            gpu.unsupported["recovery_action"] = "NotSupported"
        return {"recovery_action": None}
    del gpu.unsupported["recovery_action"]
    return {"recovery_action": "reset" if reset else "drain_and_reset" if drain else "none"}


def clocks(gpu: Reader) -> dict[str, Any]:
    """Return clocks in MHz and what limits them."""
    facts = {
        "sm_mhz": gpu.read("clocks.sm_mhz", "nvmlDeviceGetClockInfo", SM_CLOCK),
        "sm_max_mhz": gpu.read("clocks.sm_max_mhz", "nvmlDeviceGetMaxClockInfo", SM_CLOCK),
        "memory_mhz": gpu.read("clocks.memory_mhz", "nvmlDeviceGetClockInfo", MEMORY_CLOCK),
        "memory_max_mhz": gpu.read("clocks.memory_max_mhz", "nvmlDeviceGetMaxClockInfo", MEMORY_CLOCK),
    }
    bits = _lasting_reasons(gpu)
    return {
        "performance_state": gpu.read("performance_state", "nvmlDeviceGetPerformanceState"),
        "clocks": gpu.collapsed("clocks", facts),
        "throttle_reasons": None if bits is None else nvml.throttle_names(bits),
    }


def _lasting_reasons(gpu: Reader) -> int | None:
    """Return what limits the clocks, as bits; drop a hardware slowdown without a cause unless it lasts.

    The driver may also report one while clocks change (nvml.h), and the probe itself may have woken the GPU.
    """
    calls = [(name, ()) for name in nvml.THROTTLE_CALLS]
    bits: int | None = gpu.read_first("throttle_reasons", *calls)
    for _again in range(AGAIN):
        if not bits or not bits & HW_SLOWDOWN or bits & HW_CAUSES:
            break
        time.sleep(PAUSE)
        bits = gpu.read_first("throttle_reasons", *calls)
    return bits


def temperature(gpu: Reader) -> dict[str, Any]:
    """Return temperatures and the card's own limits, in degrees Celsius; a margin is the distance to a limit."""
    facts: dict[str, Any] = {
        "gpu_c": gpu.read_first("temperature.gpu_c", *((name, (0,)) for name in nvml.TEMPERATURE_CALLS)),
        **{
            name: gpu.read(f"temperature.{name}", "nvmlDeviceGetTemperatureThreshold", number)
            for name, number in THRESHOLDS.items()
        },
        "memory_c": _signed(gpu.field("temperature.memory_c", MEMORY_TEMPERATURE)),
        "margin_c": gpu.read("temperature.margin_c", "nvmlDeviceGetMarginTemperature"),
        "slowdown_margin_c": _signed(gpu.field("temperature.slowdown_margin_c", SLOWDOWN_MARGIN)),
        "shutdown_margin_c": _signed(gpu.field("temperature.shutdown_margin_c", SHUTDOWN_MARGIN)),
    }
    return {"temperature": gpu.collapsed("temperature", facts)}


def _signed(value: int | None) -> int | None:
    """Return a field's signed value, which the driver may have given an unsigned type."""
    if value is None or value < 1 << 31:
        return value
    return value - (1 << (64 if value >= 1 << 63 else 32))


def power(gpu: Reader) -> dict[str, Any]:
    """Return power in watts; the limit is the one in force."""

    def watts(milliwatts: int) -> float:
        return milliwatts / 1000

    limit = gpu.read_first(
        "power.limit_w", ("nvmlDeviceGetEnforcedPowerLimit", ()), ("nvmlDeviceGetPowerManagementLimit", ())
    )
    span = gpu.read("power.min_limit_w", "nvmlDeviceGetPowerManagementLimitConstraints")
    if span is None:
        gpu.unsupported["power.max_limit_w"] = gpu.unsupported["power.min_limit_w"]
    facts = {
        "draw_w": gpu.read("power.draw_w", "nvmlDeviceGetPowerUsage", shape=watts),
        "limit_w": None if limit is None else watts(limit),
        "default_limit_w": gpu.read("power.default_limit_w", "nvmlDeviceGetPowerManagementDefaultLimit", shape=watts),
        "min_limit_w": span and watts(span[0]),
        "max_limit_w": span and watts(span[1]),
    }
    return {"power": gpu.collapsed("power", facts)}


def pcie(gpu: Reader) -> dict[str, Any]:
    """Return the PCIe link; an idle card may lower its generation."""
    calls = {
        "generation": "nvmlDeviceGetCurrPcieLinkGeneration",
        "generation_max": "nvmlDeviceGetMaxPcieLinkGeneration",
        "width": "nvmlDeviceGetCurrPcieLinkWidth",
        "width_max": "nvmlDeviceGetMaxPcieLinkWidth",
        "replays": "nvmlDeviceGetPcieReplayCounter",
    }
    return {"pcie": gpu.collapsed("pcie", {name: gpu.read(f"pcie.{name}", call) for name, call in calls.items()})}


def utilization(gpu: Reader) -> dict[str, Any]:
    """Return utilisation in percent."""
    rates = gpu.read("utilization", "nvmlDeviceGetUtilizationRates")
    return {"utilization": rates and {"gpu": rates.gpu, "memory": rates.memory}}


def fabric(gpu: Reader) -> dict[str, Any]:
    """Return how far the card has joined the NVLink fabric of its machine."""
    why: str | None = "FunctionNotFound"
    for name, call in (
        ("c_nvmlGpuFabricInfo_v3_t", "nvmlDeviceGetGpuFabricInfoV"),
        ("c_nvmlGpuFabricInfo_v2_t", "nvmlDeviceGetGpuFabricInfoV"),
        ("c_nvmlGpuFabricInfo_t", "nvmlDeviceGetGpuFabricInfo"),
    ):
        info = gpu.structure(name)
        if info is None:
            continue
        _other, why = gpu.ask_first((call, (byref(info),)))
        if why is None and info.state != 0:
            return {"fabric": _fabric(gpu, info)}
        if why not in nvml.UNSUPPORTED:
            break
    gpu.unsupported["fabric"] = why or "NotSupported"
    return {"fabric": None}


def _fabric(gpu: Reader, info: Any) -> dict[str, Any]:
    health = getattr(info, "healthSummary", 0) or None
    mask = getattr(info, "healthMask", None)
    for name, value in (("health", health), ("health_mask", mask)):
        if value is None:
            gpu.unsupported[f"fabric.{name}"] = "NotSupported"
    state = FABRIC_STATES.get(info.state, str(info.state))
    return {"state": state, "status": info.status, "health": health, "health_mask": mask}


Group = Callable[[Reader], "dict[str, Any]"]

# A group and the facts it gives.
INVENTORY: dict[Group, tuple[str, ...]] = {
    board: ("serial", "vbios", "compute_capability"),
    memory: ("memory",),
    mig: ("mig",),
    nvlink.links: ("nvlink",),
    topology.place: ("topology",),
}
HEALTH: dict[Group, tuple[str, ...]] = {
    modes: ("persistence_mode", "compute_mode"),
    ecc: ("ecc",),
    retired_pages: ("retired_pages",),
    remapped_rows: ("remapped_rows",),
    recovery_action: ("recovery_action",),
    clocks: ("performance_state", "clocks", "throttle_reasons"),
    temperature: ("temperature",),
    power: ("power",),
    pcie: ("pcie",),
    utilization: ("utilization",),
    processes.running: ("processes",),
    fabric: ("fabric",),
}
FACTS = [name for group in (INVENTORY, HEALTH) for names in group.values() for name in names]
