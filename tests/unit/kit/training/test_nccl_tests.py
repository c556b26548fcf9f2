# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is made of all_reduce_perf's table, and of a program that prints none."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from kit.training import nccl_tests

from tests.unit.kit.fake_all_reduce_perf import HEADER, ROW, install


def test_a_whole_table_is_read(tmp_path: Path) -> None:
    program = install(tmp_path / "all_reduce_perf")
    found = nccl_tests.measure(program, 2)
    assert [row["bytes"] for row in found["sizes"]] == nccl_tests.SIZES
    assert {key: value for key, value in found.items() if key != "sizes"} == {
        "program": program,
        "wrong": 0,
        "bus_bandwidth": pytest.approx(134.22e9),
        "problem": None,
    }


def test_a_name_is_looked_for_on_the_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path / "all_reduce_perf")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert nccl_tests.measure("all_reduce_perf", 2)["problem"] is None


@pytest.mark.parametrize("last", ["sys.exit(1)", "print('33554432  83886', flush=True); sys.exit(1)"])
def test_wrong_elements_are_told_though_the_program_then_fails(tmp_path: Path, last: str) -> None:
    found = nccl_tests.measure(install(tmp_path / "p", last, wrong="7"), 2)
    assert (found["wrong"], found["bus_bandwidth"]) == (7, None)
    assert found["problem"] == f"{tmp_path}/p answered 1: without a message"


@pytest.mark.parametrize(
    ("behaviour", "problem"),
    [
        ("print('no GPU', file=sys.stderr); sys.exit(2)", "answered 2: no GPU"),
        ("sys.stdout.flush(); os.kill(os.getpid(), 9)", "answered -9: without a message"),
        ("print('4 too many')", "printed unreadable output: expected a row of its table, found 4 too many"),
    ],
)
def test_a_program_that_fails_says_nothing_of_the_sums(tmp_path: Path, behaviour: str, problem: str) -> None:
    found = nccl_tests.measure(install(tmp_path / "p", behaviour), 2)
    assert (found["wrong"], found["bus_bandwidth"]) == (None, None)
    assert found["problem"] == f"{tmp_path}/p {problem}"


def test_a_program_that_is_missing_is_told() -> None:
    found = nccl_tests.measure("/nowhere/all_reduce_perf", 2)
    assert (found["wrong"], found["problem"]) == (None, "/nowhere/all_reduce_perf: No such file or directory")


def test_a_program_that_hangs_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nccl_tests, "LIMIT", 1.0)
    began = time.monotonic()
    found = nccl_tests.measure(install(tmp_path / "p", "sys.stdout.flush(); time.sleep(600)"), 2)
    assert time.monotonic() - began < 10
    assert (found["wrong"], found["problem"]) == (None, f"{tmp_path}/p did not end in 1 s")


def test_sizes_that_are_missing_are_told(tmp_path: Path) -> None:
    program = tmp_path / "p"
    program.write_text(f"#!/bin/sh\ncat <<'END'\n{HEADER}\n{ROW}\nEND\n")
    program.chmod(0o755)
    found = nccl_tests.measure(str(program), 2)
    assert found["wrong"] is None
    assert found["problem"] == f"{program} reported 1 sizes, expected 26"


def test_both_directions_count() -> None:
    lines = [HEADER, ROW.replace("217.45      0", "217.45      3"), ROW.replace("217.69      0", "217.69      4")]
    assert [row["wrong"] for row in nccl_tests.parse(lines)] == [3, 4]


@pytest.mark.parametrize(
    ("lines", "problem"),
    [
        ([], "it has no table"),
        ([HEADER], "it has no table"),
        ([ROW], "expected a row of its table"),
        ([HEADER.replace("#wrong", "error"), ROW], "unknown columns size count .* error"),  # of old releases
        ([HEADER, ROW[:-8]], "expected a row of its table"),
        ([HEADER, ROW.replace("217.69      0", "217.69    N/A")], "invalid literal"),  # checking was switched off
        ([HEADER, ROW.replace("217.69      0", "217.69     -1")], "an impossible row"),
        ([HEADER, ROW.replace("217.69      0", "nan      0")], "an impossible row"),
        ([HEADER, ROW.replace("217.69      0", "-217.69      0")], "an impossible row"),
    ],
)
def test_what_is_no_known_table_is_refused(lines: list[str], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        list(nccl_tests.parse(lines))
