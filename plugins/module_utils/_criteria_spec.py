# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads criteria and an inventory's changes to them; refuses what is malformed before anything is judged.

Pure: no Ansible, no files, no clock. PRIVATE to the collection.
"""

from __future__ import annotations

import copy
import datetime
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from ansible_collections.mlops.hpc_validation.plugins.module_utils import _criteria_query as query
from ansible_collections.mlops.hpc_validation.plugins.module_utils import _numbers
from ansible_collections.mlops.hpc_validation.plugins.module_utils._criteria_rows import REDUCTIONS

JOB_ID = "JOB"

NUMBER_TESTS = ("gt", "ge", "lt", "le", "between", "within")
VALUE_TESTS = (*NUMBER_TESTS, "eq", "ratio_ge", "ratio_le", "decreasing", "finite", "present")
SOURCES = ("query", "log", "artifact", "each")
TESTS_OF = {"query": VALUE_TESTS, "log": ("absent", "present"), "artifact": ("exists",), "each": ("each",)}
ALL_TESTS = (*VALUE_TESTS, "absent", "exists", "each")
COMMON_KEYS = ("id", "title", "unit", "applies_when", "severity", "remedy", "missing_at_most")
LOGS = ("stdout", "stderr")

# An override moves a bound. What is measured, and whether it counts, is not an inventory's to change:
# that would turn what could not be judged into a pass. Leaving a criterion out is what `waive` is for.
_OVERRIDABLE = ("unit", "remedy", "severity", "waive", "each")
# Each test whose bound can be moved, with the keys that its bound consists of; none where it is a plain value. Another
# name of a reference is none: where the inventory has no such reference, an optional criterion would not apply.
_MOVABLE: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("gt", "ge", "lt", "le", "eq", "between"), ()),
    "within": ("reference", "tolerance", "absolute"),
    "ratio_ge": ("bound",),
    "ratio_le": ("bound",),
    "decreasing": ("min_drop",),
    "exists": ("min_bytes",),
}
_INSTEAD = "to let the criterion fail, waive it: waive: {reason: …, expires: 2026-12-31}"


class CriteriaError(ValueError):
    """Malformed criteria; `errors` has one line for each thing that is wrong."""

    def __init__(self, errors: list[str]) -> None:
        self.errors = errors
        super().__init__("\n".join(errors))


@dataclass(frozen=True)
class Waiver:
    """An inventory's leave for a criterion to fail, up to and including the day `expires`."""

    reason: str
    expires: datetime.date


@dataclass(frozen=True)
class MissingAtMost:
    """A manifest's leave for rows to lack what is reduced: how many of each column, and why they may."""

    rows: int
    reason: str


@dataclass(frozen=True)
class Criterion:
    """A criterion that has been checked: its parts are there and of the right kind."""

    id: str
    title: str
    source: str
    test: str
    data: dict[str, Any]
    bound_from: str
    severity: str
    unit: str | None = None
    remedy: str | None = None
    waiver: Waiver | None = None
    missing: MissingAtMost | None = None
    trees: dict[str, Any] = field(default_factory=dict, compare=False)


