# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tries mutants in forks of a process that has collected the tests: such a trial costs little more than its tests.

There the module is imported already, so that only what its functions do can be changed, and what was computed from
them on import is as it was. So a mutant may be killed here, but that one survives is for a trial of its own to say.
"""

from __future__ import annotations

import ast
import functools
import gc
import time
from collections.abc import Callable

import pytest

from tests.mutation.changes import Change
from tests.mutation.child import Child, Ended, Note
from tests.mutation.exchange import Functions
from tests.mutation.order import NOTICED, PASSED, Order
from tests.mutation.probes import PROBE, with_probes
from tests.mutation.targets import MutationError, Target
from tests.mutation.trial import CPU_SECONDS, limit, open_instead, program, run_prepared, run_pytest

KILLED = "killed"


def killed_in_forks(target: Target, order: Order, tell: Callable[[Change], None]) -> set[int]:
    """Return the places of mutants that the tests notice; enter in `order` what is known of the tests.

    Raise MutationError where the tests fail on the unchanged file.
    """

    def collect(note: Note) -> int:
        return run_pytest(target.tests, _Collected(target, order, tell, note))

    ended = run_prepared(collect)
    if ended.code != 0:
        raise MutationError(f"{target.path}: its tests fail on the unchanged file:\n{ended.said[-4000:]}")
    for note in ended.notes:
        order.take(note)
    return {place for kind, place, *_rest in ended.notes if kind == KILLED}


class _Collected:
    """pytest's plugin that runs the tests once for each mutant."""

    def __init__(self, target: Target, order: Order, tell: Callable[[Change], None], note: Note) -> None:
        self._target, self._order, self._tell, self._note = target, order, tell, note
        self._whole, self._failed = target.whole(), ""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self._failed = report.nodeid

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        functions = Functions(self._target.opened_as)
        gc.freeze()  # each fork would go through all that was collected
        seconds = limit(self._unchanged(functions, session.items).cpu_seconds)
        for place, (change, mutant) in enumerate(self._target.mutants()):
            if str(change) not in self._target.equivalent:
                items = sorted(session.items, key=lambda item, line=change.line: self._order.place(item.nodeid, line))
                ended = self._forked(functools.partial(self._of_mutant, functions, mutant, change, items), seconds)
                if ended.code == 1 or ended.goes_round:
                    self._note(KILLED, place)
                    self._tell(change)
        return True

    def _of_mutant(
        self, functions: Functions, mutant: ast.Module | str, change: Change, items: list[pytest.Item], note: Note
    ) -> int:
        self._become(functions, mutant, change.line)
        return self._run(items, note)

    def _unchanged(self, functions: Functions, items: list[pytest.Item]) -> Ended:
        lines: set[int] = set()

        def run(note: Note) -> int:
            if isinstance(self._whole, ast.Module):
                self._become(functions, with_probes(self._whole))
                functions.give(PROBE, lines.add)
            return self._run(items, note, lines)

        ended = self._forked(run, CPU_SECONDS)
        if ended.code != 0:
            raise MutationError(f"they end with {ended.code}, {ended.notes[-1:]}:\n{ended.said}")
        return ended

    def _forked(self, run: Callable[[Note], int], cpu_seconds: int) -> Ended:
        ended = Child(run, cpu_seconds).end()
        for note in ended.notes:
            self._order.take(note)
            self._note(*note)
        return ended

    def _become(self, functions: Functions, mutant: ast.Module | str, line: int = 0) -> None:
        if isinstance(mutant, str) or isinstance(self._whole, str):
            open_instead(self._target, str(mutant))
        else:
            was, now = (_of_line(tree, line) for tree in (self._whole, mutant))
            functions.exchange(program(self._target, was), program(self._target, now))

    def _run(self, items: list[pytest.Item], note: Note, lines: set[int] | None = None) -> int:
        """Return 1 with the first test that fails, else 0; with `lines`, take note of those that pass."""
        for item, following in zip(items, [*items[1:], None], strict=True):
            started = time.perf_counter()
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            if self._failed:
                note(NOTICED, self._failed)
                return 1
            if lines is not None:
                note(PASSED, item.nodeid, time.perf_counter() - started, sorted(lines))
                lines.clear()
        return 0


def _of_line(tree: ast.Module, line: int) -> ast.Module:
    """The module without its other statements, which would take long to compile; all of it for line 0."""
    return ast.Module([each for each in tree.body if not line or each.lineno <= line <= (each.end_lineno or line)], [])
