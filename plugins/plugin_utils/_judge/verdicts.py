# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Judge evidence by criteria. Pure; works the same for a run that has just ended and for saved evidence.

Anything that is not established is `undetermined`, including unexpected errors; only evidence makes a `pass`.
PRIVATE to the collection.
"""

from __future__ import annotations

import datetime
from typing import Any, NamedTuple

from ansible_collections.mlops.hpc_validation.plugins.module_utils._common import scalars
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._judge.applies import not_applicable
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._judge.criterion import JOB_ID, Criterion
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._judge.job import judge_job
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._judge.rows import (
    Missing,
    UndeterminedError,
    with_reduced_fields,
)
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._judge.soundness import require_collected
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._judge.sources import (
    Reading,
    bound_of,
    described,
    judge_source,
    needs_baseline,
)


def judge(
    evidence: dict[str, Any],
    criteria: list[Criterion],
    *,
    references: dict[str, Any] | None = None,
    today: datetime.date,
) -> list[dict[str, Any]]:
    """Return the judged criteria: the job's own outcome first, then the criteria in their order.

    `today` decides whether a waiver still holds. No content of the evidence raises an exception.
    """
    whole = with_reduced_fields(evidence) if isinstance(evidence, dict) else {}
    judged = [_judge_one(criterion, whole, references or {}, today) for criterion in criteria]
    return [judge_job(whole.get("job")), *judged]


def overall(judged: list[dict[str, Any]]) -> str:
    """Return `fail` if any gate fails, `pass` if all applicable gates pass and there is one, else `undetermined`.

    The job's own outcome is a gate, but is not enough for a pass on its own.
    """
    gates = [entry for entry in judged if entry.get("severity") == "gate"]
    verdicts = [entry.get("verdict") for entry in gates]
    if "fail" in verdicts:
        return "fail"
    if any(verdict not in ("pass", "not_applicable", "waived") for verdict in verdicts):
        return "undetermined"
    if not any(entry.get("verdict") == "pass" and entry.get("id") != JOB_ID for entry in gates):
        return "undetermined"
    return "pass"


class _Result(NamedTuple):
    verdict: str
    value: Any
    why: str
    remedy: str | None = None


def _judge_one(
    criterion: Criterion, evidence: dict[str, Any], references: dict[str, Any], today: datetime.date
) -> dict[str, Any]:
    allowed = criterion.missing
    reading = Reading(evidence, references, Missing(allowed.rows if allowed else 0))
    result = _result(criterion, reading)
    needs_remedy = result.verdict not in ("pass", "not_applicable")
    why, found = result.why, reading.missing.found
    if allowed and found:
        why = f"{why}; missing in {found} of its rows, which is allowed: {allowed.reason}"
    verdict, why = _weighed(criterion, result.verdict, why, today)
    judged = {
        "id": criterion.id,
        "title": criterion.title,
        "verdict": verdict,
        "value": scalars.bounded(result.value),
        "bound": bound_of(criterion.source),
        "unit": criterion.unit,
        "source": scalars.printable(described(criterion.source, evidence, reading.roots)),
        "why": scalars.printable(why),
        "remedy": (result.remedy or criterion.remedy) if needs_remedy else None,
        "bound_from": criterion.bound_from,
        "severity": criterion.severity,
        "against_baseline": needs_baseline(criterion.source),
    }
    return {**judged, "missing": found} if allowed else judged


def _result(criterion: Criterion, reading: Reading) -> _Result:
    try:
        reason = not_applicable(criterion, reading.evidence.get("context"), reading.references)
        if reason is not None:
            return _Result("not_applicable", None, reason)
        require_collected(reading.evidence)
        outcome = judge_source(criterion.source, reading)
    except UndeterminedError as exc:
        return _Result("undetermined", reading.value, str(exc), exc.remedy)
    except Exception as exc:  # no other error in judging may let a criterion pass
        said = f"{type(exc).__name__}: {scalars.printable(str(exc))}"
        return _Result("undetermined", reading.value, f"judging it failed: {said}")
    return _Result("pass" if outcome.met is True else "fail", outcome.value, outcome.why, outcome.remedy)


def _weighed(criterion: Criterion, verdict: str, why: str, today: datetime.date) -> tuple[str, str]:
    """Return the verdict and reason of a criterion, which may be only recorded or waived."""
    waiver = criterion.waiver
    if criterion.severity == "record" and verdict != "not_applicable":
        return "recorded", f"only recorded (would be {verdict}): {why}"
    if verdict != "fail" or waiver is None:
        return verdict, why
    if today <= waiver.expires:
        return "waived", f"{why}; waived until {waiver.expires}: {waiver.reason}"
    return verdict, f"{why}; the waiver expired on {waiver.expires} ({waiver.reason})"
