# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Read one criterion: note its faults, or return it as a Criterion. Pure. PRIVATE to the collection."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any

from ansible_collections.mlops.hpc_validation.plugins.module_utils._common import scalars
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._judge import bounds, query
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._judge.criterion import (
    ALL_TESTS,
    COMMON_KEYS,
    JOB_ID,
    LOGS,
    SOURCES,
    TESTS_OF,
    VALUE_TESTS,
    Artifact,
    Criterion,
    Each,
    Expression,
    Log,
    MissingAtMost,
    Query,
    Source,
    value_test,
)
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._judge.notes import Notes
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._judge.overrides import overridden, tests_in
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._judge.rows import REDUCTIONS


def read_entry(entry: Any, override: Any, pattern_sets: Collection[str] | None, notes: Notes) -> Criterion | None:
    """Return a manifest's entry with an inventory's override as a criterion, or None if there is a fault in notes."""
    if not isinstance(entry, dict):
        notes.wrong("-", "expected a mapping", entry)
        return None
    changed = overridden(entry, override, notes)
    data = changed.data
    _check_common(data, notes)
    kind = _kind(data, notes)
    source = None if kind is None else _source(kind, data, pattern_sets, notes)
    missing = _missing_at_most(data, kind, notes) if "missing_at_most" in data else None
    if notes.faults or source is None:
        return None
    return Criterion(
        id=data["id"],
        title=data["title"],
        source=source,
        bound_from="override" if changed.is_moved else _bound_from(source),
        severity=data.get("severity", "gate"),
        unit=data.get("unit"),
        remedy=data.get("remedy"),
        applies_when=data.get("applies_when", {}),
        waiver=changed.waiver,
        missing=missing,
    )


def _bound_from(source: Source) -> str:
    test = value_test(source)
    return "reference" if test and test.reference is not None else "manifest"


def _check_common(data: dict[str, Any], notes: Notes) -> None:
    """Check the keys that every kind of criterion has."""
    known = {*COMMON_KEYS, *SOURCES, *ALL_TESTS}
    for key in data:
        if key not in known:
            notes.fault(str(key), f"is unknown; expected one of {', '.join(sorted(known))}")
    name = data.get("id")
    if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", name):
        notes.wrong("id", "expected letters, digits, '.', '_' or '-', 64 at most", name)
    elif name == JOB_ID:
        notes.wrong("id", f"{JOB_ID} is reserved for the judge's own criterion", name)
    for key in ("title", "unit", "remedy"):
        if (key == "title" or key in data) and not _is_words(data.get(key)):
            notes.wrong(key, "expected text", data.get(key))
    if data.get("severity", "gate") not in ("gate", "record"):
        notes.wrong("severity", "expected gate or record", data["severity"])
    if "applies_when" in data:
        _check_applies_when(data["applies_when"], notes)


def _check_applies_when(applies: Any, notes: Notes) -> None:
    if not isinstance(applies, dict) or not applies:
        notes.wrong("applies_when", "expected context keys, each with a list of values", applies)
        return
    for key, allowed in applies.items():
        if not isinstance(key, str) or not isinstance(allowed, list) or not allowed:
            notes.wrong(f"applies_when.{key}", "expected a list of values", allowed)
        elif not all(isinstance(value, (str, bool)) or scalars.is_number(value) for value in allowed):
            notes.wrong(f"applies_when.{key}", "expected text, finite numbers, true or false", allowed)


def _missing_at_most(data: dict[str, Any], kind: str | None, notes: Notes) -> MissingAtMost | None:
    value, key = data["missing_at_most"], "missing_at_most"
    if not notes.keys(value, key, {"rows", "reason"}, set()):
        return None
    rows, reason = value["rows"], value["reason"]
    if not bounds.is_whole(rows, least=1):
        notes.wrong(f"{key}.rows", "expected how many rows may have no number, a whole number from 1", rows)
    elif not _is_words(reason):
        notes.wrong(f"{key}.reason", "expected why these rows may have no number, in words", reason)
    elif not _reduces_rows(data["each"] if kind == "each" else data, notes.expressions):
        notes.wrong(key, f"needs a reduction of rows, such as fields.NAME.{REDUCTIONS[4]}", value)
    else:
        return MissingAtMost(rows, reason.strip())
    return None


def _reduces_rows(body: dict[str, Any], expressions: list[Expression]) -> bool:
    """Return whether the expressions read a reduction of a column of rows."""
    mentioned = set().union(*(query.fields(expression.tree) for expression in expressions))
    return "fields" in mentioned and (not mentioned.isdisjoint(REDUCTIONS) or "decreasing" in tests_in(body))


