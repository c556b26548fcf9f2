# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A forked process takes notes, and its parent learns how it ended."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

from tests.mutation.trial import ROOT

PROGRAM = """
import os, sys
from tests.mutation.child import Child

def goes_round(note):
    while True:
        pass

def fails(note):
    raise ValueError("no such thing")

def notes(note):
    note("first", 1)
    note("second", [2])
    os.write(1, b"words")
    return 3

ended = Child(globals()[sys.argv[1]], 1).end()
print(ended.code, ended.notes, ended.goes_round, ended.said)
"""


@pytest.mark.parametrize(
    ("run", "told"),
    [
        ("notes", "3 [['first', 1], ['second', [2]]] False words"),
        ("goes_round", f"{-signal.SIGXCPU.value} [] True "),
        ("fails", "70 [] False Traceback"),
    ],
)
def test_how_it_ended(run, told):
    done = subprocess.run([sys.executable, "-c", PROGRAM, run], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.startswith(told)
    assert "no such thing" in done.stdout or run != "fails"
