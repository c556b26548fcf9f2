# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Collect the requested evidence of a job where its files are, in bounded memory and time.

PRIVATE to the collection.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import hashlib
import json
import os
import select
import signal
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from ansible_collections.mlops.hpc_validation.plugins.module_utils._common import strict_json
from ansible_collections.mlops.hpc_validation.plugins.module_utils._evidence import document as evidence_document
from ansible_collections.mlops.hpc_validation.plugins.module_utils._evidence import log, reduce
from ansible_collections.mlops.hpc_validation.plugins.module_utils._evidence.opening import (
    EvidenceError,
    OpenFile,
    open_regular,
    whereabouts,
)

SCHEMA = 1
EVERYTHING = "*"  # the source of a problem that affects all of the evidence
# The version of words in a document whose meaning has changed. An end line of version 2 holds the nonce of the job's
# end marker, and records what follows it.
VERSIONS = {"end_line": 2}
RESERVED = ("schema", "job", "context", "logs", "artifacts", "files", "problems", "baseline", "leg", "versions")
FORMATS = ("json", "jsonl", "csv")
SETTLE_STEP = 0.5
UNSETTLED = ("missing", "empty", "truncated", "changed")

Source = tuple[str, str]


@dataclass(frozen=True)
class Request:
    """What to collect: paths in `files` and `artifacts` are below `output`; sizes in bytes, times in seconds.

    The paths may be absolute. `end_marker` is the file that the kit wrote when the job's script had ended; without it
    no log is known to be complete. `settle` is how long to wait for a file that is missing or incomplete: on a
    parallel file system, other hosts see late what was written.
    """

    job_id: str
    attempt: int
    output: str
    files: dict[str, dict[str, Any]] = field(default_factory=dict)
    logs: dict[str, str] = field(default_factory=dict)
    end_marker: str = ""
    artifacts: list[str] = field(default_factory=list)
    patterns: dict[str, Any] = field(default_factory=dict)
    max_json: int = 1 << 20
    settle: float = 5.0

    @functools.cached_property
    def search(self) -> log.LogSearch:
        """The patterns, compiled once for all logs. Raise PatternsError."""
        return log.compile_sets(self.patterns)

    def sources(self) -> list[Source]:
        """Return (section, name) of everything asked for."""
        return [
            *(("files", name) for name in self.files),
            *(("logs", name) for name in self.logs),
            *(("artifacts", name) for name in self.artifacts),
        ]

    def path(self, source: Source) -> str:
        """Return the path that a source is read from."""
        section, name = source
        if section == "logs":
            return self.logs[name]
        relative = self.files[name]["path"] if section == "files" else name
        return os.path.join(self.output, relative)


def check(request: Request) -> list[str]:
    """Return a message for every problem with the request itself; nothing is read."""
    errors = []
    for name, wanted in request.files.items():
        if not name or name in RESERVED:
            errors.append(f"files: {name!r}: expected a name other than {', '.join(RESERVED)}")
        if wanted.get("format") not in FORMATS:
            errors.append(
                f"files: {name}: format: expected one of {', '.join(FORMATS)}, found {wanted.get('format')!r}"
            )
        path = wanted.get("path")
        if not isinstance(path, str) or not _lies_below(request.output, path):
            errors.append(f"files: {name}: path: expected a path below the output directory, found {path!r}")
    for name in request.artifacts:
        if not isinstance(name, str) or not _lies_below(request.output, name):
            errors.append(f"artifacts: expected a path below the output directory, found {name!r}")
    if not os.path.isabs(request.output):
        errors.append(f"output: expected an absolute path, found {request.output!r}")
    for name, path in request.logs.items():
        if not os.path.isabs(path):
            errors.append(f"logs: {name}: expected an absolute path, found {path!r}")
    if request.end_marker and not os.path.isabs(request.end_marker):
        errors.append(f"end_marker: expected an absolute path, found {request.end_marker!r}")
    return errors


def collect(request: Request, timeout: float) -> dict[str, Any]:
    """Return the evidence document without job and context. What cannot be read within `timeout` seconds is a problem.

    A child process does the reading: a read from a dead file system cannot be interrupted, only abandoned.
    """
    _compiled = request.search  # before the fork: the child has it, and what cannot be compiled is the caller's error
    return document(request, _answers_of_child(request, time.monotonic() + timeout), f"within {timeout:g} s")


def answers(request: Request) -> Iterator[dict[str, Any]]:
    """Yield what each source holds, or why it is a problem, reading in this process."""
    until = time.monotonic() + request.settle
    for source in request.sources():
        yield _read(request, source, until)


def document(request: Request, answered: Iterable[dict[str, Any]], limit: str) -> dict[str, Any]:
    """Return the evidence document of what was answered; a source that was not is a problem."""
    evidence: dict[str, Any] = {
        "schema": SCHEMA,
        "versions": dict(VERSIONS),
        "logs": {},
        "artifacts": {},
        "files": {},
        "problems": [],
    }
    missing = request.sources()
    for answer in answered:
        missing = [source for source in missing if source != (answer["section"], answer["name"])]
        _enter(evidence, answer)
    for source in missing:
        detail = f"it could not be read {limit}, or the reader died"
        _enter(evidence, _problem(request, source, "timeout", detail))
    return evidence


def _lies_below(folder: str, path: str) -> bool:
    """Return whether `path`, relative to `folder` or absolute, names a file below `folder`; nothing is read."""
    if not path or "\0" in path or ".." in path.split("/"):
        return False
    return os.path.normpath(os.path.join(folder, path)).startswith(os.path.normpath(folder).rstrip("/") + "/")


