# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Read from a job's metrics which model it judged: a whole bundle of another may lie where its own lay. PRIVATE."""

from __future__ import annotations

import re
import typing as t
from pathlib import Path

from ansible_collections.mlops.hpc_validation.plugins.module_utils._common import scalars, strict_json
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._edge.problem import ProblemError

Json = dict[str, t.Any]
MAX_BYTES = 64 << 20
SHA256 = re.compile(r"[0-9a-f]{64}")


def sha256(path: Path, job: Json, model: str) -> str:
    """Return the SHA-256 of the model in the metrics of the job, `models.<model>.sha256`. Raise ProblemError."""
    try:
        with path.open("rb") as stream:
            content = stream.read(MAX_BYTES + 1)
        if len(content) > MAX_BYTES:
            raise ValueError(f"more than {MAX_BYTES} bytes")
        metrics = strict_json.parse(content)
    except (OSError, ValueError, RecursionError) as exc:
        why = exc.strerror if isinstance(exc, OSError) else exc
        raise ProblemError("metrics", f"which model was judged is not known: {path.name}: {why}") from exc
    theirs = [metrics.get(key) if isinstance(metrics, dict) else None for key in ("job_id", "attempt")]
    if theirs != [job["job_id"], job["attempt"]] or isinstance(theirs[1], bool):
        raise ProblemError("metrics", f"which model was judged is not known: {path.name} is of another job or attempt")
    found = metrics
    for key in ("models", model, "sha256"):
        found = found.get(key) if isinstance(found, dict) else None
    if not isinstance(found, str) or not SHA256.fullmatch(found):
        told = f"models.{model}.sha256 in {path.name} is {scalars.describe(found)}"
        raise ProblemError("metrics", f"which model was judged is not known: {told}")
    return found
