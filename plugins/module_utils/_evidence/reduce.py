# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reduces JSON Lines and CSV of any length to a few numbers for each field. PRIVATE to the collection.

Rows are taken in blocks and a field's values of a block together, so that the work is done by built-in functions:
a million rows take seconds. Memory does not grow with the file.
"""

from __future__ import annotations

import csv
import io
import json
import math
import os
import re
from collections.abc import Iterator, Sequence
from operator import itemgetter, le, mul
from typing import Any, BinaryIO

from ansible_collections.mlops.hpc_validation.plugins.module_utils import _json, _numbers
from ansible_collections.mlops.hpc_validation.plugins.module_utils._evidence_io import EvidenceError

BLOCK_BYTES = 1 << 20
MAX_LINE = 1 << 20
MAX_ROWS_AT_ONCE = 2048
MAX_FIELDS = 256
MAX_GROUPS = 1024
MAX_POINTS = 200
MAX_SERIES = 32
OWN = ("job_id", "attempt")
# A number as JSON writes it, and the words for what is none. Python would take 1_000, 0005, +0 and other digits too.
_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)([.][0-9]+)?([eE][+-]?[0-9]+)?")
_NON_FINITE = re.compile(r"[+-]?(nan|inf|infinity)", re.IGNORECASE)

Row = dict[str, Any]


def reduce_rows(
    stream: BinaryIO, form: str, job_id: str, attempt: int, *, group_by: str | None = None, x: str | None = None
) -> dict[str, Any]:
    """Return the reduced document of a JSON Lines (`form` jsonl) or CSV (csv) file; raise EvidenceError.

    Slopes and series are over the field `x`, or the row's number from 0 where none is given.
    """
    rows = _jsonl_blocks(stream) if form == "jsonl" else _csv_blocks(stream)
    whole = _Reduction(x, series=True)
    groups: dict[str | int, _Reduction] = {}
    malformed = 0
    for block, bad in rows:
        malformed += bad
        _require_own(block, job_id, attempt)
        whole.add(block)
        if group_by is not None:
            malformed += _add_groups(groups, block, group_by, x)
    if whole.rows == 0:
        raise EvidenceError("empty", f"no row can be read ({malformed} malformed lines)")
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
            raise EvidenceError("duplicate_key", f"two values of {group_by} are written alike, as a number and as text")
    return document


def _require_own(block: list[Row], job_id: str, attempt: int) -> None:
    ids, attempts = _column(block, "job_id"), _column(block, "attempt")
    if ids.count(job_id) == len(block) == attempts.count(attempt) and set(map(type, attempts)) <= {int}:
        return
    told = next(pair for pair in zip(ids, attempts) if pair != (job_id, attempt) or isinstance(pair[1], bool))
    other = f"job {_numbers.show(told[0])} attempt {_numbers.show(told[1])}"
    raise EvidenceError("foreign", f"a row was written by {other}, not by job {job_id} attempt {attempt}")


def _column(block: list[Row], name: str) -> list[Any]:
    """Return the field's value in each row, null where a row lacks it."""
    full = _full_column(block, name)
    return [row.get(name) for row in block] if full is None else full


def _full_column(block: list[Row], name: str) -> list[Any] | None:
    """Return the field's value in each row, or None if any row lacks it."""
    try:
        return list(map(itemgetter(name), block))
    except KeyError:
        return None


def _add_groups(groups: dict[str | int, _Reduction], block: list[Row], group_by: str, x: str | None) -> int:
    """Sort the block's rows into groups; return how many name none."""
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
        columns = {name: _full_column(block, name) for name in self._fields}
        # Rows with all known fields and no more than those need not be asked for their names.
        if None in columns.values() or set(map(len, block)) != {len(columns) + len(OWN)}:
            self._find_new_fields(block)
            columns = {name: _column(block, name) for name in self._fields}
        xs = range(self.rows, self.rows + len(block)) if self._x is None else _column(block, self._x)
        axis = _Axis(xs)
        for name, values in columns.items():
            self._fields[name].add(values or [], axis)
        self.rows += len(block)

    def _find_new_fields(self, block: list[Row]) -> None:
        for name in sorted(set().union(*block) - self._fields.keys() - set(OWN)):
            if len(self._fields) >= MAX_FIELDS:
                raise EvidenceError("too_large", f"more than {MAX_FIELDS} different fields")
            # The rows before this one lacked the field: they count as nulls.
            self._fields[name] = _Field(self.rows, self._with_series and len(self._fields) < MAX_SERIES)

    def fields(self) -> dict[str, Any]:
        return {name: reduced.result() for name, reduced in self._fields.items()}

    def series(self) -> dict[str, Any]:
        return {name: reduced.points() for name, reduced in self._fields.items() if reduced.has_points()}


