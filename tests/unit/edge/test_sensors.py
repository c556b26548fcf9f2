# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Sensors over trees as kernels show them: of an AGX Orin as a public test of jetson_stats has recorded it, and others."""

from __future__ import annotations

import subprocess
import sys

import pytest
import sensors

from tests.pythons import find

from .conftest import EDGE

FIRST = "sys/bus/i2c/devices/1-0040/hwmon/hwmon3"
SECOND = "sys/bus/i2c/devices/1-0041/hwmon/hwmon4"
ORIN = {
    "proc/device-tree/model": "NVIDIA Jetson AGX Orin Developer Kit",
    f"{FIRST}/in1_label": "VDD_GPU_SOC",
    f"{FIRST}/in1_input": 12000,
    f"{FIRST}/curr1_input": 280,
    f"{FIRST}/in2_label": "VDD_CPU_CV",
    f"{FIRST}/in2_input": 12008,
    f"{FIRST}/curr2_input": 40,
    f"{FIRST}/in3_label": "VIN_SYS_5V0",
    f"{FIRST}/in3_input": 4968,
    f"{FIRST}/curr3_input": 980,
    f"{FIRST}/in4_label": "ignored",  # a shunt's voltage has no current
    f"{FIRST}/in4_input": 1,
    f"{FIRST}/in7_label": "sum of shunt voltages",
    f"{FIRST}/in7_input": 3,
    f"{SECOND}/in1_label": "NC",
    f"{SECOND}/in1_input": 1,
    f"{SECOND}/curr1_input": 1,
}
PI = {"proc/device-tree/model": "Raspberry Pi 5 Model B"}
NOTHING = {"rails": [], "error": None}


def rows(*each):
    """Rows of a soak, one a second, with only what is given."""
    empty = {"rails": {}, "zones": {}, "counters": {}, "throttling": {}, "clocks": {}, "energy": {}, "firmware": None}
    return [{**empty, "time": float(second), **row} for second, row in enumerate(each)]


# -- power


def test_the_rails_of_an_orin_have_voltage_times_current(tree):
    found = sensors.rails(tree(**ORIN))
    assert {name: round(each["watts"], 4) for name, each in found.items()} == {
        "VDD_GPU_SOC": 3.36,
        "VDD_CPU_CV": 0.4803,
        "VIN_SYS_5V0": 4.8686,
    }
    assert found["VDD_GPU_SOC"]["path"].endswith(FIRST)


def test_the_rails_of_a_known_board_are_its_power(tree):
    assert sensors.whole_board(tree(**ORIN), None) == {
        "rails": ["VDD_GPU_SOC", "VDD_CPU_CV", "VIN_SYS_5V0"],
        "error": None,
    }


def test_the_profile_names_others(tree):
    assert sensors.whole_board(tree(**ORIN), ["VDD_CPU_CV"])["rails"] == ["VDD_CPU_CV"]
    found = sensors.whole_board(tree(**ORIN), ["VDD_IN"])
    assert found == {"rails": [], "error": "VDD_IN cannot be read; there are VDD_CPU_CV, VDD_GPU_SOC, VIN_SYS_5V0"}


def test_of_an_unknown_board_it_is_not_guessed(tree):
    found = sensors.whole_board(tree(**{**ORIN, "proc/device-tree/model": "Something new"}), None)
    assert found["rails"] == []
    assert found["error"].startswith("which rails are the board's is unknown: name some of VDD_CPU_CV")


def test_without_a_monitor_it_says_so(tree):
    assert sensors.whole_board(tree(**PI), None)["error"] == "no power monitor in sysfs"


def test_older_and_other_monitors_give_power_themselves(tree):
    iio = "sys/bus/i2c/drivers/ina3221x/1-0041/iio:device1"
    root = tree(
        **{
            f"{iio}/rail_name_0": "POM_5V_IN",
            f"{iio}/in_power0_input": 2545,
            f"{iio}/rail_name_1": "NC",
            "sys/class/hwmon/hwmon0/name": "ina226",
            "sys/class/hwmon/hwmon0/power1_input": 5_250_000,
        }
    )
    assert {name: each["watts"] for name, each in sensors.rails(root).items()} == {"POM_5V_IN": 2.545, "ina226": 5.25}


