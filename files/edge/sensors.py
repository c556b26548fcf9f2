# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Power, temperature, throttling and clocks of a board, as sysfs has them; each with the path that it was read from.

Runs on the device, by Python 3.8 without packages. What is there and cannot be read has the reason; a part that is
switched off is said to be off, and is not 0. Paths of the kernel: Documentation/hwmon/ina3221.rst, driver-api/thermal,
power/powercap.rst; of Jetson boards: soctherm's hwmon and nvpmodel. What sysfs lacks may be had of tegrastats.
"""

from __future__ import annotations

import errno
import os
import re
import shutil
import subprocess
import time
from pathlib import Path

import tegrastats

OFF = {errno.EAGAIN, errno.ENXIO, errno.ENODATA}  # what reading a part gives that is switched off
PROCESSORS = {"coretemp", "k10temp", "zenpower", "cpu_thermal", "soc_thermal"}  # hwmon has drives and network cards too
JETSON = re.compile(r"\b(Jetson|NVIDIA)\b")  # "NVIDIA Orin Nano Developer Kit" too; a NanoPi is none
# Rails that are the power of a whole Jetson, by what the board calls itself; others are named in the profile.
BOARDS = {
    "AGX Orin": ("VDD_GPU_SOC", "VDD_CPU_CV", "VIN_SYS_5V0"),
    "Orin NX": ("VDD_IN",),
    "Orin Nano": ("VDD_IN",),
    "Xavier NX": ("VDD_IN",),
    "AGX Xavier": ("GPU", "CPU", "SOC", "CV", "VDDRQ", "SYS5V"),
    "Nano": ("POM_5V_IN",),
    "TX2": ("VDD_IN",),
}
# Cooling devices that slow something down; fans do not.
THROTTLES = re.compile(r"throttle|thermal-shutdown|cpufreq|devfreq|^Processor$", re.IGNORECASE)
PATIENCE = 5.0  # seconds for a program
NO_NAME = "what it is of cannot be read"

Reading = dict  # of names and values; not an alias with parameters, which Python 3.8 lacks


class Reader:
    """Reads all sensors, with the help of tegrastats where sysfs has no power or no temperature."""

    def __init__(self, root: Path) -> None:
        """Read below ``root``."""
        self._root = root
        self._tegrastats: tegrastats.Tegrastats | None = None

    def __enter__(self) -> Reader:
        """Start what helps."""
        known, command = row(self._root), program(self._root, "tegrastats")
        if command and not (known["rails"] and any("celsius" in each for each in known["zones"].values())):
            self._tegrastats = tegrastats.Tegrastats(command)
        return self

    def __exit__(self, *_error: object) -> None:
        """End it."""
        if self._tegrastats:
            self._tegrastats.end()

    def row(self) -> Reading:
        """Return everything that can be read now."""
        found = row(self._root)
        if self._tegrastats:
            found = self._tegrastats.filled(found)
        return found


def row(root: Path) -> Reading:
    """Return everything that sysfs has now, and what the firmware says."""
    return {
        "time": time.monotonic(),
        "rails": rails(root),
        "zones": zones(root),
        "counters": counters(root),
        "throttling": throttling(root),
        "clocks": clocks(root),
        "energy": energy(root),
        "firmware": firmware(program(root, "vcgencmd")),
    }


def program(root: Path, name: str) -> str | None:
    """Return where a program is; of a stand-in root, only there."""
    if os.fspath(root) == "/":
        return shutil.which(name)
    path = root / "usr/bin" / name
    return os.fspath(path) if path.is_file() else None


def text(path: Path) -> str | None:
    """Return a file's text, None if it cannot be read."""
    try:
        return path.read_text(errors="replace").strip("\0\n ")
    except OSError:
        return None


def number(path: Path) -> int | None:
    """Return a file's whole number, None if there is none."""
    found = text(path)
    return int(found) if found is not None and re.fullmatch(r"-?\d{1,18}", found) else None


def _put(found: dict[str, Reading], name: str, place: str, reading: Reading) -> None:
    """Add a reading; two parts of one name are told apart by their place."""
    found[f"{name} ({place})" if name in found else name] = reading


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
            reading = tegrastats.power(str(label.parent), millivolts * milliamperes / 1e6)
            _put(found, name, label.parents[2].name, reading)
    for label in sorted(root.glob("sys/bus/i2c/drivers/ina3221x/*/iio:device*/rail_name_*")):
        position = label.name[len("rail_name_") :]
        name, milliwatts = text(label), number(label.with_name(f"in_power{position}_input"))
        if name and name != "NC" and milliwatts is not None:
            _put(found, name, label.parent.name, tegrastats.power(str(label.parent), milliwatts / 1e3))
    for power in sorted(root.glob("sys/class/hwmon/hwmon*/power*_input")):
        microwatts, chip = number(power), text(power.parent / "name")
        if chip and microwatts is not None:
            name = text(power.with_name(power.name.replace("_input", "_label"))) or chip
            _put(found, name, power.parent.name, tegrastats.power(str(power), microwatts / 1e6))
    return found


