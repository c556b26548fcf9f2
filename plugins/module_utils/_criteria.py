# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The judge: evidence and criteria in, verdicts out. Pure; the same for a run that just ended and for saved evidence.

Whatever is not established is `undetermined`, any surprise included; only evidence makes a `pass`.
PRIVATE to the collection.
"""

from __future__ import annotations

import datetime
from typing import Any

from ansible_collections.mlops.hpc_validation.plugins.module_utils import _criteria_baseline as baseline
from ansible_collections.mlops.hpc_validation.plugins.module_utils import _criteria_query as query
from ansible_collections.mlops.hpc_validation.plugins.module_utils import _numbers
from ansible_collections.mlops.hpc_validation.plugins.module_utils._criteria_job import came_to_an_end, judge_job
from ansible_collections.mlops.hpc_validation.plugins.module_utils._criteria_rows import (
    Missing,
    UndeterminedError,
    is_rows,
    with_reduced_fields,
)
from ansible_collections.mlops.hpc_validation.plugins.module_utils._criteria_spec import JOB_ID, Criterion
from ansible_collections.mlops.hpc_validation.plugins.module_utils._criteria_tests import (
    Denominator,
    Needs,
    Outcome,
    bound_text,
    inner_test,
    is_against_baseline,
    judge_value,
    minimum_bytes,
)

EVERYTHING = "*"
# Seconds between the clocks of Slurm and the share: beyond them munge refuses what the hosts tell each other.
CLOCKS_APART = 300
# How end lines are to be read: with a nonce and with what follows them.
_END_LINE = 2
# In other rows `time` may be anything, such as seconds since the beginning.
ROWS_OF_THE_KIT = ("gpu",)
# The evidence's own parts; every other key is a document that was read.
PARTS = ("schema", "job", "context", "logs", "artifacts", "files", "problems", "baseline", "leg", "versions")
# Of these the parts that are the job's own, though they do not say so: the others are said of it.
PARTS_OF_THE_JOB = ("artifacts", "files")
_NOT_BY_QUERY = {
    "logs": "use log with absent or present, which see to it that the log is whole",
    "baseline": "use ratio_ge or ratio_le, which see to it that its runs can be compared",
}

_REMEDIES = {
    "missing": "Look into the job's log for why the file was not written.",
    "foreign": "The file was written by another job or attempt; run the workload again.",
    "truncated": "The file ends in the middle; look whether the job was killed or the share was full.",
    "not_json": "Look at the file; the workload did not write what it should.",
    "unreadable": "Check that the user Ansible connects as may read the file.",
    "changed": "Something still writes to the file; judge again when the job has ended.",
    "not_searchable": "Have the workload write its logs in UTF-8: look at PYTHONIOENCODING and the locale.",
    "timeout": "The share did not answer in time; check its mount on the host that reads it.",
    "not_collected": "Check that the login node can be reached, then run again.",
}


def judge(
    evidence: dict[str, Any],
    criteria: list[Criterion],
    *,
    references: dict[str, Any] | None = None,
    today: datetime.date,
) -> list[dict[str, Any]]:
    """Return the judged criteria, the job's own outcome first, then one for each criterion in its order.

    `today` decides whether a waiver still holds. Never raises for what the evidence holds.
    """
    whole = with_reduced_fields(evidence) if isinstance(evidence, dict) else {}
    result = [judge_job(whole.get("job"))]
    for criterion in criteria:
        result.append(_One(whole, criterion, references or {}, today).judge())
    return result


def overall(judged: list[dict[str, Any]]) -> str:
    """Return `fail` if any gate fails, else `undetermined` unless every applicable gate passes and at least one does.

    The job's own outcome is a gate, but not one that makes a pass alone.
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


