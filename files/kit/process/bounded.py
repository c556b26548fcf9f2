# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run work that may block forever in a child process that can be given up.

SIGKILL may not end a process that waits for a driver or a dead mount. Such a child is killed and abandoned: nothing
waits for it, and it holds none of the parent's descriptors, so that a reader of the parent's output sees its end.
"""

from __future__ import annotations

import ctypes
import os
import resource
import select
import signal
import subprocess
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any, Callable, NoReturn

from kit import strict_json
from kit.files import json_line

PR_SET_PDEATHSIG = 1
BLOCK = 1 << 16
LONGEST_LINE = 1 << 20  # the rest of a longer line is dropped
Send = Callable[[Any], None]


class GivenUpError(Exception):
    """A child did not answer in time, died or failed; the message says which."""


def die_with_parent(number: int) -> None:
    """Ask the kernel to send a signal when the parent dies."""
    with suppress(OSError, AttributeError):  # not Linux
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, number, 0, 0, 0)


def end(process: subprocess.Popen[Any], patience: float) -> None:
    """Ask a child to end, and kill it after ``patience`` seconds."""
    process.terminate()
    try:
        process.wait(patience)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


class Lines:
    """The lines of a pipe, each awaited for a limited time."""

    def __init__(self, descriptor: int) -> None:
        """Read from ``descriptor``, which the caller closes."""
        self._descriptor = descriptor
        self._whole: deque[bytes] = deque()
        self._rest = b""
        self._ended = False

    def next(self, seconds: float) -> bytes | None:
        """Return the next line without its line break, None at the end; raise TimeoutError if it is late."""
        until = time.monotonic() + seconds
        while not self._whole:
            if self._ended:
                return None
            left = until - time.monotonic()
            if left < 0 or not select.select([self._descriptor], [], [], left)[0]:
                raise TimeoutError
            self._take(os.read(self._descriptor, BLOCK))
        return self._whole.popleft()

    def _take(self, block: bytes) -> None:
        *whole, rest = (self._rest + block).split(b"\n")
        self._rest = rest[:LONGEST_LINE]
        self._whole.extend(whole)
        if not block:
            self._ended = True
            if self._rest:
                self._whole.append(self._rest)


class Child:
    """A forked process that runs ``work`` and sends JSON documents back."""

    def __init__(self, work: Callable[[Send], None]) -> None:
        """Fork; ``work`` gets a function that sends one document."""
        reading, writing = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            _serve(work, writing)
        os.close(writing)
        self._descriptor = reading
        self._lines = Lines(reading)

    def next(self, seconds: float) -> Any:
        """Return the next document, None when the work is done; raise GivenUpError if it is late, dead or failed."""
        try:
            line = self._lines.next(seconds)
        except TimeoutError:
            raise GivenUpError(f"did not answer in {seconds:.3g} s") from None
        if line is None:
            raise GivenUpError(self._end())
        try:
            document = strict_json.parse(line)
        except ValueError:  # it died while it wrote
            raise GivenUpError(self._end()) from None
        if "failed" in document:
            raise GivenUpError(document["failed"])
        return document.get("sent")

    def _end(self) -> str:
        """Return how a child that closed its pipe ended."""
        status = self._reap(1.0)
        if status is None:
            return "ended without an answer"
        if os.WIFSIGNALED(status):
            return f"crashed ({signal.Signals(os.WTERMSIG(status)).name})"
        return f"ended early with exit code {os.WEXITSTATUS(status)}"

    def _reap(self, seconds: float) -> int | None:
        until = time.monotonic() + seconds
        while True:
            with suppress(ChildProcessError):
                pid, status = os.waitpid(self.pid, os.WNOHANG)
                if pid:
                    return status
            if time.monotonic() >= until:
                return None
            select.select([], [], [], 0.005)

    def close(self) -> None:
        """End the child in any state; leave an unkillable one to the kernel."""
        with suppress(OSError):
            os.kill(self.pid, signal.SIGKILL)
        os.close(self._descriptor)
        self._reap(0.2)


def _serve(work: Callable[[Send], None], descriptor: int) -> NoReturn:
    try:
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, signal.SIG_DFL)
        die_with_parent(signal.SIGKILL)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        _let_go_of_all_but(descriptor)
        with os.fdopen(descriptor, "wb") as stream:

            def write(document: dict[str, Any]) -> None:
                stream.write(json_line(document))
                stream.flush()

            try:
                work(lambda sent: write({"sent": sent}))
                write({"sent": None})
            except Exception as error:
                write({"failed": f"{type(error).__name__}: {error}"})
    finally:
        os._exit(0)


def _let_go_of_all_but(kept: int) -> None:
    null = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(null, standard)
    for name in os.listdir("/proc/self/fd"):
        if int(name) > 2 and int(name) != kept:
            with suppress(OSError):  # the descriptor of the listing itself
                os.close(int(name))


def command_lines(argv: Sequence[str], seconds: float) -> Iterator[bytes]:
    """Yield a command's output line by line; raise GivenUpError if it does not exist, fails or takes longer."""
    until = time.monotonic() + seconds
    environment = {**os.environ, "LC_ALL": "C"}
    try:
        process = subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment,
            start_new_session=True,  # so that processes started by a wrapper end with it
        )
    except OSError as error:
        raise GivenUpError(f"{argv[0]}: {error.strerror}") from error
    output, errors = process.stdout, process.stderr
    if output is None or errors is None:
        raise GivenUpError(f"{argv[0]}: no pipe")
    try:
        lines = Lines(output.fileno())
        while (line := lines.next(until - time.monotonic())) is not None:
            yield line
        code = process.wait(max(0.0, until - time.monotonic()))
        if code:
            os.set_blocking(errors.fileno(), False)
            said = (errors.read() or b"").decode(errors="backslashreplace").strip().splitlines()
            raise GivenUpError(f"{argv[0]} answered {code}: {said[0] if said else 'without a message'}")
    except (TimeoutError, subprocess.TimeoutExpired):
        raise GivenUpError(f"{argv[0]} did not end in {seconds:.3g} s") from None
    finally:
        with suppress(OSError):  # it has ended, or belongs to another user, as under sudo
            os.killpg(process.pid, signal.SIGKILL)
        output.close()
        errors.close()
        process.poll()
