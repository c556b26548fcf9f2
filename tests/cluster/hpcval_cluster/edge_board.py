# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The board that edge01 shows below a root of its own: a stand-in of a Jetson AGX Orin's files, as sysfs has them.

Files lie where the kernel has them, /sys/bus and /sys/class hold links to them. The first monitor's rails, voltages and
currents are those of a board that a public test of jetson_stats has recorded. The energy counter of a processor
package, which no Jetson has, is there as any Linux since 5.10 has it: for root alone.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Mapping
from pathlib import Path

ROOT = "/run/hpcval-edge"  # in edge01
MODEL = "Simulated NVIDIA Jetson AGX Orin Developer Kit"
MODES = ("MAXN", "15W", "30W", "50W")  # of nvpmodel, by number
READABLE, ROOT_ONLY, UNREADABLE = 0o444, 0o400, 0o000

_DEVICES = "sys/devices"
_I2C = f"{_DEVICES}/platform/bus@0/c240000.i2c/i2c-1"
_SOCTHERM = f"{_DEVICES}/platform/soctherm-oc-event/hwmon/hwmon5"
_THERMAL = f"{_DEVICES}/virtual/thermal"
_CPUFREQ = f"{_DEVICES}/system/cpu/cpufreq"
_PACKAGE = f"{_DEVICES}/virtual/powercap/intel-rapl/intel-rapl:0"
_TREE = "sys/firmware/devicetree/base"
_NVPMODEL = "var/lib/nvpmodel/status"

# Chip → its hwmon, and label, mV and mA of each channel; NC is not connected.
_MONITORS = {
    "1-0040": ("hwmon3", (("VDD_GPU_SOC", 12000, 280), ("VDD_CPU_CV", 12008, 40), ("VIN_SYS_5V0", 4968, 980))),
    "1-0041": ("hwmon4", (("NC", 0, 0), ("VDDQ_VDD2_1V8AO", 4960, 80), ("NC", 0, 0))),
}
_SHUNTS = (4, 5, 6)  # voltages of the shunts, which are no rails
# m°C; -256000 is a part that is off
_ZONES = {
    "cpu-thermal": 47250,
    "gpu-thermal": 44093,
    "cv0-thermal": -256000,
    "soc0-thermal": 45031,
    "tj-thermal": 47250,
    "tboard-thermal": 37000,
}
_HOT = ("cpu-thermal", "tj-thermal")
# (cur_state, max_state)
_COOLING = {
    "pwm-fan": (1, 10),
    "cpu-throttle-alert": (0, 1),
    "gpu-throttle-alert": (0, 1),
    "soc012-throttle-alert": (0, 1),
    "hot-surface-alert": (0, 1),
}
_POLICIES = (0, 4, 8)  # the first CPU of each cluster
_KHZ = 2201600

EVENTS = f"{_SOCTHERM}/oc3_event_cnt"  # events of over-current, which `throttled` lets grow
ENERGY = f"{_PACKAGE}/energy_uj"


def files() -> dict[str, str]:
    """Path below the root → text, of a healthy board."""
    return {**_power(), **_throttling(), **_temperatures(), **_clocks(), **_named()}


def links() -> dict[str, str]:
    """Path below the root → where it leads, relative to its folder."""
    found = {
        "proc/device-tree": _TREE,
        "sys/class/hwmon/hwmon5": _SOCTHERM,
        "sys/class/powercap/intel-rapl:0": _PACKAGE,
    }
    for chip, (hwmon, _channels) in _MONITORS.items():
        found[f"sys/bus/i2c/devices/{chip}"] = f"{_I2C}/{chip}"
        found[f"sys/class/hwmon/{hwmon}"] = f"{_I2C}/{chip}/hwmon/{hwmon}"
    for kind, names in (("thermal_zone", _ZONES), ("cooling_device", _COOLING)):
        for number in range(len(names)):
            found[f"sys/class/thermal/{kind}{number}"] = f"{_THERMAL}/{kind}{number}"
    return {path: os.path.relpath(target, Path(path).parent) for path, target in found.items()}


def hot(millidegrees: int) -> dict[str, str]:
    """The files of a CPU so hot."""
    return {f"{_zone(name)}/temp": f"{millidegrees}\n" for name in _HOT}


def currents(factor: int) -> dict[str, str]:
    """The files of so many times the current, and so the power, of a healthy board."""
    return {
        f"{folder}/curr{channel}_input": f"{milliamperes * factor}\n"
        for folder, channel, (_label, _millivolts, milliamperes) in _channels()
    }


def mode(name: str) -> dict[str, str]:
    """The file of a power mode."""
    return {_NVPMODEL: f"pmode:{MODES.index(name):04}\n"}


