# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""GPU samples of the steady window."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from kit.gpu import window


def rows(uuid: str, moments: list[float], util: float = 80) -> list[dict[str, object]]:
    return [{"time": moment, "uuid": uuid, "util": util} for moment in moments]


def test_only_what_lies_in_a_window_counts() -> None:
    busy = rows("GPU-a", [10 + step / 10 for step in range(20)], 90)
    idle = rows("GPU-a", [9.9, 12.0, 0.0], 0)
    found = window.reduce(busy + idle, [[10, 11.95]])
    assert found["GPU-a"]["util"]["mean"] == 90
    assert found["GPU-a"]["util"]["count"] == 20


def test_both_ends_belong_to_it_and_windows_add_up() -> None:
    taken = window.within(rows("GPU-a", [1, 2, 3, 4, 5, 6]), [[1, 2], [5, 6]])
    assert [row["time"] for row in taken] == [1, 2, 5, 6]


def test_fewer_than_twenty_samples_are_no_mean_and_say_why() -> None:
    found = window.reduce(rows("GPU-a", list(range(19))) + rows("GPU-b", list(range(20))), [[0, 20]])
    assert found["GPU-a"]["util"] is None
    assert found["GPU-a"]["why"] == "19 samples in the steady window, expected at least 20"
    assert found["GPU-b"]["util"]["count"] == 20
    assert "why" not in found["GPU-b"]


@pytest.mark.parametrize("util", [None, "80", True, float("nan")])
def test_a_sample_without_the_utilisation_leaves_no_mean_of_it(util: object) -> None:
    samples = [{**row, "power_w": 70.0} for row in rows("GPU-a", list(range(30)))]
    samples[7]["util"] = util
    found = window.reduce(samples, [[0, 30]])
    assert found["GPU-a"]["util"] is None
    assert found["GPU-a"]["power_w"]["count"] == 30
    assert found["GPU-a"]["why"] == "of 30 samples in the steady window 1 have no util"


@pytest.mark.parametrize(
    ("moments", "gap"),
    [
        ([*range(20), *range(25, 41)], "6.0"),  # in the middle
        ([*range(3, 41)], "3.0"),  # at the begin
        ([*range(37)], "4.0"),  # at the end: the sampler hung
    ],
)
def test_a_sampler_that_stalls_leaves_no_mean(moments: list[float], gap: str) -> None:
    found = window.reduce(rows("GPU-a", moments), [[0, 40]])
    assert found["GPU-a"]["util"] is None
    assert found["GPU-a"]["why"] == f"no sample for {gap} s of the steady window"


def test_a_gap_between_two_windows_is_none() -> None:
    found = window.reduce(rows("GPU-a", [*range(11), *range(90, 101)]), [[0, 10], [90, 100]])
    assert found["GPU-a"]["util"]["count"] == 22


def test_a_gpu_without_a_sample_in_the_window_is_there() -> None:
    found = window.reduce(rows("GPU-a", [1.0]), [])
    assert found == {"GPU-a": {"util": None, "why": "0 samples in the steady window, expected at least 20"}}


def test_two_gpus_are_told_apart() -> None:
    found = window.reduce(rows("GPU-a", list(range(21)), 90) + rows("GPU-b", list(range(21)), 20), [[0, 20]])
    assert {gpu: each["util"]["mean"] for gpu, each in found.items()} == {"GPU-a": 90, "GPU-b": 20}


@pytest.mark.parametrize("moment", [None, "11", True, {}])
def test_a_row_without_a_time_is_in_no_window(moment: object) -> None:
    assert list(window.within([{"time": moment, "uuid": "GPU-a"}], [[11, 11]])) == []


def test_rows_are_read_and_what_is_no_row_is_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "gpu.jsonl"
    path.write_bytes(b'{"time": 1}\nnot json\n[1]\n\xff\n' + json.dumps({"time": 2}).encode())
    assert list(window.read_rows(path)) == [{"time": 1}, {"time": 2}]


def test_a_missing_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        list(window.read_rows(tmp_path / "gpu.jsonl"))
