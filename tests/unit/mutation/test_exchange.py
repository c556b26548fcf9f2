# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Functions of an imported module get other bodies, and what cannot be changed so is refused."""

from __future__ import annotations

import ast
import itertools

import pytest

from tests.mutation.changes import changes
from tests.mutation.exchange import Functions, NotExchangeableError

PATHS = (f"/that/module{number}.py" for number in itertools.count())
PROGRAM = """
from contextlib import contextmanager
LIMIT = 3

def keep(f):
    def wrapped(*given):
        return not f(*given)
    return wrapped

class A:
    size = 4

    @keep
    def small(self, x, bound=5):
        return x < bound

def counts(x):
    return [y for y in x if y < LIMIT]

@contextmanager
def opened():
    yield 7
"""


def changed(change):
    """Import PROGRAM, hold some of its functions, make the change, and return what they return then."""
    path, names = next(PATHS), {}
    whole, mutant = ast.parse(PROGRAM), ast.parse(PROGRAM)
    exec(compile(whole, path, "exec", dont_inherit=True), names)
    small, counts, opened = names["A"]().small, names["counts"], names["opened"]
    (program,) = [compile(mutant, path, "exec", dont_inherit=True) for each in changes(mutant) if str(each) == change]
    Functions(path).exchange(compile(whole, path, "exec", dont_inherit=True), program)
    with opened() as value:
        return small(5), counts([1, 3]), value


@pytest.mark.parametrize(
    ("change", "seen"),
    [
        ("A.small: x < bound -> x <= bound", (False, [1], 7)),
        ("counts: y < LIMIT -> y <= LIMIT", (True, [1, 3], 7)),
        ("keep.wrapped: not f(*given) -> f(*given)", (False, [1], 7)),
        ("opened: 7 -> 8", (True, [1], 8)),
    ],
)
def test_whoever_holds_a_function_calls_its_new_body(change, seen):
    assert changed(change) == seen


@pytest.mark.parametrize("change", ["module: 3 -> 4", "A: 4 -> 5", "A.small: 5 -> 6"])
def test_what_runs_on_import_is_refused(change):
    with pytest.raises(NotExchangeableError):
        changed(change)


def test_what_was_not_imported_is_refused():
    old, new = (
        compile(source, "/no/such.py", "exec") for source in ("def f():\n    return 1", "def f():\n    return 2")
    )
    with pytest.raises(NotExchangeableError):
        Functions("/no/such.py").exchange(old, new)


def test_functions_that_cannot_be_told_apart_are_refused():
    path = next(PATHS)
    program = "f, g = (lambda: 1), (lambda: 2)"
    names: dict[str, object] = {}
    exec(compile(program, path, "exec"), names)
    old, new = (compile(source, path, "exec") for source in (program, program.replace("2", "3")))
    with pytest.raises(NotExchangeableError):
        Functions(path).exchange(old, new)
    assert names["f"]() == 1