def _enter(evidence: dict[str, Any], answer: dict[str, Any]) -> None:
    section, name = answer["section"], answer["name"]
    if "problem" in answer:
        source = name if section == "files" else f"{section}.{name}"
        entry = {"source": source, "path": answer["path"], "problem": answer["problem"], "detail": answer["detail"]}
        evidence["problems"].append(entry)
        return
    evidence[section][name] = answer["entry"]
    if section == "files":
        evidence[name] = answer["document"]


def _answers_of_child(request: Request, deadline: float) -> Iterator[dict[str, Any]]:
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        _child(request, reading, writing)
    os.close(writing)
    buffer = b""
    try:
        while True:
            ready, _unused, _unused = select.select([reading], [], [], max(0.0, deadline - time.monotonic()))
            block = os.read(reading, 1 << 16) if ready else b""
            if not block:
                break
            buffer += block
            *lines, buffer = buffer.split(b"\n")
            for line in lines:
                yield strict_json.parse(line)
    finally:
        os.close(reading)
        _end(child)


def _child(request: Request, reading: int, writing: int) -> None:
    """Read everything and write one line per source; never return into the parent's code."""
    try:
        os.close(reading)
        gc.disable()  # JSON has no cycles, and searching for them takes a tenth of the time
        # A process that waits for the module's output must not wait for a child that cannot be killed.
        null = os.open(os.devnull, os.O_RDWR)
        for standard in (0, 1, 2):
            os.dup2(null, standard)
        with os.fdopen(writing, "wb") as stream:
            for answer in answers(request):
                stream.write(json.dumps(answer, allow_nan=False).encode() + b"\n")
                stream.flush()
    except BaseException:  # a forked child cannot report errors; what it did not write is a problem
        os._exit(1)
    os._exit(0)


def _end(child: int) -> None:
    """Kill the child and reap it if it dies at once; abandon one that hangs in the kernel."""
    with contextlib.suppress(ProcessLookupError, ChildProcessError):
        os.kill(child, signal.SIGKILL)
        for _turn in range(100):
            if os.waitpid(child, os.WNOHANG)[0] == child:
                return
            select.select([], [], [], 0.01)


def _problem(request: Request, source: Source, problem: str, detail: str) -> dict[str, Any]:
    path = evidence_document.clean(request.path(source))
    return {"section": source[0], "name": source[1], "path": path, "problem": problem, "detail": detail}


def _read(request: Request, source: Source, until: float) -> dict[str, Any]:
    try:
        return _read_when_settled(request, source, until)
    except EvidenceError as exc:
        where = (
            f"; {whereabouts(request.path(source), request.output)}"
            if exc.problem == "missing" and source[0] != "logs"
            else ""
        )
        return _problem(request, source, exc.problem, exc.detail + where)
    except MemoryError:
        return _problem(request, source, "too_large", "there is not enough memory to read it")
    except Exception as exc:  # whatever it is, the file cannot be used as evidence
        return _problem(request, source, "unreadable", f"{type(exc).__name__}: {exc}")


def _read_when_settled(request: Request, source: Source, until: float) -> dict[str, Any]:
    """Retry until the clock shows `until`: this host may not see yet what another host has written."""
    while True:
        try:
            answer = _read_once(request, source)
            if source[0] != "logs" or answer["entry"]["end"] is not None or time.monotonic() >= until:
                return answer
        except EvidenceError as exc:
            if exc.problem not in UNSETTLED or time.monotonic() >= until:
                raise
        time.sleep(SETTLE_STEP)


def _read_once(request: Request, source: Source) -> dict[str, Any]:
    section, name = source
    path = request.path(source)
    root = None if section == "logs" else request.output
    answer: dict[str, Any] = {"section": section, "name": name}
    with open_regular(path, root) as opened:
        if section == "logs":
            nonce, doubt = _nonce(request)
            found = request.search.scan(opened.stream, nonce)
            answer["entry"] = {"path": path, **found, **({"end_doubt": doubt} if doubt else {})}
        elif section == "artifacts":
            answer["entry"] = {"path": path, "size": opened.size, "sha256": _sha256(opened)}
        else:
            answer["document"] = _document(request, name, opened)
            opened.stream.seek(0)
            entry = {"path": path, "size": opened.size, "sha256": _sha256(opened), "mtime": opened.mtime}
            answer["entry"] = entry
    result: dict[str, Any] = evidence_document.clean(answer)
    return result


def _nonce(request: Request) -> tuple[str, str | None]:
    """Return the nonce of the job's end lines, and why it is unknown; no end line holds an empty nonce."""
    if not request.end_marker:
        return "", "no end marker was named"
    try:
        with open_regular(request.end_marker, None) as opened:
            marker = evidence_document.read_json(opened.stream, request.max_json, request.job_id, request.attempt)
    except EvidenceError as exc:
        return "", f"the end marker {request.end_marker} is {exc}"
    nonce = marker.get("nonce")
    if not isinstance(nonce, str) or not nonce:
        return "", f"the end marker {request.end_marker} has no nonce"
    return nonce, None


def _document(request: Request, name: str, opened: OpenFile) -> dict[str, Any]:
    wanted = request.files[name]
    if wanted["format"] == "json":
        return evidence_document.read_json(opened.stream, request.max_json, request.job_id, request.attempt)
    return reduce.reduce_rows(
        opened.stream,
        wanted["format"],
        request.job_id,
        request.attempt,
        group_by=wanted.get("group_by"),
        x=wanted.get("x"),
    )


def _sha256(opened: OpenFile) -> str:
    digest = hashlib.sha256()
    while True:
        block = opened.stream.read(1 << 20)
        if not block:
            return digest.hexdigest()
        digest.update(block)
