# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a criterion is once it has been checked, and which keys make one. Types alone. PRIVATE to the collection."""

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
    """An inventory's leave for a criterion to fail, up to and including the day `expires`."""

    reason: str
    expires: datetime.date


@dataclass(frozen=True)
class MissingAtMost:
    """A manifest's leave for rows to lack what is reduced: how many of each column, and why they may."""

    rows: int
    reason: str


@dataclass(frozen=True)
class Expression:
    """A JMESPath expression, as it is written and as it is evaluated."""

    text: str
    tree: dict[str, Any]


@dataclass(frozen=True)
class ValueTest:
    """What a value is put to: `name` and `bound` as comparisons.judge_value takes them.

    A ratio has a `divisor`. A bound around one of the inventory's references has its name, which is also its
    `optional_reference` if the criterion does not apply where the inventory has none.
    """

    name: str
    bound: Any
    divisor: Expression | None = None
    reference: str | None = None
    optional_reference: str | None = None


@dataclass(frozen=True)
class Query:
    """One value of the documents of the evidence."""

    expression: Expression
    test: ValueTest


@dataclass(frozen=True)
class Each:
    """A value of each element of a list or an object, which has exactly or at least as many as `number`."""

    over: Expression
    query: Expression
    number: int | Expression
    exactly: bool
    test: ValueTest


@dataclass(frozen=True)
class Log:
    """Lines of the job's logs that match a set of patterns; there must be some if `wanted`, else none."""

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
    """A criterion that has been checked: its parts are there and of the right kind."""

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
    """Return what values of the source are put to; None where it has none."""
    return source.test if isinstance(source, (Query, Each)) else None
