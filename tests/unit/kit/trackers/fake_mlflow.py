# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What an MLflow server does with the requests that the kit sends, and how it fails."""

from __future__ import annotations

import io
import json
import threading
import time
import typing as t
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

Json = dict[str, t.Any]


class FakeMlflow(ThreadingHTTPServer):
    """Keeps what it is sent; `faults` are statuses of the next answers, `hang_up` ends a request after it was done.

    `drips` is what comes one byte at a time, an "answer" or its "body".
    """

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.experiments: dict[str, str] = {}
        self.runs: dict[str, Json] = {}
        self.points: set[tuple[str, str, float, int, int]] = set()
        self.parameters: dict[str, str] = {}
        self.asked: list[str] = []
        self.tokens: set[str | None] = set()
        self.faults: list[int] = []
        self.bodies: list[bytes] = []  # instead of an answer, with status 200
        self.deleted: set[str] = set()  # experiments
        self.hang_up = 0
        self.drips = ""
        threading.Thread(target=self.serve_forever, args=(0.02,), daemon=True).start()

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def answer(self, path: str, query: str, document: Json) -> tuple[int, Json]:
        if path == "experiments/get-by-name":
            name = query.partition("=")[2].replace("+", " ")
            if name not in self.experiments:
                return 404, {"error_code": "RESOURCE_DOES_NOT_EXIST", "message": f"no experiment {name}"}
            stage = "deleted" if name in self.deleted else "active"
            return 200, {"experiment": {"experiment_id": self.experiments[name], "lifecycle_stage": stage}}
        if path == "experiments/create":
            if document["name"] in self.experiments:
                return 400, {"error_code": "RESOURCE_ALREADY_EXISTS", "message": "there is one"}
            self.experiments[document["name"]] = str(len(self.experiments) + 1)
            return 200, {"experiment_id": self.experiments[document["name"]]}
        if path == "runs/search":
            found = [
                run
                for run in self.runs.values()
                if f"'{run['tags'].get('hpc_validation.training')}'" in document["filter"]
            ]
            return 200, {"runs": [{"info": {"run_id": run["id"]}} for run in found]}
        if path == "runs/create":
            identity = f"run{len(self.runs) + 1}"
            tags = {tag["key"]: tag["value"] for tag in document["tags"]}
            self.runs[identity] = {"id": identity, "tags": tags, "name": document["run_name"], "status": "RUNNING"}
            return 200, {"run": {"info": {"run_id": identity}}}
        if document["run_id"] not in self.runs:
            return 404, {"error_code": "RESOURCE_DOES_NOT_EXIST", "message": "no such run"}
        if path == "runs/update":
            self.runs[document["run_id"]]["status"] = document["status"]
            return 200, {}
        assert path == "runs/log-batch", path
        assert len(document.get("metrics", [])) <= 1000
        assert len(document.get("params", [])) <= 100
        told = {each["key"]: each["value"] for each in document.get("params", [])}
        if any(self.parameters.get(key, value) != value for key, value in told.items()):
            return 400, {"error_code": "INVALID_PARAMETER_VALUE", "message": "a parameter cannot change"}
        for each in document.get("metrics", []):
            self.points.add((document["run_id"], each["key"], each["value"], each["step"], each["timestamp"]))
        self.parameters.update(told)
        return 200, {}


class _Drip(io.BytesIO):
    """Writes a byte, and waits; an answer takes some seconds."""

    def __init__(self, stream: t.BinaryIO) -> None:
        super().__init__()
        self.stream = stream

    def write(self, content: t.Any) -> int:
        for each in content:
            self.stream.write(bytes([each]))
            time.sleep(0.02)
        return len(content)


class _Handler(BaseHTTPRequestHandler):
    server: FakeMlflow

    def reply(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        path, _mark, query = self.path.partition("?")
        name = path.removeprefix("/api/2.0/mlflow/")
        self.server.asked.append(name)
        self.server.tokens.add(self.headers.get("Authorization"))
        if self.server.faults:
            said = f"told so to {self.headers.get('Authorization')}"
            status, answer = self.server.faults.pop(0), {"error_code": "TOLD_SO", "message": said}
        else:
            status, answer = self.server.answer(name, query, json.loads(body or b"{}"))
        if self.server.hang_up:
            self.server.hang_up -= 1
            return
        content = self.server.bodies.pop(0) if self.server.bodies else json.dumps(answer).encode()
        whole = self.wfile
        if self.server.drips == "answer":
            self.wfile = _Drip(whole)
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        if 300 <= status < 400:
            self.send_header("Location", "http://127.0.0.1:9/elsewhere")
        with suppress(ConnectionError):
            self.end_headers()
            if self.server.drips == "body":
                self.wfile = _Drip(whole)
            self.wfile.write(content)
        self.wfile = whole

    do_GET = do_POST = reply  # noqa: N815 - the names that the library calls

    def log_message(self, *_other: t.Any) -> None:
        """Keep the tests' output clean."""
