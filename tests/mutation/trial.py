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
import os
import resource
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

import hypothesis
import jmespath
import jsonschema
import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
COLLECTION = "collections/ansible_collections/mlops/hpc_validation"
PRELOADED = (hypothesis, jmespath, jsonschema, pytest, yaml)
MEMORY = 4 << 30
CPU_SECONDS = 60  # of the unchanged file's tests; by the processor's clock, since others may use it too
LEAST_CPU_SECONDS, TIMES = 4, 5  # a mutant's tests may take so many times as long, before they go round and round
WALL_SECONDS = 1800
PYTEST = ("--exitfirst", "--disable-plugin-autoload", "-p", "no:cacheprovider", "--tb=line")
BYTECODE = tempfile.TemporaryDirectory(prefix="hpcval-mutation-")
FAILED, TOOK = "noticed by ", "took "
OUTCOMES = {0: "survived", 1: "killed", 2: "killed"}  # 2: the module could not even be imported


class TrialError(Exception):
    """A trial says nothing of its mutant: pytest itself went wrong."""


class Noticed:
    """Which tests have noticed mutants, and how long each takes.

    Most mutants are noticed by the test that noticed one a moment before, and most others by a short one.
    """

    def __init__(self) -> None:
        self._last: dict[str, int] = {}
        self._took: dict[str, float] = {}

    def by(self, test: str) -> None:
        """Take note of a test's name."""
        self._last[test] = len(self._last) + max(self._last.values(), default=0) + 1

    def took(self, test: str, seconds: float) -> None:
        """Take note of how long a test took."""
        self._took[test] = self._took.get(test, 0.0) + seconds

    def place(self, test: str) -> tuple[int, float]:
        """Where the test is to come: the one that noticed last first, others by how long they take."""
        return -self._last.get(test, 0), self._took.get(test, 0.0)

    def of_file(self, path: str) -> tuple[int, float]:
        """Where a file's tests are to come: likewise."""
        last = max((last for test, last in self._last.items() if test.startswith(f"{path}::")), default=0)
        return -last, sum(seconds for test, seconds in self._took.items() if test.startswith(f"{path}::"))


class _InOrder:
    """pytest's plugin for that order; it says which test fails and, in a timed trial, how long each takes."""

    def __init__(self, noticed: Noticed, timed: bool) -> None:
        self._noticed, self._timed = noticed, timed

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items.sort(key=lambda item: self._noticed.place(item.nodeid))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            print(f"\n{FAILED}{report.nodeid}", flush=True)
        elif self._timed:
            print(f"\n{TOOK}{report.duration} {report.nodeid}")


class Trial:
    """A forked pytest run; `start` returns at once."""

    def __init__(
        self,
        path: str,
        mutant: ast.Module | str,
        tests: Sequence[str],
        noticed: Noticed,
        cpu_seconds: int = CPU_SECONDS,
        timed: bool = False,
    ) -> None:
        """Run the tests against the mutant, those first that are likely to notice it; or take note of their times."""
        self._deadline, self._noticed = time.monotonic() + WALL_SECONDS, noticed
        self.cpu_seconds = 0.0  # that it took, once it has ended
        self._output = tempfile.TemporaryFile()  # noqa: SIM115 - closed by outcome()
        # Here and not in the child: a mutant that is no program would seem to be killed.
        changed = mutant if isinstance(mutant, str) else compile(mutant, _imported_from(path), "exec")
        self._pid = os.fork()
        if self._pid == 0:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            plugin = _InOrder(noticed, timed)
            _child(path, changed, sorted(tests, key=noticed.of_file), plugin, self._output.fileno(), cpu_seconds)
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
                    self._noticed.by(line[len(FAILED) :])
                elif line.startswith(TOOK):
                    seconds, _space, test = line[len(TOOK) :].partition(" ")
                    self._noticed.took(test, float(seconds))
            if os.WIFEXITED(status) and os.WEXITSTATUS(status) in OUTCOMES:
                return OUTCOMES[os.WEXITSTATUS(status)]
            if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGXCPU:
                return "killed"  # it goes round and round
            raise TrialError(f"pytest ended with wait status {status}:\n{told[-4000:]}")

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
    path: str, changed: CodeType | str, tests: Sequence[str], plugin: _InOrder, output: int, cpu_seconds: int
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
            max_examples=25,
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
