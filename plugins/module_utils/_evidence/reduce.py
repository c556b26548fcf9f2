# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reduce the rows of a file to a few numbers per field: extremes, means, slopes. PRIVATE to the collection.

A field's values are processed block by block, so that built-in functions do the work: a million rows take seconds.
Memory does not grow with the file.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from operator import itemgetter, le, mul
from typing import Any, BinaryIO

from ansible_collections.mlops.hpc_validation.plugins.module_utils._common import scalars
from ansible_collections.mlops.hpc_validation.plugins.module_utils._evidence.opening import EvidenceError
from ansible_collections.mlops.hpc_validation.plugins.module_utils._evidence.rows import Row, blocks

MAX_FIELDS = 256
MAX_GROUPS = 1024
MAX_POINTS = 200
MAX_SERIES = 32
OWN = ("job_id", "attempt")


def reduce_rows(
    stream: BinaryIO, form: str, job_id: str, attempt: int, *, group_by: str | None = None, x: str | None = None
) -> dict[str, Any]:
    """Return the reduced document of a JSON Lines (`form` jsonl) or CSV (csv) file; raise EvidenceError.

    Slopes and series are over the field `x`, or over the row's number from 0 if none is given.
    """
    whole = _Reduction(x, series=True)
    groups: dict[str | int, _Reduction] = {}
    malformed = 0
    for block, bad in blocks(stream, form):
        malformed += bad
        if not block:
            continue
        _require_own(block, job_id, attempt)
        whole.add(block)
        if group_by is not None:
            malformed += _add_groups(groups, block, group_by, x)
    if whole.rows == 0:
        raise EvidenceError("empty", f"it has no readable row ({malformed} malformed lines)")
    document: dict[str, Any] = {
        "rows": whole.rows,
        "malformed": malformed,
        "fields": whole.fields(),
        "series": whole.series(),
    }
    if group_by is not None:
        document["groups"] = {
            str(name): {"rows": group.rows, "fields": group.fields()} for name, group in groups.items()
        }
        if len(document["groups"]) != len(groups):
            raise EvidenceError("duplicate_key", f"a value of {group_by} appears twice, as a number and as text")
    return document


def _require_own(block: list[Row], job_id: str, attempt: int) -> None:
    ids, attempts = _column(block, "job_id"), _column(block, "attempt")
    if ids.count(job_id) == len(block) == attempts.count(attempt) and set(map(type, attempts)) <= {int}:
        return
    told = next(pair for pair in zip(ids, attempts) if pair != (job_id, attempt) or isinstance(pair[1], (bool, float)))
    other = f"job {scalars.show(told[0])} attempt {scalars.show(told[1])}"
    raise EvidenceError("foreign", f"a row was written by {other}, not by job {job_id} attempt {attempt}")


def _column(block: list[Row], name: str) -> list[Any]:
    """Return the field's value in each row, None for a row without it."""
    full = _full_column(block, name)
    return [row.get(name) for row in block] if full is None else full


def _full_column(block: list[Row], name: str) -> list[Any] | None:
    """Return the field's value in each row, or None if any row does not have it."""
    try:
        return list(map(itemgetter(name), block))
    except KeyError:
        return None


def _add_groups(groups: dict[str | int, _Reduction], block: list[Row], group_by: str, x: str | None) -> int:
    """Sort the block's rows into groups; return how many name no group."""
    parts: dict[str | int, list[Row]] = {}
    nameless = 0
    for row in block:
        name = row.get(group_by)
        if isinstance(name, (str, int)) and not isinstance(name, bool):
            parts.setdefault(name, []).append(row)
        else:
            nameless += 1
    for name, part in parts.items():
        if name not in groups:
            if len(groups) >= MAX_GROUPS:
                raise EvidenceError("too_large", f"more than {MAX_GROUPS} values of {group_by}")
            groups[name] = _Reduction(x, series=False)
        groups[name].add(part)
    return nameless


class _Reduction:
    """The reduced fields of one sequence of rows."""

    def __init__(self, x: str | None, *, series: bool) -> None:
        self.rows = 0
        self._x = x
        self._with_series = series
        self._fields: dict[str, _Field] = {}

    def add(self, block: list[Row]) -> None:
        """Add rows, all of which have the fields of OWN."""
        full = {name: _full_column(block, name) for name in self._fields}
        columns = {name: values for name, values in full.items() if values is not None}
        # Rows with exactly the known fields need not be searched for new names.
        if columns.keys() != full.keys() or set(map(len, block)) != {len(full) + len(OWN)}:
            self._find_new_fields(block)
            columns = {name: _column(block, name) for name in self._fields}
        xs = range(self.rows, self.rows + len(block)) if self._x is None else _column(block, self._x)
        axis = _Axis(xs)
        for name, values in columns.items():
            self._fields[name].add(values, axis)
        self.rows += len(block)

    def _find_new_fields(self, block: list[Row]) -> None:
        for name in sorted(set().union(*block) - self._fields.keys() - set(OWN)):
            if len(self._fields) >= MAX_FIELDS:
                raise EvidenceError("too_large", f"more than {MAX_FIELDS} different fields")
            # The rows before this one did not have the field: they count as nulls.
            self._fields[name] = _Field(self.rows, self._with_series and len(self._fields) < MAX_SERIES)

    def fields(self) -> dict[str, Any]:
        return {name: reduced.result() for name, reduced in self._fields.items()}

    def series(self) -> dict[str, Any]:
        series = {name: reduced.points() for name, reduced in self._fields.items()}
        return {name: points for name, points in series.items() if points}


