# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Power, temperature, throttling and clocks of a board, as sysfs has them; each with the path that it was read from.

Runs on the device, by Python 3.8 without packages. What cannot be read is not in the answer, or has the reason; a part
that is switched off is left out, not 0. Paths of the kernel: Documentation/hwmon/ina3221.rst, driver-api/thermal,
power/powercap.rst; of Jetson boards: soctherm's hwmon and nvpmodel.
"""

from __future__ import annotations

import os
import re
import subprocess
import time
from pathlib import Path

COLDEST = -50.0  # degrees Celsius: a zone that is switched off reads -256
# Rails that are the power of a whole board, by what the board calls itself; others are named in the profile.
BOARDS = {
    "AGX Orin": ("VDD_GPU_SOC", "VDD_CPU_CV", "VIN_SYS_5V0"),
    "Orin NX": ("VDD_IN",),
    "Orin Nano": ("VDD_IN",),
    "Xavier NX": ("VDD_IN",),
    "AGX Xavier": ("GPU", "CPU", "SOC", "CV", "VDDRQ", "SYS5V"),
    "Nano": ("POM_5V_IN",),
    "TX2": ("VDD_IN",),
}
THROTTLES = re.compile(r"throttle|thermal-shutdown", re.IGNORECASE)  # cooling devices; not fans
UNDER_VOLTAGE, CAPPED, THROTTLED, SOFT_LIMIT = (
    1 << 0,
    1 << 1,
    1 << 2,
    1 << 3,
)  # of vcgencmd, now; 16 bits higher: since boot
PATIENCE = 5.0  # seconds for a program

Reading = dict  # of names and values; not an alias with parameters, which Python 3.8 lacks


def text(path: Path) -> str | None:
    """Return a file's text, None if it cannot be read."""
    try:
        return path.read_text(errors="replace").strip("\0\n ")
    except OSError:
        return None


def number(path: Path) -> int | None:
    """Return a file's whole number, None if there is none."""
    found = text(path)
    return int(found) if found is not None and re.fullmatch(r"-?\d+", found) else None


def board(root: Path) -> str | None:
    """Return what the board calls itself, None for a PC."""
    return text(root / "proc/device-tree/model")


def rails(root: Path) -> dict[str, Reading]:
    """Return the power of each rail in watts: INA3221 by voltage and current, others by the power that they give."""
    found: dict[str, Reading] = {}
    for label in sorted(root.glob("sys/bus/i2c/devices/*/hwmon/hwmon*/in*_label")):
        position = label.name[2 : -len("_label")]
        name = text(label)
        millivolts = number(label.with_name(f"in{position}_input"))
        milliamperes = number(label.with_name(f"curr{position}_input"))
        if name and name != "NC" and millivolts is not None and milliamperes is not None:
            found[name] = {"path": str(label.parent), "watts": millivolts * milliamperes / 1e6}
    for label in sorted(root.glob("sys/bus/i2c/drivers/ina3221x/*/iio:device*/rail_name_*")):
        position = label.name[len("rail_name_") :]
        name, milliwatts = text(label), number(label.with_name(f"in_power{position}_input"))
        if name and name != "NC" and milliwatts is not None:
            found[name] = {"path": str(label.parent), "watts": milliwatts / 1e3}
    for power in sorted(root.glob("sys/class/hwmon/hwmon*/power*_input")):
        microwatts, chip = number(power), text(power.parent / "name")
        if chip and microwatts is not None:
            name = text(power.with_name(power.name.replace("_input", "_label"))) or chip
            found[name] = {"path": str(power), "watts": microwatts / 1e6}
    return found


def whole_board(root: Path, wanted: list[str] | None) -> Reading:
    """Return which rails are the board's power: those of the profile, else those known of the board; else none."""
    there = rails(root)
    name = board(root) or ""
    known = next((each for part, each in BOARDS.items() if part in name), ())
    chosen = list(wanted or known)
    missing = [each for each in chosen if each not in there]
    if not there:
        return {"rails": [], "error": "no power monitor in sysfs"}
    if not chosen:
        why = "which rails are the board's is unknown: name some of {} in power_rails".format(", ".join(sorted(there)))
        return {"rails": [], "error": why}
    if missing:
        return {
            "rails": [],
            "error": "{} cannot be read; there are {}".format(", ".join(missing), ", ".join(sorted(there))),
        }
    return {"rails": chosen, "error": None}