def read(
    criteria: Any,
    overrides: Any = None,
    *,
    workload: str,
    pattern_sets: Iterable[str] | None = None,
    references: Any = None,
) -> list[Criterion]:
    """Return the criteria with the overrides merged in; raise CriteriaError naming everything that is wrong.

    `pattern_sets` are the names that a log criterion may use (None: any); `references` the inventory's, by key.
    """
    errors: list[str] = []
    where = f"workload {workload}: "
    if not isinstance(criteria, list):
        raise CriteriaError([f"{where}criteria: expected a list, got {_numbers.describe(criteria)}"])
    overrides = {} if overrides is None else overrides
    if not isinstance(overrides, dict):
        raise CriteriaError([f"{where}overrides: expected criterion ids with what to change, got {overrides!r}"])
    _check_references(references, where, errors)
    known = [entry.get("id") for entry in criteria if isinstance(entry, dict)]
    for name in overrides:
        if name == JOB_ID:
            errors.append(f"{where}overrides: {JOB_ID}, the job's own outcome, cannot be overridden or waived")
        elif name not in known:
            listed = ", ".join(str(item) for item in known) or "none"
            errors.append(f"{where}overrides: there is no criterion {name!r}; the workload has: {listed}")
    result = []
    seen: set[str] = set()
    for position, entry in enumerate(criteria):
        reader = _Reader(workload, entry, position, pattern_sets)
        criterion = reader.read(overrides.get(reader.id) if reader.id is not None else None)
        errors.extend(reader.errors)
        if reader.id is not None:
            if reader.id in seen:
                errors.append(f"{where}criterion {reader.id}: key id: used twice, expected a different one for each")
            seen.add(reader.id)
        if criterion is not None:
            result.append(criterion)
    if errors:
        raise CriteriaError(errors)
    return result


def merge(base: Any, change: Any) -> Any:
    """Return `base` with `change` merged in deeply; a null in `change` deletes the key. Neither is altered."""
    if not isinstance(base, dict) or not isinstance(change, dict):
        return copy.deepcopy(change)
    result = dict(base)
    for key, value in change.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merge(result.get(key), value)
    return result


def _kind(value: Any) -> str:
    return "number" if _numbers.is_number(value) else type(value).__name__


def _tests(body: Any) -> list[str]:
    return [name for name in ALL_TESTS if name in body] if isinstance(body, dict) else []


