# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Writes and reads evidence on the controller. PRIVATE to the collection."""

from __future__ import annotations

import datetime
import json
from typing import Any

from ansible_collections.mlops.hpc_validation.plugins.module_utils import _evidence, _evidence_json
from ansible_collections.mlops.hpc_validation.plugins.module_utils._atomic import write_atomic
from ansible_collections.mlops.hpc_validation.plugins.module_utils._criteria import EVERYTHING
from ansible_collections.mlops.hpc_validation.plugins.module_utils._evidence_io import EvidenceError

MAX_BYTES = 64 << 20
_PARTS = {"logs": dict, "artifacts": dict, "files": dict, "problems": list}


class EvidenceStoreError(Exception):
    """A saved document cannot be read or is none; the message says which and why."""


def plain(value: Any) -> Any:
    """Return `value` in JSON's own types: Ansible hands out subclasses that carry tags, YAML hands out dates."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, int):
        return int.__add__(value, 0)
    if isinstance(value, float):
        return float.__add__(value, 0.0)
    if isinstance(value, dict):
        return {str.__str__(key) if isinstance(key, str) else str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, (datetime.date, datetime.datetime)):
        return value.isoformat()
    return str(value)


def nothing_collected(detail: str, problem: str = "not_collected") -> dict[str, Any]:
    """Return an evidence document that says that there is none; every criterion over it is undetermined."""
    blame = {"source": EVERYTHING, "path": "", "problem": problem, "detail": detail}
    return {"schema": _evidence.SCHEMA, "logs": {}, "artifacts": {}, "files": {}, "problems": [blame]}


def load(path: str) -> dict[str, Any]:
    """Return saved evidence; raise EvidenceStoreError."""
    try:
        with open(path, "rb") as stream:
            content = stream.read(MAX_BYTES + 1)
        if len(content) > MAX_BYTES:
            raise EvidenceStoreError(f"{path}: larger than {MAX_BYTES} bytes")
        document = _evidence_json.parse(content)
    except OSError as exc:
        raise EvidenceStoreError(f"{path}: {exc.strerror or exc}") from exc
    except EvidenceError as exc:
        raise EvidenceStoreError(f"{path}: {exc}") from exc
    if not isinstance(document, dict) or document.get("schema") != _evidence.SCHEMA:
        raise EvidenceStoreError(f"{path}: this is no evidence document of schema {_evidence.SCHEMA}")
    for key, kind in _PARTS.items():
        if not isinstance(document.get(key), kind):
            raise EvidenceStoreError(f"{path}: {key} is missing or not what it should be")
    return document


def is_evidence(document: Any) -> bool:
    """Say whether a document that was just collected has the parts of one."""
    return isinstance(document, dict) and all(isinstance(document.get(key), kind) for key, kind in _PARTS.items())


def save(document: dict[str, Any], path: str) -> None:
    """Write the document to `path` as a whole or not at all; raise OSError."""
    text = json.dumps(_evidence_json.clean(document), indent=1, sort_keys=True, allow_nan=False)
    write_atomic(path, (text + "\n").encode("utf-8"))
