# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The tables of docs/reference/preflight.md: each check with its title, and the remedies of files/remedies."""

from __future__ import annotations

import ast
import importlib
import re
from collections.abc import Iterator

from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._common import strict_yaml
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._gpu import titles as gpu
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._share import titles as share

from tests.docs.pages import ROOT, prose, table

PACKAGE = "ansible_collections.mlops.hpc_validation.plugins.plugin_utils._preflight"
# The groups in the order in which preflight looks at them.
GROUPS = {
    "controller": "The controller",
    "login": "The login node",
    "runtime": "Downloads and Apptainer, on the login node and on each node",
    "scheduler": "The scheduler",
    "share": "The share, from the login node and from each node",
    "node": "Each node",
    "gpu": "Each GPU",
}
CHECK = re.compile(rf"({'|'.join(GROUPS)})\.[a-z_]+")


def tables() -> str:
    """Return all tables."""
    titles, remedies = checks(), read_remedies()
    parts = []
    for group, heading in GROUPS.items():
        parts.append(f"## {heading}: `{group}.…`")
        parts.append(table(["Check", "Title", "Remedy"], _rows(group, titles, remedies)))
    parts.append("## Symptoms that several checks share")
    others = sorted(set(remedies) - {name for name in remedies if _check_of(name, titles)})
    parts.append(table(["Symptom", "Remedy"], [[f"`{name}`", prose(remedies[name])] for name in others]))
    return "\n\n".join(parts)


def checks() -> dict[str, str]:
    """Return the title of each check by its id."""
    found = {**gpu.TITLES, **share.TITLES}
    for path in sorted((ROOT / "plugins/plugin_utils/_preflight").glob("*.py")):
        found.update(
            (identity, title)
            for identity, title in titles_in(path.read_text("utf-8"), path.stem)
            if identity not in found
        )
    return found


def read_remedies() -> dict[str, str]:
    """Return what files/remedies says, by symptom."""
    files = sorted((ROOT / "files/remedies").glob("*.yml"))
    return {symptom: entry["remedy"] for path in files for symptom, entry in strict_yaml.read(path).items()}


def titles_in(source: str, module: str) -> Iterator[tuple[str, str]]:
    """Yield id and title of the findings that a module of _preflight makes, as its source has them.

    The title is the argument after the id or the one called `title`; else what is called `title` in the function, or
    in the module's function that is called. What only a run fills in is shown as …
    """
    functions = {each.name: each for each in ast.walk(ast.parse(source)) if isinstance(each, ast.FunctionDef)}
    for function in functions.values():
        for call in [each for each in ast.walk(function) if isinstance(each, ast.Call) and each.args]:
            first = call.args[0]
            if not isinstance(first, ast.Constant) or not CHECK.fullmatch(str(first.value)):
                continue
            given = [*call.args[1:2], *(word.value for word in call.keywords if word.arg == "title")]
            called = functions.get(call.func.id) if isinstance(call.func, ast.Name) else None
            for title in [*given, *_named_title(function), *(_named_title(called) if called else ())]:
                if isinstance(title, (ast.Constant, ast.JoinedStr)):
                    yield str(first.value), _text(title, module)
                    break


def _named_title(function: ast.FunctionDef) -> Iterator[ast.expr]:
    """Yield what a function calls `title`, by assignment or as an argument that is given beforehand."""
    for each in ast.walk(function):
        if isinstance(each, ast.keyword) and each.arg == "title":
            yield each.value
        if isinstance(each, ast.Assign):
            target, value = each.targets[0], each.value
            pairs = (
                zip(target.elts, value.elts) if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) else ()
            )
            for name, assigned in [(target, value), *pairs]:
                if isinstance(name, ast.Name) and name.id == "title":
                    yield assigned


def _text(title: ast.Constant | ast.JoinedStr, module: str) -> str:
    if isinstance(title, ast.Constant):
        return str(title.value)
    names = vars(importlib.import_module(f"{PACKAGE}.{module}"))
    parts = []
    for part in title.values:
        if isinstance(part, ast.Constant):
            parts.append(str(part.value))
        elif isinstance(part, ast.FormattedValue) and isinstance(part.value, ast.Name) and part.value.id.isupper():
            parts.append(str(names[part.value.id]))
        else:
            parts.append("…")
    return "".join(parts)


def _rows(group: str, titles: dict[str, str], remedies: dict[str, str]) -> list[list[str]]:
    """Return a row for each check of the group, and one below it for each of its symptoms with a remedy of its own."""
    rows = []
    for check in [name for name in titles if name.startswith(f"{group}.")]:
        rows.append([f"`{check}`", prose(titles[check]), prose(remedies.get(check, "-"))])
        symptoms = [name for name in remedies if name != check and _check_of(name, titles) == check]
        rows += [[f"`{symptom}`", "", prose(remedies[symptom])] for symptom in symptoms]
    return rows


def _check_of(symptom: str, titles: dict[str, str]) -> str | None:
    """Return the check whose symptom it is: the longest id that it begins with."""
    parts = symptom.split(".")
    names = (".".join(parts[:count]) for count in range(len(parts), 1, -1))
    return next((name for name in names if name in titles), None)
