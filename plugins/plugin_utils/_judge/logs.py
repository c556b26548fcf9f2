# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Judge the lines of a job's logs. A log must be complete: finding nothing in half a log proves nothing.

Pure. PRIVATE to the collection.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ansible_collections.mlops.hpc_validation.plugins.module_utils._common import scalars
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._judge.comparisons import Outcome
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._judge.criterion import Log
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._judge.rows import UndeterminedError
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._judge.soundness import (
    Json,
    is_integer,
    is_same_run,
    job_of,
    require_read,
)

# The version of end lines that have a nonce, and are collected with what follows them.
_END_LINE = 2
_QUOTED = 3


@dataclass
class _Search:
    """The result of searching some logs, and what makes it doubtful."""

    total: int = 0
    hits: list[Json] = field(default_factory=list)
    doubts: list[str] = field(default_factory=list)
    remedy: str | None = None


def judge_log(source: Log, evidence: Json) -> Outcome:
    """Judge whether the logs have lines that match the set; raise UndeterminedError."""
    search = _search(source, evidence)
    total, names = search.total, " and ".join(source.names)
    lines = [f"{hit['log']} line {hit.get('line')}: {scalars.show(hit.get('text'))}" for hit in search.hits]
    quoted = "; ".join(lines[:_QUOTED]) + (f"; and {total - _QUOTED} more" if total > _QUOTED else "")
    if not source.wanted and total:
        known = (hit["remedy"] for hit in search.hits if hit.get("remedy"))
        return Outcome(False, total, quoted, next(known, search.remedy))
    if search.doubts:
        raise UndeterminedError("; ".join(search.doubts), search.remedy)
    if not source.wanted:
        return Outcome(True, 0, f"none in {names}, read to the job's end marker")
    return Outcome(total > 0, total, quoted if total else f"none in {names}")


def _search(source: Log, evidence: Json) -> _Search:
    search = _Search()
    for name in source.names:
        try:
            document = _document(name, evidence)
            doubt = _end_doubt(name, document, evidence)
            if doubt is not None:
                search.doubts.append(doubt)
            count, found = _hits(name, document, source.patterns)
        except UndeterminedError as exc:
            search.doubts.append(str(exc))
            search.remedy = exc.remedy or search.remedy
            continue
        search.total += count
        search.hits.extend({"log": name, **hit} for hit in found)
    return search


def _document(name: str, evidence: Json) -> Json:
    """Return the collected log, which must be from this run."""
    require_read(evidence, f"logs.{name}")
    logs = evidence.get("logs")
    document = logs.get(name) if isinstance(logs, dict) else None
    if not isinstance(document, dict):
        raise UndeterminedError(f"the evidence has no log {name}")
    job = job_of(evidence)
    end = document.get("end") or document.get("other_end")
    if isinstance(end, dict) and not is_same_run(end, job):
        raise UndeterminedError(
            f"{name} is of job {scalars.show(end.get('job_id'))} attempt {scalars.show(end.get('attempt'))}"
        )
    return document


def _hits(name: str, document: Json, patterns: str) -> tuple[int, list[Json]]:
    """Return how many lines match the set, and the first of them."""
    counts, hits = document.get("counts"), document.get("hits")
    count: Any = counts.get(patterns) if isinstance(counts, dict) else None
    found = hits.get(patterns) if isinstance(hits, dict) else None
    if not is_integer(count) or not isinstance(found, list) or not all(isinstance(hit, dict) for hit in found):
        raise UndeterminedError(f"{name} was not searched for {patterns}")
    if count < len(found) or (count > 0 and not found):
        raise UndeterminedError(f"{name} is said to have {count} lines of {patterns}, and {len(found)} are quoted")
    return count, found


def _end_doubt(name: str, document: Json, evidence: Json) -> str | None:
    """Return why the log may be incomplete, or None if it is complete."""
    end = document.get("end")
    if not isinstance(end, dict):
        empty = "is empty" if document.get("bytes") == 0 else "has no end marker of this job"
        doubt = document.get("end_doubt")
        return f"{name} {empty}, so it may be incomplete{f': {scalars.printable(doubt)}' if doubt else ''}"
    code = job_of(evidence).get("exit_code")
    if not is_integer(code) or not is_integer(end.get("exit_code")) or end["exit_code"] != code:
        return f"{name} ends with exit code {scalars.show(end.get('exit_code'))} and Slurm says {scalars.show(code)}"
    return _after_doubt(name, end, evidence)


def _after_doubt(name: str, end: Json, evidence: Json) -> str | None:
    """Return what follows the end line as a doubt. Evidence saved by a version that did not look has no `versions`."""
    if "versions" not in evidence:
        return None
    versions = evidence["versions"]
    if not isinstance(versions, dict) or versions.get("end_line") != _END_LINE or "after" not in end:
        return f"the evidence does not say what follows the end line of {name}"
    after = end["after"]
    if after is None:
        return None
    line, text = (after.get("line"), after.get("text")) if isinstance(after, dict) else (None, after)
    return f"{name} goes on after its end line, in line {scalars.show(line)}: {scalars.show(text)}"
