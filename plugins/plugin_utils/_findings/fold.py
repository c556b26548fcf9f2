# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Fold findings: those that passed into one entry per check, and equal faults at many places into one.

What failed, is undetermined or waived stays whole in a verdict; for the rest it says how many there were, where, and
which values were the lowest and the highest.
"""

from __future__ import annotations

import statistics
import typing as t
from collections import Counter

from ansible_collections.mlops.hpc_validation.plugins.module_utils._common import scalars
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._findings import places
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._findings.columns import Check, Table

Json = dict[str, t.Any]
WHOLE = ("fail", "undetermined", "waived")
# What makes two findings of a check different things to say; with more than that the entries of a check would grow.
_SAME = ("title", "verdict", "bound", "unit", "severity", "bound_from")
_MAX_ENTRIES = 8
_MAX_VALUES = 5
_VARIES = "varies"


def whole(table: Table) -> list[Json]:
    """Return the findings that a verdict lists whole."""
    return [
        check.get(number, table.places)
        for check in table.checks.values()
        for number, position in enumerate(check.fields["verdict"].which)
        if check.fields["verdict"].values[position] in WHOLE
    ]


def folded(table: Table) -> list[Json]:
    """Return the entries of all other findings (schema verdict.json, checks)."""
    return [entry for check in table.checks.values() for entry in _entries(check, table.places)]


def _entries(check: Check, where: list[Json]) -> list[Json]:
    groups = _groups(check, _SAME)
    by_verdict = Counter(key[_SAME.index("verdict")] for key in groups)
    if any(count > _MAX_ENTRIES for count in by_verdict.values()):
        groups = _groups(check, [field for field in _SAME if field not in ("title", "bound")])
    return [_entry(check, numbers, where) for numbers in groups.values()]


def _groups(check: Check, fields: t.Sequence[str]) -> dict[tuple[t.Any, ...], list[int]]:
    """Return the numbers of the findings to fold together; those that are told whole are in none."""
    columns = [check.fields[field] for field in fields]
    verdicts = check.fields["verdict"]
    groups: dict[tuple[int, ...], list[int]] = {}
    for number, key in enumerate(zip(*(column.which for column in columns))):
        if verdicts.of(number) not in WHOLE:
            groups.setdefault(key, []).append(number)
    return {
        tuple(column.values[position] for column, position in zip(columns, key)): numbers
        for key, numbers in groups.items()
    }


def _entry(check: Check, numbers: list[int], where: list[Json]) -> Json:
    common = {field: _common(check, field, numbers) for field in (*_SAME, "source", "why", "value")}
    at = [where[check.at[number]] for number in numbers]
    return {
        "id": check.id,
        "title": common["title"] or _VARIES,
        "verdict": common["verdict"],
        "bound": common["bound"] or _VARIES,
        "unit": common["unit"],
        "severity": common["severity"],
        "bound_from": common["bound_from"],
        "source": common["source"],
        "why": common["why"],
        "count": len(numbers),
        "where": places.fold(at),
        "value": common["value"],
        **_spread([check.fields["value"].of(number) for number in numbers], at),
    }


def _common(check: Check, field: str, numbers: list[int]) -> t.Any:
    """Return the value that all of these findings have, or None."""
    column = check.fields[field]
    positions = {column.which[number] for number in numbers}
    return column.values[positions.pop()] if len(positions) == 1 else None


def _spread(values: list[t.Any], at: list[Json]) -> Json:
    """Return the lowest, the median and the highest of numbers that differ; the most frequent of other values."""
    none: Json = {"minimum": None, "median": None, "maximum": None, "values": []}
    if all(map(scalars.is_number, values)):
        low, high = values.index(min(values)), values.index(max(values))
        return {
            **none,
            "minimum": {"value": values[low], "where": places.name(at[low])},
            "median": statistics.median(values),
            "maximum": {"value": values[high], "where": places.name(at[high])},
        }
    texts = [value if isinstance(value, str) else None for value in values]
    known = Counter(text for text in texts if text is not None)
    if len(known) < 2:
        return none
    return {
        **none,
        "values": [
            {
                "value": value,
                "count": count,
                "where": places.fold([place for text, place in zip(texts, at) if text == value]),
            }
            for value, count in known.most_common(_MAX_VALUES)
        ],
    }
