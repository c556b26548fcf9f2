# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Checked criteria, and the keys that define them. Types only. PRIVATE to the collection."""

from __future__ import annotations

import datetime
from dataclasses import dataclass, field
from typing import Any, Union

JOB_ID = "JOB"

NUMBER_TESTS = ("gt", "ge", "lt", "le", "between", "within")
VALUE_TESTS = (*NUMBER_TESTS, "eq", "ratio_ge", "ratio_le", "decreasing", "finite", "present")
SOURCES = ("query", "log", "artifact", "each")
TESTS_OF = {"query": VALUE_TESTS, "log": ("absent", "present"), "artifact": ("exists",), "each": ("each",)}
ALL_TESTS = (*VALUE_TESTS, "absent", "exists", "each")
COMMON_KEYS = ("id", "title", "unit", "applies_when", "severity", "remedy", "missing_at_most")
LOGS = ("stdout", "stderr")


@dataclass(frozen=True)
class Waiver:
    """An inventory's permission for a criterion to fail, up to and including the day `expires`."""

    reason: str
    expires: datetime.date


@dataclass(frozen=True)
class MissingAtMost:
    """A manifest's permission for rows without the reduced value: how many in each column, and why."""

    rows: int
    reason: str


@dataclass(frozen=True)
class Expression:
    """A JMESPath expression, as text and as syntax tree."""

    text: str
    tree: dict[str, Any]


@dataclass(frozen=True)
class ValueTest:
    """The test of a value: `name` and `bound` as comparisons.judge_value takes them.

    A ratio has a `divisor`. A bound around a reference of the inventory has the name of the `reference`, which is
    also the `optional_reference` if the criterion does not apply without it.
    """

    name: str
    bound: Any
    divisor: Expression | None = None
    reference: str | None = None
    optional_reference: str | None = None


@dataclass(frozen=True)
class Query:
    """One value from the documents of the evidence."""

    expression: Expression
    test: ValueTest


@dataclass(frozen=True)
class Each:
    """A value of each element of a list or an object, which has exactly or at least `number` elements."""

    over: Expression
    query: Expression
    number: int | Expression
    exactly: bool
    test: ValueTest


@dataclass(frozen=True)
class Log:
    """Lines of the job's logs that match a set of patterns; if `wanted` there must be some, otherwise none."""

    names: tuple[str, ...]
    patterns: str
    wanted: bool


@dataclass(frozen=True)
class Artifact:
    """A file that the job left."""

    name: str
    least_bytes: int


Source = Union[Query, Each, Log, Artifact]


@dataclass(frozen=True)
class Criterion:
    """A checked criterion: all its parts exist and have the right types."""

    id: str
    title: str
    source: Source
    bound_from: str
    severity: str
    unit: str | None = None
    remedy: str | None = None
    applies_when: dict[str, list[Any]] = field(default_factory=dict)
    waiver: Waiver | None = None
    missing: MissingAtMost | None = None


def value_test(source: Source) -> ValueTest | None:
    """Return the test of the source's values, or None if it has no values."""
    return source.test if isinstance(source, (Query, Each)) else None