class _Axis:
    """The x values of a block's rows; computed once for all fields that have a number in each row."""

    def __init__(self, xs: Sequence[Any]) -> None:
        self.xs = xs
        self.known = scalars.is_number(_sum(xs))
        # A fit over an x that decreases would have the wrong sign.
        self.known = self.known and all(map(le, xs, xs[1:]))
        self.mean = sum(xs) / len(xs) if self.known else 0.0
        self.offsets = [x - self.mean for x in xs] if self.known else []
        self.squares = sum(map(mul, self.offsets, self.offsets))


class _Field:
    """One field: counts, extremes, mean and a least-squares line, kept so that blocks can be added (Chan et al.)."""

    def __init__(self, nulls: int, series: bool) -> None:
        self._nulls = nulls
        self._non_finite = self._other = self._count = 0
        self._begun = bool(nulls)
        self._first: Any = None  # of the first and the last row; None if that has no number
        self._last: Any = None
        self._last_number: Any = None
        self._min, self._max = math.inf, -math.inf
        self._mean = 0.0
        self._x_first: Any = None
        self._x_last: Any = None
        self._x_mean = self._sxx = self._sxy = self._syy = 0.0
        self._x_known = True
        self._points: list[list[Any]] | None = [] if series else None
        self._stride = 1

    def add(self, values: list[Any], axis: _Axis) -> None:
        """Add the field's value of each row of a block."""
        if not self._begun:
            self._begun, self._first = True, _number_or_none(values[0])
        self._last = _number_or_none(values[-1])
        total = _sum(values)
        if not scalars.is_number(total):
            values, xs = self._numbers_of(values, axis.xs)
            if not values:
                return
            total, axis = _sum(values), _Axis(xs)
        if self._points is not None:
            self._thin(self._points, values, axis.xs)
        self._add_numbers(values, axis, total)

    def _numbers_of(self, values: list[Any], xs: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        kept, kept_xs = [], []
        for value, x in zip(values, xs):
            if value is None:
                self._nulls += 1
            elif scalars.is_number(value):
                kept.append(value)
                kept_xs.append(x)
            elif scalars.is_non_finite(value):
                self._non_finite += 1
            else:
                self._other += 1
        return kept, kept_xs

    def _add_numbers(self, values: list[Any], axis: _Axis, total: float) -> None:
        count = len(values)
        if self._count == 0:
            self._x_first = axis.xs[0]
        elif self._x_known and axis.known and axis.xs[0] < self._x_last:
            self._x_known = False
        self._last_number, self._x_last = values[-1], axis.xs[-1]
        constant = values[0] == values[-1] and values.count(values[0]) == count
        self._min = min(self._min, *values)
        self._max = max(self._max, *values)
        mean = total / count
        merged = self._count + count
        weight = self._count * count / merged
        if axis.known:
            dx, dy = axis.mean - self._x_mean, mean - self._mean
            self._sxx += axis.squares + dx * dx * weight
            # The offsets add up to zero, so the mean need not be subtracted from the values.
            self._sxy += (0.0 if constant else sum(map(mul, axis.offsets, values))) + dx * dy * weight
            self._syy += (0.0 if constant else _squares(values, mean)) + dy * dy * weight
            self._x_mean += dx * count / merged
        else:
            self._x_known = False
        self._mean += (mean - self._mean) * count / merged
        self._count = merged

    def _thin(self, points: list[list[Any]], values: list[Any], xs: Sequence[Any]) -> None:
        """Keep every stride-th number; double the stride when there are too many."""
        offset = -self._count % self._stride
        points.extend([x, y] for x, y in zip(xs[offset :: self._stride], values[offset :: self._stride]))
        while len(points) >= MAX_POINTS:
            del points[1::2]
            self._stride *= 2

    def result(self) -> dict[str, Any]:
        some = self._count > 0
        slope = self._sxy / self._sxx if self._x_known and self._sxx > 0 else None
        start = end = error = None
        if slope is not None:
            start = self._mean + slope * (self._x_first - self._x_mean)
            end = self._mean + slope * (self._x_last - self._x_mean)
            error = slope_error(self._count, self._sxx, self._syy, slope)
        return {
            "count": self._count,
            "first": self._first,
            "last": self._last,
            "min": self._min if some else None,
            "max": self._max if some else None,
            "mean": self._mean if some else None,
            "slope": slope,
            "slope_error": error,
            "fit_first": start,
            "fit_last": end,
            "nulls": self._nulls,
            "non_finite": self._non_finite,
            "other": self._other,
        }

    def points(self) -> list[list[Any]]:
        """Return the numbers that were kept, and the last one; empty if no series is kept."""
        if not self._points:
            return []
        last = [self._x_last, self._last_number]
        return self._points if self._points[-1] == last else [*self._points, last]


def slope_error(count: int, sxx: float, syy: float, slope: float) -> float | None:
    """Return the standard error of a fitted slope, None for fewer than three points: any two lie on a line."""
    if count < 3:
        return None
    rest = syy - slope * slope * sxx
    return math.sqrt(max(0.0, rest) / (count - 2) / sxx) if math.isfinite(rest) else math.inf


def _sum(values: Sequence[Any]) -> float:
    """Return the sum; NaN if a value is not a number, or does not fit a float."""
    if not set(map(type, values)) <= {int, float}:
        return math.nan
    try:
        return sum(values)
    except OverflowError:
        return math.nan


def _squares(values: Sequence[Any], mean: float) -> float:
    offsets = [value - mean for value in values]
    return sum(map(mul, offsets, offsets))


def _number_or_none(value: Any) -> Any:
    return value if scalars.is_number(value) else None
