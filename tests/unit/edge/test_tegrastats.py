# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Lines of tegrastats as public tests have recorded them, and the program beside a measurement."""

from __future__ import annotations

import os
import sys
import time
from types import SimpleNamespace

import pytest
import sensors
import tegrastats

ORIN = (
    "11-26-2026 07:00:00 RAM 2505/7775MB (lfb 1429x4MB) SWAP 0/3887MB (cached 0MB) CPU [2%@2035,0%@2035,off,off] "
    "EMC_FREQ 0%@2133 GR3D_FREQ 45%@[1300] cpu@38.25C soc2@36.25C tj@38.25C cv0@-256C gpu@36.5C "
    "VDD_GPU_SOC 1234mW/1230mW VDD_CPU_CV 400mW/410mW"
)
NANO = (
    "RAM 1200/3956MB (lfb 2x4MB) IRAM 0/252kB(lfb 252kB) CPU [10%@1479,off] EMC_FREQ 0% GR3D_FREQ 0% APE 25 PLL@30C "
    "CPU@31.5C PMIC@100C GPU@30C AO@37C thermal@30.75C POM_5V_IN 2545/2547 POM_5V_GPU 0/0 POM_5V_CPU 440/440"
)
EMPTY = {"rails": {}, "zones": {}}


def test_the_rails_are_those_of_now():
    found = tegrastats.rails(ORIN, "x")
    assert found == {"VDD_GPU_SOC": {"path": "x", "watts": 1.234}, "VDD_CPU_CV": {"path": "x", "watts": 0.4}}
    assert {name: each["watts"] for name, each in tegrastats.rails(NANO, "x").items()} == {
        "POM_5V_IN": 2.545,
        "POM_5V_GPU": 0.0,
        "POM_5V_CPU": 0.44,
    }


def test_a_part_that_is_off_has_no_temperature():
    found = tegrastats.zones(ORIN, "x")
    assert {name: each.get("celsius") for name, each in found.items()} == {
        "cpu": 38.25,
        "soc2": 36.25,
        "tj": 38.25,
        "cv0": None,
        "gpu": 36.5,
    }
    assert found["cv0"]["off"] is True
    assert {name: each.get("celsius") for name, each in tegrastats.zones(NANO, "x").items()} == {
        "PLL": 30,
        "CPU": 31.5,
        "PMIC": None,
        "GPU": 30,
        "AO": 37,
        "thermal": 30.75,
    }
    pmic = {"path": "x", "off": True, "reason": "it reads the same at all times"}
    assert tegrastats.zones(NANO, "x")["PMIC"] == tegrastats.zones("PMIC-Die@100C", "x")["PMIC-Die"] == pmic
    assert tegrastats.zones("", "x") == tegrastats.rails("", "x") == {}


def test_what_cannot_be_is_no_reading():
    assert tegrastats.zones("CPU@0C tj@40C", "x") == {
        "CPU": {"path": "x", "error": "reads 0"},
        "tj": {"path": "x", "celsius": 40},
    }
    assert tegrastats.rails("VDD_IN -8mW/4mW VDD_CPU 0mW/-1mW", "x") == {
        "VDD_IN": {"path": "x", "error": "-0.008 W"},
        "VDD_CPU": {"path": "x", "watts": 0},
    }


@pytest.fixture
def program(tmp_path, monkeypatch):
    """A stand-in that says these lines, and then what it is told to do; on a busy machine too they are new for long."""
    monkeypatch.setattr(tegrastats, "OLD", 600.0)

    def write(*lines: str, then: str = "time.sleep(600)", place: str = "usr/bin/tegrastats") -> str:
        path = tmp_path / place
        path.parent.mkdir(parents=True, exist_ok=True)
        said = "".join(f"print({line!r}, flush=True)\n" for line in lines)
        begin = f"import os, sys, time\nopen({str(tmp_path / 'pid')!r}, 'w').write(str(os.getpid()))\n"
        path.write_text(f"#!{sys.executable}\n{begin}{said}{then}\n")
        path.chmod(0o755)
        return str(path)

    return write


def is_there(tmp_path) -> bool:
    return os.path.exists(f"/proc/{(tmp_path / 'pid').read_text()}")


