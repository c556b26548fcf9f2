# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A module that says which of its statements run."""

from __future__ import annotations

import ast
import copy

PROBE = "_this_line_runs"  # the module's function that takes a line's number


def with_probes(tree: ast.Module) -> ast.Module:
    """Return the module with a call of PROBE before each statement of its functions; the tree stays as it is."""
    probed = copy.deepcopy(tree)
    functions = [node for node in ast.walk(probed) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))]
    for node in {inner: None for function in functions for inner in ast.walk(function)}:
        for name, value in ast.iter_fields(node):
            if isinstance(value, list) and value and all(isinstance(each, ast.stmt) for each in value):
                setattr(node, name, [each for statement in value for each in (_call(statement), statement)])
    return ast.fix_missing_locations(probed)


def _call(statement: ast.stmt) -> ast.stmt:
    call = ast.Call(ast.Name(PROBE, ast.Load()), [ast.Constant(statement.lineno)], [])
    return ast.copy_location(ast.Expr(call), statement)
