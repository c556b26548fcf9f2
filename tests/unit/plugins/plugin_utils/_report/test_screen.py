# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is shown fits a terminal, and each phase is told once, when it has ended."""

from __future__ import annotations

import queue
import threading

import pytest
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._report import screen
from hypothesis import given
from hypothesis import strategies as st


@given(st.text(alphabet="ab \n", max_size=600))
def test_no_word_is_lost_and_no_line_is_too_long(text: str) -> None:
    fitted = screen.fitted(text)
    assert fitted.split() == text.split()
    assert all(len(line) <= screen.WIDTH for line in fitted.split("\n") if " " in line.strip())


@pytest.mark.parametrize("text", ["", "a", "\n", "a\n\nb", "  a" + "b" * 117])
def test_what_fits_is_left_as_it_is(text: str) -> None:
    assert screen.fitted(text) == text


def test_a_line_goes_on_further_to_the_right() -> None:
    first, *others = screen.fitted("  " + "word " * 60).split("\n")
    assert first.startswith("  word")
    assert others
    assert all(line.startswith("      word") for line in others)


def test_a_command_to_type_stays_on_its_line() -> None:
    line = "next:     less /" + "a long folder/" * 20
    assert screen.fitted(line) == line


@pytest.mark.parametrize(("length", "lines"), [(120, 1), (121, 2)])
def test_a_line_may_be_as_wide_as_a_terminal(length: int, lines: int) -> None:
    line = ("ab " * 60)[: length - 1] + "c"
    assert len(screen.fitted(line).split("\n")) == lines


def test_words_are_not_broken() -> None:
    path = "/mnt/beegfs/" + "a-b" * 60
    assert path in screen.fitted(f"the file {path} is missing")


@pytest.mark.parametrize("lead", ["", "  left out: ", "fail  gpu.ecc  "])
def test_a_long_list_of_nodes_goes_on_after_a_comma(lead: str) -> None:
    nodes = f"n[{','.join(f'{number:04d}' for number in range(1, 1000, 2))}],m1"
    lines = screen.fitted(f"{lead}{nodes}: 499 GPUs").split("\n")
    assert max(map(len, lines)) <= screen.WIDTH
    assert nodes in "".join(map(str.strip, lines))
    assert all(line.endswith(",") for line in lines[1:-2])


def test_a_list_that_fits_a_line_of_its_own_is_not_cut() -> None:
    nodes = ",".join(["n001"] * 22 + ["n0002"])
    assert len(f"    {nodes}") == screen.WIDTH - 1
    for name in (nodes, f"{nodes}x"):
        assert screen.fitted(f"{'a' * 100} {name}") == f"{'a' * 100}\n    {name}"


def test_a_list_with_a_name_that_is_too_long_is_left_as_it_is() -> None:
    assert screen.fitted("a," + "b" * 200 + ",c").split() == ["a,", "b" * 200 + ",c"]
    assert screen.fitted("x" * 200 + ",y") == "x" * 200 + ",y"
    assert screen.fitted("," + "x" * 200).split() == [",", "x" * 200]


def test_each_phase_is_told_when_it_has_ended() -> None:
    times = iter([0.0, 1.0, 3.5, 3.5, 9.0])
    phases = screen.Phases(lambda: next(times))
    told = [
        phases.enter(role)
        for role in (None, "a.b.bootstrap", None, "a.b.hpc_validation", "a.b.bootstrap", "a.b.preflight", "preflight")
    ]
    assert [line.split() for line in told if line] == [["bootstrap", "ok", "2.5", "s"]]
    phases.failed()
    assert (phases.end() or "").split() == ["preflight", "failed", "5.5", "s"]


def test_a_failure_is_that_of_its_phase_alone() -> None:
    phases = screen.Phases(lambda: 0.0)
    phases.enter("bootstrap")
    phases.failed()
    assert "failed" in str(phases.enter("preflight"))
    assert "ok" in str(phases.end())


def test_a_play_without_roles_has_no_phases() -> None:
    phases = screen.Phases(lambda: 0.0)
    assert (phases.enter(None), phases.end()) == (None, None)


def test_a_task_that_lasts_is_told_at_twice_the_time_again() -> None:
    said: queue.Queue[str] = queue.Queue()
    patience = screen.Patience(0.01, said.put)
    patience.begin("stage", "Install the environment")
    lines = [said.get(timeout=10) for _each in range(3)]
    patience.end()
    assert lines == [f"stage       for {seconds} s: Install the environment" for seconds in (0, 0, 0)]


def test_ansible_does_not_wait_at_its_end_for_what_is_still_to_be_told() -> None:
    patience = screen.Patience(30, lambda _line: None)
    before = set(threading.enumerate())
    patience.begin("stage", "Install the environment")
    started = set(threading.enumerate()) - before
    patience.end()
    assert [thread.daemon for thread in started] == [True]


def test_a_task_that_lasts_is_told_with_its_time() -> None:
    waits: list[float] = []

    class Ended:
        def wait(self, seconds: float) -> bool:
            waits.append(seconds)
            return len(waits) > 3

    said: list[str] = []
    screen.Patience(30, said.append)._watch("", "Copy", Ended())  # type: ignore[arg-type]
    assert waits == [30, 30, 60, 120]
    assert said == [f"            for {seconds} s: Copy" for seconds in (30, 60, 120)]


def test_a_task_that_has_ended_is_told_no_more() -> None:
    said: queue.Queue[str] = queue.Queue()
    patience = screen.Patience(0.2, said.put)
    patience.begin("stage", "Short")
    patience.begin("stage", "Long")
    assert "Long" in said.get(timeout=10)
    patience.end()
    with pytest.raises(queue.Empty):
        said.get(timeout=1)
