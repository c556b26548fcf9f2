# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Read one JSON document of a job completely, or raise an error that says why not. PRIVATE to the collection."""

from __future__ import annotations

import json
from typing import Any, BinaryIO

from ansible_collections.mlops.hpc_validation.plugins.module_utils._common import scalars, strict_json
from ansible_collections.mlops.hpc_validation.plugins.module_utils._evidence.opening import EvidenceError

MAX_DEPTH = 64
BLOCK_BYTES = 1 << 20


def read_json(stream: BinaryIO, limit: int, job_id: str, attempt: int) -> dict[str, Any]:
    """Return the JSON object of at most `limit` bytes that this job and attempt wrote; else raise EvidenceError."""
    content = b""
    while len(content) <= limit:
        block = stream.read(min(limit + 1 - len(content), BLOCK_BYTES))
        if not block:
            break
        content += block
    if len(content) > limit:
        raise EvidenceError("too_large", f"more than {limit} bytes")
    document = parse(content)
    if not isinstance(document, dict):
        raise EvidenceError("foreign", f"expected an object that names its job, found {scalars.describe(document)}")
    require_own(document, job_id, attempt)
    return document


def require_own(row: dict[str, Any], job_id: str, attempt: int) -> None:
    """Raise EvidenceError unless `row` says that this job and attempt wrote it."""
    found = row.get("job_id"), row.get("attempt")
    if found != (job_id, attempt) or isinstance(found[1], bool):
        told = f"job {scalars.show(found[0])} attempt {scalars.show(found[1])}"
        raise EvidenceError("foreign", f"it was written by {told}, not by job {job_id} attempt {attempt}")


def parse(content: bytes) -> Any:
    """Return the JSON value in `content`; non-finite numbers become their markers."""
    if not content.strip():
        raise EvidenceError("empty", "it has no content")
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as exc:
        raise EvidenceError("not_json", f"byte {exc.start} is not UTF-8") from exc
    try:
        document = strict_json.parse(text, parse_constant=scalars.non_finite)
    except strict_json.DuplicateKeyError as exc:
        raise EvidenceError("duplicate_key", str(exc)) from exc
    except json.JSONDecodeError as exc:
        end = exc.pos >= len(text.rstrip())
        problem = "truncated" if end or exc.msg.startswith("Unterminated string") else "not_json"
        raise EvidenceError(problem, f"line {exc.lineno}, column {exc.colno}: {exc.msg}") from exc
    except RecursionError as exc:
        raise EvidenceError("not_json", f"nested deeper than {MAX_DEPTH}") from exc
    except ValueError as exc:  # a number of thousands of digits
        raise EvidenceError("not_json", str(exc)) from exc
    return clean(document)


def clean(value: Any, depth: int = 0) -> Any:
    """Return `value` as JSON that every reader accepts: bounded in depth, finite, without lone surrogates in text."""
    if depth > MAX_DEPTH:
        raise EvidenceError("not_json", f"nested deeper than {MAX_DEPTH}")
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode("utf-8")
    if isinstance(value, list):
        return [clean(item, depth + 1) for item in value]
    if isinstance(value, dict):
        result = {clean(key): clean(item, depth + 1) for key, item in value.items()}
        if len(result) != len(value):
            raise EvidenceError("duplicate_key", "two keys of one object differ only in invalid characters")
        return result
    if isinstance(value, float):
        return scalars.bounded(value)
    return value
