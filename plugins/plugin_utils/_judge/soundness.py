# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Decide whether evidence can be relied on: it was collected, is complete, and is from this run and its time.

If it cannot, `UndeterminedError` is raised. Pure. PRIVATE to the collection.
"""

from __future__ import annotations

from typing import Any

from ansible_collections.mlops.hpc_validation.plugins.module_utils._common import scalars
from ansible_collections.mlops.hpc_validation.plugins.module_utils._evidence.collector import EVERYTHING
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._judge import query
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._judge.criterion import Expression
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._judge.job import never_began, says_its_id
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._judge.rows import (
    Missing,
    UndeterminedError,
    is_rows,
)

Json = dict[str, Any]

# Seconds between the clocks of Slurm and the share: with a larger difference munge rejects the hosts' messages.
CLOCKS_APART = 300
# In other rows `time` may be anything, such as seconds since the start.
ROWS_OF_THE_KIT = ("gpu",)
# The controller writes these into the job's folder after the job: what was measured elsewhere takes time.
WRITTEN_AFTERWARDS = ("edge",)
# The parts of the evidence itself; every other key is a document that was read.
PARTS = ("schema", "job", "context", "logs", "artifacts", "files", "problems", "baseline", "leg", "versions")
# Of these, the parts that the job wrote, although they do not name it.
PARTS_OF_THE_JOB = ("artifacts", "files")
_NOT_BY_QUERY = {
    "logs": "use log with absent or present, which check that the log is complete",
    "baseline": "use ratio_ge or ratio_le, which check that its runs can be compared",
}

_REMEDIES = {
    "missing": (
        "See the job's log for why the file was not written. A job writes into the folder that OUTPUT_DIR names, "
        "under the name that the manifest gives (output, artifacts)."
    ),
    "foreign": "The file was written by another job or attempt; run the workload again.",
    "empty": "Nothing is in the file; check in the job's log whether it was killed, or the share was full.",
    "truncated": "The file is cut off; check whether the job was killed or the share was full.",
    "not_json": "Look at the file; the workload did not write valid JSON.",
    "unreadable": "Check that the user that Ansible connects as may read the file.",
    "changed": "The file is still being written; judge again when the job has ended.",
    "not_searchable": "Have the workload write its logs in UTF-8: check PYTHONIOENCODING and the locale.",
    "timeout": "The share did not answer in time; check its mount on the host that reads it.",
    "not_collected": "Check that the login node can be reached, then run again.",
}


class FieldMissingError(UndeterminedError):
    """The document exists but does not have the field."""


def evaluate(expression: Expression, evidence: Json, roots: set[str], missing: Missing) -> Any:
    """Return what the expression finds in documents that can be relied on; `roots` collects their names."""
    try:
        value = query.evaluate(expression.tree, evidence, roots, missing)
    except query.UnansweredError as exc:
        _require_sound(expression, evidence, roots)
        why = f"{expression.text}: {exc}"
        if exc.root is not None or not all(isinstance(evidence[root], dict) for root in roots):
            raise UndeterminedError(why) from exc
        raise FieldMissingError(why) from exc
    _require_sound(expression, evidence, roots)
    _named_job(evidence)  # What may be any job's proves nothing, not even in the parts that the job did not write.
    return value


def problem_of(evidence: Json, source: str) -> Json | None:
    """Return the problem in collecting `source`, or None."""
    problems = evidence.get("problems")
    if not isinstance(problems, list) or not all(isinstance(entry, dict) for entry in problems):
        raise UndeterminedError("the evidence has no list of problems in collecting it")
    return next((entry for entry in problems if entry.get("source") == source), None)


def require_read(evidence: Json, source: str) -> None:
    """Raise unless `source` was collected without a problem."""
    problem = problem_of(evidence, source)
    if problem is not None:
        raise undetermined_by(problem)


def require_collected(evidence: Json) -> None:
    """Raise if nothing of the evidence was collected."""
    require_read(evidence, EVERYTHING)


def undetermined_by(problem: Json) -> UndeterminedError:
    """Return the error for a problem in collecting, with its remedy."""
    kind, source = str(problem.get("problem")), problem.get("source")
    parts = [
        str(problem.get("path") or ("" if source == EVERYTHING else source)),
        kind.replace("_", " "),
        str(problem.get("detail", "")),
    ]
    why = scalars.printable(": ".join(part for part in parts if part))
    return UndeterminedError(why, _REMEDIES.get(kind))


def _named_job(evidence: Json) -> Json:
    """Return the job of the evidence, which says its ID, whether or not it began."""
    job = evidence.get("job")
    if not isinstance(job, dict) or not says_its_id(job):
        raise UndeterminedError("the evidence does not say which job it is from")
    return job


def job_of(evidence: Json) -> Json:
    """Return the job of the evidence, which must have begun."""
    job = _named_job(evidence)
    if never_began(job):
        raise UndeterminedError("the job never started: an older job with the same ID left the files in its folder")
    return job


def is_same_run(marker: Json, job: Json) -> bool:
    """Return whether a file's job and attempt are those of this job."""
    attempts = marker.get("attempt"), job.get("attempt")
    return marker.get("job_id") == job["job_id"] and all(map(is_integer, attempts)) and attempts[0] == attempts[1]