class _Reader:
    """Checks one entry; collects errors rather than stopping at the first."""

    def __init__(self, workload: str, entry: Any, position: int, pattern_sets: Iterable[str] | None) -> None:
        self.errors: list[str] = []
        self._workload = workload
        self._entry = entry
        self._pattern_sets = None if pattern_sets is None else sorted(pattern_sets)
        self._trees: dict[str, Any] = {}
        name = entry.get("id") if isinstance(entry, dict) else None
        self.id: str | None = name if isinstance(name, str) and name else None
        self._name = self.id or f"number {position + 1}"

    def _wrong(self, key: str, expected: str, got: Any = None, *, shown: bool = True) -> None:
        got_text = f", got {got!r}" if shown else ""
        self.errors.append(f"workload {self._workload}: criterion {self._name}: key {key}: {expected}{got_text}")

    def read(self, override: Any) -> Criterion | None:
        if not isinstance(self._entry, dict):
            self._wrong("-", "expected a mapping", self._entry)
            return None
        data, waive, bound_from = self._merged(override)
        self._common(data)
        source = self._source(data)
        test = self._test(data, source) if source else None
        missing = self._missing_at_most(data, source) if "missing_at_most" in data else None
        if self.errors or source is None or test is None or self.id is None:
            return None
        body = data["each"] if test == "each" else data
        if "within" in body and "from" in body["within"] and bound_from == "manifest":
            bound_from = "reference"
        return Criterion(
            id=self.id,
            title=data["title"],
            source=source,
            test=test,
            data=data,
            bound_from=bound_from,
            severity=data.get("severity", "gate"),
            unit=data.get("unit"),
            remedy=data.get("remedy"),
            waiver=waive,
            missing=missing,
            trees=self._trees,
        )

    def _merged(self, override: Any) -> tuple[dict[str, Any], Waiver | None, str]:
        if override is None:
            return self._entry, None, "manifest"
        if not isinstance(override, dict):
            self._wrong("-", "expected an override with the keys to change", override)
            return self._entry, None, "manifest"
        change = {key: value for key, value in override.items() if key != "waive"}
        for key, value in change.items():
            self._check_override(str(key), value)
        waiver = self._waiver(override["waive"]) if "waive" in override else None
        moved = any(key in ALL_TESTS for key in change)
        merged = self._entry if self.errors else merge(self._entry, change)
        return merged, waiver, "override" if moved else "manifest"

    def _check_override(self, key: str, value: Any) -> None:
        if key == "each":
            self._check_each(value)
        elif key in ALL_TESTS:
            self._check_bound(key, value, self._entry, key)
        elif key not in _OVERRIDABLE:
            known = ", ".join(sorted({*_OVERRIDABLE, *_MOVABLE}))
            self._wrong(key, f"cannot be overridden; an inventory may change {known}", value)
        elif value is None:
            self._wrong(key, "an override changes a key and deletes none", value)
        elif key == "severity" and value != "gate":
            self._wrong(key, f"an override can only make it a gate; {_INSTEAD}", value)

    def _check_each(self, value: Any) -> None:
        had = self._entry.get("each")
        if not isinstance(value, dict) or not isinstance(had, dict):
            self._wrong("each", f"expected {_listed(_tests(had))} with another bound; {_INSTEAD}", value)
            return
        for name, bound in value.items():
            if name not in NUMBER_TESTS:
                self._wrong(f"each.{name}", f"cannot be overridden; expected one of {', '.join(NUMBER_TESTS)}", value)
            else:
                self._check_bound(name, bound, had, f"each.{name}")

    def _check_bound(self, test: str, value: Any, body: dict[str, Any], key: str) -> None:
        """Report an override that does more than move the bound of the test that `body` has."""
        had = body.get(test)
        if test not in body:
            kept = _listed(_tests(body))
            self._wrong(key, f"an override keeps the kind of test, {kept}, and moves its bound; {_INSTEAD}", value)
        elif test not in _MOVABLE or (test == "eq" and isinstance(had, bool)):
            self._wrong(key, f"there is no bound to move in {test}: {_numbers.show(had)}; {_INSTEAD}", value)
        elif value is None:
            self._wrong(key, f"an override moves a bound and drops none; {_INSTEAD}", value)
        elif test == "eq" and _kind(value) != _kind(had):
            self._wrong(key, f"an override keeps the kind of bound, as in {had!r}", value)
        elif _MOVABLE[test] and isinstance(value, dict):
            for name, part in value.items():
                if name == "from":
                    self._wrong(
                        f"{key}.{name}", "cannot be overridden; a site's number goes into its references", value
                    )
                elif name not in _MOVABLE[test]:
                    self._wrong(f"{key}.{name}", f"cannot be overridden; expected {' or '.join(_MOVABLE[test])}", value)
                elif part is None:
                    self._wrong(f"{key}.{name}", f"an override moves a bound and drops none; {_INSTEAD}", value)
        elif _MOVABLE[test]:
            self._wrong(key, f"expected {' or '.join(_MOVABLE[test])} with another value; {_INSTEAD}", value)

    def _waiver(self, waive: Any) -> Waiver | None:
        if not isinstance(waive, dict) or set(waive) != {"reason", "expires"}:
            self._wrong("waive", "expected exactly reason and expires", waive)
            return None
        reason = waive["reason"]
        if not isinstance(reason, str) or not reason.strip():
            self._wrong("waive.reason", "expected why this may fail, in words", reason)
            return None
        try:
            expires = datetime.date.fromisoformat(waive["expires"])
        except (TypeError, ValueError):
            self._wrong("waive.expires", "expected a date such as 2026-12-31", waive["expires"])
            return None
        return Waiver(reason.strip(), expires)

    def _common(self, data: dict[str, Any]) -> None:
        for key in data:
            if key not in COMMON_KEYS and key not in SOURCES and key not in ALL_TESTS:
                expected = ", ".join(sorted({*COMMON_KEYS, *SOURCES, *ALL_TESTS}))
                self._wrong(str(key), f"is unknown; expected one of {expected}", shown=False)
        if self.id is None or not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", self.id):
            self._wrong("id", "expected letters, digits, '.', '_' or '-', 64 at most", data.get("id"))
        elif self.id == JOB_ID:
            self._wrong("id", f"{JOB_ID} is the judge's own criterion; expected another", self.id)
        for key in ("title", "unit", "remedy"):
            if (key == "title" or key in data) and not (isinstance(data.get(key), str) and data[key].strip()):
                self._wrong(key, "expected text", data.get(key))
        if data.get("severity", "gate") not in ("gate", "record"):
            self._wrong("severity", "expected gate or record", data["severity"])
        self._applies_when(data)

    def _missing_at_most(self, data: dict[str, Any], source: str | None) -> MissingAtMost | None:
        value, key = data["missing_at_most"], "missing_at_most"
        if not self._keys(value, key, {"rows", "reason"}, set()):
            return None
        rows, reason = value["rows"], value["reason"]
        if not isinstance(rows, int) or isinstance(rows, bool) or rows < 1:
            self._wrong(f"{key}.rows", "expected how many rows may lack it, a whole number from 1", rows)
        elif not isinstance(reason, str) or not reason.strip():
            self._wrong(f"{key}.reason", "expected why these rows may lack it, in words", reason)
        elif not self._reduces_rows(data, source):
            self._wrong(key, f"goes with a reduction of rows alone, such as fields.NAME.{REDUCTIONS[4]}", value)
        else:
            return MissingAtMost(rows, reason.strip())
        return None

    def _reduces_rows(self, data: dict[str, Any], source: str | None) -> bool:
        """Say whether the criterion's queries ask for a reduction of a column of rows."""
        mentioned = set().union(*map(query.fields, self._trees.values()))
        body = data["each"] if source == "each" else data
        return "fields" in mentioned and (not mentioned.isdisjoint(REDUCTIONS) or "decreasing" in _tests(body))

    def _applies_when(self, data: dict[str, Any]) -> None:
        if "applies_when" not in data:
            return
        applies = data["applies_when"]
        if not isinstance(applies, dict) or not applies:
            self._wrong("applies_when", "expected context keys, each with a list of values", applies)
            return
        for key, allowed in applies.items():
            if not isinstance(key, str) or not isinstance(allowed, list) or not allowed:
                self._wrong(f"applies_when.{key}", "expected a list of values", allowed)
            elif any(isinstance(value, (list, dict)) for value in allowed):
                self._wrong(f"applies_when.{key}", "expected plain values", allowed)

    def _source(self, data: dict[str, Any]) -> str | None:
        found = [name for name in SOURCES if name in data]
        if len(found) != 1:
            got = " and ".join(found) or "none"
            self._wrong("query, log, artifact or each", f"expected exactly one of them, got {got}", shown=False)
            return None
        source = found[0]
        if source == "query":
            self._parse("query", data["query"])
        elif source == "artifact":
            if not isinstance(data["artifact"], str) or not data["artifact"]:
                self._wrong("artifact", "expected the name of a file below the output directory", data["artifact"])
        elif source == "log":
            logs = data["log"]
            if not isinstance(logs, list) or not logs or any(name not in LOGS for name in logs):
                self._wrong("log", "expected a list of stdout and stderr", logs)
            elif len(set(logs)) != len(logs):
                self._wrong("log", "names a log twice", logs)
        return source

    def _test(self, data: dict[str, Any], source: str) -> str | None:
        found = [name for name in ALL_TESTS if name in data]
        allowed = TESTS_OF[source]
        if len(found) != 1:
            what = f"two tests, {' and '.join(found)}" if found else "no test"
            self._wrong("test", f"{what}; expected exactly one of {', '.join(allowed)}", shown=False)
            return None
        test = found[0]
        if test not in allowed:
            self._wrong(test, f"does not go with {source}; expected one of {', '.join(allowed)}", shown=False)
            return None
        if source == "log":
            self._pattern_set(test, data[test])
        else:
            self._bound(test, data[test], test)
        return test

    def _pattern_set(self, test: str, name: Any) -> None:
        if not isinstance(name, str) or not name:
            self._wrong(test, "expected the name of a pattern set", name)
        elif self._pattern_sets is not None and name not in self._pattern_sets:
            self._wrong(test, f"expected a pattern set, one of {', '.join(self._pattern_sets)}", name)

    def _bound(self, test: str, value: Any, key: str) -> None:
        checks: dict[str, Callable[[Any, str], None]] = {
            "between": self._between,
            "within": self._within,
            "ratio_ge": self._ratio,
            "ratio_le": self._ratio,
            "decreasing": self._decreasing,
            "exists": self._exists,
            "each": self._each,
            "eq": self._equal,
        }
        if test in ("finite", "present"):
            if value is not True:
                self._wrong(key, "expected true", value)
        else:
            checks.get(test, self._number)(value, key)

    def _number(self, value: Any, key: str, *, least: float | None = None) -> bool:
        if not _numbers.is_number(value):
            self._wrong(key, "expected a finite number", value)
        elif least is not None and value < least:
            self._wrong(key, f"expected at least {least:g}", value)
        else:
            return True
        return False

    def _fraction(self, value: Any, key: str) -> bool:
        """Report what is no fraction from 0 to below 1: a per cent would allow everything."""
        if self._number(value, key, least=0) and value >= 1:
            self._wrong(
                key, f"expected a fraction below 1, such as 0.15 for 15 %; {value:g} is {value * 100:g} %", value
            )
            return False
        return bool(_numbers.is_number(value)) and value >= 0

    def _equal(self, value: Any, key: str) -> None:
        if not isinstance(value, (str, bool)) and not _numbers.is_number(value):
            self._wrong(key, "expected a finite number, text, true or false", value)

    def _between(self, value: Any, key: str) -> None:
        if not isinstance(value, list) or len(value) != 2 or not all(map(_numbers.is_number, value)):
            self._wrong(key, "expected [lowest, highest], two finite numbers", value)
        elif value[0] > value[1]:
            self._wrong(key, "expected the lower bound first", value)

    def _keys(self, value: Any, key: str, required: set[str], optional: set[str]) -> bool:
        if not isinstance(value, dict):
            self._wrong(key, f"expected a mapping with {', '.join(sorted(required | optional))}", value)
            return False
        for name in sorted(set(value) - required - optional, key=str):
            self._wrong(f"{key}.{name}", f"is unknown; expected {', '.join(sorted(required | optional))}", shown=False)
        for name in sorted(required - set(value)):
            self._wrong(f"{key}.{name}", "is missing", shown=False)
        return required <= set(value) <= required | optional

    def _within(self, value: Any, key: str) -> None:
        if not self._keys(value, key, set(), {"reference", "from", "tolerance", "absolute", "optional"}):
            return
        if value.get("optional", True) is not True:
            self._wrong(f"{key}.optional", "expected true", value["optional"])
        if ("reference" in value) == ("from" in value):
            self._wrong(key, "expected either reference, a number, or from, the name of a reference", value)
        if ("tolerance" in value) == ("absolute" in value):
            self._wrong(key, "expected either tolerance, a fraction, or absolute", value)
        if "from" in value and (not isinstance(value["from"], str) or not value["from"]):
            self._wrong(f"{key}.from", "expected the name of a reference", value["from"])
        good = "tolerance" not in value or self._fraction(value["tolerance"], f"{key}.tolerance")
        good = ("absolute" not in value or self._number(value["absolute"], f"{key}.absolute", least=0)) and good
        if "reference" in value and self._number(value["reference"], f"{key}.reference") and good:
            self._ends(value["reference"], value, key)

    def _ends(self, reference: float, value: dict[str, Any], key: str) -> None:
        if "tolerance" in value and reference <= 0:
            self._wrong(f"{key}.tolerance", "is a fraction of the reference, which must be above 0; or absolute", value)
        elif "absolute" in value and not _numbers.is_number(abs(reference) + value["absolute"]):
            self._wrong(key, "expected a reference and a margin whose sum is finite", value)

    def _ratio(self, value: Any, key: str) -> None:
        if not self._keys(value, key, {"bound", "to"}, {"of", "spread"}):
            return
        self._number(value["bound"], f"{key}.bound")
        whose = value.get("of", "baseline")
        if whose not in ("baseline", "own"):
            self._wrong(f"{key}.of", "expected baseline or own", whose)
        if "spread" in value:
            self._spread(value["spread"], f"{key}.spread", whose)
        self._parse(f"{key}.to", value["to"])

    def _spread(self, value: Any, key: str, whose: Any) -> None:
        if not _numbers.is_number(value) or value <= 0:
            self._wrong(key, "expected a fraction above 0, by which the baseline's runs may differ", value)
        elif value >= 1:
            self._wrong(key, "expected a fraction below 1, such as 0.1 for 10 %", value)
        elif whose == "own":
            self._wrong(key, "goes with a baseline, which may have several runs; the own run is one", value)

    def _decreasing(self, value: Any, key: str) -> None:
        if value is True:
            return
        if self._keys(value, key, set(), {"min_drop"}) and "min_drop" in value:
            drop = value["min_drop"]
            if self._number(drop, f"{key}.min_drop", least=0) and drop > 1:
                self._wrong(f"{key}.min_drop", "expected a fraction of at most 1, such as 0.05 for 5 %", drop)

    def _exists(self, value: Any, key: str) -> None:
        if value is True:
            return
        if self._keys(value, key, set(), {"min_bytes"}) and "min_bytes" in value:
            size = value["min_bytes"]
            if not isinstance(size, int) or isinstance(size, bool) or size < 1:
                self._wrong(f"{key}.min_bytes", "expected a whole number, at least 1", size)

    def _each(self, value: Any, key: str) -> None:
        if not isinstance(value, dict):
            self._wrong(key, "expected over, query, count and one test", value)
            return
        tests = [name for name in VALUE_TESTS if name in value]
        if not self._keys(value, key, {"over", "query"}, {"count", "at_least", *VALUE_TESTS}):
            return
        self._parse(f"{key}.over", value["over"])
        self._parse(f"{key}.query", value["query"], element=True)
        numbers = [name for name in ("count", "at_least") if name in value]
        if len(numbers) != 1:
            self._wrong(key, "expected either count, how many there must be, or at_least", value)
            return
        self._how_many(value[numbers[0]], f"{key}.{numbers[0]}")
        if len(tests) != 1:
            what = f"two tests, {' and '.join(tests)}" if tests else "no test"
            self._wrong(key, f"{what}; expected exactly one of {', '.join(VALUE_TESTS)}", shown=False)
            return
        self._bound(tests[0], value[tests[0]], f"{key}.{tests[0]}")

    def _how_many(self, count: Any, key: str) -> None:
        if isinstance(count, str):
            self._parse(key, count)
            if "(" in count:
                self._wrong(key, "expected where the number stands, such as job.gpus, not a computation", count)
        elif not isinstance(count, int) or isinstance(count, bool) or count < 1:
            self._wrong(key, "expected how many there must be: a whole number from 1, or a query", count)

    def _parse(self, key: str, expression: Any, *, element: bool = False) -> None:
        try:
            self._trees[key] = query.parse(expression, element=element)
        except query.QueryError as exc:
            self._wrong(key, str(exc), shown=False)


def _listed(names: list[str]) -> str:
    return " and ".join(names) or "none"


def _check_references(references: Any, where: str, errors: list[str]) -> None:
    """References: name → a number, or a list of {when: {context key: value}, value: number, unit}."""
    if references is None:
        return
    if not isinstance(references, dict):
        errors.append(f"{where}references: expected names with values, got {references!r}")
        return
    for name, value in references.items():
        if _numbers.is_number(value):
            continue
        if not isinstance(value, list):
            errors.append(
                f"{where}references: {name}: expected a finite number or a list of when and value, got {value!r}"
            )
            continue
        for entry in value:
            good = (
                isinstance(entry, dict)
                and {"when", "value"} <= set(entry) <= {"when", "value", "note"}
                and isinstance(entry["when"], dict)
                and _numbers.is_number(entry["value"])
            )
            if not good:
                errors.append(
                    f"{where}references: {name}: expected when, a mapping, and value, a number; got {entry!r}"
                )