def zones(root: Path) -> dict[str, Reading]:
    """Return the temperatures in degrees Celsius: of thermal zones, and of what hwmon has besides."""
    found: dict[str, Reading] = {}
    for zone in sorted(root.glob("sys/class/thermal/thermal_zone*")):
        name, millidegrees = text(zone / "type"), number(zone / "temp")
        if name and millidegrees is not None and millidegrees / 1000 > COLDEST:
            found[name] = {"path": str(zone / "temp"), "celsius": millidegrees / 1000}
    for temperature in sorted(root.glob("sys/class/hwmon/hwmon*/temp*_input")):
        chip, millidegrees = text(temperature.parent / "name"), number(temperature)
        label = text(temperature.with_name(temperature.name.replace("_input", "_label"))) or temperature.name[:-6]
        if chip and millidegrees is not None and millidegrees / 1000 > COLDEST:
            found.setdefault(f"{chip} {label}", {"path": str(temperature), "celsius": millidegrees / 1000})
    return found


def counters(root: Path) -> dict[str, Reading]:
    """Return counts of throttling, which only grow: a difference over a time is what happened in it."""
    found: dict[str, Reading] = {}
    for chip in sorted(root.glob("sys/class/hwmon/hwmon*")):
        if text(chip / "name") == "soctherm_oc":
            for path in sorted(chip.glob("oc*_event_cnt")):
                _counted(found, "soctherm {}".format(path.name[: -len("_event_cnt")]), path)
    for path in sorted(root.glob("sys/devices/system/cpu/cpu*/thermal_throttle/*_throttle_count")):
        kind = path.name[: -len("_throttle_count")]
        _counted(found, f"{path.parents[1].name} {kind}", path)
    return found


def _counted(found: dict[str, Reading], name: str, path: Path) -> None:
    count = number(path)
    if count is not None:
        found[name] = {"path": str(path), "count": count}


def throttling(root: Path) -> dict[str, Reading]:
    """Return what slows the board down now: the state of its cooling devices, but not of fans; 0 is off."""
    found: dict[str, Reading] = {}
    for device in sorted(root.glob("sys/class/thermal/cooling_device*")):
        name, state = text(device / "type"), number(device / "cur_state")
        if name and state is not None and THROTTLES.search(name):
            found[name] = {"path": str(device / "cur_state"), "state": state}
    return found


def clocks(root: Path) -> dict[str, Reading]:
    """Return the clocks of the CPUs in kHz, with the highest that is allowed and that there is."""
    found: dict[str, Reading] = {}
    for policy in sorted(root.glob("sys/devices/system/cpu/cpufreq/policy*")):
        now, allowed = number(policy / "scaling_cur_freq"), number(policy / "scaling_max_freq")
        if now is not None:
            highest = number(policy / "cpuinfo_max_freq")
            found[policy.name] = {"path": str(policy), "khz": now, "allowed_khz": allowed, "highest_khz": highest}
    return found


def energy(root: Path) -> dict[str, Reading]:
    """Return the energy counters of the processor packages in microjoules; since Linux 5.10 for root only."""
    found: dict[str, Reading] = {}
    for package in sorted(root.glob("sys/class/powercap/intel-rapl:*")):
        name, path = text(package / "name"), package / "energy_uj"
        if not name or not name.startswith("package"):
            continue
        count, most = number(path), number(package / "max_energy_range_uj")
        error = None if count is not None else "cannot be read: root only, unless a rule of udev's lets others"
        found[name] = {"path": str(path), "microjoules": count, "wraps_at": most, "error": error}
    return found


def power_mode(root: Path) -> str | None:
    """Return the power mode of a Jetson by its name, or number."""
    said = re.search(r"pmode:0*(\d+)", text(root / "var/lib/nvpmodel/status") or "")
    if not said:
        return None
    table = text(root / "etc/nvpmodel.conf") or ""
    named = re.search(rf"<\s*POWER_MODEL\s+ID=0*{said.group(1)}\s+NAME=(\S+)\s*>", table)
    return named.group(1) if named else said.group(1)


def firmware(command: str = "vcgencmd") -> int | None:
    """Return the bits of `vcgencmd get_throttled` of a Raspberry Pi, None elsewhere."""
    try:
        done = subprocess.run([command, "get_throttled"], check=False, capture_output=True, timeout=PATIENCE)
    except (OSError, subprocess.TimeoutExpired):
        return None
    said = re.fullmatch(rb"throttled=0x([0-9a-fA-F]+)\s*", done.stdout)
    return int(said.group(1), 16) if said else None


