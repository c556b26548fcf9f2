# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Children that can be given up."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
import typing as t
from pathlib import Path

import pytest
from kit.process import bounded


def all_of(work: t.Callable[[bounded.Send], None], seconds: float = 5.0) -> list[t.Any]:
    child = bounded.Child(work)
    try:
        return list(iter(lambda: child.next(seconds), None))
    finally:
        child.close()


def test_a_child_sends_documents_in_order() -> None:
    def work(send: bounded.Send) -> None:
        for number in range(1000):
            send({"number": number, "text": "x" * 100})

    assert [document["number"] for document in all_of(work)] == list(range(1000))


@pytest.mark.parametrize(
    ("work", "error"),
    [
        (lambda _send: signal.pause(), "did not answer in 0.2 s"),
        (lambda _send: os.kill(os.getpid(), signal.SIGBUS), "crashed .SIGBUS."),
        (lambda _send: os._exit(4), "ended early with exit code 4"),
        (lambda _send: 1 / 0, "ZeroDivisionError: division by zero"),
    ],
)
def test_a_child_that_sends_no_end_is_given_up(work: t.Callable[[bounded.Send], None], error: str) -> None:
    with pytest.raises(bounded.GivenUpError, match=error):
        all_of(work, 0.2)


def test_half_a_document_is_none() -> None:
    def work(_send: bounded.Send) -> None:
        (descriptor,) = [int(name) for name in os.listdir("/proc/self/fd") if int(name) > 2 and _is_pipe(int(name))]
        os.write(descriptor, b'{"sent": ')
        os._exit(1)

    with pytest.raises(bounded.GivenUpError, match="exit code 1"):
        all_of(work)


def _is_pipe(descriptor: int) -> bool:
    try:
        return os.readlink(f"/proc/self/fd/{descriptor}").startswith("pipe:")
    except OSError:
        return False


def test_a_child_holds_nothing_of_its_parents(tmp_path: Path) -> None:
    with open(tmp_path / "held", "w"):

        def work(send: bounded.Send) -> None:
            send([os.readlink(f"/proc/self/fd/{number}") for number in (0, 1, 2)])
            send([os.readlink(entry.path) for entry in os.scandir("/proc/self/fd") if os.path.lexists(entry.path)])

        standard, held = all_of(work)
    assert standard == [os.devnull] * 3
    assert str(tmp_path / "held") not in held


def test_a_child_dies_with_its_parent(root: Path) -> None:
    script = (
        "import os, signal\nfrom kit.process import bounded as bounded\n"
        "child = bounded.Child(lambda send: (send(os.getpid()), signal.pause()))\n"
        "print(child.next(10), flush=True)\nsignal.pause()\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(root / "files")}
    parent = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, env=environment)
    assert parent.stdout is not None
    pid = int(parent.stdout.readline())
    pidfd = os.pidfd_open(pid)
    parent.kill()
    parent.wait(10)
    parent.stdout.close()
    assert select.select([pidfd], [], [], 10)[0], "the child outlived its parent"
    os.close(pidfd)


def test_lines_are_whole_however_they_come() -> None:
    reading, writing = os.pipe()
    lines = bounded.Lines(reading)
    os.write(writing, b"one\ntw")
    assert lines.next(1) == b"one"
    with pytest.raises(TimeoutError):
        lines.next(0.01)
    os.write(writing, b"o\n\nlast")
    os.close(writing)
    assert [lines.next(1) for _each in range(4)] == [b"two", b"", b"last", None]
    os.close(reading)


def test_a_line_without_end_is_cut() -> None:
    script = "import sys\nfor _ in range(64):\n    sys.stdout.write('x' * 65536)\nprint()\nprint('next')"
    first, second = bounded.command_lines([sys.executable, "-c", script], 10)
    assert len(first) <= bounded.LONGEST_LINE + bounded.BLOCK
    assert second == b"next"


def test_a_command_that_never_stops_printing_ends_in_time() -> None:
    begin = time.monotonic()
    with pytest.raises(bounded.GivenUpError, match="yes did not end"):
        list(bounded.command_lines(["yes"], 0.2))
    assert time.monotonic() - begin < 5


def test_what_a_command_has_started_ends_with_it(tmp_path: Path) -> None:
    child = tmp_path / "child"
    with pytest.raises(bounded.GivenUpError, match="did not end in 1 s"):
        list(bounded.command_lines(["sh", "-c", f"sleep 4711 & echo $! > {child}; wait"], 1))
    stat = Path(f"/proc/{child.read_text().strip()}/stat")
    until = time.monotonic() + 5
    while (running := stat.exists() and stat.read_text().split()[2] != "Z") and time.monotonic() < until:
        time.sleep(0.01)
    assert not running