def test_the_mean_is_that_of_all_chosen_rails_together():
    taken = rows({"rails": {"a": {"watts": 1}, "b": {"watts": 2}}}, {"rails": {"a": {"watts": 3}, "b": {"watts": 4}}})
    found = sensors.summary(taken, {"rails": ["a", "b"], "error": None})["power"]
    assert (found["mean"], found["highest"], found["error"]) == (5, 7, None)
    found = sensors.summary(rows({"rails": {"a": {"watts": 1}}}, {}), {"rails": ["a"], "error": None})["power"]
    assert (found["mean"], found["error"]) == (None, "a could not be read all the time")
    assert sensors.summary(taken, {"rails": [], "error": "unknown"})["power"]["error"] == "unknown"


# -- temperature


def test_a_part_that_is_off_is_left_out_and_not_0(tree):
    zone = "sys/class/thermal/thermal_zone"
    root = tree(
        **{
            f"{zone}0/type": "cpu-thermal",
            f"{zone}0/temp": 48500,
            f"{zone}1/type": "cv0-thermal",
            f"{zone}1/temp": -256000,
            f"{zone}2/type": "gpu-thermal",
            "sys/class/hwmon/hwmon1/name": "k10temp",
            "sys/class/hwmon/hwmon1/temp1_input": 51250,
            "sys/class/hwmon/hwmon1/temp1_label": "Tctl",
            "sys/class/hwmon/hwmon1/temp2_input": "ENXIO",
        }
    )
    assert {name: each["celsius"] for name, each in sensors.zones(root).items()} == {
        "cpu-thermal": 48.5,
        "k10temp Tctl": 51.25,
    }


def test_the_highest_temperature_is_that_of_all_zones_and_times():
    taken = rows(
        {"zones": {"a": {"celsius": 40}, "b": {"celsius": 90}}}, {"zones": {"a": {"celsius": 60}, "b": {"celsius": 50}}}
    )
    found = sensors.summary(taken, NOTHING)["temperature"]
    assert found == {"highest": 90, "zones": {"a": 60, "b": 90}, "error": None}
    found = sensors.summary(rows({"zones": {"a": {"celsius": 40}}}, {}), NOTHING)["temperature"]
    assert (found["highest"], found["error"]) == (40, "a could not be read all the time")
    found = sensors.summary(rows({}, {}), NOTHING)["temperature"]
    assert (found["highest"], found["error"]) == (None, "no thermal zone can be read")


# -- throttling


def test_throttling_is_a_counter_that_grows_or_a_device_that_is_active(tree):
    root = tree(
        **{
            "sys/class/hwmon/hwmon2/name": "soctherm_oc",
            "sys/class/hwmon/hwmon2/oc1_event_cnt": 4,
            "sys/class/hwmon/hwmon5/name": "other",
            "sys/class/hwmon/hwmon5/oc1_event_cnt": 9,
            "sys/devices/system/cpu/cpu1/thermal_throttle/core_throttle_count": 7,
            "sys/class/thermal/cooling_device0/type": "cpu-throttle-alert",
            "sys/class/thermal/cooling_device0/cur_state": 1,
            "sys/class/thermal/cooling_device1/type": "pwm-fan",
            "sys/class/thermal/cooling_device1/cur_state": 3,
        }
    )
    assert {name: each["count"] for name, each in sensors.counters(root).items()} == {"soctherm oc1": 4, "cpu1 core": 7}
    assert {name: each["state"] for name, each in sensors.throttling(root).items()} == {"cpu-throttle-alert": 1}


def test_what_was_counted_before_the_soak_is_no_event():
    taken = rows({"counters": {"oc1": {"count": 4}}}, {"counters": {"oc1": {"count": 4}}})
    assert sensors.summary(taken, NOTHING)["throttle"]["events"] == 0
    taken[1]["counters"]["oc1"]["count"] = 6
    assert sensors.summary(taken, NOTHING)["throttle"]["events"] == 2
    active = rows({"throttling": {"alert": {"state": 0}}}, {"throttling": {"alert": {"state": 1}}})
    assert sensors.summary(active, NOTHING)["throttle"]["events"] == 1


def test_where_nothing_says_it_is_not_0():
    found = sensors.summary(rows({}, {}), NOTHING)["throttle"]
    assert (found["events"], found["error"]) == (None, "nothing says whether the board was throttled")


