# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The guard that turns signals and a dead parent into one exception."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._wait.interrupt import Interrupted, InterruptGuard

from tests.unit.conftest import COLLECTIONS


def interrupted_by(number: int) -> None:
    os.kill(os.getpid(), number)
    time.sleep(5)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_first_signal_raises_and_later_ones_do_not(number: signal.Signals) -> None:
    before = signal.getsignal(number)
    with InterruptGuard() as guard:
        with pytest.raises(Interrupted, match=number.name):
            interrupted_by(number)
        os.kill(os.getpid(), number)
        time.sleep(0.05)
        assert guard.cause == number.name
    assert signal.getsignal(number) is before


def test_it_is_no_exception_that_a_handler_on_the_way_could_swallow() -> None:
    assert not issubclass(Interrupted, Exception)


CHILD = """
import os, sys, time
sys.path.insert(0, sys.argv[2])
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._wait.interrupt import Interrupted, InterruptGuard
os.setsid()
with InterruptGuard() as guard:
    try:
        open(sys.argv[1] + ".ready", "w").close()
        time.sleep(30)
    except Interrupted as interrupt:
        with open(sys.argv[1] + ".tmp", "w") as stream:
            stream.write(str(interrupt))
        os.rename(sys.argv[1] + ".tmp", sys.argv[1])
"""


def test_a_killed_parent_is_noticed(tmp_path: Path) -> None:
    child, said = tmp_path / "child.py", tmp_path / "said"
    child.write_text(CHILD)
    start = "import subprocess, sys; subprocess.run([sys.executable, *sys.argv[1:]])"
    parent = subprocess.Popen([sys.executable, "-c", start, str(child), str(said), str(COLLECTIONS)])
    end = time.monotonic() + 20
    while not (tmp_path / "said.ready").exists() and time.monotonic() < end:
        time.sleep(0.05)
    parent.kill()
    parent.wait()
    while not said.exists() and time.monotonic() < end:
        time.sleep(0.05)
    assert said.read_text() == "the controller process has exited"
