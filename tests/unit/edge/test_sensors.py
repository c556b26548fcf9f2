# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Sensors over trees as kernels show them: an AGX Orin as a public test of jetson_stats has recorded it, and others."""

from __future__ import annotations

import errno
import pathlib
import subprocess
import sys

import pytest
import sensors
import summary

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
# -- power


def board(root, wanted):
    return sensors.whole_board(sensors.row(root), sensors.board(root), wanted)


def test_the_rails_of_an_orin_have_voltage_times_current(tree):
    found = sensors.rails(tree(**ORIN))
    assert {name: round(each["watts"], 4) for name, each in found.items()} == {
        "VDD_GPU_SOC": 3.36,
        "VDD_CPU_CV": 0.4803,
        "VIN_SYS_5V0": 4.8686,
    }
    assert found["VDD_GPU_SOC"]["path"].endswith(FIRST)


def test_the_rails_of_a_known_board_are_its_power(tree):
    assert board(tree(**ORIN), None) == {
        "rails": ["VDD_GPU_SOC", "VDD_CPU_CV", "VIN_SYS_5V0"],
        "error": None,
    }


def test_the_profile_names_others(tree):
    assert board(tree(**ORIN), ["VDD_CPU_CV"])["rails"] == ["VDD_CPU_CV"]
    found = board(tree(**ORIN), ["VDD_IN"])
    assert found == {"rails": [], "error": "VDD_IN cannot be read; there are VDD_CPU_CV, VDD_GPU_SOC, VIN_SYS_5V0"}


def test_of_an_unknown_board_it_is_not_guessed(tree):
    found = board(tree(**{**ORIN, "proc/device-tree/model": "Something new"}), None)
    assert found["rails"] == []
    assert found["error"].startswith("which rails are the board's is unknown: name some of VDD_CPU_CV")


def test_without_a_monitor_it_says_so(tree):
    assert board(tree(**PI), None)["error"] == "no power monitor can be read"
    found = board(tree(**{**PI, "proc/device-tree/model": ORIN["proc/device-tree/model"]}), None)
    assert found["error"] == "VDD_GPU_SOC, VDD_CPU_CV, VIN_SYS_5V0 cannot be read; no rail can be"


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


def test_two_monitors_of_one_name_are_two(tree):
    root = tree(
        **{
            "sys/class/hwmon/hwmon0/name": "ina226",
            "sys/class/hwmon/hwmon0/power1_input": 1_000_000,
            "sys/class/hwmon/hwmon1/name": "ina226",
            "sys/class/hwmon/hwmon1/power1_input": 2_000_000,
        }
    )
    assert {name: each["watts"] for name, each in sensors.rails(root).items()} == {"ina226": 1, "ina226 (hwmon1)": 2}


def test_less_than_no_power_is_no_reading(tree):
    hwmon, iio = "sys/class/hwmon/hwmon0", "sys/bus/i2c/drivers/ina3221x/1-0041/iio:device1"
    other = {f"{hwmon}/name": "ina226", f"{hwmon}/power1_input": -1_000_000}
    other |= {f"{iio}/rail_name_0": "POM_5V_IN", f"{iio}/in_power0_input": -250}
    found = sensors.rails(tree(**{**ORIN, **other, f"{FIRST}/curr2_input": -1}))
    assert {name: each["error"] for name, each in found.items() if "watts" not in each} == {
        "VDD_CPU_CV": "-0.012008 W",
        "POM_5V_IN": "-0.25 W",
        "ina226": "-1 W",
    }
    assert {name for name, each in found.items() if "watts" in each} == {"VDD_GPU_SOC", "VIN_SYS_5V0"}


@pytest.mark.parametrize(
    ("name", "rails"),
    [
        ("NVIDIA Jetson Nano Developer Kit", ["POM_5V_IN"]),
        ("NVIDIA Orin Nano Developer Kit", ["VDD_IN"]),
        ("FriendlyElec NanoPi R5S", []),
        ("Radxa Nano", []),
        ("Somebody's TX2", []),
    ],
)
def test_a_board_is_a_jetson_only_if_it_says_so(name, rails):
    there = {"rails": {each: {"watts": 1} for each in ("POM_5V_IN", "VDD_IN")}, "energy": {}}
    assert sensors.whole_board(there, name, None)["rails"] == rails


def test_a_rail_that_is_named_twice_counts_once(tree):
    assert board(tree(**ORIN), ["VDD_CPU_CV", "VDD_GPU_SOC", "VDD_CPU_CV"])["rails"] == ["VDD_CPU_CV", "VDD_GPU_SOC"]


def test_a_pcs_packages_are_its_power_only_if_the_profile_says_so(tree):
    package = "sys/class/powercap/intel-rapl:0"
    root = tree(**{f"{package}/name": "package-0", f"{package}/energy_uj": 5})
    assert board(root, None)["error"] == (
        "which rails are the board's is unknown: name some of package-0 in power_rails"
    )
    assert board(root, ["package-0"]) == {"rails": ["package-0"], "error": None}
    (root / package / "energy_uj").unlink()
    assert board(root, ["package-0"])["error"].startswith("package-0 cannot be read; cannot be read: root only")


