# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The checks of one GPU. The argument `needed` says which ones a card must support.

Thresholds are those of DCGM 4.6's health watches unless the line says otherwise.
"""

from __future__ import annotations

import typing as t

from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._gpu.facts import (
    COUNT,
    FLAG,
    LIST,
    NUMBER,
    TEXT,
    Gpu,
)
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._judge.checker import Judge
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._judge.reading import Reading

Json = dict[str, t.Any]

GIB = 2**30
LOADED = 50  # percent of utilisation above which the PCIe link must have left its idle generation

# Clock event reasons, by the kit's names. A reason in neither set is undetermined.
TROUBLE = {
    "hw_slowdown": "gpu.throttle",
    "sw_thermal_slowdown": "gpu.throttle.thermal",
    "hw_thermal_slowdown": "gpu.throttle.thermal",
    "hw_power_brake_slowdown": "gpu.throttle.power_brake",
}
HARMLESS = {"gpu_idle", "applications_clocks_setting", "sw_power_cap", "sync_boost", "display_clocks_setting"}


def answers(judge: Judge, gpu: Gpu) -> Json:
    """Fail a GPU that is lost or whose driver blocks; if that is unknown, it is undetermined."""
    text = gpu.error.value
    if text is None:
        return judge.check_reading("gpu.answers", "eq", True, gpu.error, "the GPU as a whole")
    verdict, why = ("fail", f"NVML returned: {text}") if text else ("pass", "it answered")
    return judge.decided("gpu.answers", verdict, text or True, "answers", why, "the GPU as a whole", gpu.symptom)


def identity(judge: Judge, gpu: Gpu) -> list[Json]:
    """Judge model and memory."""
    name, call = gpu.get("name", TEXT), "nvmlDeviceGetName"
    model = judge.expect.get("model")
    if model is None:
        found = [judge.told("gpu.model", name, call, key="model")]
    elif model.endswith("*") and not name.missing:
        meets = name.value.startswith(model[:-1])
        why = f'"{name.value}" {"matches" if meets else "does not match"}'
        bound = f'starts with "{model[:-1]}"'
        found = [judge.decided("gpu.model", "pass" if meets else "fail", name.value, bound, why, call)]
    else:
        found = [judge.check_reading("gpu.model", "eq", model, name, call)]
    total, call = gpu.get("memory.total", COUNT), "nvmlDeviceGetMemoryInfo"
    total = total.but(round((total.value or 0) / GIB, 3))
    if "memory_gib" not in judge.expect:
        return [*found, judge.told("gpu.memory", total, call, unit="GiB", key="memory_gib")]
    return [*found, judge.check_reading("gpu.memory", "ge", judge.expect["memory_gib"], total, call, unit="GiB")]


def mig(judge: Judge, gpu: Gpu) -> Json:
    """Judge whether MIG splits the GPU."""
    return mode(judge, gpu, "gpu.mig", "mig", "current", "nvmlDeviceGetMigMode", needed=False)


def mode(judge: Judge, gpu: Gpu, check: str, key: str, leaf: str, call: str, *, needed: bool) -> Json:
    """Judge a mode that changes at a reset: the current and the pending value must be the expected one."""
    current, pending = gpu.get(f"{key}.{leaf}", FLAG), gpu.get(f"{key}.pending", FLAG)
    expected = judge.expect.get(key)
    needed = needed or expected is not None
    if current.missing or pending.missing:
        return judge.check_reading(check, "eq", expected, current if current.missing else pending, call, needed=needed)
    if current.value != pending.value:
        detail = "the change takes effect when the GPU is reset"
        return judge.check_reading(check, "eq", pending.value, current, call, detail=detail, symptom=f"{check}.pending")
    if expected is None:
        return judge.told(check, current, call, key=key)
    return judge.check_reading(check, "eq", expected, current, call)


def state(judge: Judge, gpu: Gpu) -> list[Json]:
    """Judge the driver's current view of the GPU: recovery, throttling, temperatures, power."""
    action, call = gpu.get("recovery_action", TEXT), "NVML_FI_DEV_GET_GPU_RECOVERY_ACTION"
    # DCGM only warns about drain_p2p; but a GPU that needs any recovery is not ready for multi-GPU training.
    by_action = dict.fromkeys(("reset", "bus_reset", "drain_and_reset"), "gpu.xid.reset")
    by_action.update(dict.fromkeys(("reboot", "system_reboot"), "gpu.xid.reboot"))
    symptom = by_action.get(action.value or "")
    found = [judge.check_reading("gpu.recovery_action", "eq", "none", action, call, needed=False, symptom=symptom)]
    return [*found, throttle(judge, gpu), *temperatures(judge, gpu), _power(judge, gpu), _persistence(judge, gpu)]


