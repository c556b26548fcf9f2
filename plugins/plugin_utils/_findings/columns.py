# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Findings as columns, so that hundreds of thousands take little room: schema findings.json.

A check's findings are mostly equal but for their place and value. So each field is a list of its distinct values, with
the position of each finding's value in it; places are listed once for all checks, and so are lists of places.
"""

from __future__ import annotations

import gzip
import io
import json
import re
import typing as t
import zlib
from array import array
from collections import Counter

from ansible_collections.mlops.hpc_validation.plugins.module_utils._common import scalars, strict_json
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._common.json_files import encode_compact
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._common.presentable import presentable

Json = dict[str, t.Any]
SCHEMA = 1
FIELDS = ("title", "verdict", "value", "bound", "unit", "source", "why", "remedy", "bound_from", "severity")
VERDICTS = ("pass", "fail", "undetermined", "not_applicable", "recorded", "waived")
_KEYS = {"id", *FIELDS, "where"}
_ID = re.compile(r"[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)+")
_WHERE = {"host", "node", "gpu", "path", "target", "step", "workload"}
_CHOICES = {
    "verdict": VERDICTS,
    "bound_from": ("manifest", "reference", "override"),
    "severity": ("gate", "record"),
}
# All of it is read into memory: more is not a document of ours.
MAX_BYTES = 512_000_000


class ColumnsError(ValueError):
    """Not findings, or not a document of them; the message says what is wrong."""


class Column:
    """The values of one field: the distinct ones, and for each finding which of them it has."""

    __slots__ = ("_field", "_known", "values", "which")

    def __init__(self, field: str) -> None:
        self._field = field
        self.values: list[t.Any] = []
        self.which = array("I")
        self._known: dict[t.Any, int] = {}

    def add(self, value: t.Any) -> None:
        """Add the value of the next finding."""
        self.which.append(self._position(value))

    def _position(self, value: t.Any) -> int:
        key = value if isinstance(value, str) else (json.dumps(value),)  # which tells 1, 1.0 and true apart
        position = self._known.get(key)
        if position is None:
            _require_value(self._field, value)
            position = self._known[key] = len(self.values)
            self.values.append(presentable(value))
        return position

    def extend(self, other: Column) -> None:
        """Add the values of all findings of another column."""
        moved = array("I", map(self._position, other.values))
        self.which.extend(moved[position] for position in other.which)

    def of(self, number: int) -> t.Any:
        """Return the value of one finding."""
        return self.values[self.which[number]]


class Check:
    """All findings of one check."""

    def __init__(self, identity: str) -> None:
        if not isinstance(identity, str) or not _ID.fullmatch(identity):
            raise ColumnsError(f"not a finding: its id is {identity!r}")
        self.id = identity
        self.fields = {field: Column(field) for field in FIELDS}
        self.at = array("I")

    def __len__(self) -> int:
        return len(self.at)

    def get(self, number: int, places: list[Json]) -> Json:
        """Return one finding whole (schema finding.json)."""
        told = {field: column.of(number) for field, column in self.fields.items()}
        return {"id": self.id, **told, "where": dict(places[self.at[number]])}


class Table:
    """Findings of many checks."""

    def __init__(self, findings: t.Iterable[Json] = ()) -> None:
        self.checks: dict[str, Check] = {}
        self.places: list[Json] = []
        self._known: dict[tuple[t.Any, ...], int] = {}
        self.extend(findings)

    def __len__(self) -> int:
        return sum(map(len, self.checks.values()))

    def __iter__(self) -> t.Iterator[Json]:
        """Yield every finding, those of one check together, in the order of recording."""
        for check in self.checks.values():
            for number in range(len(check)):
                yield check.get(number, self.places)

    def extend(self, findings: t.Iterable[Json]) -> None:
        """Add findings."""
        for finding in findings:
            self.add(finding)

    def add(self, finding: Json) -> None:
        """Add a finding (schema finding.json). Raise ColumnsError if it does not have exactly the fields of one."""
        if not isinstance(finding, dict) or finding.keys() != _KEYS:
            raise ColumnsError(f"not a finding: {scalars.show(finding)}, expected {', '.join(sorted(_KEYS))}")
        identity = finding["id"]
        check = self.checks.get(identity)
        if check is None:
            check = self.checks[identity] = Check(identity)
        for field, column in check.fields.items():
            column.add(finding[field])
        check.at.append(self._place(finding["where"]))

    def merge(self, other: Table) -> None:
        """Add all findings of another table."""
        moved = array("I", map(self._place, other.places))
        for check in other.checks.values():
            mine = self.checks.setdefault(check.id, Check(check.id))
            mine.at.extend(moved[place] for place in check.at)
            for field, column in mine.fields.items():
                column.extend(check.fields[field])

    def verdicts(self) -> Counter[str]:
        """Return how many findings have each verdict."""
        found: Counter[str] = Counter()
        for check in self.checks.values():
            column = check.fields["verdict"]
            found.update({column.values[position]: count for position, count in Counter(column.which).items()})
        return found

    def _place(self, where: Json) -> int:
        key = tuple(where.items()) if isinstance(where, dict) else (where,)
        position = self._known.get(key)
        if position is None:
            _require_place(where)
            position = self._known[key] = len(self.places)
            self.places.append(presentable(where))
        return position


def document(table: Table) -> Json:
    """Return the table as a document (schema findings.json)."""
    lists: dict[bytes, int] = {}
    checks = []
    for check in table.checks.values():
        at = lists.setdefault(check.at.tobytes(), len(lists))
        checks.append({"id": check.id, "count": len(check), "at": at, "fields": _fields(check)})
    return {
        "schema": SCHEMA,
        "count": len(table),
        "places": table.places,
        "at": [array("I", positions).tolist() for positions in lists],
        "checks": checks,
    }


def table(told: t.Any) -> Table:
    """Return the table of a document, to read. Raise ColumnsError if it is not one, or if its parts do not agree."""
    made = Table()
    try:
        if told["schema"] != SCHEMA:
            raise ColumnsError(f"expected findings of schema {SCHEMA}, found {told['schema']!r}")
        places, lists = told["places"], told["at"]
        for where in places:
            _require_place(where)
        made.places = places
        for each in told["checks"]:
            check = _check(each, lists, len(places))
            if check.id in made.checks:
                raise ColumnsError(f"the check {check.id} appears twice")
            made.checks[check.id] = check
        if len(made) != told["count"]:
            raise ColumnsError(f"expected {told['count']} findings, found {len(made)}")
    except (KeyError, TypeError, IndexError, OverflowError, AttributeError) as exc:
        raise ColumnsError(f"not a document of findings: {type(exc).__name__}: {exc}") from exc
    return made


def pack(table: Table) -> bytes:
    """Return the document of the table, compressed; equal tables give equal bytes."""
    return gzip.compress(encode_compact(document(table)), compresslevel=6, mtime=0)


def unpack(content: bytes) -> Table:
    """Return the table that was packed. Raise ColumnsError for anything else."""
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(content)) as stream:
            text = stream.read(MAX_BYTES + 1)
    except (OSError, EOFError, zlib.error) as exc:
        raise ColumnsError(f"not a compressed document of findings: {exc}") from exc
    if len(text) > MAX_BYTES:
        raise ColumnsError(f"more than {MAX_BYTES} bytes of findings")
    try:
        told = strict_json.parse(text)
    except (ValueError, RecursionError) as exc:
        raise ColumnsError(f"not a document of findings: {exc}") from exc
    return table(told)


def _fields(check: Check) -> Json:
    """Return the columns; of a field with the same value in every finding only that value."""
    return {
        field: {"values": column.values, **({"which": column.which.tolist()} if len(column.values) > 1 else {})}
        for field, column in check.fields.items()
    }


def _check(told: Json, lists: list[t.Any], places: int) -> Check:
    check = Check(told["id"])
    check.at = array("I", lists[_position(told["at"])])
    if len(check) != told["count"]:
        raise ColumnsError(f"expected {told['count']} findings of the check {check.id!r}, found {len(check)}")
    if max(check.at, default=places) >= places:
        raise ColumnsError(f"a finding of {check.id} is at a place that is not listed")
    for field, column in check.fields.items():
        values = told["fields"][field]["values"]
        for value in values:
            _require_value(field, value)
        same = [0] * len(check) if len(values) == 1 else []
        which = array("I", told["fields"][field].get("which", same))
        if not isinstance(values, list) or len(which) != len(check) or max(which) >= len(values):
            raise ColumnsError(f"{field} of {check.id} does not have a value for each of {len(check)} findings")
        column.values, column.which = values, which
    return check


def _position(told: int) -> int:
    if told < 0:
        raise ColumnsError(f"expected a position in a list, found {told!r}")
    return told


def _require_value(field: str, value: t.Any) -> None:
    if field == "value" or (value is None and field in ("unit", "remedy")):
        return
    if not isinstance(value, str):
        raise ColumnsError(f"not a finding: {field} is {value!r}, expected text")
    choices = _CHOICES.get(field)
    if choices and value not in choices:
        raise ColumnsError(f"not a finding: {field} is {value!r}, expected one of {', '.join(choices)}")


def _require_place(where: t.Any) -> None:
    if not isinstance(where, dict) or not where.keys() <= _WHERE or not all(isinstance(n, str) for n in where.values()):
        raise ColumnsError(f"not a finding: where is {where!r}, expected text for any of {', '.join(sorted(_WHERE))}")
