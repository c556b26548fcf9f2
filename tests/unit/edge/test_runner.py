# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The parts of the runner that need neither NumPy nor ONNX Runtime."""

from __future__ import annotations

import argparse
import json
import os
import resource
import signal
import subprocess
import sys
import time

import disturbance
import pytest
import runner

from .conftest import EDGE


class Fake:
    """A model that takes its time."""

    def __init__(self, seconds: float = 0.0):
        self.seconds = seconds
        self.asked = 0

    def answer(self, window):
        self.asked += 1
        end = time.perf_counter() + self.seconds
        while time.perf_counter() < end:
            pass
        return window


USED = {"cpu": 1.0, "delay": 0.5, "throttled": 3, "switches": 10}


def after(**changes):
    return {**USED, "cpu": 11.0, "switches": 14, **changes}


def test_percentiles_are_interpolated():
    assert runner.percentile([10, 20, 30, 40], 50) == 25
    assert runner.percentile([10], 99) == 10
    assert runner.percentile([0, 100], 99) == 99


def test_the_histogram_counts_every_inference_once():
    times = [1_000_000, 1_000_001, 1_500_000, 9_000_000]
    found = runner.figures(times)
    counted = found["histogram"]
    assert (found["inferences"], sum(counted["counts"])) == (4, 4)
    assert (counted["counts"][0], counted["counts"][-1]) == (2, 1)
    assert len(counted["edges_ms"]) == len(counted["counts"]) + 1
    assert counted["edges_ms"][0] == 1.0
    assert counted["edges_ms"][-1] == pytest.approx(9.0)
    assert found["max_ms"] == 9.0
    assert sum(runner.figures([5, 5, 5])["histogram"]["counts"]) == 3


def test_a_clock_that_stands_still_is_told_as_it_is():
    found = runner.figures([0] * 9)
    assert (found["p50_ms"], found["max_ms"], sum(found["histogram"]["counts"])) == (0, 0, 9)


def test_so_many_inferences_and_so_long_at_least():
    model = Fake()
    found = runner.latency(model, [[1], [2], [3]], 50, 0.0)
    assert (found["inferences"], model.asked) == (50, 50 + runner.WARM_UP)
    found = runner.latency(Fake(0.001), [[1]], 1, 0.05)
    assert 10 < found["inferences"] <= 50
    assert found["p50_ms"] >= 1


def test_undisturbed_is_a_core_of_ones_own():
    found = disturbance.found(USED, after(), 10.0)
    assert (found["undisturbed"], found["disturbed_by"]) == (True, "nothing")
    assert (found["cpu_share"], found["run_delay"], found["throttled_periods"], found["switches"]) == (1.0, 0.0, 0, 4)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"cpu": 10.4}, "the CPU was this process's for 94% of the time, expected 95%"),
        ({"delay": 0.7}, "it waited for the CPU for 2.0% of the time, expected at most 1%"),
        ({"throttled": 5}, "its control group was throttled in 2 periods"),
    ],
)
def test_each_sign_of_a_disturbance_is_named(changes, says):
    found = disturbance.found(USED, after(**changes), 10.0)
    assert (found["undisturbed"], found["disturbed_by"]) == (False, says)


def test_what_cannot_be_read_is_null_and_shows_nothing():
    found = disturbance.found({**USED, "delay": None, "throttled": None}, after(delay=None, throttled=None), 10.0)
    assert (found["undisturbed"], found["run_delay"], found["throttled_periods"]) == (True, None, None)


@pytest.mark.parametrize(("cpu", "calm"), [(10.95, True), (10.91, True), (10.89, False), (10.6, False), (10.4, False)])
def test_a_kernel_that_does_not_count_the_delay_leaves_it_to_the_share(cpu, calm):
    """Of 10 s it was without the CPU for at most 0.1 s: no longer can it have waited for it."""
    found = disturbance.found({**USED, "delay": None}, after(delay=None, cpu=cpu), 10.0)
    assert (found["undisturbed"], found["run_delay"]) == (calm, None)
    assert disturbance.found(USED, after(cpu=cpu), 10.0)["undisturbed"] == (cpu > 10.5)


def test_a_delay_that_cannot_be_told_is_named():
    found = disturbance.found(USED, after(delay=None, cpu=10.7), 10.0)
    assert found["disturbed_by"] == (
        "it cannot be told for how long it waited for the CPU: the kernel does not say, and the CPU was this process's "
        "for 97.0% of the time, expected 99%"
    )


@pytest.mark.parametrize(
    ("said", "seconds"),
    [("2000000000 500000000 7", 0.5), ("7 0 1", 0.0), ("0 0 0", None), ("0 9 1", None), ("7", None), ("7 x 1", None)],
)
def test_the_delay_of_a_kernel_that_counts_it(tree, said, seconds):
    assert disturbance.run_delay(tree(**{"proc/self/schedstat": said})) == seconds
    assert disturbance.run_delay(tree() / "none") is None


@pytest.mark.parametrize(
    ("group", "stat"),
    [
        ("0::/user.slice/x.scope", "sys/fs/cgroup/user.slice/x.scope/cpu.stat"),
        ("0::/outside", "sys/fs/cgroup/cpu.stat"),  # in a container the path may be the host's
        ("0::/user.slice/x.scope", "sys/fs/cgroup/user.slice/cpu.stat"),  # the quota of a group around it
        ("4:cpu:/edge", "sys/fs/cgroup/cpu/edge/cpu.stat"),
        ("3:cpu,cpuacct:/edge\n2:memory:/edge", "sys/fs/cgroup/cpu,cpuacct/edge/cpu.stat"),
    ],
)
def test_throttled_periods_of_both_kinds_of_control_groups(tree, group, stat):
    root = tree(**{"proc/self/cgroup": group, stat: "nr_periods 100\nnr_throttled 24\nthrottled_usec 5"})
    assert disturbance.throttled_periods(root) == 24


