# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the reading of one criterion finds out on the way. PRIVATE to the collection."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._judge import query
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._judge.criterion import Expression


@dataclass(frozen=True)
class Wrong:
    """What is wrong in one criterion: the key, dotted ("-" for the whole), and what was expected."""

    key: str
    why: str


class Notes:
    """Everything that is wrong with a criterion, rather than the first of it, and the expressions that it asks.

    A criterion with a fault is dropped, so that whoever notes one may go on with anything in the place of the value.
    """

    def __init__(self, workload: str, name: str) -> None:
        self.faults: list[str] = []
        self.found: list[Wrong] = []
        self.expressions: list[Expression] = []
        self._where = f"workload {workload}: criterion {name}: "

    def wrong(self, key: str, expected: str, got: Any) -> None:
        """Note that `key` has another value than expected."""
        self.fault(key, f"{expected}, got {got!r}")

    def fault(self, key: str, what: str) -> None:
        """Note what is wrong with `key`."""
        self.faults.append(f"{self._where}key {key}: {what}")
        self.found.append(Wrong(key, what))

    def keys(self, value: Any, key: str, required: set[str], optional: set[str]) -> bool:
        """Note each key that is missing or one too many; say whether `value` is a mapping of the right ones."""
        known = ", ".join(sorted(required | optional))
        if not isinstance(value, dict):
            self.wrong(key, f"expected a mapping with {known}", value)
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