def _kind(data: dict[str, Any], notes: Notes) -> str | None:
    """Return the kind of source that the criterion judges."""
    found = [name for name in SOURCES if name in data]
    if len(found) != 1:
        got = " and ".join(found) or "none"
        notes.fault("query, log, artifact or each", f"expected exactly one of them, found {got}")
        return None
    return found[0]


def _source(kind: str, data: dict[str, Any], pattern_sets: Collection[str] | None, notes: Notes) -> Source | None:
    if kind == "query":
        return _query(data, notes)
    if kind == "log":
        return _log(data, pattern_sets, notes)
    if kind == "artifact":
        return _artifact(data, notes)
    return _each(data, notes)


def _test(kind: str, data: dict[str, Any], notes: Notes) -> str | None:
    """Return the only test of the criterion, if it suits the source."""
    found, allowed = tests_in(data), ", ".join(TESTS_OF[kind])
    if len(found) != 1:
        notes.fault("test", f"{_no_or_two(found)}; expected exactly one of {allowed}")
        return None
    if found[0] not in TESTS_OF[kind]:
        notes.fault(found[0], f"cannot be used with {kind}; expected one of {allowed}")
        return None
    return found[0]


def _query(data: dict[str, Any], notes: Notes) -> Query | None:
    expression = notes.expression("query", data["query"])
    name = _test("query", data, notes)
    return None if name is None else Query(expression, bounds.read_test(name, data[name], name, notes))


def _log(data: dict[str, Any], pattern_sets: Collection[str] | None, notes: Notes) -> Log | None:
    logs = data["log"]
    if not isinstance(logs, list) or not logs or any(name not in LOGS for name in logs):
        notes.wrong("log", "expected a list of stdout and stderr", logs)
    elif len(set(logs)) != len(logs):
        notes.wrong("log", "expected each log once", logs)
    test = _test("log", data, notes)
    if test is None:
        return None
    patterns = data[test]
    if not isinstance(patterns, str) or not patterns:
        notes.wrong(test, "expected the name of a pattern set", patterns)
    elif pattern_sets is not None and patterns not in pattern_sets:
        notes.wrong(test, f"expected one of the pattern sets {', '.join(sorted(pattern_sets))}", patterns)
    return Log(tuple(logs), patterns, wanted=test == "present") if isinstance(logs, list) else None


def _artifact(data: dict[str, Any], notes: Notes) -> Artifact | None:
    name = data["artifact"]
    if not isinstance(name, str) or not name:
        notes.wrong("artifact", "expected the name of a file below the output directory", name)
    test = _test("artifact", data, notes)
    return None if test is None else Artifact(name, bounds.least_bytes(data[test], test, notes))


def _each(data: dict[str, Any], notes: Notes) -> Each | None:
    test = _test("each", data, notes)
    if test is None:
        return None
    value = data[test]
    if not isinstance(value, dict):
        notes.wrong("each", "expected over, query, count and one test", value)
        return None
    if not notes.keys(value, "each", {"over", "query"}, {"count", "at_least", *VALUE_TESTS}):
        return None
    over = notes.expression("each.over", value["over"])
    element = notes.expression("each.query", value["query"], element=True)
    numbers = [name for name in ("count", "at_least") if name in value]
    if len(numbers) != 1:
        notes.wrong("each", "expected either count, how many there must be, or at_least", value)
        return None
    (how_many,) = numbers
    number = _how_many(value[how_many], f"each.{how_many}", notes)
    tests = tests_in(value)
    if len(tests) != 1:
        notes.fault("each", f"{_no_or_two(tests)}; expected exactly one of {', '.join(VALUE_TESTS)}")
        return None
    inner = bounds.read_test(tests[0], value[tests[0]], f"each.{tests[0]}", notes)
    return Each(over, element, number, exactly=how_many == "count", test=inner)


def _how_many(count: Any, key: str, notes: Notes) -> int | Expression:
    if isinstance(count, str):
        expression = notes.expression(key, count)
        if "(" in count:
            notes.wrong(key, "expected a path to a number, such as job.gpus, not a computation", count)
        return expression
    if not bounds.is_whole(count, least=1):
        notes.wrong(key, "expected how many there must be: a whole number from 1, or a query", count)
    number: int = count
    return number


def _is_words(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _no_or_two(tests: list[str]) -> str:
    return f"two tests, {' and '.join(tests)}" if tests else "no test"