# -- temperature


def test_a_part_that_is_off_is_not_0(tree):
    zone = "sys/class/thermal/thermal_zone"
    root = tree(
        **{
            f"{zone}0/type": "cpu-thermal",
            f"{zone}0/temp": 48500,
            f"{zone}1/type": "cv0-thermal",
            f"{zone}1/temp": -256000,
            f"{zone}2/type": "gpu-thermal",
            f"{zone}3/type": "cpu-thermal",
            f"{zone}3/temp": 50500,
            f"{zone}4/type": "odd",
            f"{zone}4/temp": "hot",
            "sys/class/hwmon/hwmon1/name": "k10temp",
            "sys/class/hwmon/hwmon1/temp1_input": 51250,
            "sys/class/hwmon/hwmon1/temp1_label": "Tctl",
            "sys/class/hwmon/hwmon2/name": "nvme",  # no processor's
            "sys/class/hwmon/hwmon2/temp1_input": 91000,
        }
    )
    found = sensors.zones(root)
    assert {name: each["celsius"] for name, each in found.items() if "celsius" in each} == {
        "cpu-thermal": 48.5,
        "cpu-thermal (thermal_zone3)": 50.5,
        "k10temp Tctl": 51.25,
    }
    assert {name for name, each in found.items() if each.get("off")} == {"cv0-thermal"}
    assert {name: each["error"] for name, each in found.items() if "error" in each} == {
        "gpu-thermal": "No such file or directory",
        "odd": "'hot' is no number",
    }


def test_a_zone_that_reads_0_was_not_read(tree):
    zone = "sys/class/thermal/thermal_zone"
    told = {f"{zone}0/type": "cpu", f"{zone}0/temp": 0, f"{zone}1/type": "tj", f"{zone}1/temp": 48500}
    found = sensors.zones(tree(**told))
    assert (found["cpu"]["error"], found["cpu"].get("celsius")) == ("reads 0", None)
    assert found["tj"]["celsius"] == 48.5


@pytest.mark.parametrize("said", [45, 91, -1, 999])
def test_a_zone_that_reads_thousandths_of_a_degree_was_not_read(tree, said):
    told = {"sys/class/thermal/thermal_zone0/type": "cpu", "sys/class/thermal/thermal_zone0/temp": said}
    found = sensors.zones(tree(**told))["cpu"]
    assert (found.get("celsius"), found["error"]) == (None, f"reads {said / 1000:g}")


def test_what_does_not_say_what_it_is_of_is_an_error_by_its_place(tree):
    thermal, hwmon = "sys/class/thermal", "sys/class/hwmon"
    told = {
        f"{thermal}/thermal_zone0/temp": 99000,
        f"{thermal}/thermal_zone1/type": "",
        f"{thermal}/thermal_zone1/temp": 98000,
        f"{thermal}/thermal_zone2/type": "cpu",
        f"{thermal}/thermal_zone2/temp": 40000,
        f"{thermal}/cooling_device0/cur_state": 3,
        f"{hwmon}/hwmon0/temp1_input": 97000,
        f"{hwmon}/hwmon1/oc1_event_cnt": 4,
    }
    root = tree(**told)
    zones = sensors.zones(root)
    assert {name for name, each in zones.items() if each.get("error") == sensors.NO_NAME} == {
        "thermal_zone0",
        "thermal_zone1",
        "hwmon0",
    }
    assert zones["cpu"]["celsius"] == 40
    assert sensors.throttling(root)["cooling_device0"]["error"] == sensors.NO_NAME
    assert sensors.counters(root)["hwmon1"]["error"] == sensors.NO_NAME
    row = sensors.row(root)
    found = summary.summary([row, {**row, "time": row["time"] + 1}], {"rails": [], "error": "none"}, 9)
    assert "thermal_zone0 (what it is of cannot be read)" in found["temperature"]["error"]
    for name in ("cooling_device0", "hwmon1"):
        assert f"{name} (what it is of cannot be read)" in found["throttle"]["error"]


def test_a_number_without_end_is_none(tree):
    assert sensors.number(tree(**{"proc/x": "9" * 5000}) / "proc/x") is None


@pytest.mark.parametrize("name", ["PMIC-Die", "pmic"])
@pytest.mark.parametrize("said", [100000, 50000, "what"])
def test_the_constant_of_a_jetsons_pmic_is_no_temperature(tree, name, said):
    zone = "sys/class/thermal/thermal_zone0"
    (found,) = sensors.zones(tree(**{f"{zone}/type": name, f"{zone}/temp": said})).values()
    assert (found.get("celsius"), found.get("error"), found.get("off")) == (None, None, True)
    assert found["reason"] == "it reads the same at all times"