class _One:
    """Judges one criterion."""

    def __init__(
        self, evidence: dict[str, Any], criterion: Criterion, references: dict[str, Any], today: datetime.date
    ) -> None:
        self._evidence = evidence
        self._criterion = criterion
        self._references = references
        self._today = today
        self._roots: set[str] = set()
        self._missing = Missing(criterion.missing.rows if criterion.missing else 0)
        self._remedy: str | None = criterion.remedy
        self._value: Any = None

    def judge(self) -> dict[str, Any]:
        verdict, value, why = self._verdict()
        remedy = None if verdict in ("pass", "not_applicable") else self._remedy
        source = self._source_text()
        criterion = self._criterion
        bound = criterion.data[criterion.test]
        missing = criterion.missing
        if missing is not None and self._missing.found:
            why = f"{why}; missing in {self._missing.found} of its rows, which may be so: {missing.reason}"
        if criterion.severity == "record" and verdict != "not_applicable":
            verdict, why = "recorded", f"only recorded (would be {verdict}): {why}"
        elif verdict == "fail" and criterion.waiver is not None:
            waiver = criterion.waiver
            if self._today <= waiver.expires:
                verdict = "waived"
                why = f"{why}; waived until {waiver.expires}: {waiver.reason}"
            else:
                why = f"{why}; the waiver expired on {waiver.expires} ({waiver.reason})"
        judged = {
            "id": criterion.id,
            "title": criterion.title,
            "verdict": verdict,
            "value": _numbers.bounded(value),
            "bound": bound_text(criterion.test, bound),
            "unit": criterion.unit,
            "source": _numbers.printable(source),
            "why": _numbers.printable(why),
            "remedy": remedy,
            "bound_from": criterion.bound_from,
            "severity": criterion.severity,
            "against_baseline": is_against_baseline(criterion.test, bound),
        }
        return judged if missing is None else {**judged, "missing": self._missing.found}

    def _verdict(self) -> tuple[str, Any, str]:
        try:
            reason = self._not_applicable() or self._without_reference()
            if reason is not None:
                return "not_applicable", None, reason
            self._require_collected(self._evidence)
            outcome = self._outcome()
        except UndeterminedError as exc:
            return "undetermined", self._value, str(exc)
        except Exception as exc:  # whatever else goes wrong in judging must not let a criterion pass
            return (
                "undetermined",
                self._value,
                f"judging it failed: {type(exc).__name__}: {_numbers.printable(str(exc))}",
            )
        return ("pass" if outcome.met is True else "fail"), outcome.value, outcome.why

    def _not_applicable(self) -> str | None:
        applies = self._criterion.data.get("applies_when")
        if applies is None:
            return None
        context = self._evidence.get("context")
        for key, allowed in applies.items():
            if not isinstance(context, dict) or context.get(key) is None:
                raise UndeterminedError(f"whether it applies depends on {key}, which the inventory does not say")
            wanted = " or ".join(_numbers.show(value) for value in allowed)
            if not {_kind(value) for value in allowed} & {_kind(context[key])}:
                self._remedy = (
                    f"Give {key} in the inventory as {wanted}, of that kind. INI inventories and -e name=value make "
                    "text of everything: use a YAML inventory, or -e with JSON."
                )
                said = _numbers.describe(context[key])
                raise UndeterminedError(
                    f"it applies where {key} is {wanted}; here it is {said}, which is of another kind"
                )
            if not any(_is(_spelt(context[key]), _spelt(value)) for value in allowed):
                return f"it applies where {key} is {wanted}; here it is {_numbers.show(context[key])}"
        return None

    def _without_reference(self) -> str | None:
        """Say that the inventory does not have the reference, where a criterion leaves it to the inventory to have one.

        One that it has, but for other hardware alone, is no such case: the criterion is then undetermined.
        """
        within = self._criterion.data.get("each", self._criterion.data).get("within", {})
        if not within.get("optional") or "from" not in within or within["from"] in self._references:
            return None
        return f"the inventory has no reference {_numbers.printable(within['from'])}"

    def _require_collected(self, evidence: dict[str, Any]) -> None:
        for problem in _problems(evidence):
            if problem.get("source") == EVERYTHING:
                raise self._undetermined_by(problem)

    def _outcome(self) -> Outcome:
        source, data = self._criterion.source, self._criterion.data
        if source == "query":
            return self._judge_query(data)
        if source == "each":
            return self._judge_each(data["each"])
        if source == "log":
            return self._judge_log(data)
        return self._judge_artifact(data)

    def _judge_query(self, data: dict[str, Any]) -> Outcome:
        test = self._criterion.test
        try:
            value = self._find("query")
        except _FieldMissingError as exc:
            if test != "present":
                raise
            # The document was read whole and is this job's: that it lacks the field is an answer, not a doubt.
            return Outcome(False, None, str(exc))
        self._value = value
        return judge_value(test, data[test], value, self._needs(""))

    def _judge_each(self, each: dict[str, Any]) -> Outcome:
        elements = self._find("each.over")
        if isinstance(elements, list):
            named = [(str(position), element) for position, element in enumerate(elements)]
        elif isinstance(elements, dict):
            named = [(str(name), element) for name, element in elements.items()]
        else:
            raise UndeterminedError(f"{each['over']} is {_numbers.describe(elements)}, not a list or an object")
        self._require_count(each, len(named))
        test = inner_test(each)
        values: dict[str, Any] = {}
        failed: list[str] = []
        doubts: list[str] = []
        for name, element in named:
            label = _numbers.printable(name)
            try:
                found = query.evaluate_element(self._criterion.trees["each.query"], element, self._missing)
                outcome = judge_value(test, each[test], found, self._needs("each."))
                values[label] = outcome.value
                if not outcome.met:
                    failed.append(f"{label}: {outcome.why}")
            except (query.UnansweredError, UndeterminedError) as exc:
                values[label] = None
                # As for a query alone: that an element lacks the field is an answer.
                lacks = test == "present" and isinstance(exc, query.UnansweredError)
                (failed if lacks else doubts).append(f"{label}: {exc}")
        if failed:
            return Outcome(False, values, "; ".join((failed + doubts)[:5]))
        if doubts:
            self._value = values
            raise UndeterminedError("; ".join(doubts[:5]))
        return Outcome(True, values, f"all {len(named)} are {bound_text(test, each[test])}")

    def _require_count(self, each: dict[str, Any], found: int) -> None:
        key = "at_least" if "at_least" in each else "count"
        wanted = each[key]
        if isinstance(wanted, str):
            wanted = self._find(f"each.{key}")
        if not _is_integer(wanted) or wanted < 1:
            raise UndeterminedError(f"how many there must be ({each[key]}) is {_numbers.describe(wanted)}")
        if found < wanted or (key == "count" and found != wanted):
            least = "at least " if key == "at_least" else ""
            raise UndeterminedError(f"{each['over']} has {found} and there must be {least}{wanted}")

    def _judge_log(self, data: dict[str, Any]) -> Outcome:
        test = self._criterion.test
        name = data[test]
        hits: list[dict[str, Any]] = []
        doubts: list[str] = []
        total = 0
        for log in data["log"]:
            try:
                document = self._log(log)
                doubt = self._end_doubt(log, document)
                if doubt is not None:
                    doubts.append(doubt)
                count, found = _hits(document, log, name)
            except UndeterminedError as exc:
                doubts.append(str(exc))
                continue
            total += count
            hits.extend({"log": log, **hit} for hit in found)
        lines = [f"{hit['log']} line {hit.get('line')}: {_numbers.show(hit.get('text'))}" for hit in hits]
        quoted = "; ".join(lines[:3]) + (f"; and {total - 3} more" if total > 3 else "")
        if test == "absent" and total:
            self._remedy = next((hit["remedy"] for hit in hits if hit.get("remedy")), None) or self._remedy
            return Outcome(False, total, quoted)
        if doubts:
            raise UndeterminedError("; ".join(doubts))
        if test == "absent":
            return Outcome(True, 0, f"none in {' and '.join(data['log'])}, read to the job's end marker")
        return Outcome(total > 0, total, quoted if total else f"none in {' and '.join(data['log'])}")

    def _log(self, log: str) -> dict[str, Any]:
        self._raise_problem(f"logs.{log}")
        logs = self._evidence.get("logs")
        document = logs.get(log) if isinstance(logs, dict) else None
        if not isinstance(document, dict):
            raise UndeterminedError(f"the log {log} is not in the evidence")
        job = self._job_of(self._evidence)
        end = document.get("end") or document.get("other_end")
        if isinstance(end, dict) and not _same_run(end, job):
            raise UndeterminedError(
                f"{log} is of job {_numbers.show(end.get('job_id'))} attempt {_numbers.show(end.get('attempt'))}"
            )
        return document

    def _end_doubt(self, log: str, document: dict[str, Any]) -> str | None:
        end = document.get("end")
        if not isinstance(end, dict):
            empty = "is empty" if document.get("bytes") == 0 else "has no end marker of this job"
            doubt = document.get("end_doubt")
            return f"{log} {empty}, so it may not be whole{f': {_numbers.printable(doubt)}' if doubt else ''}"
        code = self._job_of(self._evidence).get("exit_code")
        if not _is_integer(code) or not _is_integer(end.get("exit_code")) or end["exit_code"] != code:
            return (
                f"{log} ends with exit code {_numbers.show(end.get('exit_code'))} and Slurm says {_numbers.show(code)}"
            )
        return self._after_doubt(log, end)

    def _after_doubt(self, log: str, end: dict[str, Any]) -> str | None:
        """What follows the end line is of nobody. Evidence from before that was looked at has no `versions`."""
        if "versions" not in self._evidence:
            return None
        versions = self._evidence["versions"]
        if not isinstance(versions, dict) or versions.get("end_line") != _END_LINE or "after" not in end:
            return f"the evidence does not say what follows the end line of {log}"
        after = end["after"]
        if after is None:
            return None
        line, text = (after.get("line"), after.get("text")) if isinstance(after, dict) else (None, after)
        return f"{log} goes on after its end line, in line {_numbers.show(line)}: {_numbers.show(text)}"

    @staticmethod
    def _job_of(evidence: dict[str, Any]) -> dict[str, Any]:
        job = evidence.get("job")
        if not isinstance(job, dict) or not isinstance(job.get("job_id"), str) or not job["job_id"]:
            raise UndeterminedError("the evidence does not say which job it is of")
        return job

    def _judge_artifact(self, data: dict[str, Any]) -> Outcome:
        name = data["artifact"]
        job = self._job_of(self._evidence)
        self._raise_problem(f"artifacts.{name}", absent_is_an_answer=True)
        missing = self._problem(f"artifacts.{name}")
        if missing is not None:
            why = f"{_numbers.printable(str(missing.get('path', name)))} does not exist"
            if not came_to_an_end(job):
                raise UndeterminedError(f"{why}, and the job did not come to its own end")
            return Outcome(False, None, why)
        artifacts = self._evidence.get("artifacts")
        artifact = artifacts.get(name) if isinstance(artifacts, dict) else None
        if not isinstance(artifact, dict) or not _is_integer(artifact.get("size")):
            raise UndeterminedError(f"the artifact {_numbers.printable(name)} is not in the evidence")
        least = minimum_bytes(data["exists"])
        size = artifact["size"]
        met = size >= least
        return Outcome(met, size, f"it has {size} bytes{'' if met else f', fewer than {least}'}")

    def _problem(self, source: str) -> dict[str, Any] | None:
        return next((entry for entry in _problems(self._evidence) if entry.get("source") == source), None)

    def _raise_problem(self, source: str, *, absent_is_an_answer: bool = False) -> None:
        problem = self._problem(source)
        if problem is not None and not (absent_is_an_answer and problem.get("problem") == "missing"):
            raise self._undetermined_by(problem)

    def _undetermined_by(self, problem: dict[str, Any]) -> UndeterminedError:
        kind = str(problem.get("problem"))
        self._remedy = _REMEDIES.get(kind, self._remedy)
        source = problem.get("source")
        parts = [
            str(problem.get("path") or ("" if source == EVERYTHING else source)),
            kind.replace("_", " "),
            str(problem.get("detail", "")),
        ]
        return UndeterminedError(_numbers.printable(": ".join(part for part in parts if part)))

    def _find(self, key: str) -> Any:
        """Evaluate one of the criterion's queries over the evidence; raise UndeterminedError."""
        expression = self._expression(key)
        return self._evaluate(self._criterion.trees[key], expression, self._evidence, self._roots)

    def _expression(self, key: str) -> str:
        value: Any = self._criterion.data
        for part in key.split("."):
            value = value[part]
        return str(value)

    def _evaluate(self, tree: Any, expression: str, evidence: dict[str, Any], roots: set[str]) -> Any:
        try:
            value = query.evaluate(tree, evidence, roots, self._missing)
        except query.UnansweredError as exc:
            self._require_sound(tree, evidence, roots)
            if exc.root is not None or not all(isinstance(evidence[root], dict) for root in roots):
                raise UndeterminedError(f"{expression}: {exc}") from exc
            raise _FieldMissingError(f"{expression}: {exc}") from exc
        self._require_sound(tree, evidence, roots)
        return value

    def _require_sound(self, tree: Any, evidence: dict[str, Any], roots: set[str]) -> None:
        """Raise UndeterminedError if a document that a query read cannot be relied on."""
        for root in sorted(roots):
            if root in _NOT_BY_QUERY:
                raise UndeterminedError(f"{root} cannot be judged by a query; {_NOT_BY_QUERY[root]}")
            self._require_own(evidence, root)
            document: Any = evidence.get(root)
            if root in PARTS or not is_rows(document):
                continue
            # A row that could not be read may be the one that mattered.
            malformed = document["malformed"]
            if not (_is_integer(malformed) and malformed == 0) and query.fields(tree) != {root, "malformed"}:
                raise UndeterminedError(f"{root}: {malformed} of its lines cannot be read, or belong to no group")

    def _require_own(self, evidence: dict[str, Any], root: str) -> None:
        """Raise UndeterminedError if a document could not be read, or was not written by the evidence's own job."""
        problem = next((item for item in _problems(evidence) if item.get("source") == root), None)
        if problem is not None:
            raise self._undetermined_by(problem)
        if root not in evidence or (root in PARTS and root not in PARTS_OF_THE_JOB):
            return
        job, document = self._job_of(evidence), evidence[root]
        if root not in PARTS and not is_rows(document):
            if not isinstance(document, dict) or "job_id" not in document:
                raise UndeterminedError(f"{_numbers.printable(root)} does not say which job wrote it")
            if not _same_run(document, job):
                raise UndeterminedError(f"{_numbers.printable(root)} is of another job or attempt")
        doubt = _time_doubt(evidence, root)
        if doubt is not None:
            raise UndeterminedError(doubt)

    def _needs(self, prefix: str) -> Needs:
        def denominator(expression: str, whose: str) -> Denominator:
            test = self._criterion.data["each"] if prefix else self._criterion.data
            name = next(key for key in ("ratio_ge", "ratio_le") if key in test)
            tree = self._criterion.trees[f"{prefix}{name}.to"]
            if whose == "own":
                return Denominator([self._divisor(tree, expression, self._evidence, "own")])
            return self._against_baseline(tree, expression)

        return Needs(reference=self._reference, denominator=denominator, missing=self._missing)

    def _divisor(self, tree: Any, expression: str, evidence: dict[str, Any], whose: str) -> float:
        found = self._evaluate(tree, expression, evidence, set())
        try:
            return _numbers.number(found)
        except _numbers.NotANumberError as exc:
            raise UndeterminedError(f"{whose} {expression} {exc}") from exc

    def _against_baseline(self, tree: Any, expression: str) -> Denominator:
        self._raise_problem("baseline")
        runs = baseline.runs(self._evidence)
        for root in baseline.COMPARED_OF_OWN:
            self._require_own(self._evidence, root)
        return Denominator(
            [self._divisor_of_run(tree, expression, run) for run in runs], baseline.age(self._evidence, runs)
        )

    def _divisor_of_run(self, tree: Any, expression: str, run: dict[str, Any]) -> float:
        run = with_reduced_fields(run)
        try:
            self._require_collected(run)
            for root in baseline.COMPARED:
                self._require_own(run, root)
            baseline.require_comparable(self._evidence, run)
            return self._divisor(tree, expression, run, "its")
        except UndeterminedError as exc:
            raise UndeterminedError(f"{baseline.title(run)}: {exc}") from exc

    def _reference(self, name: str) -> float:
        """Return the inventory's reference for this hardware: the entry with the most conditions that all hold."""
        entry: Any = self._references.get(name)
        if _numbers.is_number(entry):
            return float(entry)
        context = self._evidence.get("context")
        fitting: list[tuple[int, float]] = []
        for item in entry if isinstance(entry, list) else []:
            if isinstance(context, dict) and all(_is(context.get(key), want) for key, want in item["when"].items()):
                fitting.append((len(item["when"]), item["value"]))
        if not fitting:
            self._remedy = f"Add {name} for this hardware to the inventory's references, from a run known to be good."
            raise UndeterminedError(f"the inventory has no reference {name!r} for this hardware")
        most = max(count for count, value in fitting)
        values = {value for count, value in fitting if count == most}
        if len(values) > 1:
            raise UndeterminedError(
                f"the inventory has {len(values)} references {name!r} that fit this hardware equally"
            )
        return float(values.pop())

    def _source_text(self) -> str:
        criterion, evidence = self._criterion, self._evidence
        if criterion.source == "artifact":
            artifacts = evidence.get("artifacts")
            found = artifacts.get(criterion.data["artifact"]) if isinstance(artifacts, dict) else None
            path = found.get("path") if isinstance(found, dict) else None
            return f"artifact {path or criterion.data['artifact']}"
        if criterion.source == "log":
            logs = evidence.get("logs")
            paths = []
            for log in criterion.data["log"]:
                found = logs.get(log) if isinstance(logs, dict) else None
                paths.append(str(found["path"]) if isinstance(found, dict) and "path" in found else log)
            return "log " + " and ".join(paths)
        each = criterion.data.get("each")
        text = f"{each['query']} of each of {each['over']}" if isinstance(each, dict) else str(criterion.data["query"])
        files = evidence.get("files")
        paths = []
        for root in sorted(self._roots):
            found = files.get(root) if isinstance(files, dict) else None
            if isinstance(found, dict) and "path" in found:
                paths.append(str(found["path"]))
        return text + (" in " + " and ".join(paths) if paths else "")


