# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Jetson boards, whose NVML is missing (JetPack 5) or nearly empty (6): GPU load, power rails and zones from sysfs."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from kit.gpu import facts as gpu_facts

GPU_DEVICE = re.compile(r"gpu|ga10b|gv11b|gp10b|gm20b")  # names of the GPU under /sys/class/devfreq
BOARD_RAILS = ("VDD_IN", "VIN", "POM_5V_IN")  # the power of the whole board
# Reasons for no NVML on a healthy board: JetPack 5 has none, and that of JetPack 6 supports little.
NO_NVML = ("nvidia-ml-py is neither", "LibraryNotFound", "FunctionNotFound", "NotSupported")
COLDEST = -50.0  # a zone that is switched off reads -256


def _text(path: Path) -> str | None:
    try:
        return path.read_text(errors="replace").strip("\0\n ")
    except OSError:
        return None


def _number(path: Path) -> int | None:
    text = _text(path)
    return int(text) if text is not None and re.fullmatch(r"-?\d+", text) else None


def model(root: Path = Path("/")) -> str | None:
    """Return the board's name, or None if this is not a Jetson."""
    name = _text(root / "proc/device-tree/model")
    return name if name and re.search("jetson|tegra", name, re.IGNORECASE) else None


def load(root: Path = Path("/")) -> float | None:
    """Return the GPU's load in percent; the kernel counts in tenths."""
    for device in sorted((root / "sys/class/devfreq").glob("*")):
        if GPU_DEVICE.search(device.name):
            tenths = _number(device / "device/load")
            if tenths is not None:
                return tenths / 10
    return None


def rails(root: Path = Path("/")) -> list[dict[str, Any]]:
    """Return the readings of the INA3221 monitors, from current (mA) and voltage (mV)."""
    found = []
    for label in sorted(root.glob("sys/bus/i2c/devices/*/hwmon/hwmon*/in*_label")):
        number = label.name[2 : -len("_label")]
        name = _text(label)
        millivolts = _number(label.with_name(f"in{number}_input"))
        milliamperes = _number(label.with_name(f"curr{number}_input"))
        if name and name != "NC" and millivolts is not None and milliamperes is not None:
            found.append({"name": name, "milliwatts": round(millivolts * milliamperes / 1000)})
    return found


def zones(root: Path = Path("/")) -> list[dict[str, Any]]:
    """Return the thermal zones that can be read; those of switched-off parts cannot."""
    found = []
    for zone in sorted((root / "sys/class/thermal").glob("thermal_zone*")):
        name, millidegrees = _text(zone / "type"), _number(zone / "temp")
        if name and millidegrees is not None and millidegrees / 1000 > COLDEST:
            found.append({"name": name, "celsius": millidegrees / 1000})
    return found


def power_mode(root: Path = Path("/")) -> str | None:
    """Return the power mode's name, or its number if nvpmodel's table does not name it."""
    said = re.search(r"pmode:0*(\d+)", _text(root / "var/lib/nvpmodel/status") or "")
    if not said:
        return None
    table = _text(root / "etc/nvpmodel.conf") or ""
    named = re.search(rf"<\s*POWER_MODEL\s+ID=0*{said.group(1)}\s+NAME=(\S+)\s*>", table)
    return named.group(1) if named else said.group(1)


def board(root: Path = Path("/")) -> dict[str, Any]:
    """Return the facts that only a Jetson has."""
    return {"power_mode": power_mode(root), "rails": rails(root), "zones": zones(root)}


def draw_w(measured: list[dict[str, Any]]) -> float | None:
    """Return the board's power: its input rail, else the sum of the rails."""
    if not measured:
        return None
    inputs = [rail for rail in measured if rail["name"] in BOARD_RAILS]
    return float(sum(rail["milliwatts"] for rail in inputs or measured)) / 1000


def gpu_c(measured: list[dict[str, Any]]) -> float | None:
    """Return the temperature of the GPU's zone, in degrees Celsius."""
    return next((float(zone["celsius"]) for zone in measured if "gpu" in zone["name"].lower()), None)