class _Axis:
    """Where a block's rows lie on the x axis; worked out once for all fields that have a number in each row."""

    def __init__(self, xs: Sequence[Any]) -> None:
        self.xs = xs
        self.known = bool(xs) and _numbers.is_number(_sum(xs))
        # A line over an x that goes back falls where the values rise.
        self.known = self.known and all(map(le, xs, xs[1:]))
        self.mean = sum(xs) / len(xs) if self.known else 0.0
        self.offsets = [x - self.mean for x in xs] if self.known else []
        self.squares = sum(map(mul, self.offsets, self.offsets))


class _Field:
    """One field: counts, extremes, mean and a least-squares line, kept so that blocks can be added (Chan et al.)."""

    def __init__(self, nulls: int, series: bool) -> None:
        self._nulls = nulls
        self._non_finite = self._other = self._count = 0
        self._begun = nulls > 0
        self._first: Any = None  # the first row's and the last row's; None where that has no number
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
        if not self._begun and values:
            self._begun, self._first = True, _number_or_none(values[0])
        self._last = _number_or_none(values[-1]) if values else self._last
        total = _sum(values)
        if not _numbers.is_number(total):
            values, xs = self._numbers_of(values, axis.xs)
            total, axis = _sum(values), _Axis(xs)
        if values:
            if self._points is not None:
                self._thin(values, axis.xs)
            self._add_numbers(values, axis, total)

    def _numbers_of(self, values: list[Any], xs: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        kept, kept_xs = [], []
        for value, x in zip(values, xs):
            if value is None:
                self._nulls += 1
            elif _numbers.is_number(value):
                kept.append(value)
                kept_xs.append(x)
            elif _numbers.is_non_finite(value):
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
        self._min = min(self._min, values[0] if constant else min(values))
        self._max = max(self._max, values[0] if constant else max(values))
        mean = total / count
        merged = self._count + count
        weight = self._count * count / merged
        if axis.known and self._x_known:
            dx, dy = axis.mean - self._x_mean, mean - self._mean
            self._sxx += axis.squares + dx * dx * weight
            # The offsets add up to nothing, so the values need not be taken from their mean.
            self._sxy += (0.0 if constant else sum(map(mul, axis.offsets, values))) + dx * dy * weight
            self._syy += (0.0 if constant else _squares(values, mean)) + dy * dy * weight
            self._x_mean += dx * count / merged
        else:
            self._x_known = False
        self._mean += (mean - self._mean) * count / merged
        self._count = merged

    def _thin(self, values: list[Any], xs: Sequence[Any]) -> None:
        """Keep every stride-th number; double the stride whenever there are too many."""
        points = self._points or []
        offset = -self._count % self._stride
        points.extend([x, y] for x, y in zip(xs[offset :: self._stride], values[offset :: self._stride]))
        while len(points) >= MAX_POINTS:
            del points[1::2]
            self._stride *= 2
        self._points = points

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

    def has_points(self) -> bool:
        return bool(self._points)

    def points(self) -> list[list[Any]]:
        points = list(self._points or [])
        last = [self._x_last, self._last_number]
        return points if points and points[-1] == last else [*points, last]


def slope_error(count: int, sxx: float, syy: float, slope: float) -> float | None:
    """Return the standard error of a fitted slope, None for fewer than three points: any two lie on a line."""
    if count < 3:
        return None
    rest = syy - slope * slope * sxx
    return math.sqrt(max(0.0, rest) / (count - 2) / sxx) if math.isfinite(rest) else math.inf


def _sum(values: Sequence[Any]) -> float:
    """Return the sum; NaN where a value is no number, or is one that has no float."""
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
    return value if _numbers.is_number(value) else None


def _lines(stream: BinaryIO) -> Iterator[tuple[list[bytes], bool]]:
    """Yield blocks of lines without their ends; the flag says that the last line of the file has no end."""
    rest = b""
    while True:
        block = stream.read(BLOCK_BYTES)
        if not block:
            break
        lines = (rest + block).split(b"\n")
        rest = lines.pop()
        if len(rest) > MAX_LINE:
            raise EvidenceError("too_large", f"a line is longer than {MAX_LINE} bytes")
        yield lines, False
    if rest:
        yield [rest], True


def _jsonl_blocks(stream: BinaryIO) -> Iterator[tuple[list[Row], int]]:
    for lines, unfinished in _lines(stream):
        filled = [line for line in lines if line and not line.isspace()]
        for start in range(0, len(filled), MAX_ROWS_AT_ONCE):
            part = filled[start : start + MAX_ROWS_AT_ONCE]
            rows = _parse_together(part)
            yield (rows, 0) if rows is not None else _parse_singly(part, unfinished)


def _parse_together(lines: list[bytes]) -> list[Row] | None:
    """Parse many lines by one call, several times as fast as one by one; None if any of them is not an object.

    Between the lines stands a text that no line can know. Only where each line is exactly one value do these texts
    come out as every second element: lines that are wrong alone but right when joined are found out.
    """
    separator = json.dumps(os.urandom(12).hex())
    try:
        joined = ("," + separator + ",").encode().join(lines).decode("utf-8")
        values = json.loads("[" + joined + "]", object_pairs_hook=_json.unique)
    except (ValueError, RecursionError):
        return None
    marks = values[1::2]
    if len(values) != 2 * len(lines) - 1 or marks.count(separator[1:-1]) != len(marks):
        return None
    rows: list[Row] = values[::2]
    return rows if set(map(type, rows)) == {dict} else None


def _parse_singly(lines: list[bytes], unfinished: bool) -> tuple[list[Row], int]:
    rows: list[Row] = []
    bad = 0
    for line in lines:
        try:
            row = _json.parse(line)
        except _json.DuplicateKeyError as exc:
            raise EvidenceError("duplicate_key", f"{exc}: {_shown(line)}") from exc
        except (ValueError, RecursionError) as exc:
            if unfinished and line is lines[-1]:
                raise EvidenceError("truncated", f"it ends in the middle of a row: {_shown(line)}") from exc
            bad += 1
            continue
        if isinstance(row, dict):
            rows.append(row)
        else:
            bad += 1
    return rows, bad


def _shown(line: bytes) -> str:
    return _numbers.show(line[-80:].decode("utf-8", "replace"))


class _Text(io.RawIOBase):
    """Passes a file's bytes on and refuses what csv would take: a line that is too long, a hole."""

    def __init__(self, stream: BinaryIO) -> None:
        super().__init__()
        self._stream = stream
        self._length = 0
        self.ends_with_newline = True

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        block = self._stream.read(len(buffer))
        if block:
            self._length = len(block) - block.rfind(b"\n") - 1 if b"\n" in block else self._length + len(block)
            if self._length > MAX_LINE:
                raise EvidenceError("too_large", f"a line is longer than {MAX_LINE} bytes")
            self.ends_with_newline = block.endswith(b"\n")
            if b"\0" in block:  # as a hole in a file reads; Python 3.11 and newer would take it for text
                raise EvidenceError("not_csv", "it holds a NUL byte")
        buffer[: len(block)] = block
        return len(block)


def _csv_blocks(stream: BinaryIO) -> Iterator[tuple[list[Row], int]]:
    raw = _Text(stream)
    text = io.TextIOWrapper(io.BufferedReader(raw, BLOCK_BYTES), encoding="utf-8-sig", newline="")
    reader = csv.reader(text, strict=True)
    try:
        header = [name.strip() for name in next(reader, [])]
        if not header or len(set(header)) != len(header) or "" in header:
            raise EvidenceError("not_csv", "the first line does not name the columns, each once")
        rows: list[Row] = []
        bad = 0
        for cells in reader:
            if len(cells) == len(header):
                rows.append({name: _cell(cell) for name, cell in zip(header, cells)})
                if len(rows) == MAX_ROWS_AT_ONCE:
                    yield _own_columns(rows), bad
                    rows, bad = [], 0
            elif cells:
                bad += 1
        if not raw.ends_with_newline:  # a cut-off number is a number too
            raise EvidenceError("truncated", "its last line has no end")
        yield _own_columns(rows), bad
    except (csv.Error, UnicodeDecodeError) as exc:
        raise EvidenceError("not_csv", str(exc)) from exc
    finally:
        text.detach()


def _cell(text: str) -> Any:
    """A cell that is wholly a number, as JSON writes one, is one; an empty one is null; all else is text."""
    text = text.strip()
    if not text:
        return None
    number = _NUMBER.fullmatch(text)
    if number is None and not _NON_FINITE.fullmatch(text):
        return text
    try:
        return int(text) if number and not number[2] and not number[3] else float(text)
    except ValueError:  # thousands of digits
        return text


def _own_columns(rows: list[Row]) -> list[Row]:
    for row in rows:
        if isinstance(row.get("job_id"), int):
            row["job_id"] = str(row["job_id"])
    return rows