class _FieldMissingError(UndeterminedError):
    """The document is there and lacks the field."""


def _problems(evidence: dict[str, Any]) -> list[dict[str, Any]]:
    problems = evidence.get("problems")
    if not isinstance(problems, list):
        raise UndeterminedError("the evidence does not say which problems there were in collecting it")
    return [entry for entry in problems if isinstance(entry, dict)]


def _hits(document: dict[str, Any], log: str, name: str) -> tuple[int, list[dict[str, Any]]]:
    counts, hits = document.get("counts"), document.get("hits")
    count = counts.get(name) if isinstance(counts, dict) else None
    found = hits.get(name) if isinstance(hits, dict) else None
    if not isinstance(count, int) or isinstance(count, bool) or not isinstance(found, list):
        raise UndeterminedError(f"{log} was not searched for {name}")
    return count, [hit for hit in found if isinstance(hit, dict)]


def _same_run(marker: dict[str, Any], job: dict[str, Any]) -> bool:
    attempts = marker.get("attempt"), job.get("attempt")
    return (
        isinstance(job.get("job_id"), str)
        and marker.get("job_id") == job["job_id"]
        and all(_is_integer(attempt) for attempt in attempts)
        and attempts[0] == attempts[1]
    )


def _time_doubt(evidence: dict[str, Any], root: str) -> str | None:
    """Say how times show that the job did not write a file, or its node's clock was off; None where they do not."""
    files, job, document = evidence.get("files"), evidence.get("job"), evidence.get(root)
    file = files.get(root) if isinstance(files, dict) else None
    if not isinstance(file, dict) or not isinstance(job, dict):
        return None
    path = _numbers.printable(str(file.get("path", root)))
    oldest, newest = _row_times(document) if root in ROWS_OF_THE_KIT else (None, None)
    for claim, first, last in (
        ("says that it was written", file.get("mtime"), file.get("mtime")),
        ("has a row of", oldest, newest),
    ):
        for key, sign, time, words in (
            ("started", -1, first, "before the job began"),
            ("ended", 1, last, "after the job ended"),
        ):
            known = _numbers.is_number(time) and _numbers.is_number(job.get(key))
            off = sign * (time - job[key]) if known else 0
            if off > CLOCKS_APART:
                return f"{path} {claim} {off:.0f} s {words}"
    return None


def _row_times(document: Any) -> tuple[Any, Any]:
    """The oldest and the newest time that rows bear, by the clock of the node that wrote them."""
    for key in ("fields", "time"):
        document = document.get(key) if isinstance(document, dict) else None
    return (document.get("min"), document.get("max")) if isinstance(document, dict) else (None, None)


def _is_integer(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _kind(value: Any) -> str:
    """Return of what kind a value is that a criterion may depend on."""
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, str):
        return "text"
    return "number" if _numbers.is_number(value) else "other"


def _spelt(value: Any) -> Any:
    """Return text as it is compared: people write it with capitals and blanks as they like."""
    return value.strip().casefold() if isinstance(value, str) else value


def _is(value: Any, wanted: Any) -> bool:
    try:
        return _numbers.same(value, wanted)
    except _numbers.NotComparableError:
        return False
