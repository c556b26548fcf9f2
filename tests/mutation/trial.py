# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs pytest against a file that was changed in memory; no file of the working tree is written.

A module comes from its changed program when it is imported, any other file from its changed text when it is opened.
"""

from __future__ import annotations
import __future__

import ast
import builtins
import contextlib
import importlib.abc
import importlib.machinery
import importlib.util
import io
import os
import sys
import tempfile
from collections.abc import Callable
from types import CodeType, ModuleType
from typing import Any

import hypothesis
import jmespath
import jsonschema
import pytest
import yaml

from tests.mutation.child import Child, Ended, Note
from tests.mutation.order import NOTICED, Order
from tests.mutation.targets import ROOT, Target

PRELOADED = (hypothesis, jmespath, jsonschema, pytest, yaml)
EXAMPLES = 25  # of hypothesis
CPU_SECONDS = 60  # of the unchanged file's tests; by the processor's clock, since others may use it too
LEAST_CPU_SECONDS, TIMES = 4, 5  # a mutant's tests may take so many times as long, before they go round and round
PYTEST = ("--exitfirst", "--disable-plugin-autoload", "-p", "no:cacheprovider", "--tb=line")
BYTECODE = tempfile.TemporaryDirectory(prefix="hpcval-mutation-")


class _Plugin:
    """pytest's plugin for the order of tests; it notes which test fails."""

    def __init__(self, order: Order, line: int, note: Note) -> None:
        self._order, self._line, self._note = order, line, note

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items.sort(key=lambda item: self._order.place(item.nodeid, self._line))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self._note(NOTICED, report.nodeid)


def warm_up() -> None:
    """Import what pytest imports when it starts, once for all trials."""
    with contextlib.redirect_stdout(io.StringIO()):
        pytest.main([*PYTEST, "--version"])


def limit(unchanged: float) -> int:
    """Return the seconds that a mutant's tests may take, where those of the unchanged file take so many."""
    return max(LEAST_CPU_SECONDS, round(TIMES * unchanged))


def trial(target: Target, mutant: ast.Module | str, order: Order, line: int, cpu_seconds: int) -> Ended:
    """Run the tests against the mutant, those first that are likely to notice a change of that line.

    It ends with 0 where they pass, with 1 where one fails, with 2 where the module could not even be imported.
    """
    # Here and not in the child: a mutant that is no program would seem to be killed.
    changed = mutant if isinstance(mutant, str) else program(target, mutant)
    tests = sorted(target.tests, key=lambda each: order.of_file(each, line))

    def run(note: Note) -> int:
        if isinstance(changed, str):
            open_instead(target, changed)
        else:
            sys.meta_path.insert(0, _Finder(target, changed))
        # One file at a time: what the first notices need not be collected for the others.
        return next((code for test in tests if (code := run_pytest([test], _Plugin(order, line, note)))), 0)

    return run_prepared(run, cpu_seconds)


def program(target: Target, tree: ast.Module) -> CodeType:
    """Compile the module as it is when the tests import it."""
    return compile(tree, target.opened_as, "exec", __future__.annotations.compiler_flag, dont_inherit=True)


def run_prepared(run: Callable[[Note], int], cpu_seconds: int | None = None) -> Ended:
    """Run it in a process that is prepared for pytest; its temporary files are removed, however it ends."""
    with tempfile.TemporaryDirectory(prefix="trial-") as folder:
        return Child(lambda note: _prepare(folder) or run(note), cpu_seconds).end()


def _prepare(folder: str) -> None:
    os.chdir(ROOT)
    tempfile.tempdir = folder
    # The files of a trial need not outlive a crash of the machine, and whoever waits for the disk does so for long.
    os.fsync = lambda _descriptor: None
    # Compiled once for all trials, and not into the working tree.
    sys.pycache_prefix, sys.dont_write_bytecode = BYTECODE.name, False
    # The same examples in each trial, and none of them remembered in the working tree.
    hypothesis.settings.register_profile(
        "mutation",
        database=None,
        derandomize=True,
        deadline=None,
        max_examples=EXAMPLES,
        suppress_health_check=list(hypothesis.HealthCheck),
    )
    hypothesis.settings.load_profile("mutation")


def run_pytest(tests: list[str], plugin: object) -> int:
    """Return pytest's exit status."""
    return int(pytest.main([*PYTEST, f"--basetemp={tempfile.gettempdir()}/pytest", *tests], [plugin]))


def open_instead(target: Target, text: str) -> None:
    """Let whoever opens the file read this text."""
    before, real = os.path.realpath(target.opened_as), io.open
    with tempfile.NamedTemporaryFile("w", delete=False, encoding="utf-8") as stream:
        stream.write(text)

    def instead(file: Any, *arguments: Any, **named: Any) -> Any:
        is_it = isinstance(file, (str, os.PathLike)) and os.path.realpath(file) == before
        return real(stream.name if is_it else file, *arguments, **named)

    io.open = builtins.open = instead  # type: ignore[assignment]


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Gives the changed program to whoever imports the module."""

    def __init__(self, target: Target, changed: CodeType) -> None:
        self._target, self._program = target, changed

    def find_spec(self, name: str, path: object = None, target: object = None) -> importlib.machinery.ModuleSpec | None:  # noqa: ARG002
        if name != self._target.imported_as:
            return None
        return importlib.util.spec_from_file_location(name, self._target.opened_as, loader=self)

    def exec_module(self, module: ModuleType) -> None:
        exec(self._program, module.__dict__)
