# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run one command for a bounded time and keep what it printed, even if it never finishes. PRIVATE to the collection."""

from __future__ import annotations

import contextlib
import os
import selectors
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass

from ansible_collections.mlops.hpc_validation.plugins.module_utils._beegfs.output import NO_ANSWER

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/opt/beegfs/sbin"
OUTPUT_BYTES = 16 * 1024 * 1024
# SIGHUP first: while beegfs-ctl awaits an answer, its first SIGTERM only takes the handler away.
ENDINGS = ((signal.SIGHUP, 2.0), (signal.SIGTERM, 1.0), (signal.SIGTERM, 1.0), (signal.SIGKILL, 1.0))


@dataclass(frozen=True)
class Result:
    """A command's result; rc is None if it did not start or did not end in time, and `failure` says which."""

    rc: int | None
    out: str = ""
    err: str = ""
    failure: str = ""


def search_path() -> str:
    """Return the search path for programs: a login's PATH may not have the folders of administrators' tools."""
    return os.environ.get("PATH", "") + ":" + PATH


def run(
    argv: list[str], seconds: float, *, stdin: bytes | None = None, environment: Mapping[str, str] | None = None
) -> Result:
    """Run one command in a clean environment for at most `seconds`; one that cannot be killed is left behind."""
    path = search_path()
    program = shutil.which(argv[0], path=path)
    if program is None:
        return Result(None, failure=f"{argv[0]} was not found on {os.uname().nodename}")
    with contextlib.ExitStack() as opened:
        given = opened.enter_context(tempfile.TemporaryFile()) if stdin is not None else None
        if given is not None:
            given.write(stdin or b"")
            given.seek(0)
        try:
            process = subprocess.Popen(
                [program, *argv[1:]],
                env={"PATH": path, "LC_ALL": "C", "HOME": os.environ.get("HOME", "/"), **(environment or {})},
                stdin=given or subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
                cwd="/",
            )
        except OSError as error:
            return Result(None, failure=f"{argv[0]} could not be started: {error}")
        streams = _Streams(process)
        try:
            failure = streams.read_until(time.monotonic() + seconds)
        except BaseException:
            _end(process, streams)
            raise
        if failure is not None:
            _end(process, streams)
            return Result(None, *streams.texts(), failure=f"{argv[0]} {failure or f'{NO_ANSWER} in {seconds:.3g} s'}")
        return Result(process.wait(), *streams.texts())


class _Streams:
    """The output of a process, up to the limit that is kept."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process
        self.kept: dict[int, bytearray] = {}
        self.order: list[int] = []
        self.selector = selectors.DefaultSelector()
        for stream in (process.stdout, process.stderr):
            if stream is not None:
                os.set_blocking(stream.fileno(), False)
                self.order.append(stream.fileno())
                self.kept[stream.fileno()] = bytearray()
                self.selector.register(stream, selectors.EVENT_READ)

    def read_until(self, end: float) -> str | None:
        """Read until both streams are closed or the process has ended, and return None.

        Return "" when `end` is reached, and a message if more is printed than is kept. A process that has ended may
        have left its streams to another process, which is not waited for.
        """
        while self.selector.get_map():
            ended = self.process.poll() is not None
            remaining = end - time.monotonic()
            if remaining <= 0 and not ended:
                return ""
            events = self.selector.select(0 if ended else min(remaining, 0.05))
            if ended and not events:
                return None
            for key, _event in events:
                if not self._take(key):
                    return f"printed more than {OUTPUT_BYTES} bytes"
        try:
            self.process.wait(max(0.0, end - time.monotonic()))
        except subprocess.TimeoutExpired:
            return ""
        return None

    def _take(self, key: selectors.SelectorKey) -> bool:
        """Read what is available; return whether it is still within the limit."""
        kept = self.kept[key.fd]
        try:
            chunk = os.read(key.fd, 65536)
        except BlockingIOError:
            return True
        if not chunk:
            self.selector.unregister(key.fileobj)
        kept += chunk[: OUTPUT_BYTES - len(kept)]
        return len(kept) < OUTPUT_BYTES

    def texts(self) -> tuple[str, str]:
        """Close both streams and return their text."""
        self.selector.close()
        for stream in (self.process.stdout, self.process.stderr):
            if stream is not None:
                stream.close()
        out, err = (bytes(self.kept[number]).decode("utf-8", "replace") for number in self.order)
        return out, err


def _end(process: subprocess.Popen[bytes], streams: _Streams) -> None:
    """End the process and its children, gently at first; wait only briefly for each signal."""
    for number, patience in ENDINGS:
        with contextlib.suppress(OSError):
            os.killpg(process.pid, number)
        if streams.read_until(time.monotonic() + patience) is None:
            return
