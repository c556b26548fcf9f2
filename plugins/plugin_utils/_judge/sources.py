# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Judge each kind of source, and describe it for reports. Pure. PRIVATE to the collection."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from ansible_collections.mlops.hpc_validation.plugins.module_utils._common import scalars
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._judge import query
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._judge.comparisons import (
    Needs,
    Outcome,
    bound_text,
    is_against_baseline,
    judge_value,
)
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._judge.criterion import (
    Artifact,
    Each,
    Expression,
    Log,
    Query,
    Source,
    value_test,
)
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._judge.job import came_to_an_end
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._judge.logs import judge_log
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._judge.references import needs_of
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._judge.rows import Missing, UndeterminedError
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._judge.soundness import (
    FieldMissingError,
    Json,
    evaluate,
    is_integer,
    job_of,
    problem_of,
    undetermined_by,
)

_TOLD = 5


@dataclass
class Reading:
    """The evidence and references that one criterion reads, and what a report shows of them.

    `roots` are the documents that were read, `value` what is known even if it could not be judged.
    """

    evidence: Json
    references: Json
    missing: Missing
    roots: set[str] = field(default_factory=set)
    value: Any = None

    def find(self, expression: Expression) -> Any:
        """Return what the expression finds; raise UndeterminedError."""
        return evaluate(expression, self.evidence, self.roots, self.missing)


def judge_source(source: Source, reading: Reading) -> Outcome:
    """Apply the source's test to its value; raise UndeterminedError."""
    if isinstance(source, Query):
        return _judge_query(source, reading)
    if isinstance(source, Each):
        return _judge_each(source, reading)
    if isinstance(source, Log):
        return judge_log(source, reading.evidence)
    return _judge_artifact(source, reading.evidence)


def _judge_query(source: Query, reading: Reading) -> Outcome:
    test = source.test
    try:
        reading.value = reading.find(source.expression)
    except FieldMissingError as exc:
        if test.name != "present":
            raise
        # The document is complete and from this job: that it does not have the field is an answer, not a doubt.
        return Outcome(False, None, str(exc))
    needs = needs_of(test, reading.evidence, reading.references, reading.missing)
    return judge_value(test.name, test.bound, reading.value, needs)


def _judge_each(source: Each, reading: Reading) -> Outcome:
    named = _elements(source, reading)
    _require_number(source, len(named), reading)
    needs = needs_of(source.test, reading.evidence, reading.references, reading.missing)
    values: Json = {}
    failed: list[str] = []
    doubts: list[str] = []
    remedy: str | None = None
    for name, element in named:
        label = scalars.printable(name)
        try:
            outcome = _judge_element(source, element, needs)
            values[label] = outcome.value
            if not outcome.met:
                failed.append(f"{label}: {outcome.why}")
        except UndeterminedError as exc:
            values[label] = None
            doubts.append(f"{label}: {exc}")
            remedy = exc.remedy or remedy
    if failed:
        return Outcome(False, values, "; ".join((failed + doubts)[:_TOLD]))
    if doubts:
        reading.value = values
        raise UndeterminedError("; ".join(doubts[:_TOLD]), remedy)
    return Outcome(True, values, f"all {len(named)} are {bound_text(source.test.name, source.test.bound)}")


def _elements(source: Each, reading: Reading) -> list[tuple[str, Any]]:
    """Return the elements that are judged, by name or position."""
    elements = reading.find(source.over)
    if isinstance(elements, list):
        return [(str(position), element) for position, element in enumerate(elements)]
    if isinstance(elements, dict):
        return [(str(name), element) for name, element in elements.items()]
    raise UndeterminedError(f"{source.over.text} is {scalars.describe(elements)}, not a list or an object")


def _require_number(source: Each, found: int, reading: Reading) -> None:
    """Raise UndeterminedError unless the number of elements is the required one."""
    wanted: Any = reading.find(source.number) if isinstance(source.number, Expression) else source.number
    if not is_integer(wanted) or wanted < 1:
        raise UndeterminedError(f"how many there must be ({_number(source)}) is {scalars.describe(wanted)}")
    if found < wanted or (source.exactly and found != wanted):
        least = "" if source.exactly else "at least "
        raise UndeterminedError(f"number of elements of {source.over.text}: expected {least}{wanted}, found {found}")


def _number(source: Each) -> str:
    return source.number.text if isinstance(source.number, Expression) else str(source.number)


def _judge_element(source: Each, element: Any, needs: Needs) -> Outcome:
    try:
        found = query.evaluate_element(source.query.tree, element, needs.missing)
    except query.UnansweredError as exc:
        if source.test.name != "present":
            raise UndeterminedError(str(exc)) from exc
        # As for a plain query: that an element does not have the field is an answer.
        return Outcome(False, None, str(exc))
    return judge_value(source.test.name, source.test.bound, found, needs)


def _judge_artifact(source: Artifact, evidence: Json) -> Outcome:
    name = source.name
    job = job_of(evidence)
    problem = problem_of(evidence, f"artifacts.{name}")
    if problem is not None:
        if problem.get("problem") != "missing":
            raise undetermined_by(problem)
        why = f"{scalars.printable(str(problem.get('path', name)))} does not exist"
        if not came_to_an_end(job):
            raise UndeterminedError(f"{why}, and the job did not end by itself")
        return Outcome(False, None, why)
    artifacts = evidence.get("artifacts")
    artifact = artifacts.get(name) if isinstance(artifacts, dict) else None
    if not isinstance(artifact, dict) or not is_integer(artifact.get("size")):
        raise UndeterminedError(f"the evidence has no artifact {scalars.printable(name)}")
    least, size = source.least_bytes, artifact["size"]
    met = size >= least
    return Outcome(met, size, f"it has {size} bytes{'' if met else f', fewer than {least}'}")


def bound_of(source: Source) -> str:
    """Return the bound as a report shows it."""
    if isinstance(source, Query):
        return bound_text(source.test.name, source.test.bound)
    if isinstance(source, Each):
        number = _number(source) if source.exactly else f"at least {_number(source)}"
        return f"each of {number}: {bound_text(source.test.name, source.test.bound)}"
    if isinstance(source, Log):
        return f"{'has' if source.wanted else 'no'} {source.patterns}"
    least = source.least_bytes
    return f"exists, at least {least} bytes" if least > 1 else "exists and is not empty"


def needs_baseline(source: Source) -> bool:
    """Return whether the source's test forms a ratio to a baseline."""
    test = value_test(source)
    return test is not None and is_against_baseline(test.name, test.bound)


def described(source: Source, evidence: Json, roots: Iterable[str]) -> str:
    """Return the origin of the value as a report shows it; `roots` are the documents that were read."""
    if isinstance(source, Artifact):
        return f"artifact {_path(evidence, 'artifacts', source.name) or source.name}"
    if isinstance(source, Log):
        return "log " + " and ".join(_path(evidence, "logs", name) or name for name in source.names)
    text = source.expression.text if isinstance(source, Query) else f"{source.query.text} of each of {source.over.text}"
    paths = filter(None, (_path(evidence, "files", root) for root in sorted(roots)))
    return " in ".join(filter(None, (text, " and ".join(paths))))


def _path(evidence: Json, part: str, name: str) -> str:
    """Return the path in the evidence of the file that was read by this name, or an empty text."""
    entries = evidence.get(part)
    entry = entries.get(name) if isinstance(entries, dict) else None
    path = entry.get("path") if isinstance(entry, dict) else None
    return "" if path is None else str(path)