def test_what_sysfs_lacks_is_filled(program):
    running = tegrastats.Tegrastats(program(ORIN))
    try:
        found = running.filled(EMPTY)
        assert found["rails"]["VDD_CPU_CV"]["watts"] == 0.4
        assert found["zones"]["gpu"]["celsius"] == 36.5
        own = {"rails": {"VDD_IN": {"watts": 5}}, "zones": {"a": {"celsius": 40}}}
        assert running.filled(own) == own
        off = {"rails": {}, "zones": {"a": {"error": "no"}}}
        assert set(running.filled(off)["zones"]) > {"a", "gpu"}
    finally:
        running.end()


def test_it_is_ended_for_certain(program, tmp_path):
    running = tegrastats.Tegrastats(
        program(ORIN, then="import signal; signal.signal(15, signal.SIG_IGN); time.sleep(600)")
    )
    assert is_there(tmp_path)
    running.end()
    assert not is_there(tmp_path)


def test_the_last_whole_line_counts(program):
    running = tegrastats.Tegrastats(
        program(NANO, ORIN, then="print('VDD_IN 1mW', end='', flush=True); time.sleep(600)")
    )
    try:
        deadline = time.monotonic() + 40
        while "VDD_CPU_CV" not in running.filled(EMPTY)["rails"]:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        assert "VDD_IN" not in running.filled(EMPTY)["rails"]
    finally:
        running.end()


def test_what_it_said_before_it_ended_is_no_reading_of_now(program):
    running = tegrastats.Tegrastats(program(ORIN, then="pass"))
    deadline = time.monotonic() + 40
    while running.filled(EMPTY)["rails"]:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert running.filled(EMPTY) == EMPTY
    running.end()


def test_what_it_said_long_before_is_no_reading_of_now(program, tmp_path, monkeypatch):
    later, again = [0.0], tmp_path / "again"
    wait = f"\nwhile not os.path.exists({str(again)!r}): time.sleep(0.05)\nprint({NANO!r}, flush=True)\n"
    clock = SimpleNamespace(monotonic=lambda: time.monotonic() + later[0], sleep=time.sleep)
    monkeypatch.setattr(tegrastats, "time", clock)
    running = tegrastats.Tegrastats(program(ORIN, then=f"{wait}time.sleep(600)"))
    try:
        assert running.filled(EMPTY)["rails"]
        later[0] = 601.0
        assert running.filled(EMPTY) == EMPTY
        again.touch()
        deadline = time.monotonic() + 40
        while "POM_5V_IN" not in running.filled(EMPTY)["rails"]:
            assert time.monotonic() < deadline
            time.sleep(0.05)
    finally:
        running.end()


def test_a_line_is_old_after_five_intervals():
    assert tegrastats.OLD == 5 * tegrastats.INTERVAL / 1000


def test_one_that_says_nothing_is_not_waited_for_long(program, monkeypatch):
    monkeypatch.setattr(tegrastats, "PATIENCE", 0.2)
    running = tegrastats.Tegrastats(program())
    assert running.filled(EMPTY) == EMPTY
    running.end()


def test_one_that_cannot_be_run_gives_nothing(tmp_path):
    running = tegrastats.Tegrastats(str(tmp_path / "none"))
    assert running.filled(EMPTY) == EMPTY
    running.end()


def test_it_is_asked_only_where_sysfs_lacks_something(program, tmp_path, tree):
    program(ORIN)
    root = tree(**{"sys/class/thermal/thermal_zone0/type": "cpu", "sys/class/thermal/thermal_zone0/temp": 48500})
    with sensors.Reader(root) as reader:
        found = reader.row()
        assert found["rails"]["VDD_GPU_SOC"]["path"] == str(tmp_path / "usr/bin/tegrastats")
        assert set(found["zones"]) == {"cpu"}
    assert not is_there(tmp_path)
    (tmp_path / "pid").unlink()
    hwmon = "sys/class/hwmon/hwmon0"
    root = tree(**{f"{hwmon}/name": "ina226", f"{hwmon}/power1_input": 5_250_000})
    with sensors.Reader(root) as reader:
        assert set(reader.row()["rails"]) == {"ina226"}
    assert not (tmp_path / "pid").exists()