@pytest.mark.parametrize(
    ("number", "off"),
    [(errno.EAGAIN, True), (errno.ENXIO, True), (errno.ENODATA, True), (errno.EIO, False), (errno.EACCES, False)],
)
def test_the_kernel_says_that_a_part_is_off(tree, monkeypatch, number, off):
    root = tree(**{"sys/class/thermal/thermal_zone0/type": "gpu", "sys/class/thermal/thermal_zone0/temp": 1})
    read = pathlib.Path.read_text

    def fails(path, *arguments, **options):
        if path.name == "temp":
            raise OSError(number, "it says")
        return read(path, *arguments, **options)

    monkeypatch.setattr(pathlib.Path, "read_text", fails)
    (found,) = sensors.zones(root).values()
    assert (found.get("off"), found.get("error")) == ((True, None) if off else (None, "it says"))


# -- throttling


def test_throttling_is_a_counter_that_grows_or_a_device_that_is_active(tree):
    cpu, cooling = "sys/devices/system/cpu/cpu", "sys/class/thermal/cooling_device"
    root = tree(
        **{
            "sys/class/hwmon/hwmon2/name": "soctherm_oc",
            "sys/class/hwmon/hwmon2/oc1_event_cnt": 4,
            "sys/class/hwmon/hwmon2/oc2_event_cnt": "what",
            "sys/class/hwmon/hwmon5/name": "other",
            "sys/class/hwmon/hwmon5/oc1_event_cnt": 9,
            f"{cpu}0/thermal_throttle/package_throttle_count": 3,
            f"{cpu}1/thermal_throttle/package_throttle_count": 3,  # the same package
            f"{cpu}1/thermal_throttle/core_throttle_count": 7,
            f"{cpu}2/topology/physical_package_id": 1,
            f"{cpu}2/thermal_throttle/package_throttle_count": 5,
            f"{cooling}0/type": "cpu-throttle-alert",
            f"{cooling}0/cur_state": 1,
            f"{cooling}1/type": "pwm-fan",
            f"{cooling}1/cur_state": 3,
            f"{cooling}2/type": "Processor",
            f"{cooling}2/cur_state": 0,
            f"{cooling}3/type": "Processor",
            f"{cooling}3/cur_state": 2,
            f"{cooling}4/type": "cpufreq-cpu0",
        }
    )
    assert {name: each["count"] for name, each in sensors.counters(root).items()} == {
        "soctherm oc1": 4,
        "soctherm oc2": None,
        "package 0": 3,
        "package 1": 5,
        "cpu1 core": 7,
    }
    assert {name: each["state"] for name, each in sensors.throttling(root).items()} == {
        "cpu-throttle-alert": 1,
        "Processor": 0,
        "Processor (cooling_device3)": 2,
        "cpufreq-cpu0": None,
    }


@pytest.mark.parametrize(
    ("said", "bits", "error"),
    [
        ("throttled=0x50000", 0x50000, None),
        ("throttled=0x0", 0, None),
        ("error=1", None, "error=1"),
        ("", None, "exit code 0"),
    ],
)
def test_vcgencmd_is_asked(tmp_path, said, bits, error):
    command = tmp_path / "usr/bin/vcgencmd"
    command.parent.mkdir(parents=True)
    command.write_text(f"#!/bin/sh\n[ $1 = get_throttled ] && echo '{said}'\n")
    command.chmod(0o755)
    assert sensors.row(tmp_path)["firmware"] == {"path": str(command), "bits": bits, "error": error}


def test_a_board_without_vcgencmd_says_nothing(tmp_path):
    assert sensors.firmware(None) is None
    assert sensors.program(tmp_path, "vcgencmd") is None
    found = sensors.firmware(str(tmp_path / "none"))
    assert found["bits"] is None
    assert "No such file" in found["error"]


def test_a_program_is_looked_for_on_the_path_of_a_real_root():
    assert sensors.program(pathlib.Path("/"), "sh").endswith("/sh")


# -- energy, clocks, mode


def test_energy_that_only_root_can_read_says_so(tree):
    root = tree(
        **{"sys/class/powercap/intel-rapl:0/name": "package-0", "sys/class/powercap/intel-rapl:0:0/name": "core"}
    )
    (only,) = sensors.energy(root).values()
    assert only["microjoules"] is None
    assert "root only" in only["error"]


def test_clocks_with_the_highest_that_are_allowed(tree):
    policy = "sys/devices/system/cpu/cpufreq/policy0"
    root = tree(**{f"{policy}/scaling_cur_freq": 1_200_000, f"{policy}/scaling_max_freq": 2_000_000})
    (found,) = sensors.clocks(root).values()
    assert (found["khz"], found["allowed_khz"], found["highest_khz"]) == (1_200_000, 2_000_000, None)


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
    code = "import sys, pathlib, sensors, summary; r = sensors.row(pathlib.Path(sys.argv[1]))"
    code += "; print(summary.summary([r] * 2, {'rails': [], 'error': 'x'}, 3)['samples'])"
    done = subprocess.run(
        [python, "-S", "-c", code, str(tree(**ORIN))], cwd=EDGE, capture_output=True, text=True, check=False
    )
    assert done.stdout == "2\n", done.stderr