def whole_board(now: Reading, name: str | None, wanted: list[str] | None) -> Reading:
    """Return which rails are the board's power: those of the profile, else those known of the board; else none.

    ``now``: a row. ``wanted`` may name processor packages, whose energy is counted.
    """
    there, counted = now["rails"], [each for each, of in now["energy"].items() if of["microjoules"] is not None]
    chosen = list(dict.fromkeys(wanted or _known(name or "")))
    missing = [each for each in chosen if each not in there and each not in counted]
    names = ", ".join([*sorted(there), *sorted(counted)])
    error = None
    if missing:
        reasons = [now["energy"][each]["error"] for each in missing if each in now["energy"]]
        error = "{} cannot be read; {}".format(
            ", ".join(missing), reasons[0] if reasons else f"there are {names}" if names else "no rail can be"
        )
    elif not chosen:
        unnamed = f"which rails are the board's is unknown: name some of {names} in power_rails"
        error = unnamed if names else "no power monitor can be read"
    return {"rails": [] if error else chosen, "error": error}


def _known(name: str) -> tuple[str, ...]:
    """Return the rails that are a board's power, by the board's name."""
    return next((each for part, each in BOARDS.items() if JETSON.search(name) and part in name), ())


def zones(root: Path) -> dict[str, Reading]:
    """Return the temperatures in degrees Celsius: of thermal zones, and of processors that hwmon has."""
    found: dict[str, Reading] = {}
    for zone in sorted(root.glob("sys/class/thermal/thermal_zone*")):
        name = text(zone / "type")
        reading = _temperature(name, zone / "temp") if name else {"path": str(zone / "type"), "error": NO_NAME}
        _put(found, name or zone.name, zone.name, reading)
    for path in sorted(root.glob("sys/class/hwmon/hwmon*/temp*_input")):
        chip = text(path.parent / "name")
        label = text(path.with_name(path.name.replace("_input", "_label"))) or path.name[: -len("_input")]
        if not chip:
            _put(found, path.parent.name, path.name, {"path": str(path.parent / "name"), "error": NO_NAME})
        elif chip in PROCESSORS:
            _put(found, f"{chip} {label}", path.parent.name, _temperature(f"{chip} {label}", path))
    return found


def _temperature(name: str, path: Path) -> Reading:
    """Return a temperature, that the part is off, or why it cannot be read."""
    found: Reading = {"path": str(path)}
    if tegrastats.CONSTANT.match(name):
        return {**found, **tegrastats.NOT_MEASURED}
    try:
        said = path.read_text(errors="replace").strip("\0\n ")
        return tegrastats.temperature(name, str(path), int(said) / 1000)
    except OSError as error:
        return {**found, "off": True} if error.errno in OFF else {**found, "error": error.strerror}
    except ValueError:
        return {**found, "error": f"{said[:40]!r} is no number"}


def counters(root: Path) -> dict[str, Reading]:
    """Return counts of throttling, which only grow: a difference over a time is what happened in it."""
    found: dict[str, Reading] = {}
    for chip in sorted(root.glob("sys/class/hwmon/hwmon*")):
        name = text(chip / "name")
        for path in sorted(chip.glob("oc*_event_cnt")):
            if name == "soctherm_oc":
                _counted(found, "soctherm {}".format(path.name[: -len("_event_cnt")]), path)
            elif not name:
                found[chip.name] = {"path": str(chip / "name"), "count": None, "error": NO_NAME}
    for path in sorted(root.glob("sys/devices/system/cpu/cpu*/thermal_throttle/*_throttle_count")):
        kind, cpu = path.name[: -len("_throttle_count")], path.parents[1]
        package = number(cpu / "topology/physical_package_id") or 0
        _counted(found, f"package {package}" if kind == "package" else f"{cpu.name} {kind}", path)
    return found


def _counted(found: dict[str, Reading], name: str, path: Path) -> None:
    found.setdefault(name, {"path": str(path), "count": number(path)})


def throttling(root: Path) -> dict[str, Reading]:
    """Return what slows the board down now: the state of its cooling devices, but not of fans; 0 is off."""
    found: dict[str, Reading] = {}
    for device in sorted(root.glob("sys/class/thermal/cooling_device*")):
        name = text(device / "type")
        if not name:
            reading = {"path": str(device / "type"), "state": None, "error": NO_NAME}
            _put(found, device.name, device.name, reading)
        elif THROTTLES.search(name):
            place = device / "cur_state"
            _put(found, name, device.name, {"path": str(place), "state": number(place)})
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


def firmware(command: str | None) -> Reading | None:
    """Return the bits of `vcgencmd get_throttled` of a Raspberry Pi, or why it does not say; None elsewhere."""
    if command is None:
        return None
    try:
        done = subprocess.run([command, "get_throttled"], check=False, capture_output=True, timeout=PATIENCE)
    except (OSError, subprocess.TimeoutExpired) as error:
        return {"path": command, "bits": None, "error": str(error)}
    said = re.fullmatch(rb"throttled=0x([0-9a-fA-F]+)\s*", done.stdout)
    if not said:
        told = (done.stdout + done.stderr).decode("utf-8", "replace").strip()[:100] or f"exit code {done.returncode}"
        return {"path": command, "bits": None, "error": told}
    return {"path": command, "bits": int(said.group(1), 16), "error": None}
