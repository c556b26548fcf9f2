# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What goes on in edge01: it begins before the command returns, there is one of a kind, and it ends."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

PROGRAM = Path(__file__).resolve().parents[2] / "cluster/edge/stays.py"


@pytest.fixture
def host(tmp_path):
    """Run the program by a path that no other process has; nothing of it stays."""
    program = shutil.copy(PROGRAM, tmp_path / "stays.py")
    counter = tmp_path / "oc3_event_cnt"
    counter.write_text("0\n")
    counter.chmod(0o444)

    def run(*words):
        argv = [sys.executable, str(program), *words, str(counter)]
        return subprocess.run(argv, capture_output=True, text=True, check=False, timeout=60)

    yield run
    for word in ("busy", "memory", "throttled"):
        run(word, "off")


def running(tmp_path):
    """Process → its words, of those that stay."""
    found = {}
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().decode(errors="replace").split("\0")
        except OSError:
            continue
        if words[1:2] == [str(tmp_path / "stays.py")] and int(path.parent.name) != os.getpid():
            found[int(path.parent.name)] = words[3:-1]
    return found


def test_a_process_spins_until_it_is_off(host, tmp_path):
    assert host("busy", "on").returncode == 0
    [first] = list(running(tmp_path))
    assert host("busy", "on").returncode == 0
    [second] = list(running(tmp_path))
    assert first != second
    assert host("busy", "off").returncode == 0
    assert running(tmp_path) == {}


def test_memory_is_held_when_the_command_returns(host, tmp_path):
    assert host("memory", "32").returncode == 0
    [process] = list(running(tmp_path))
    status = Path(f"/proc/{process}/status").read_text()
    anonymous = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("RssAnon:"))
    assert anonymous >= 32 * 1024
    assert Path(f"/proc/{process}/oom_score_adj").read_text() == "0\n"


def test_events_grow_until_they_are_off_and_their_count_stays(host, tmp_path):
    counter = tmp_path / "oc3_event_cnt"
    assert host("throttled", "2").returncode == 0
    until = time.monotonic() + 60
    while counter.read_text() == "0\n":
        assert time.monotonic() < until
        time.sleep(0.05)
    assert host("throttled", "0").returncode == 0
    count = int(counter.read_text())
    assert count >= 2
    assert count % 2 == 0
    assert counter.stat().st_mode & 0o777 == 0o444
    assert running(tmp_path) == {}


def test_what_does_not_begin_says_so(host, tmp_path):
    done = host("memory", "much")
    assert done.returncode == 1
    assert "memory: it ended 1" in done.stderr
    assert running(tmp_path) == {}
