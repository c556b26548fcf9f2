# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which tests a mutant meets first; in the end it meets all, unless one notices it."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from typing import Any

NOTICED, PASSED = "noticed", "passed"  # a mutant; on the unchanged file


class Order:
    """What is known of a file's tests.

    Most mutants are noticed by the test that noticed one a moment before, as long as it runs their statement at all;
    most others by a short one that does.
    """

    def __init__(self, whole: ast.Module | str) -> None:
        self._statements = _statements(whole) if isinstance(whole, ast.Module) else {}
        self._last: dict[str, int] = {}
        self._took: dict[str, float] = {}
        self._runs: dict[str, frozenset[int]] = {}

    def take(self, note: list[Any]) -> None:
        """Take a trial's note, if it is of its tests."""
        kind, *values = note
        if kind == NOTICED:
            self.noticed(*values)
        elif kind == PASSED:
            self.passed(*values)

    def noticed(self, test: str) -> None:
        """Take note that a test noticed a mutant."""
        self._last[test] = len(self._last) + max(self._last.values(), default=0) + 1

    def passed(self, test: str, seconds: float, lines: Iterable[int]) -> None:
        """Take note of how long a test of the unchanged file took, and of the file's lines that it ran."""
        self._took[test] = seconds
        self._runs[test] = frozenset(self._statements.get(line, 0) for line in lines)

    def place(self, test: str, line: int = 0) -> tuple[bool, int, float]:
        """Where a test is to come that is to notice a change of that line."""
        return not self._is_run(test, line), -self._last.get(test, 0), self._took.get(test, 0.0)

    def of_file(self, path: str, line: int = 0) -> tuple[bool, int, float]:
        """Where a file's tests are to come."""
        tests = [test for test in {*self._last, *self._took} if test.startswith(f"{path}::")]
        runs = any(self._is_run(test, line) for test in tests)
        last = max((self._last.get(test, 0) for test in tests if self._is_run(test, line) or not runs), default=0)
        return not runs, -last, sum(self._took.get(test, 0.0) for test in tests)

    def _is_run(self, test: str, line: int) -> bool:
        return self._statements.get(line, -1) in self._runs.get(test, ())


def _statements(tree: ast.Module) -> dict[int, int]:
    """The first line of the statement to which each line of a file belongs."""
    found = {}
    for node in ast.walk(tree):  # parents first, so that the innermost stays
        if isinstance(node, ast.stmt):
            found.update(dict.fromkeys(range(node.lineno, (node.end_lineno or node.lineno) + 1), node.lineno))
    return found
