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
    told: dict[tuple[t.Any, ...], list[int]] = {}
    for key, numbers in groups.items():  # two texts may differ only in what cannot be printed
        told.setdefault(tuple(column.values[which] for column, which in zip(columns, key)), []).extend(numbers)
    return told


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
    """Return the lowest, the median and the highest of the numbers; of values that differ the most frequent others."""
    numbers = [(value, place) for value, place in zip(values, at) if scalars.is_number(value)]
    low = min(numbers, key=_value, default=None)
    high = max(numbers, key=_value, default=None)
    return {
        "minimum": _extreme(low),
        "median": statistics.median(map(_value, numbers)) if numbers else None,
        "maximum": _extreme(high),
        "values": _others(values, at) if numbers or any(value != values[0] for value in values) else [],
    }


def _value(found: tuple[t.Any, Json]) -> t.Any:
    return found[0]


def _extreme(found: tuple[t.Any, Json] | None) -> Json | None:
    return {"value": found[0], "where": places.name(found[1])} if found else None


def _others(values: list[t.Any], at: list[Json]) -> list[Json]:
    """Return the most frequent values that are not numbers, as texts, with their nodes."""
    found: dict[str, list[Json]] = {}
    for value, place in zip(values, at):
        if not scalars.is_number(value):
            found.setdefault(value if isinstance(value, str) else scalars.show(value), []).append(place)
    most = sorted(found.items(), key=lambda item: -len(item[1]))[:_MAX_VALUES]
    return [{"value": text, "count": len(where), "where": places.fold(where)} for text, where in most]
