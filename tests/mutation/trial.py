# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs pytest against a file that was changed in memory; no file of the working tree is written.

A module comes from its changed syntax tree when it is imported, any other file from its changed text when it is opened.

Each trial is a fork of a process that has imported pytest already, so that a trial costs little more than its tests.
"""

from __future__ import annotations

import ast
import builtins
import contextlib
import importlib.abc
import importlib.machinery
import importlib.util
import io
import json
import os
import resource
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Generator, Sequence
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

import hypothesis
import jmespath
import jsonschema
import pytest
import yaml

from tests.mutation.order import Order, lines_run

ROOT = Path(__file__).resolve().parents[2]
COLLECTION = "collections/ansible_collections/mlops/hpc_validation"
PRELOADED = (hypothesis, jmespath, jsonschema, pytest, yaml)
MEMORY = 4 << 30
EXAMPLES, EXAMPLES_TRACED = 25, 3  # of hypothesis; a traced program takes several times as long
CPU_SECONDS = 60  # of the unchanged file's tests; by the processor's clock, since others may use it too
LEAST_CPU_SECONDS, TIMES = 4, 5  # a mutant's tests may take so many times as long, before they go round and round
WALL_SECONDS = 1800
PYTEST = ("--exitfirst", "--disable-plugin-autoload", "-p", "no:cacheprovider", "--tb=line")
BYTECODE = tempfile.TemporaryDirectory(prefix="hpcval-mutation-")
FAILED, TOLD = "noticed by ", "told of "
TIMES_OF_TESTS, LINES = "times", "lines"  # what is to be noted of each test
OUTCOMES = {0: "survived", 1: "killed", 2: "killed"}  # 2: the module could not even be imported


class TrialError(Exception):
    """A trial says nothing of its mutant: pytest itself went wrong."""


class _Plugin:
    """pytest's plugin for the order of tests; it says which test fails and, if asked, what is known of each."""

    def __init__(self, order: Order, line: int, notes: str, path: str) -> None:
        self._order, self._line, self.notes, self._path = order, line, notes, path

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items.sort(key=lambda item: self._order.place(item.nodeid, self._line))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            print(f"\n{FAILED}{report.nodeid}", flush=True)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        if not self.notes:
            return (yield)
        lines: set[int] = set()
        started = time.perf_counter()
        with lines_run(self._path) if self.notes == LINES else contextlib.nullcontext(lines) as lines:
            done = yield
        print(f"\n{TOLD}{json.dumps([item.nodeid, time.perf_counter() - started, sorted(lines)])}")
        return done


class Trial:
    """A forked pytest run; `start` returns at once."""

    def __init__(
        self,
        path: str,
        mutant: ast.Module | str,
        tests: Sequence[str],
        order: Order,
        line: int = 0,
        cpu_seconds: int = CPU_SECONDS,
        notes: str = "",
    ) -> None:
        """Run the tests against the mutant, those first that are likely to notice a change of that line.

        With `notes`, the times of the tests or the lines that each runs are noted in their order.
        """
        self._deadline, self._order, self._notes = time.monotonic() + WALL_SECONDS, order, notes
        self.cpu_seconds = 0.0  # that it took, once it has ended
        self._output = tempfile.TemporaryFile()  # noqa: SIM115 - closed by outcome()
        # Here and not in the child: a mutant that is no program would seem to be killed.
        changed = mutant if isinstance(mutant, str) else compile(mutant, _imported_from(path), "exec")
        self._pid = os.fork()
        if self._pid == 0:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            ordered = sorted(tests, key=lambda each: order.of_file(each, line))
            plugin = _Plugin(order, line, notes, _imported_from(path))
            _child(path, changed, ordered, plugin, self._output.fileno(), cpu_seconds)
        # By both sides, so that whoever comes second finds it done: stop() needs the group to be there.
        with contextlib.suppress(OSError):
            os.setpgid(self._pid, self._pid)

    def outcome(self) -> str | None:
        """Return killed or survived, or None while it runs. Raise TrialError."""
        pid, status, used = os.wait4(self._pid, os.WNOHANG)
        if pid == 0 and time.monotonic() < self._deadline:
            return None
        if pid == 0:
            self.stop()
            raise TrialError(f"a trial did not end within {WALL_SECONDS} s")
        self.cpu_seconds = used.ru_utime + used.ru_stime
        with self._output as output:
            output.seek(0)
            told = output.read().decode(errors="replace")
            for line in told.splitlines():
                if line.startswith(FAILED):
                    self._order.noticed(line[len(FAILED) :])
                elif line.startswith(TOLD):
                    self._take_note(*json.loads(line[len(TOLD) :]))
            if os.WIFEXITED(status) and os.WEXITSTATUS(status) in OUTCOMES:
                return OUTCOMES[os.WEXITSTATUS(status)]
            if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGXCPU:
                return "killed"  # it goes round and round
            raise TrialError(f"pytest ended with wait status {status}:\n{told[-4000:]}")

    def _take_note(self, test: str, seconds: float, lines: list[int]) -> None:
        if self._notes == LINES:
            self._order.ran(test, frozenset(lines))
        else:
            self._order.took(test, seconds)

    def stop(self) -> None:
        """End it at once."""
        with contextlib.suppress(ProcessLookupError, ChildProcessError):
            os.killpg(self._pid, signal.SIGKILL)
            os.waitpid(self._pid, 0)
        self._output.close()