def row(root: Path = Path("/")) -> dict[str, Any] | None:
    """Return a sampler's row for this board, or None if it is not a Jetson."""
    name = model(root)
    if name is None:
        return None
    readings = {"util": load(root), "power_w": draw_w(rails(root)), "temperature_c": gpu_c(zones(root))}
    absent = ("mem_util", "memory_used", "memory_total", "sm_clock_mhz", "mem_clock_mhz", "throttle_reasons")
    facts: dict[str, Any] = {**readings, **dict.fromkeys((*absent, "sm_occupancy", "tensor_activity"))}
    why = {key: "not in sysfs" for key, value in facts.items() if value is None}
    return {"uuid": None, "pci": None, "name": name, **facts, "unsupported": why, "selected_by": "sysfs"}


def filled(row_of_nvml: dict[str, Any], board_row: dict[str, Any]) -> dict[str, Any]:
    """Return NVML's row, with missing readings filled from sysfs."""
    filling = {key: board_row[key] for key in ("util", "power_w", "temperature_c") if row_of_nvml.get(key) is None}
    why = {key: reason for key, reason in row_of_nvml.get("unsupported", {}).items() if filling.get(key) is None}
    return {**row_of_nvml, **filling, "unsupported": why}


def complete(document: dict[str, Any], root: Path = Path("/")) -> None:
    """If this is a Jetson, fill the gaps that NVML left in a GPU facts document from sysfs."""
    name = model(root)
    if name is None:
        return
    document["source"], document["jetson"] = "jetson", board(root)
    if not document["gpus"]:
        document["gpus"] = [_blank(name, document, root)]
        document.update(listed=1, selected_by="sysfs")
        # A board whose sysfs describes its GPU does not use NVML's driver.
        known = (*NO_NVML, "DriverNotLoaded") if load(root) is not None else NO_NVML
        if document["error"] and document["error"].startswith(known):
            document["error"] = None
    for gpu in document["gpus"]:
        gpu["name"] = gpu["name"] or name
        _fill(gpu, "utilization", {"gpu": load(root), "memory": None})
        _fill(gpu, "temperature", {"gpu_c": gpu_c(document["jetson"]["zones"])})
        _fill(gpu, "power", {"draw_w": draw_w(document["jetson"]["rails"])})


def _blank(name: str, document: dict[str, Any], root: Path) -> dict[str, Any]:
    reason = document["error"] or "NVML lists no GPU"
    facts: dict[str, Any] = dict.fromkeys(gpu_facts.FACTS)
    facts["memory"] = gpu_facts.system_memory(root)
    why = {key: reason for key, value in facts.items() if value is None}
    if facts["memory"]:
        why["memory.reserved"] = reason
    return {
        "index": 0,
        "minor": None,
        "uuid": None,
        "pci": None,
        "name": name,
        "error": None,
        **facts,
        "unsupported": why,
    }


def _fill(gpu: dict[str, Any], group: str, values: dict[str, Any]) -> None:
    """Fill the missing values of a group, and remove their reasons."""
    reason = gpu["unsupported"].get(group, "not in sysfs")
    for key, value in values.items():
        if value is None or (gpu[group] or {}).get(key) is not None:
            continue
        if gpu[group] is None:
            gpu[group] = dict.fromkeys(PARTS[group])
            gpu["unsupported"].pop(group, None)
            gpu["unsupported"].update({f"{group}.{part}": reason for part in PARTS[group]})
        gpu[group][key] = value
        gpu["unsupported"].pop(f"{group}.{key}", None)


PARTS = {
    "utilization": ("gpu", "memory"),
    "temperature": (
        "gpu_c",
        "slowdown_c",
        "shutdown_c",
        "gpu_max_c",
        "memory_c",
        "memory_max_c",
        "margin_c",
        "slowdown_margin_c",
        "shutdown_margin_c",
    ),
    "power": ("draw_w", "limit_w", "default_limit_w", "min_limit_w", "max_limit_w"),
}
