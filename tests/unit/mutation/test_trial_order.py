# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which tests a mutant meets first, how long they may take, and how many are tried at once."""

from __future__ import annotations

import ast
import subprocess
import sys

import pytest

from tests.mutation.order import Order, lines_run
from tests.mutation.pool import Pool
from tests.mutation.trial import ROOT, limit

PROGRAM = """def add(a, b):
    return sum([
        a,
        b,
    ])


def halve(a):
    if a:
        a = a / 2
    return a
"""


@pytest.fixture
def order() -> Order:
    return Order(ast.parse(PROGRAM))


def test_what_noticed_a_mutant_last_comes_first_and_the_others_stay_in_their_order(order):
    for test in ("a.py::second", "b.py::third", "a.py::second"):
        order.noticed(test)
    tests = ["a.py::first", "b.py::third", "a.py::second", "a.py::fourth"]
    assert sorted(tests, key=order.place) == ["a.py::second", "b.py::third", "a.py::first", "a.py::fourth"]


def test_others_come_by_how_long_they_take(order):
    for test, seconds in (("a.py::long", 3.0), ("a.py::short", 0.1), ("b.py::last", 1.0)):
        order.took(test, seconds)
    order.noticed("b.py::last")
    tests = ["a.py::long", "a.py::short", "b.py::last"]
    assert sorted(tests, key=order.place) == ["b.py::last", "a.py::short", "a.py::long"]
    assert sorted(["a.py", "c.py", "b.py"], key=order.of_file) == ["b.py", "c.py", "a.py"]


def test_its_file_comes_before_others(order):
    order.noticed("b.py::third")
    assert sorted(["a.py", "b.py", "b.pyi"], key=order.of_file) == ["b.py", "a.py", "b.pyi"]


@pytest.mark.parametrize(
    ("line", "first"), [(2, "a.py::adds"), (4, "a.py::adds"), (10, "b.py::halves"), (11, "b.py::halves")]
)
def test_who_runs_the_changed_statement_comes_before_who_noticed_the_last_mutant(order, line, first):
    order.ran("a.py::adds", frozenset({2, 3}))
    order.ran("b.py::halves", frozenset({9, 10, 11}))
    for test in ("a.py::adds", "b.py::halves", "c.py::neither"):
        order.took(test, 1.0)
    order.noticed("c.py::neither")
    assert min(["c.py::neither", "b.py::halves", "a.py::adds"], key=lambda test: order.place(test, line)) == first
    assert min(["c.py", "b.py", "a.py"], key=lambda path: order.of_file(path, line)) == first[:4]


def test_what_no_test_runs_is_met_by_who_noticed_the_last_mutant(order):
    order.ran("a.py::adds", frozenset({2, 3}))
    order.noticed("c.py::neither")
    assert order.place("c.py::neither", 1) < order.place("a.py::adds", 1)


def test_the_lines_of_one_file_are_noted_while_they_run():
    names: dict[str, object] = {}
    exec(compile(PROGRAM, "/that/file.py", "exec"), names)
    traced = sys.gettrace()
    with lines_run("/that/file.py") as lines:
        names["halve"](0)
    names["add"](1, 2)
    assert lines == {9, 11}
    assert sys.gettrace() is traced


TIMED = """
from tests.mutation.trial import LINES, ROOT, TIMES_OF_TESTS, Order, Trial
path, test = "plugins/module_utils/_common/scalars.py", "tests/unit/plugins/module_utils/_common/test_scalars.py"
order = Order("")
for notes in (TIMES_OF_TESTS, LINES):
    trial = Trial(path, (ROOT / path).read_text(encoding="utf-8"), [test], order, notes=notes)
    while trial.outcome() is None:
        pass
print(order.of_file(test)[2] > 0)
"""


def test_a_trial_of_the_unchanged_file_takes_note_of_its_tests():
    told = subprocess.run([sys.executable, "-c", TIMED], cwd=ROOT, capture_output=True, text=True, check=True)
    assert told.stdout == "True\n"


@pytest.mark.parametrize(("unchanged", "seconds"), [(0.5, 4), (0.8, 4), (4.0, 20), (30.0, 150)])
def test_a_mutants_tests_may_take_five_times_as_long_and_some_seconds_at_least(unchanged, seconds):
    assert limit(unchanged) == seconds


class Trial:
    """It ends when it was looked at as often as it lasts."""

    cpu_seconds = 0.5

    def __init__(self, lasts: int, begun: list[Trial]) -> None:
        self.lasts, self.stopped = lasts, False
        begun.append(self)

    def outcome(self) -> str | None:
        self.lasts -= 1
        if self.lasts < 0:
            raise ValueError("it says nothing of its mutant")
        return "killed" if self.lasts == 0 else None

    def stop(self) -> None:
        self.stopped = True


def test_a_pool_runs_as_many_as_it_may_and_tells_each_outcome():
    begun: list[Trial] = []
    ended: list[tuple[int, str, float]] = []
    pool = Pool(2)
    for number, lasts in enumerate((5, 1, 2)):
        pool.start(lambda lasts=lasts: Trial(lasts, begun), lambda *told, number=number: ended.append((number, *told)))
        assert len(begun) - len(ended) <= 2
    assert ended == [(1, "killed", 0.5)]
    pool.finish()
    assert sorted(ended) == [(0, "killed", 0.5), (1, "killed", 0.5), (2, "killed", 0.5)]


def test_a_pool_that_is_stopped_leaves_no_trial_behind():
    begun: list[Trial] = []
    pool = Pool(3)
    for lasts in (9, 0, 9):
        pool.start(lambda lasts=lasts: Trial(lasts, begun), lambda *_told: None)
    with pytest.raises(ValueError, match="nothing of its mutant"):
        pool.finish()
    pool.stop()
    assert [trial.stopped for trial in begun] == [True, False, True]
