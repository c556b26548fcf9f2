# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Compare a bundle with what its job judged: a whole one of another model may lie where its own lay. PRIVATE."""

from __future__ import annotations

import hashlib
import re
import typing as t
from pathlib import Path

from ansible_collections.mlops.hpc_validation.plugins.module_utils._common import scalars, strict_json
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._edge.bundle import Bundle
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._edge.problem import ProblemError

Json = dict[str, t.Any]
MAX_BYTES = 67_108_864
SHA256 = re.compile(r"[0-9a-f]{64}")
CHUNK = 1_048_576
UNKNOWN = "which model was judged is not known"


class OtherBundleError(ProblemError):
    """A bundle is not the one that its job judged, for certain."""


def sha256(path: Path, job: Json, bundle: Bundle) -> str:
    """Return the SHA-256 of the model that the job judged, by its metrics at `path`: its bundle is this one.

    Raise OtherBundleError, whose id is `bundle`, if it is not; ProblemError, `metrics`, if that is not known.
    """
    metrics = _metrics(path, job)
    judged = _text(metrics, path, "deployed")
    if bundle.deployed != judged:
        raise OtherBundleError(
            "bundle", f"deploy.zip is not the one that was judged: it deploys {bundle.deployed}; expected {judged}"
        )
    expected, found = _digest(metrics, path, "bundle", "sha256"), _sha256(bundle.path)
    if found != expected:
        raise OtherBundleError(
            "bundle", f"deploy.zip is not the one that was judged: its SHA-256 is {found}; expected {expected}"
        )
    return _digest(metrics, path, "models", judged, "sha256")


def _metrics(path: Path, job: Json) -> Json:
    """Return the metrics at `path`, of this job and this attempt. Raise ProblemError."""
    try:
        with path.open("rb") as stream:
            content = stream.read(MAX_BYTES + 1)
        if len(content) > MAX_BYTES:
            raise ValueError(f"more than {MAX_BYTES} bytes")
        metrics = strict_json.parse(content)
    except (OSError, ValueError, RecursionError) as exc:
        why = exc.strerror if isinstance(exc, OSError) else exc
        raise ProblemError("metrics", f"{UNKNOWN}: {path.name}: {why}") from exc
    theirs = [metrics.get(key) if isinstance(metrics, dict) else None for key in ("job_id", "attempt")]
    if theirs != [job["job_id"], job["attempt"]] or isinstance(theirs[1], bool):
        raise ProblemError("metrics", f"{UNKNOWN}: {path.name} is of another job or attempt")
    return t.cast(Json, metrics)


def _text(metrics: Json, path: Path, *keys: str) -> str:
    """Return the text at the keys. Raise ProblemError."""
    found: t.Any = metrics
    for key in keys:
        found = found.get(key) if isinstance(found, dict) else None
    if not isinstance(found, str):
        raise ProblemError(
            "metrics", f"{UNKNOWN}: {'.'.join(keys)} in {path.name} is {scalars.describe(found)}; expected text"
        )
    return found


def _digest(metrics: Json, path: Path, *keys: str) -> str:
    """Return the SHA-256 at the keys. Raise ProblemError."""
    found = _text(metrics, path, *keys)
    if not SHA256.fullmatch(found):
        raise ProblemError(
            "metrics", f"{UNKNOWN}: {'.'.join(keys)} in {path.name} is {scalars.describe(found)}; expected a SHA-256"
        )
    return found


def _sha256(path: Path) -> str:
    """Return the SHA-256 of a file. Raise ProblemError."""
    found = hashlib.sha256()
    try:
        with path.open("rb") as stream:
            while chunk := stream.read(CHUNK):
                found.update(chunk)
    except OSError as exc:
        raise ProblemError("bundle", f"{path} cannot be read: {exc.strerror}") from exc
    return found.hexdigest()
