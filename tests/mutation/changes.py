# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every small change of a module that a test suite should notice, made on its syntax tree, one at a time.

Comparisons are turned and their bounds moved, conditions are fixed to true or false, sides of `and` and `or` dropped,
statements that raise or demand something removed, verdicts exchanged, numbers moved, entries of tables left out.
What only words depend on (inside f-strings, annotations, docstrings) is left alone.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

VERDICTS = ("pass", "fail", "undetermined")
OTHER_VERDICTS = ("not_applicable", "waived", "recorded")
COMPARISONS: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}
ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
}
TWINS = {"all": "any", "any": "all", "min": "max", "max": "min"}
UNTOUCHED = ("annotation", "returns", "decorator_list", "ctx")


@dataclass(frozen=True)
class Change:
    """One mutant: where it is and what it was and is."""

    line: int
    scope: str
    was: str
    now: str

    def __str__(self) -> str:
        return f"{self.scope}: {self.was} -> {self.now}"


def changes(tree: ast.Module) -> Iterator[Change]:
    """Yield each change while `tree` has it; the tree is whole again when the next one is asked for."""
    yield from _within(tree, "module")


def _within(node: ast.AST, scope: str) -> Iterator[Change]:
    if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
        scope = node.name if scope == "module" else f"{scope}.{node.name}"
    for name, value in ast.iter_fields(node):
        if name in UNTOUCHED:
            continue
        for position, child in enumerate(value if isinstance(value, list) else [value]):
            if not isinstance(child, ast.AST) or isinstance(child, ast.JoinedStr):
                continue
            for replacement, was, now in _replacements(child, name):
                _put(node, name, value, position, ast.fix_missing_locations(ast.copy_location(replacement, child)))
                yield Change(child.lineno, scope, was, now)
                _put(node, name, value, position, child)
            yield from _within(child, scope)


def _put(node: ast.AST, name: str, value: object, position: int, child: ast.AST) -> None:
    if isinstance(value, list):
        value[position] = child
    else:
        setattr(node, name, child)


Replacement = tuple[ast.AST, str, str]


def _replacements(node: ast.AST, field: str) -> Iterator[Replacement]:
    """Yield what may stand in the place of `node`, which is its parent's `field`, with both in words."""
    if field in ("test", "ifs") and isinstance(node, ast.expr):
        for fixed in (False,) if isinstance(node, ast.Constant) else (False, True):
            yield ast.Constant(fixed), f"if {ast.unparse(node)}", f"if {fixed}"
    if isinstance(node, ast.Raise) or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)):
        yield ast.Pass(), ast.unparse(node), "removed"
    elif isinstance(node, ast.expr):
        for replacement in _expressions(node, field):
            yield replacement, ast.unparse(node), ast.unparse(replacement)
        yield from _without_one(node)


def _expressions(node: ast.expr, field: str) -> Iterator[ast.expr]:
    if isinstance(node, ast.Compare):
        for position, operator in enumerate(node.ops):
            others = COMPARISONS[type(operator)]
            # A condition that is turned round needs no trial of its own: it was fixed to true and to false.
            for other in others[:-1] if field == "test" and len(node.ops) == 1 else others:
                operators = [*node.ops[:position], other(), *node.ops[position + 1 :]]
                yield ast.Compare(node.left, operators, node.comparators)
    elif isinstance(node, ast.BoolOp):
        yield ast.BoolOp(ast.Or() if isinstance(node.op, ast.And) else ast.And(), node.values)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.Not, ast.USub)):
        yield node.operand
    elif (
        isinstance(node, ast.BinOp)
        and type(node.op) in ARITHMETIC
        and not (_is_text(node.left) or _is_text(node.right))
    ):
        yield ast.BinOp(node.left, ARITHMETIC[type(node.op)](), node.right)
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in TWINS:
        yield ast.Call(ast.Name(TWINS[node.func.id], ast.Load()), node.args, node.keywords)
    elif isinstance(node, ast.Constant):
        yield from map(ast.Constant, _constants(node.value))


def _constants(value: object) -> Iterator[object]:
    if isinstance(value, bool):
        yield not value
    elif isinstance(value, (int, float)):
        yield value + 1 if value + 1 != value else value * 2
    elif value in VERDICTS:
        yield from (other for other in VERDICTS if other != value)
    elif value in OTHER_VERDICTS:
        yield "pass"


def _without_one(node: ast.expr) -> Iterator[Replacement]:
    """Yield `node` without each of its sides or entries."""
    if isinstance(node, ast.BoolOp):
        for position, side in enumerate(node.values):
            rest = [*node.values[:position], *node.values[position + 1 :]]
            left = rest[0] if len(rest) == 1 else ast.BoolOp(node.op, rest)
            yield left, ast.unparse(node), f"without {ast.unparse(side)}"
    elif isinstance(node, (ast.Set, ast.Tuple)) and len(node.elts) > 1 and _is_table(node.elts):
        for position, entry in enumerate(node.elts):
            rest = [*node.elts[:position], *node.elts[position + 1 :]]
            kept = ast.Set(rest) if isinstance(node, ast.Set) else ast.Tuple(rest, ast.Load())
            yield kept, "a table", f"without {ast.unparse(entry)}"
    elif isinstance(node, ast.Dict) and len(node.keys) > 1 and _is_table(node.keys):
        for position, key in enumerate(node.keys):
            keys = [*node.keys[:position], *node.keys[position + 1 :]]
            kept_values = [*node.values[:position], *node.values[position + 1 :]]
            yield ast.Dict(keys, kept_values), "a table", f"without {'**' if key is None else ast.unparse(key)}"


def _is_table(entries: list[ast.expr] | list[ast.expr | None]) -> bool:
    return all(isinstance(entry, ast.Constant) and isinstance(entry.value, str) for entry in entries)


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))