def unreadable(what: str | None) -> dict[str, int]:
    """The modes of all files where nobody can read the thermal zones, the power or any sensor; None: as they were."""
    power = {f"{folder}/{kind}{channel}_input" for folder, channel, _rail in _channels() for kind in ("in", "curr")}
    chosen: set[str] = {
        None: set(),
        "thermal": {f"{_zone(name)}/temp" for name in _ZONES},
        "power": {*power, ENERGY},
        "all": {path for path in files() if path.startswith(f"{_DEVICES}/")},
    }[what]
    normal = {path: ROOT_ONLY if path == ENERGY else READABLE for path in files()}
    return {**normal, **dict.fromkeys(chosen, UNREADABLE)}


def create(folder: Path) -> None:
    """Make the healthy board's files and links in a folder that is empty or not there."""
    write(folder, files(), unreadable(None))
    for path, target in links().items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).symlink_to(target)
    for each in (folder, *folder.rglob("*")):
        if each.is_dir() and not each.is_symlink():
            each.chmod(0o755)  # whatever the umask


def write(folder: Path, texts: Mapping[str, str], modes: Mapping[str, int]) -> None:
    """Change texts, each so that a reader sees the old or the new one, and then modes."""
    for path, text in texts.items():
        place = folder / path
        place.parent.mkdir(parents=True, exist_ok=True)
        beside = place.with_name(f".{place.name}")
        beside.write_text(text, encoding="utf-8")
        beside.chmod(stat.S_IMODE(place.stat().st_mode) if place.exists() else READABLE)
        beside.replace(place)
    for path, each in modes.items():
        (folder / path).chmod(each)


def _zone(name: str) -> str:
    return f"{_THERMAL}/thermal_zone{list(_ZONES).index(name)}"


def _channels() -> Iterable[tuple[str, int, tuple[str, int, int]]]:
    """Folder, number, and label, mV and mA of each channel."""
    for chip, (hwmon, channels) in _MONITORS.items():
        for number, channel in enumerate(channels, 1):
            yield f"{_I2C}/{chip}/hwmon/{hwmon}", number, channel


def _power() -> dict[str, str]:
    found = {f"{_PACKAGE}/name": "package-0\n", f"{_PACKAGE}/max_energy_range_uj": "262143328850\n", ENERGY: "0\n"}
    for folder, number, (label, millivolts, _milliamperes) in _channels():
        found[f"{folder}/name"] = "ina3221\n"
        found[f"{folder}/in{number}_label"] = f"{label}\n"
        found[f"{folder}/in{number}_input"] = f"{millivolts}\n"
        found[f"{folder}/curr{number}_max"] = found[f"{folder}/curr{number}_crit"] = "32760\n"
        found[f"{folder}/curr{number}_crit_alarm"] = "0\n"
        found |= {f"{folder}/in{shunt}_input": "0\n" for shunt in _SHUNTS}
        found |= {f"{folder}/in7_label": "sum of shunt voltages\n", f"{folder}/in7_input": "0\n"}
    return found | currents(1)


def _throttling() -> dict[str, str]:
    found = {f"{_SOCTHERM}/name": "soctherm_oc\n"}
    for number in (1, 2, 3):
        found[f"{_SOCTHERM}/oc{number}_event_cnt"] = "0\n"
        found[f"{_SOCTHERM}/oc{number}_throt_en"] = "1\n"
    for number, (name, (state, most)) in enumerate(_COOLING.items()):
        folder = f"{_THERMAL}/cooling_device{number}"
        found |= {
            f"{folder}/type": f"{name}\n",
            f"{folder}/cur_state": f"{state}\n",
            f"{folder}/max_state": f"{most}\n",
        }
    return found


def _temperatures() -> dict[str, str]:
    kinds = {f"{_zone(name)}/type": f"{name}\n" for name in _ZONES}
    return kinds | {f"{_zone(name)}/temp": f"{millidegrees}\n" for name, millidegrees in _ZONES.items()}


def _clocks() -> dict[str, str]:
    names = ("scaling_cur_freq", "scaling_max_freq", "cpuinfo_max_freq")
    return {f"{_CPUFREQ}/policy{number}/{name}": f"{_KHZ}\n" for number in _POLICIES for name in names}


def _named() -> dict[str, str]:
    models = "".join(f"< POWER_MODEL ID={number} NAME={name} >\n" for number, name in enumerate(MODES))
    table = f"{models}< PM_CONFIG DEFAULT=0 >\n"
    return {f"{_TREE}/model": f"{MODEL}\0", "etc/nvpmodel.conf": table, **mode("MAXN")}