@pytest.mark.parametrize(
    ("bits", "new"),
    [
        ((0x0, 0x0), 0),
        ((0x50000, 0x50000), 0),  # since boot, before the soak
        ((0x0, 0x50005), 0b101),
        ((0x50000, 0x50005), 0),  # it was so before: restart the board to judge
        ((0x10000, 0x50005), 0b100),
        ((0x0, 0x4, 0x0), 0b100),
    ],
)
def test_the_firmwares_bits_are_those_that_were_not_set_before(bits, new):
    taken = rows(*({"firmware": each} for each in bits))
    assert sensors.summary(taken, NOTHING)["throttle"]["firmware_bits"] == new


@pytest.mark.parametrize(
    ("said", "bits"), [("throttled=0x50000", 0x50000), ("throttled=0x0", 0), ("error=1", None), ("", None)]
)
def test_vcgencmd_is_asked(tmp_path, said, bits):
    command = tmp_path / "vcgencmd"
    command.write_text(f"#!/bin/sh\n[ $1 = get_throttled ] && echo '{said}'\n")
    command.chmod(0o755)
    assert sensors.firmware(str(command)) == bits
    assert sensors.firmware(str(tmp_path / "none")) is None


# -- energy, clocks, mode


def test_an_energy_counter_that_wraps_goes_on():
    def counted(*counts):
        return rows(*({"energy": {"package-0": {"microjoules": count, "wraps_at": 10_000_000}}} for count in counts))

    assert sensors.summary(counted(1_000_000, 3_000_000), NOTHING)["energy"] == {"joules": 2.0, "error": None}
    assert sensors.summary(counted(9_000_000, 1_000_000, 2_000_000), NOTHING)["energy"]["joules"] == 3.0
    found = sensors.summary(rows({"energy": {"p": {"microjoules": None, "error": "cannot be read"}}}, {}), NOTHING)[
        "energy"
    ]
    assert found == {"joules": None, "error": "p: cannot be read"}
    assert sensors.summary(rows({}, {}), NOTHING)["energy"]["error"] == "no energy counter in sysfs"


def test_energy_that_only_root_can_read_says_so(tree):
    root = tree(
        **{"sys/class/powercap/intel-rapl:0/name": "package-0", "sys/class/powercap/intel-rapl:0:0/name": "core"}
    )
    (only,) = sensors.energy(root).values()
    assert only["microjoules"] is None
    assert "root only" in only["error"]


def test_clocks_and_the_lowest_of_them(tree):
    policy = "sys/devices/system/cpu/cpufreq/policy0"
    root = tree(**{f"{policy}/scaling_cur_freq": 1_200_000, f"{policy}/scaling_max_freq": 2_000_000})
    (found,) = sensors.clocks(root).values()
    assert (found["khz"], found["allowed_khz"], found["highest_khz"]) == (1_200_000, 2_000_000, None)
    taken = rows({"clocks": {"policy0": {"khz": 5}}}, {"clocks": {"policy0": {"khz": 3}}})
    assert sensors.summary(taken, NOTHING)["clocks"] == {"policy0": 3}


def test_the_power_mode_has_its_name(tree):
    root = tree(**{"var/lib/nvpmodel/status": "pmode:0000 fmode:fanNull"})
    assert sensors.power_mode(root) == "0"
    root = tree(**{"etc/nvpmodel.conf": "< POWER_MODEL ID=0 NAME=MAXN >\n< POWER_MODEL ID=1 NAME=15W >"})
    assert sensors.power_mode(root) == "MAXN"
    assert sensors.power_mode(root / "none") is None


def test_a_row_has_everything(tree):
    found = sensors.row(tree(**ORIN))
    assert set(found) == {"time", "rails", "zones", "counters", "throttling", "clocks", "energy", "firmware"}
    assert found["firmware"] is None


def test_it_runs_on_the_oldest_python_of_a_device(tree):
    python = find("3.8") or sys.executable
    code = "import sys, json, pathlib, sensors; print(json.dumps(sensors.summary([sensors.row(pathlib.Path(sys.argv[1]))] * 2, {'rails': [], 'error': 'x'})))"
    done = subprocess.run(
        [python, "-S", "-c", code, str(tree(**ORIN))], cwd=EDGE, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