def throttle(judge: Judge, gpu: Gpu) -> Json:
    """Judge why clocks are lowered; idle, application clocks, the power cap and sync boost are normal."""
    reasons, call = gpu.get("throttle_reasons", LIST), "nvmlDeviceGetCurrentClocksEventReasons"
    if reasons.missing:
        return judge.check_reading("gpu.throttle", "eq", 0, reasons, call)
    bound = "none of " + ", ".join(TROUBLE)
    trouble = [reason for reason in TROUBLE if reason in reasons.value]
    unknown = [
        reason for reason in reasons.value if not isinstance(reason, str) or reason not in HARMLESS | set(TROUBLE)
    ]
    shown = reasons.value
    if trouble:
        symptom = max((TROUBLE[reason] for reason in trouble), key=len)
        return judge.decided("gpu.throttle", "fail", shown, bound, f"in force: {', '.join(trouble)}", call, symptom)
    if unknown:
        why = f"unknown throttle reason {unknown[0]!r}"
        return judge.decided("gpu.throttle", "undetermined", shown, bound, why, call, "gpu.unread")
    return judge.decided("gpu.throttle", "pass", shown, bound, ", ".join(shown) or "no reason is in force", call)


def temperatures(judge: Judge, gpu: Gpu) -> list[Json]:
    """Compare with the card's own limits: the lowest that it reports, or the remaining margin if it reports none."""
    now, margin = gpu.get("temperature.gpu_c", NUMBER), gpu.get("temperature.margin_c", NUMBER)
    limits = [gpu.get(f"temperature.{key}", NUMBER) for key in ("slowdown_c", "gpu_max_c")]
    damaged = [limit for limit in [*limits, margin] if limit.missing and not limit.unsupported]
    named = [limit.value for limit in limits if not limit.missing]
    call = "nvmlDeviceGetTemperature"
    if now.missing or damaged or named:
        bound = damaged[0] if damaged else Reading(min(named, default=0))
        found = [judge.check_reading("gpu.temperature", "lt", bound, now, call, unit="°C")]
    else:
        detail = f"margin to its limit, at {now.value} °C"
        call = "nvmlDeviceGetMarginTemperature"
        found = [judge.check_reading("gpu.temperature", "gt", 0, margin, call, unit="°C", detail=detail)]
    hot, limit = (gpu.get(f"temperature.{key}", NUMBER) for key in ("memory_c", "memory_max_c"))
    call = "NVML_FI_DEV_MEMORY_TEMP"
    return [*found, judge.check_reading("gpu.memory_temperature", "lt", limit, hot, call, needed=False, unit="°C")]


def _power(judge: Judge, gpu: Gpu) -> Json:
    expected = judge.expect.get("power_limit_w")
    bound = gpu.get("power.default_limit_w", NUMBER) if expected is None else expected
    limit, call = gpu.get("power.limit_w", NUMBER), "nvmlDeviceGetEnforcedPowerLimit"
    return judge.check_reading("gpu.power_limit", "ge", bound, limit, call, needed=expected is not None, unit="W")


def _persistence(judge: Judge, gpu: Gpu) -> Json:
    reading, call = gpu.get("persistence_mode", FLAG), "nvmlDeviceGetPersistenceMode"
    if "persistence" not in judge.expect:
        return judge.told("gpu.persistence", reading, call, key="persistence")
    return judge.check_reading("gpu.persistence", "eq", judge.expect["persistence"], reading, call)
