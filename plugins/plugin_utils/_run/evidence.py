# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Write and read evidence on the controller. PRIVATE to the collection."""

from __future__ import annotations

import json
from typing import Any

from ansible_collections.mlops.hpc_validation.plugins.module_utils._common.atomic import write_atomic
from ansible_collections.mlops.hpc_validation.plugins.module_utils._evidence import collector
from ansible_collections.mlops.hpc_validation.plugins.module_utils._evidence import document as evidence_document
from ansible_collections.mlops.hpc_validation.plugins.module_utils._evidence.opening import EvidenceError

MAX_BYTES = 64 << 20
_PARTS = {"logs": dict, "artifacts": dict, "files": dict, "problems": list}


class EvidenceStoreError(Exception):
    """The saved file cannot be read, or is not an evidence document."""


def nothing_collected(detail: str, problem: str = "not_collected") -> dict[str, Any]:
    """Return an evidence document without evidence; every criterion judged on it is undetermined."""
    blame = {"source": collector.EVERYTHING, "path": "", "problem": problem, "detail": detail}
    return {"schema": collector.SCHEMA, "logs": {}, "artifacts": {}, "files": {}, "problems": [blame]}


def load(path: str) -> dict[str, Any]:
    """Return saved evidence; raise EvidenceStoreError."""
    try:
        with open(path, "rb") as stream:
            content = stream.read(MAX_BYTES + 1)
        if len(content) > MAX_BYTES:
            raise EvidenceStoreError(f"{path}: larger than {MAX_BYTES} bytes")
        document = evidence_document.parse(content)
    except OSError as exc:
        raise EvidenceStoreError(f"{path}: {exc.strerror or exc}") from exc
    except EvidenceError as exc:
        raise EvidenceStoreError(f"{path}: {exc}") from exc
    if not isinstance(document, dict) or document.get("schema") != collector.SCHEMA:
        raise EvidenceStoreError(f"{path}: not an evidence document of schema {collector.SCHEMA}")
    for key, kind in _PARTS.items():
        if not isinstance(document.get(key), kind):
            raise EvidenceStoreError(f"{path}: {key} is missing or has the wrong type")
    return document


def is_evidence(document: Any) -> bool:
    """Return whether a document that was just collected has all parts of evidence."""
    return isinstance(document, dict) and all(isinstance(document.get(key), kind) for key, kind in _PARTS.items())


def save(document: dict[str, Any], path: str) -> None:
    """Write the document to `path` as a whole or not at all; raise OSError."""
    text = json.dumps(evidence_document.clean(document), indent=1, sort_keys=True, allow_nan=False)
    write_atomic(path, (text + "\n").encode("utf-8"))
