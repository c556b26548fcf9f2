# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Evaluate JMESPath expressions without ever inventing a value.

The parser is that of the `jmespath` package. The evaluator is our own, because the standard one gives answers where a
judge must not: a path to nothing is null, projections drop nulls, `sum([])` is 0, a filter over nothing is an empty
list, `True > 0.95` is true. Here each of these raises `UnansweredError`, and reading reduced rows with missing numbers
raises `UndeterminedError`.
PRIVATE to the collection.
"""

from __future__ import annotations

from typing import Any

from ansible_collections.mlops.hpc_validation.plugins.module_utils._common import scalars
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._judge.rows import (
    REDUCTIONS,
    Missing,
    ReducedField,
)

MAX_EXPRESSION = 1000

_STRING_FUNCTIONS = ("contains", "starts_with", "ends_with")
_FUNCTION_ARITY = {
    "abs": 1,
    "avg": 1,
    "ceil": 1,
    "contains": 2,
    "ends_with": 2,
    "floor": 1,
    "keys": 1,
    "length": 1,
    "max": 1,
    "min": 1,
    "sort": 1,
    "starts_with": 2,
    "sum": 1,
    "values": 1,
}
_NODES = frozenset(
    (
        "and_expression",
        "comparator",
        "current",
        "field",
        "filter_projection",
        "flatten",
        "function_expression",
        "identity",
        "index",
        "index_expression",
        "key_val_pair",
        "literal",
        "multi_select_dict",
        "multi_select_list",
        "not_expression",
        "or_expression",
        "pipe",
        "projection",
        "slice",
        "subexpression",
        "value_projection",
    )
)


class QueryError(ValueError):
    """The expression itself is wrong; nothing was evaluated."""


class UnansweredError(Exception):
    """The evidence does not answer the query; `root` is the missing document, if that is the reason."""

    def __init__(self, message: str, root: str | None = None) -> None:
        super().__init__(message)
        self.root = root


def _parser() -> Any:
    try:
        from jmespath import parser  # noqa: PLC0415 - managed nodes do not have it, and parse nothing
    except ImportError as exc:
        raise QueryError(
            "the Python package jmespath is missing on the controller; install it into the Python that runs Ansible "
            "(ansible --version names it): python3 -m pip install jmespath"
        ) from exc
    return parser.Parser()


def parse(expression: Any, *, element: bool = False) -> dict[str, Any]:
    """Return the syntax tree of `expression`; raise QueryError.

    With `element` the expression is evaluated on one element of a list, where `@` alone is a valid query.
    """
    if not isinstance(expression, str) or not expression.strip():
        raise QueryError(f"expected a JMESPath expression, found {expression!r}")
    if len(expression) > MAX_EXPRESSION:
        raise QueryError(f"expected at most {MAX_EXPRESSION} characters")
    try:
        parser = _parser()
        parser.purge()  # where its cache of 128 expressions is full, jmespath 1.0.0 fails on Python 3.11
        tree: dict[str, Any] = parser.parse(expression).parsed
        _check(tree, literal_allowed=False)
    except QueryError:
        raise
    except Exception as exc:
        reason = " ".join(str(exc).split())
        raise QueryError(f"not a JMESPath expression: {expression!r}: {reason}") from exc
    kinds = {node["type"] for node in _walk(tree)}
    if "field" not in kinds and not (element and "current" in kinds):
        raise QueryError(f"{expression!r} reads nothing of the evidence")
    return tree


def _walk(node: Any) -> Any:
    if isinstance(node, dict):
        yield node
        for child in node.get("children", ()):
            yield from _walk(child)


def _check(node: Any, *, literal_allowed: bool) -> None:
    """Reject anything that could add a value to the answer that is not in the evidence."""
    if not isinstance(node, dict):
        return
    kind = node["type"]
    if kind not in _NODES:
        raise QueryError(f"JMESPath's {kind} is not supported in criteria")
    if kind == "literal" and not literal_allowed:
        raise QueryError("a literal is only allowed in a comparison or in contains, starts_with, ends_with")
    if kind == "function_expression":
        name, count = node["value"], len(node["children"])
        if name not in _FUNCTION_ARITY:
            raise QueryError(f"function {name}() is not one of {', '.join(sorted(_FUNCTION_ARITY))}")
        if count != _FUNCTION_ARITY[name]:
            raise QueryError(f"function {name}() takes {_FUNCTION_ARITY[name]} argument(s), found {count}")
    allowed = kind == "comparator" or (kind == "function_expression" and node["value"] in _STRING_FUNCTIONS)
    for child in node.get("children", ()):
        _check(child, literal_allowed=allowed)


def evaluate(tree: dict[str, Any], evidence: dict[str, Any], roots: set[str], missing: Missing | None = None) -> Any:
    """Return what `tree` finds in the evidence; raise UnansweredError. `roots` collects the names of documents read.

    `missing` says how many reduced rows may have no number (default: none), and counts those that have none.
    """
    return _Evaluation(evidence, roots, missing or Missing()).visit(tree, evidence)


def evaluate_element(tree: dict[str, Any], element: Any, missing: Missing | None = None) -> Any:
    """Return what `tree` finds in one element of a list; raise UnansweredError."""
    return _Evaluation(None, set(), missing or Missing()).visit(tree, element)


def fields(tree: dict[str, Any]) -> set[str]:
    """Return every field name that the expression mentions."""
    return {node["value"] for node in _walk(tree) if node["type"] == "field"}


def _boolean(value: Any, what: str) -> bool:
    if not isinstance(value, bool):
        raise UnansweredError(f"{what} is {scalars.describe(value)}, not true or false")
    return value


def _list(value: Any, what: str) -> list[Any]:
    if not isinstance(value, list):
        raise UnansweredError(f"{what} needs a list, found {scalars.describe(value)}")
    return value


def _filled(value: Any, what: str) -> list[Any]:
    if not _list(value, what):
        raise UnansweredError(f"{what} found an empty list")
    return list(value)


def _number_list(value: Any, what: str) -> list[float]:
    try:
        return [scalars.number(item) for item in _filled(value, what)]
    except scalars.NotANumberError as exc:
        raise UnansweredError(f"{what}: an element {exc}") from exc


class _Evaluation:
    """One evaluation over one document."""

    def __init__(self, evidence: Any, roots: set[str], missing: Missing) -> None:
        self._evidence = evidence
        self._roots = roots
        self._missing = missing
        self._why_null: str | None = None  # said beside the field read last, where that is null

    def visit(self, node: dict[str, Any], value: Any) -> Any:
        return getattr(self, "visit_" + node["type"])(node, value)

    def _chain(self, node: dict[str, Any], value: Any) -> Any:
        for child in node["children"]:
            value = self.visit(child, value)
        return value

    visit_subexpression = visit_index_expression = visit_pipe = _chain

    def visit_field(self, node: dict[str, Any], value: Any) -> Any:
        name = node["value"]
        at_root = self._evidence is not None and value is self._evidence
        if at_root:
            self._roots.add(name)
        if not isinstance(value, dict):
            why = f": {self._why_null}" if value is None and self._why_null else ""
            raise UnansweredError(f"expected an object with '{name}', found {scalars.describe(value)}{why}")
        if name not in value:
            if at_root:
                raise UnansweredError(f"the evidence has no document '{name}'", root=name)
            known = ", ".join(sorted(map(str, value))[:12]) or "nothing"
            raise UnansweredError(f"there is no '{name}'; available: {known}")
        if isinstance(value, ReducedField) and name in REDUCTIONS:
            self._missing.require_numbers(value)
        found, why = value[name], value.get("why")
        self._why_null = scalars.bounded(why) if found is None and isinstance(why, str) else None
        return found

    def visit_current(self, _node: dict[str, Any], value: Any) -> Any:
        if self._evidence is not None and value is self._evidence:
            self._roots.update(value)  # the result then depends on all documents
        return value

    visit_identity = visit_current

    def visit_literal(self, node: dict[str, Any], _value: Any) -> Any:
        return node["value"]

    def visit_index(self, node: dict[str, Any], value: Any) -> Any:
        items = _list(value, f"[{node['value']}]")
        try:
            return items[node["value"]]
        except IndexError:
            raise UnansweredError(f"[{node['value']}] of a list of {len(items)}") from None

    def visit_slice(self, node: dict[str, Any], value: Any) -> Any:
        items = _list(value, "a slice")
        for end in node["children"][:2]:
            if end is not None and abs(end) > len(items):
                raise UnansweredError(f"a slice to {end} of a list of {len(items)}")
        return items[slice(*node["children"])]

    def visit_flatten(self, node: dict[str, Any], value: Any) -> Any:
        merged: list[Any] = []
        for element in _list(self.visit(node["children"][0], value), "[]"):
            merged.extend(_filled(element, "[]") if isinstance(element, list) else [element])
        return merged

    def visit_projection(self, node: dict[str, Any], value: Any) -> Any:
        base, each = node["children"]
        return [self.visit(each, element) for element in _filled(self.visit(base, value), "[*]")]

    def visit_value_projection(self, node: dict[str, Any], value: Any) -> Any:
        base, each = node["children"]
        found = self.visit(base, value)
        if not isinstance(found, dict) or not found:
            raise UnansweredError(f"* needs an object with keys, found {scalars.describe(found)}")
        return [self.visit(each, element) for element in self._values(found)]

    def visit_filter_projection(self, node: dict[str, Any], value: Any) -> Any:
        base, each, condition = node["children"]
        kept = []
        for element in _filled(self.visit(base, value), "[?…]"):
            if _boolean(self.visit(condition, element), "the filter's condition"):
                kept.append(self.visit(each, element))
        return kept

    def visit_comparator(self, node: dict[str, Any], value: Any) -> bool:
        left, right = (self.visit(child, value) for child in node["children"])
        kind = node["value"]
        if kind in ("eq", "ne"):
            try:
                return scalars.same(left, right) is (kind == "eq")
            except scalars.NotComparableError as exc:
                raise UnansweredError(str(exc)) from exc
        try:
            left, right = scalars.number(left), scalars.number(right)
        except scalars.NotANumberError as exc:
            raise UnansweredError(f"a comparison's side {exc}") from exc
        return {"lt": left < right, "gt": left > right, "lte": left <= right, "gte": left >= right}[kind]

    def visit_and_expression(self, node: dict[str, Any], value: Any) -> bool:
        sides = [_boolean(self.visit(child, value), "a side of &&") for child in node["children"]]
        return all(sides)

    def visit_or_expression(self, node: dict[str, Any], value: Any) -> bool:
        sides = [_boolean(self.visit(child, value), "a side of ||") for child in node["children"]]
        return any(sides)

    def visit_not_expression(self, node: dict[str, Any], value: Any) -> bool:
        return not _boolean(self.visit(node["children"][0], value), "what follows !")

    def visit_multi_select_list(self, node: dict[str, Any], value: Any) -> list[Any]:
        return [self.visit(child, value) for child in node["children"]]

    def visit_multi_select_dict(self, node: dict[str, Any], value: Any) -> dict[str, Any]:
        return {child["value"]: self.visit(child["children"][0], value) for child in node["children"]}

    def visit_function_expression(self, node: dict[str, Any], value: Any) -> Any:
        arguments = [self.visit(child, value) for child in node["children"]]
        return getattr(self, "call_" + node["value"])(*arguments)

    def call_length(self, value: Any) -> int:
        if not isinstance(value, (list, dict, str)):
            raise UnansweredError(f"length() of {scalars.describe(value)}")
        return len(value)

    def call_keys(self, value: Any) -> list[Any]:
        if not isinstance(value, dict):
            raise UnansweredError(f"keys() of {scalars.describe(value)}")
        return list(value)

    def call_values(self, value: Any) -> list[Any]:
        if not isinstance(value, dict):
            raise UnansweredError(f"values() of {scalars.describe(value)}")
        return self._values(value)

    def _values(self, value: dict[str, Any]) -> list[Any]:
        if isinstance(value, ReducedField):
            self._missing.require_numbers(value)
        return list(value.values())

    def call_sum(self, value: Any) -> float:
        return sum(_number_list(value, "sum()"))

    def call_avg(self, value: Any) -> float:
        items = _number_list(value, "avg()")
        return sum(items) / len(items)

    def call_max(self, value: Any) -> float:
        return max(_number_list(value, "max()"))

    def call_min(self, value: Any) -> float:
        return min(_number_list(value, "min()"))

    def call_sort(self, value: Any) -> list[float]:
        return sorted(_number_list(value, "sort()"))

    def call_abs(self, value: Any) -> float:
        return abs(_number_list([value], "abs()")[0])

    def call_ceil(self, value: Any) -> int:
        return -int(-_number_list([value], "ceil()")[0] // 1)

    def call_floor(self, value: Any) -> int:
        return int(_number_list([value], "floor()")[0] // 1)

    def call_contains(self, value: Any, sought: Any) -> bool:
        if isinstance(value, str) and isinstance(sought, str):
            return sought in value
        try:
            return any(scalars.same(item, sought) for item in _filled(value, "contains()"))
        except scalars.NotComparableError as exc:
            raise UnansweredError(str(exc)) from exc

    def call_starts_with(self, value: Any, prefix: Any) -> bool:
        return self._strings("starts_with()", value, prefix)[0].startswith(prefix)

    def call_ends_with(self, value: Any, suffix: Any) -> bool:
        return self._strings("ends_with()", value, suffix)[0].endswith(suffix)

    @staticmethod
    def _strings(what: str, *values: Any) -> tuple[str, ...]:
        if not all(isinstance(value, str) for value in values):
            raise UnansweredError(f"{what} needs text")
        return values
