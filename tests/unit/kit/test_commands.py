# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The kit's command line: each command is there, and costs only what it needs."""

from __future__ import annotations

import importlib
import subprocess
import sys

import pytest
from kit.__main__ import COMMANDS

HELPERS = {"sources"}


def kit(root, *arguments: str, before: str = "") -> subprocess.CompletedProcess[str]:
    code = f"import runpy, sys\nsys.argv[0] = 'kit'\n{before}\nrunpy.run_module('kit', run_name='__main__')"
    return subprocess.run(
        [sys.executable, "-B", "-c", code, *arguments],
        cwd=root / "files",
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def test_every_command_has_its_module_and_every_module_its_command(root):
    names = {path.stem for path in (root / "files/kit/commands").glob("*.py")} - {"__init__"}
    assert names - HELPERS == set(COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_tells_its_options(root, name):
    importlib.import_module(f"kit.commands.{name}")
    told = kit(root, name, "--help")
    assert told.returncode == 0, told.stderr
    assert f"usage: python -m kit {name} " in told.stdout


def test_help_names_every_command(root):
    told = kit(root, "--help")
    assert told.returncode == 0
    for name, text in COMMANDS.items():
        assert name in told.stdout
        assert " ".join(text.split()) in " ".join(told.stdout.split())


@pytest.mark.parametrize("arguments", [[], ["nonsense"], ["begin", "--nonsense"], ["--nonsense", "begin"]])
def test_wrong_usage_ends_2(root, arguments):
    told = kit(root, *arguments)
    assert told.returncode == 2
    assert "usage: python -m kit" in told.stderr


@pytest.mark.parametrize(
    ("name", "needless"), [("begin", "kit.gpu"), ("probe", "kit.runtime.venv"), ("reports", "kit.runtime.wheels")]
)
def test_a_command_imports_no_other_room(root, name, needless):
    """Jobs keep no compiled files on the share: what is imported is read from there and compiled, on each node."""
    watch = f"import atexit; atexit.register(lambda: print('IMPORTED', {needless!r} in sys.modules))"
    told = kit(root, name, "--help", before=watch)
    assert "IMPORTED False" in told.stdout, told.stderr
