# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Collect faults and expressions while a criterion is read. PRIVATE to the collection."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._judge import query
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._judge.criterion import Expression


@dataclass(frozen=True)
class Wrong:
    """A fault in one criterion: the dotted key ("-" for the whole criterion), and what was expected."""

    key: str
    why: str


class Notes:
    """All faults of a criterion, not only the first, and its expressions.

    A criterion with a fault is dropped, so a reader that notes a fault may continue with any value in its place.
    """

    def __init__(self, workload: str, name: str) -> None:
        self.faults: list[str] = []
        self.found: list[Wrong] = []
        self.expressions: list[Expression] = []
        self._where = f"workload {workload}: criterion {name}: "

    def wrong(self, key: str, expected: str, got: Any) -> None:
        """Note that `key` has an unexpected value."""
        self.fault(key, f"{expected}, found {got!r}")

    def fault(self, key: str, what: str) -> None:
        """Note what is wrong with `key`."""
        self.faults.append(f"{self._where}key {key}: {what}")
        self.found.append(Wrong(key, what))

    def keys(self, value: Any, key: str, required: set[str], optional: set[str]) -> bool:
        """Note each missing or unknown key; return whether `value` is a mapping with the right keys."""
        known = ", ".join(sorted(required | optional))
        if not isinstance(value, dict):
            self.wrong(key, f"expected a mapping with the keys {known}", value)
            return False
        for name in sorted(set(value) - required - optional, key=str):
            self.fault(f"{key}.{name}", f"is unknown; expected {known}")
        for name in sorted(required - set(value)):
            self.fault(f"{key}.{name}", "is missing")
        return required <= set(value) <= required | optional

    def expression(self, key: str, text: Any, *, element: bool = False) -> Expression:
        """Parse an expression, of one element of a list if `element`."""
        try:
            found = Expression(text, query.parse(text, element=element))
        except query.QueryError as exc:
            self.fault(key, str(exc))
            return Expression("", {})
        self.expressions.append(found)
        return found
