# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An MLflow server, by its REST interface: its own client blocks a training for minutes where the server is gone.

Sending the same point again is safe: the server keeps equal points once.
"""

from __future__ import annotations

import http.client
import io
import json
import socket
import ssl
import stat
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kit import strict_json
from kit.errors import KitError
from kit.printable import printable

API = "/api/2.0/mlflow"
TIMEOUT = 10.0  # seconds to connect, and until more of an answer comes
WHOLE_ANSWER = 60.0  # seconds, however steadily it comes
MOST_METRICS, MOST_PARAMETERS = 1000, 100  # of one request
LONGEST_PARAMETER = 500  # characters
TAG = "hpc_validation.training"  # by which a run is found again
LONGEST_ANSWER = 1 << 24  # bytes
MISSING, THERE_ALREADY, DELETED = "RESOURCE_DOES_NOT_EXIST", "RESOURCE_ALREADY_EXISTS", "DELETED"
LOOPBACK = ("localhost", "127.0.0.1", "::1")
# Refused, reset, timed out, cut off, no JSON, JSON that is too deep.
_NO_ANSWER = (OSError, ValueError, RecursionError, http.client.HTTPException)


class UnavailableError(KitError):
    """The server did not take a request, and may take it later."""


class RefusedError(KitError):
    """The server does not take such a request; ``code`` is its own word for why."""

    def __init__(self, text: str, code: str = "") -> None:
        """Say what was answered."""
        super().__init__(text)
        self.code = code


@dataclass(frozen=True)
class Point:
    """A value of a metric at a step; ``moment`` is in milliseconds since the epoch."""

    name: str
    value: float
    step: int
    moment: int

    def document(self) -> dict[str, Any]:
        """Return it as the server takes it."""
        return {"key": self.name, "value": self.value, "step": self.step, "timestamp": self.moment}


class Server:
    """One server. Its token comes from a file that only its owner can read, and stands in no message."""

    def __init__(self, address: str, token: Path | None = None, authority: Path | None = None) -> None:
        """``authority`` has the certificates to trust. Raise KitError for an address or file that cannot be used."""
        parts = _parts(address)
        self.address = address.rstrip("/")
        self._headers = {"Content-Type": "application/json"}
        self._token = None if token is None else read_token(token)
        if self._token:
            if parts.scheme == "http" and parts.hostname not in LOOPBACK:
                raise KitError("a token is sent by https:// only: by http:// it would cross the network in the clear")
            self._headers["Authorization"] = f"Bearer {self._token}"
        handlers: list[urllib.request.BaseHandler] = [urllib.request.ProxyHandler({}), _NoRedirect(), _Http()]
        if parts.scheme == "https":
            try:
                context = ssl.create_default_context(cafile=str(authority) if authority else None)
            except (OSError, ssl.SSLError) as error:
                raise KitError(f"{authority} cannot be read as certificates: {error}") from error
            handlers.append(_Https(context=context))
        self._opener = urllib.request.build_opener(*handlers)

    def experiment(self, name: str) -> str:
        """Return the ID of the experiment of this name, which is created if there is none."""
        found = self._found_experiment(name)
        if found is not None:
            return found
        try:
            return _text(self._ask("POST", "/experiments/create", {"name": name}), "experiment_id")
        except RefusedError as error:
            found = self._found_experiment(name) if error.code == THERE_ALREADY else None
            if found is None:
                raise
            return found

    def _found_experiment(self, name: str) -> str | None:
        query = urllib.parse.urlencode({"experiment_name": name})
        try:
            found = self._ask("GET", f"/experiments/get-by-name?{query}").get("experiment")
        except RefusedError as error:
            if error.code == MISSING:
                return None
            raise
        identity = _text(found, "experiment_id")
        if isinstance(found, dict) and found.get("lifecycle_stage") == "deleted":
            text = f"experiment {name!r} is deleted: mlflow experiments restore -x {identity}"
            raise RefusedError(self._hushed(text), DELETED)
        return identity

    def run(self, experiment: str, name: str, training: str, began: int, tags: Mapping[str, str]) -> str:
        """Return the ID of this training's run, which is created if there is none. ``began`` is in milliseconds."""
        wanted = {"experiment_ids": [experiment], "filter": f"tags.`{TAG}` = '{training}'", "max_results": 1}
        runs = self._ask("POST", "/runs/search", wanted).get("runs") or []
        if isinstance(runs, list) and runs:
            return _text(runs[0], "info", "run_id")
        own = [{"key": key, "value": value} for key, value in {**tags, TAG: training}.items()]
        made = {"experiment_id": experiment, "run_name": name, "start_time": began, "tags": own}
        return _text(self._ask("POST", "/runs/create", made), "run", "info", "run_id")

    def log(self, run: str, points: Sequence[Point]) -> None:
        """Store points."""
        for begin in range(0, len(points), MOST_METRICS):
            part = [point.document() for point in points[begin : begin + MOST_METRICS]]
            self._ask("POST", "/runs/log-batch", {"run_id": run, "metrics": part})

    def parameters(self, run: str, values: Mapping[str, str]) -> None:
        """Store what the training was told; the same again is no error."""
        own = [{"key": key, "value": value[:LONGEST_PARAMETER]} for key, value in values.items()]
        for begin in range(0, len(own), MOST_PARAMETERS):
            part = own[begin : begin + MOST_PARAMETERS]
            self._ask("POST", "/runs/log-batch", {"run_id": run, "params": part})

    def update(self, run: str, status: str) -> None:
        """Say that the run is RUNNING, FINISHED or FAILED from now on."""
        ended = {} if status == "RUNNING" else {"end_time": int(time.time() * 1000)}
        self._ask("POST", "/runs/update", {"run_id": run, "status": status, **ended})

    def _ask(self, method: str, path: str, document: Mapping[str, Any] | None = None) -> dict[str, Any]:
        body = None if document is None else json.dumps(document, allow_nan=False).encode()
        url = f"{self.address}{API}{path}"
        request = urllib.request.Request(url, body, self._headers, method=method)  # noqa: S310 - see __init__
        where = f"{method} {self.address}{API}{path.partition('?')[0]}"
        try:
            with self._opener.open(request, timeout=TIMEOUT) as answer:
                found = strict_json.parse(answer.read(LONGEST_ANSWER))
        except urllib.error.HTTPError as error:
            code, said = _told(error)
            text = self._hushed(f"{where}: {error.code} {said}".rstrip())
            # What has no word of MLflow's is from something before it, which may be another tomorrow.
            if error.code >= 500 or error.code in (408, 429) or not code:
                raise UnavailableError(text) from None
            raise RefusedError(text, code) from None
        except _NO_ANSWER as error:
            why = getattr(error, "reason", None) or error or type(error).__name__
            raise UnavailableError(self._hushed(f"{where}: {why}")) from None
        if not isinstance(found, dict):
            raise UnavailableError(f"{where}: the answer is no object")
        return found

    def _hushed(self, text: str) -> str:
        """Return a text of a server's without the token, which it may quote, and with escapes for what is not seen."""
        return printable(text.replace(self._token, "***") if self._token else text)