def warm_up() -> None:
    """Import what pytest imports when it starts, once for all trials."""
    with contextlib.redirect_stdout(io.StringIO()):
        pytest.main([*PYTEST, "--version"])


def limit(unchanged: float) -> int:
    """Return the seconds that a mutant's tests may take, where those of the unchanged file take so many."""
    return max(LEAST_CPU_SECONDS, round(TIMES * unchanged))


def _child(
    path: str, changed: CodeType | str, tests: Sequence[str], plugin: _Plugin, output: int, cpu_seconds: int
) -> None:
    code, folder = 70, tempfile.mkdtemp(prefix="trial-")
    try:
        os.setpgid(0, 0)
        for stream in (1, 2):
            os.dup2(output, stream)
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        resource.setrlimit(resource.RLIMIT_CPU, (cpu_seconds, cpu_seconds + 1))
        os.chdir(ROOT)
        # The files of a trial need not outlive a crash of the machine, and whoever waits for the disk does so for long.
        os.fsync = lambda _descriptor: None
        # Compiled once for all trials, and not into the working tree.
        sys.pycache_prefix, sys.dont_write_bytecode = BYTECODE.name, False
        if isinstance(changed, str):
            _open_instead(path, changed)
        else:
            sys.meta_path.insert(0, _Finder(path, changed))
        # The same examples in each trial, and none of them remembered in the working tree.
        hypothesis.settings.register_profile(
            "mutation",
            database=None,
            derandomize=True,
            deadline=None,
            max_examples=EXAMPLES if plugin.notes != LINES else EXAMPLES_TRACED,
            suppress_health_check=list(hypothesis.HealthCheck),
        )
        hypothesis.settings.load_profile("mutation")
        for test in tests:  # one at a time: what the first notices need not be collected for the others
            # A folder of its own: trials that end at once would remove each other's.
            code = int(pytest.main([*PYTEST, f"--basetemp={folder}", test], [plugin]))
            if code != 0:
                break
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        sys.stdout.flush()
        os._exit(code)


def _open_instead(path: str, text: str) -> None:
    """Let whoever opens the file read this text."""
    before, real = str(ROOT / path), io.open
    with tempfile.NamedTemporaryFile("w", delete=False, encoding="utf-8") as stream:
        stream.write(text)

    def instead(file: Any, *arguments: Any, **named: Any) -> Any:
        is_it = isinstance(file, (str, os.PathLike)) and os.path.realpath(file) == before
        return real(stream.name if is_it else file, *arguments, **named)

    io.open = builtins.open = instead  # type: ignore[assignment]


def module_name(path: str) -> str:
    """The name by which the tests import the module at `path`, from the root."""
    parts = Path(path).with_suffix("").parts
    return ".".join(parts[1:] if parts[0] == "files" else ("ansible_collections", "mlops", "hpc_validation", *parts))


def _imported_from(path: str) -> str:
    """The path by which the tests import the module at `path`, from the root."""
    return str(ROOT / (path if path.startswith("files/") else f"{COLLECTION}/{path}"))


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Gives the changed program to whoever imports the module."""

    def __init__(self, path: str, program: CodeType) -> None:
        self._name = module_name(path)
        self._path = _imported_from(path)
        self._program = program

    def find_spec(self, name: str, path: object = None, target: object = None) -> importlib.machinery.ModuleSpec | None:  # noqa: ARG002
        if name != self._name:
            return None
        return importlib.util.spec_from_file_location(name, self._path, loader=self)

    def exec_module(self, module: ModuleType) -> None:
        exec(self._program, module.__dict__)
