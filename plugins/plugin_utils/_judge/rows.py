# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reduced rows for the judge: a reduction cannot be relied on if rows have no number.

A reduced file of rows (see module_utils/_evidence/reduce.py) is recognised by its place in the evidence; a similar
object within another document is not one. PRIVATE to the collection.
"""

from __future__ import annotations

from typing import Any

from ansible_collections.mlops.hpc_validation.plugins.module_utils._common import scalars

# What is computed from the numbers of a column. Everything else only counts its rows.
REDUCTIONS = ("first", "last", "min", "max", "mean", "slope", "slope_error", "fit_first", "fit_last")
COUNTS = ("count", "nulls", "non_finite", "other")
_NEEDED = {"rows", "malformed", "fields"}
_POSSIBLE = _NEEDED | {"series", "groups"}


class UndeterminedError(Exception):
    """The evidence does not decide the criterion; the message is the criterion's `why`.

    A `remedy` takes precedence over the criterion's own.
    """

    def __init__(self, why: str, remedy: str | None = None) -> None:
        super().__init__(why)
        self.remedy = remedy


class ReducedField(dict[str, Any]):
    """The reduction of one column; `name` is its place in the evidence."""

    def __init__(self, name: str, reduction: dict[str, Any]) -> None:
        super().__init__(reduction)
        self.name = name


class Missing:
    """How many rows of a column may have no number, and how many had none in each column that was read."""

    def __init__(self, at_most: int = 0) -> None:
        self.at_most = at_most
        self.columns: dict[str, int] = {}

    def require_numbers(self, field: ReducedField) -> None:
        """Raise UndeterminedError unless each row has a number, except as many as may have none."""
        counts = {key: _count(field, key) for key in COUNTS}
        rows = sum(counts.values())
        wrong = counts["non_finite"] + counts["other"]
        if wrong:
            raise UndeterminedError(
                f"{_shown(field)} is not a finite number in {wrong} of {rows} rows "
                f"({counts['non_finite']} NaN or infinite, {counts['other']} of another type)"
            )
        if counts["nulls"] > self.at_most:
            allowed = f"at most {self.at_most}" if self.at_most else "none"
            raise UndeterminedError(
                f"{_shown(field)} is missing in {counts['nulls']} of {rows} rows, and {allowed} may be without it "
                "(missing_at_most of the criterion, with a reason)"
            )
        if not counts["count"]:
            raise UndeterminedError(f"{_shown(field)} has no number in any of {rows} rows")
        self.columns[field.name] = counts["nulls"]

    @property
    def found(self) -> int:
        """How many rows had no number, in all columns that were read."""
        return sum(self.columns.values())


def is_rows(document: Any) -> bool:
    """Return whether a document of the evidence is a reduced file of rows; only others say which job wrote them."""
    return isinstance(document, dict) and _NEEDED <= set(document) <= _POSSIBLE


def with_reduced_fields(evidence: dict[str, Any]) -> dict[str, Any]:
    """Return the evidence with the columns of its files of rows as ReducedField; nothing else is copied.

    The thinned series are left out: they are for plots, and hold only numbers.
    """
    return {name: _marked(name, document) if is_rows(document) else document for name, document in evidence.items()}


def _marked(name: str, document: dict[str, Any]) -> dict[str, Any]:
    marked = {key: value for key, value in _with_fields(name, document).items() if key != "series"}
    groups = document.get("groups")
    if isinstance(groups, dict):
        marked["groups"] = {key: _with_fields(f"{name}.groups.{key}", group) for key, group in groups.items()}
    return marked


def _with_fields(name: str, rows: Any) -> Any:
    fields = rows.get("fields") if isinstance(rows, dict) else None
    if not isinstance(fields, dict):
        return rows
    marked = {
        key: ReducedField(f"{name}.fields.{key}", field) if isinstance(field, dict) else field
        for key, field in fields.items()
    }
    return {**rows, "fields": marked}


def _count(field: ReducedField, key: str) -> int:
    count = field.get(key)
    if not isinstance(count, int) or isinstance(count, bool) or count < 0:
        raise UndeterminedError(f"{_shown(field)}: its {key} is {scalars.describe(count)}, not a number of rows")
    return count


def _shown(field: ReducedField) -> str:
    return scalars.printable(field.name)