def _parts(address: str) -> urllib.parse.SplitResult:
    """Return the parts of a server's address. Raise KitError, which does not quote it, for one that cannot be used."""
    try:
        parts = urllib.parse.urlsplit(address)
        port = parts.port
    except ValueError:
        parts, port = urllib.parse.urlsplit(""), None
    plain = parts.scheme in ("http", "https") and parts.hostname and "@" not in parts.netloc and port != 0
    if not plain or parts.query or parts.fragment:
        raise KitError("the tracking server's address must be http:// or https://, with a host and no user")
    return parts


def _text(answer: Any, *path: str) -> str:
    """Return what an answer has at these keys. Raise UnavailableError if it is no such answer."""
    for key in path:
        answer = answer.get(key) if isinstance(answer, dict) else None
    if not isinstance(answer, str) or not answer:
        raise UnavailableError(f"an answer without {'.'.join(path)}: is it an MLflow server?")
    return answer


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Follows no redirection: the token would go with it."""

    def redirect_request(self, *_given: Any) -> None:
        """Say that there is no other request."""


class _InTime(io.RawIOBase):
    """A stream with a deadline for all of it: the socket's time-out begins again with every byte."""

    def __init__(self, stream: io.RawIOBase) -> None:
        """Begin now."""
        self._stream, self._until = stream, time.monotonic() + WHOLE_ANSWER

    def readable(self) -> bool:
        """Say that it is."""
        return True

    def readinto(self, buffer: Any) -> int | None:
        """Read what has come. Raise TimeoutError."""
        if time.monotonic() >= self._until:
            raise TimeoutError(f"the answer is not complete after {WHOLE_ANSWER:g} s")
        return self._stream.readinto(buffer)

    def close(self) -> None:
        """Close the stream below, too."""
        self._stream.close()
        super().close()


class _Answer(http.client.HTTPResponse):
    """An answer with a deadline, from the first byte of its head to the last of its body."""

    def __init__(self, sock: socket.socket, *given: Any, **named: Any) -> None:
        """Read from this socket."""
        super().__init__(sock, *given, **named)
        self.fp = io.BufferedReader(_InTime(self.fp.detach()))


class _HttpConnection(http.client.HTTPConnection):
    response_class = _Answer


class _HttpsConnection(http.client.HTTPSConnection):
    response_class = _Answer


class _Http(urllib.request.HTTPHandler):
    def http_open(self, request: urllib.request.Request) -> http.client.HTTPResponse:
        """Open a connection whose answers have a deadline."""
        return self.do_open(_HttpConnection, request)


class _Https(urllib.request.HTTPSHandler):
    def __init__(self, context: ssl.SSLContext) -> None:
        """Trust what the context trusts."""
        super().__init__(context=context)
        self._trusted = context

    def https_open(self, request: urllib.request.Request) -> http.client.HTTPResponse:
        """Open a connection whose answers have a deadline."""
        return self.do_open(_HttpsConnection, request, context=self._trusted)


def _told(error: urllib.error.HTTPError) -> tuple[str, str]:
    """Return the server's own code and message, if it has one."""
    try:
        found = strict_json.parse(error.read(1 << 16))
        return str(found.get("error_code", "")), str(found.get("message", ""))[:300]
    except (AttributeError, *_NO_ANSWER):
        return "", str(error.reason)


def read_token(path: Path) -> str:
    """Return the token in a file that only its owner can read. Raise KitError, which does not quote it."""
    try:
        found = path.stat()
        if not stat.S_ISREG(found.st_mode) or found.st_mode & 0o077:
            raise KitError(f"{path} has mode {found.st_mode & 0o7777:04o}, expected 0600: chmod 600 {path}")
        token = path.read_text(encoding="ascii").strip()
    except (OSError, ValueError) as error:
        raise KitError(f"{path} cannot be read: {type(error).__name__}") from None
    if not token or not token.isprintable() or " " in token:
        raise KitError(f"{path} holds no token: expected one word")
    return token