def row(root: Path) -> Reading:
    """Return everything that can be read now."""
    return {
        "time": time.time(),
        "rails": rails(root),
        "zones": zones(root),
        "counters": counters(root),
        "throttling": throttling(root),
        "clocks": clocks(root),
        "energy": energy(root),
        "firmware": firmware() if os.fspath(root) == "/" else None,
    }


def summary(rows: list[Reading], chosen: Reading) -> Reading:
    """Return what came of the rows of a soak; what a row lacks that another has is an error by name.

    ``chosen``: of `whole_board`.
    """
    first, last = rows[0], rows[-1]
    return {
        "samples": len(rows),
        "seconds": last["time"] - first["time"],
        "temperature": _temperature(rows),
        "throttle": _throttle(rows),
        "power": _power(rows, chosen),
        "energy": _energy(rows),
        "clocks": _clocks(rows),
    }


def _names(rows: list[Reading], kind: str) -> list[str]:
    return sorted({name for each in rows for name in each[kind]})


def _gaps(rows: list[Reading], kind: str) -> list[str]:
    return [name for name in _names(rows, kind) if any(name not in each[kind] for each in rows)]


def _temperature(rows: list[Reading]) -> Reading:
    names = _names(rows, "zones")
    if not names:
        return {"highest": None, "zones": {}, "error": "no thermal zone can be read"}
    found = {name: max(each["zones"][name]["celsius"] for each in rows if name in each["zones"]) for name in names}
    gaps = _gaps(rows, "zones")
    error = "{} could not be read all the time".format(", ".join(gaps)) if gaps else None
    return {"highest": max(found.values()), "zones": found, "error": error}


def _throttle(rows: list[Reading]) -> Reading:
    first, last = rows[0], rows[-1]
    grown = {
        name: last["counters"][name]["count"] - first["counters"][name]["count"]
        for name in first["counters"]
        if name in last["counters"]
    }
    active = {
        name: sum(bool(each["throttling"].get(name, {}).get("state")) for each in rows)
        for name in _names(rows, "throttling")
    }
    new_bits = _firmware(rows)
    sources = [*grown, *active, *(["vcgencmd"] if new_bits is not None else [])]
    events = sum(grown.values()) + sum(active.values()) + (bin(new_bits).count("1") if new_bits else 0)
    return {
        "events": events if sources else None,
        "counters": grown,
        "samples_throttled": active,
        "firmware_bits": new_bits,
        "error": None if sources else "nothing says whether the board was throttled",
    }


def _firmware(rows: list[Reading]) -> int | None:
    """Return the bits that were set in a row and not before the first one, by the firmware of a Raspberry Pi."""
    bits = [each["firmware"] for each in rows if each["firmware"] is not None]
    if not bits:
        return None
    before, seen = bits[0] >> 16, 0
    for each in bits:
        seen |= (each & 0xF) | (each >> 16)
    return seen & ~before & 0xF


def _power(rows: list[Reading], chosen: Reading) -> Reading:
    if chosen["error"]:
        return {"mean": None, "rails": [], "error": chosen["error"]}
    missing = [name for name in chosen["rails"] if any(name not in each["rails"] for each in rows)]
    if missing:
        return {"mean": None, "rails": chosen["rails"], "error": f"{missing[0]} could not be read all the time"}
    watts = [sum(each["rails"][name]["watts"] for name in chosen["rails"]) for each in rows]
    return {"mean": sum(watts) / len(watts), "highest": max(watts), "rails": chosen["rails"], "error": None}


def _energy(rows: list[Reading]) -> Reading:
    """Return the joules of all packages; a counter that wrapped went on from 0."""
    found, error = 0.0, "no energy counter in sysfs"
    for name in _names(rows, "energy"):
        counts = [each["energy"].get(name, {}) for each in rows]
        reasons = [each.get("error") or "gone" for each in counts if each.get("microjoules") is None]
        if reasons:
            return {"joules": None, "error": f"{name}: {reasons[0]}"}
        error = None
        for before, after in zip(counts, counts[1:]):
            step = after["microjoules"] - before["microjoules"]
            found += (step if step >= 0 else step + (after["wraps_at"] or 0)) / 1e6
    return {"joules": None if error else found, "error": error}


def _clocks(rows: list[Reading]) -> Reading:
    return {
        name: min(each["clocks"][name]["khz"] for each in rows if name in each["clocks"])
        for name in _names(rows, "clocks")
    }
