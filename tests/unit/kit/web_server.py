# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A web server on this machine, for tests, that answers as asked."""

from __future__ import annotations

import http.server
import threading
import typing as t
from contextlib import contextmanager, suppress

Answer = t.Callable[[http.server.BaseHTTPRequestHandler], None]


@contextmanager
def serving(answer: Answer) -> t.Iterator[str]:
    """Answer every request so; give the address."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            with suppress(ConnectionError):  # who asked has given up
                answer(self)

        def log_message(self, *_other: t.Any) -> None:
            """Keep the test's output clean."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/file"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def sending(content: bytes, length: int | None = None) -> Answer:
    """Answer with ``content``, announced as of ``length``."""

    def answer(request: http.server.BaseHTTPRequestHandler) -> None:
        request.send_response(200)
        request.send_header("Content-Length", str(len(content) if length is None else length))
        request.end_headers()
        request.wfile.write(content)

    return answer