def is_integer(value: Any) -> bool:
    """Return whether `value` is a whole number, which a boolean is not."""
    return isinstance(value, int) and not isinstance(value, bool)


def require_own(evidence: Json, root: str) -> None:
    """Raise if a document could not be read, or was written by another job."""
    require_read(evidence, root)
    if root not in evidence or (root in PARTS and root not in PARTS_OF_THE_JOB):
        return
    job, document = job_of(evidence), evidence[root]
    if root not in PARTS and not is_rows(document):
        if not isinstance(document, dict) or "job_id" not in document:
            raise UndeterminedError(f"{scalars.printable(root)} does not say which job wrote it")
        if not is_same_run(document, job):
            raise UndeterminedError(f"{scalars.printable(root)} is from another job or attempt")
    doubt = _time_doubt(evidence, root, job)
    if doubt is not None:
        raise UndeterminedError(doubt)


def _require_sound(expression: Expression, evidence: Json, roots: set[str]) -> None:
    """Raise if a document that the expression read cannot be relied on."""
    for root in sorted(roots):
        if root in _NOT_BY_QUERY:
            raise UndeterminedError(f"{root} cannot be judged by a query; {_NOT_BY_QUERY[root]}")
        require_own(evidence, root)
        document: Any = evidence.get(root)
        if not is_rows(document):
            continue
        # A row that could not be read may be the one that mattered.
        malformed = document["malformed"]
        if not (is_integer(malformed) and malformed == 0) and query.fields(expression.tree) != {root, "malformed"}:
            raise UndeterminedError(f"{root}: {malformed} of its lines are malformed, or belong to no group")


def _time_doubt(evidence: Json, root: str, job: Json) -> str | None:
    """Return how times show that the job did not write a file or its node's clock was wrong; None if they do not."""
    files, document = evidence.get("files"), evidence.get(root)
    file = files.get(root) if isinstance(files, dict) else None
    if not isinstance(file, dict):
        return None
    path = scalars.printable(str(file.get("path", root)))
    oldest, newest = _row_times(document) if root in ROWS_OF_THE_KIT else (None, None)
    for claim, first, last in (
        ("says that it was written", file.get("mtime"), file.get("mtime")),
        ("has a row of", oldest, newest),
    ):
        for key, sign, time, words in (
            ("started", -1, first, "before the job began"),
            ("ended", 1, last, "after the job ended"),
        ):
            if key == "ended" and root in WRITTEN_AFTERWARDS:
                continue
            if not (scalars.is_number(time) and scalars.is_number(job.get(key))):
                continue
            off = sign * (time - job[key])
            if off > CLOCKS_APART:
                return f"{path} {claim} {off:.0f} s {words}"
    return None


def _row_times(document: Any) -> tuple[Any, Any]:
    """Return the oldest and the newest time in rows, by the clock of the node that wrote them."""
    for key in ("fields", "time"):
        document = document.get(key) if isinstance(document, dict) else None
    return (document.get("min"), document.get("max")) if isinstance(document, dict) else (None, None)
