# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The parts of the runner that need neither NumPy nor ONNX Runtime."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time

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


def test_so_many_inferences_and_so_long_at_least():
    model = Fake()
    found = runner.latency(model, [[1], [2], [3]], 50, 0.0)
    assert (found["inferences"], model.asked) == (50, 50 + runner.WARM_UP)
    found = runner.latency(Fake(0.001), [[1]], 1, 0.05)
    assert 10 < found["inferences"] <= 50
    assert found["p50_ms"] >= 1


def test_undisturbed_is_a_core_of_ones_own():
    found = runner.disturbance(USED, after(), 10.0)
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
    found = runner.disturbance(USED, after(**changes), 10.0)
    assert (found["undisturbed"], found["disturbed_by"]) == (False, says)


def test_what_cannot_be_read_is_null_and_shows_nothing():
    found = runner.disturbance({**USED, "delay": None, "throttled": None}, after(delay=None, throttled=None), 10.0)
    assert (found["undisturbed"], found["run_delay"], found["throttled_periods"]) == (True, None, None)


@pytest.mark.parametrize(
    ("group", "stat"),
    [
        ("0::/user.slice/x.scope", "sys/fs/cgroup/user.slice/x.scope/cpu.stat"),
        ("0::/outside", "sys/fs/cgroup/cpu.stat"),  # in a container the path may be the host's
        ("3:cpu,cpuacct:/edge\n2:memory:/edge", "sys/fs/cgroup/cpu,cpuacct/edge/cpu.stat"),
    ],
)
def test_throttled_periods_of_both_kinds_of_control_groups(tree, group, stat):
    root = tree(**{"proc/self/cgroup": group, stat: "nr_periods 100\nnr_throttled 24\nthrottled_usec 5"})
    assert runner.throttled_periods(root) == 24


def test_without_a_control_group_there_are_none(tree):
    assert runner.throttled_periods(tree(**{"proc/self/cgroup": "0::/"})) is None
    assert runner.throttled_periods(tree() / "none") is None


def test_the_result_is_written_whole(tmp_path):
    path = tmp_path / "result.json"
    runner.write(path, {"a": 1})
    runner.write(path, {"a": 2})
    assert json.loads(path.read_text()) == {"a": 2}
    assert [each.name for each in tmp_path.iterdir()] == ["result.json"]


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