def test_the_periods_of_all_groups_around_it_count(tree):
    stats = {f"sys/fs/cgroup/{each}cpu.stat": "nr_throttled 2" for each in ("", "a/", "a/b/")}
    assert disturbance.throttled_periods(tree(**{"proc/self/cgroup": "0::/a/b", **stats})) == 6


def test_without_a_control_group_there_are_none(tree):
    assert disturbance.throttled_periods(tree(**{"proc/self/cgroup": "0::/"})) is None
    assert disturbance.throttled_periods(tree(**{"proc/self/cgroup": "garbage"})) is None
    assert disturbance.throttled_periods(tree() / "none") is None


def test_the_result_is_written_whole(tmp_path):
    path = tmp_path / "result.json"
    runner.write(path, {"a": 1})
    runner.write(path, {"a": 2})
    assert json.loads(path.read_text()) == {"a": 2}
    assert [each.name for each in tmp_path.iterdir()] == ["result.json"]


def test_what_is_no_number_is_not_written(tmp_path):
    with pytest.raises(ValueError, match="not JSON compliant"):
        runner.write(tmp_path / "result.json", {"a": float("nan")})
    assert not (tmp_path / "result.json").exists()


def test_models_are_measured_in_turn():
    asked = []

    class Named(Fake):
        def __init__(self, name):
            super().__init__()
            self.name = name

        def answer(self, window):
            asked.append(self.name)
            return window

    found = runner._in_turn({"float": Named("float"), "int8": Named("int8")}, [[1], [2]])
    assert {name: each["inferences"] for name, each in found["models"].items()} == {"float": 200, "int8": 200}
    assert set(found["models"]["float"]) == {"inferences", "p50_ms", "p99_ms"}
    measured = asked[2 * runner.WARM_UP :]
    turns = [measured[at : at + runner.ROUND] for at in range(0, len(measured), runner.ROUND)]
    assert turns == [["float"] * runner.ROUND, ["int8"] * runner.ROUND] * (runner.COMPARED // runner.ROUND)
    assert "undisturbed" in found["compared"]


@pytest.mark.parametrize(("calm", "measured"), [(1, 1), (3, 3), (9, 1 + runner.REPEATS)])
def test_a_comparison_that_was_disturbed_is_repeated(monkeypatch, calm, measured):
    done = []

    def in_turn(_models, _inputs):
        done.append(1)
        return {"models": {}, "compared": {"undisturbed": len(done) == calm}}

    monkeypatch.setattr(runner, "_in_turn", in_turn)
    found = runner.compared({"int8": Fake()}, [])
    assert (len(done), found["compared"]["undisturbed"]) == (measured, calm < 9)
    assert runner.compared({}, []) == {"models": {}, "compared": None}


def soaked(root, seconds, rail=None):
    return runner.soak(Fake(), [[1], [2]], argparse.Namespace(root=root, soak=seconds, rail=rail))


def test_a_soak_reads_the_sensors_each_second(tree):
    hwmon = "sys/class/hwmon/hwmon0"
    found = soaked(tree(**{f"{hwmon}/name": "ina226", f"{hwmon}/power1_input": 2_000_000}), 1.3, ["ina226"])
    assert found["soak"]["samples"] == 3
    assert found["soak"]["inferences"] > 0
    assert found["soak"]["power"]["mean"] == 2
    spent = 2 * found["soak"]["seconds"] * 1000 / found["soak"]["inferences"]
    assert found["soak"]["millijoules_per_inference"] == pytest.approx(spent)
    assert found["sensors"]["rails"]["ina226"]["path"].endswith("power1_input")


def test_without_a_soak_the_sensors_are_read_once(tree):
    found = soaked(tree(), 0.0)
    assert found["soak"] is None
    assert found["sensors"]["rails"] == {}


def test_a_cold_start_begins_with_the_process():
    code = "import time; time.sleep(0.3); import runner; print(runner.age())"
    done = subprocess.run([sys.executable, "-c", code], cwd=EDGE, capture_output=True, text=True, check=True)
    assert float(done.stdout) >= 0.28  # the kernel counts in hundredths


def test_the_peak_is_of_this_process_and_not_of_who_started_it():
    ballast = bytearray(os.urandom(1 << 20) * 100)
    code = "import runner; print(runner.peak_rss())"
    done = subprocess.run([sys.executable, "-c", code], cwd=EDGE, capture_output=True, text=True, check=True)
    assert 4 << 20 < int(done.stdout) < len(ballast) < resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def test_nothing_is_imported_before_the_cold_start_needs_it():
    code = "import sys, runner; print(sorted({'numpy', 'onnxruntime'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], cwd=EDGE, capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def start(code: str) -> subprocess.Popen:
    return subprocess.Popen(
        [sys.executable, "-c", f"import runner, threading, time; {code}"], cwd=EDGE, stdin=subprocess.PIPE
    )


def test_it_ends_when_whoever_started_it_has_gone():
    process = start("threading.Thread(target=runner.end_with_starter, daemon=True).start(); time.sleep(600)")
    assert process.poll() is None
    process.stdin.close()
    assert process.wait(20) == runner.LEFT_ALONE


def test_it_ends_by_itself_at_its_limit():
    process = start("import signal; signal.alarm(1); time.sleep(600)")
    assert process.wait(30) == -signal.SIGALRM
    process.stdin.close()
