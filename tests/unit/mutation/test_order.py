# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which tests a mutant meets first, and what is found out for it: the statements that each test runs."""

from __future__ import annotations

import ast

import pytest

from tests.mutation.order import NOTICED, PASSED, Order
from tests.mutation.probes import PROBE, with_probes

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
        order.take([NOTICED, test])
    tests = ["a.py::first", "b.py::third", "a.py::second", "a.py::fourth"]
    assert sorted(tests, key=order.place) == ["a.py::second", "b.py::third", "a.py::first", "a.py::fourth"]


def test_others_come_by_how_long_they_take(order):
    for test, seconds in (("a.py::long", 3.0), ("a.py::short", 0.1), ("b.py::last", 1.0)):
        order.take([PASSED, test, seconds, []])
    order.take([NOTICED, "b.py::last"])
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
    order.passed("a.py::adds", 1.0, [2, 3])
    order.passed("b.py::halves", 1.0, [9, 10, 11])
    order.passed("c.py::neither", 1.0, [])
    order.noticed("c.py::neither")
    assert min(["c.py::neither", "b.py::halves", "a.py::adds"], key=lambda test: order.place(test, line)) == first
    assert min(["c.py", "b.py", "a.py"], key=lambda path: order.of_file(path, line)) == first[:4]


def test_what_no_test_runs_is_met_by_who_noticed_the_last_mutant(order):
    order.passed("a.py::adds", 1.0, [2, 3])
    order.noticed("c.py::neither")
    assert order.place("c.py::neither", 1) < order.place("a.py::adds", 1)


NESTED = """x = 1

def outer():
    'words'
    def inner():
        return 1
    return inner
"""
METHOD = """class A:
    def f(self):
        try:
            raise E
        except NameError:
            pass
"""
LOOP = """def f(a):
    global b
    for b in a:
        pass
    else:
        return b
"""


@pytest.mark.parametrize(
    ("program", "call", "lines"),
    [
        (PROGRAM, "halve(0)", {9, 11}),
        (PROGRAM, "add(1, 2)", {2}),
        (NESTED, "outer()", {4, 5, 7}),
        (METHOD, "A().f()", {3, 4, 6}),
        (LOOP, "f([2])", {2, 3, 4, 6}),
    ],
)
def test_a_module_with_probes_says_which_statements_of_its_functions_run(program, call, lines):
    tree, found = ast.parse(program), set()
    before = ast.dump(tree)
    names = {PROBE: found.add}
    exec(compile(with_probes(tree), "probed", "exec"), names)
    assert found == set()
    eval(call, names)
    assert found == lines
    assert ast.dump(tree) == before
