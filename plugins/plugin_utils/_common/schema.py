# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Validation against the schemas of files/schemas, with messages that a person can act on."""

from __future__ import annotations

import difflib
import typing as t
from functools import cache
from pathlib import Path

from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._files import read_json

if t.TYPE_CHECKING:
    from jsonschema import ValidationError

FILES = Path(__file__).resolve().parents[2] / "files"


class SchemaError(Exception):
    """A document does not fit its schema, or the means to find out are missing."""


@cache
def _validator(name: str) -> t.Any:
    try:
        import jsonschema
        import referencing
    except ImportError as exc:
        raise SchemaError(
            f"the Python package {exc.name} is missing on the controller; install it into the Python that runs "
            "ansible-playbook: python3 -m pip install jsonschema"
        ) from exc
    registry: t.Any = referencing.Registry()
    for path in sorted((FILES / "schemas").glob("*.json")):
        contents = read_json(path)
        registry = registry.with_resource(path.name, referencing.Resource.from_contents(contents))
    schema = registry.contents(f"{name}.json")
    return jsonschema.Draft202012Validator(schema, registry=registry)


def _place(error: ValidationError) -> str:
    text = ""
    for part in error.absolute_path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else str(part)
    return text


def _explain(error: ValidationError) -> str:
    place = _place(error)
    schema: dict[str, t.Any] = error.schema if isinstance(error.schema, dict) else {}
    if error.validator == "additionalProperties" and isinstance(error.instance, dict):
        known = sorted(schema.get("properties", {}))
        unknown = sorted(set(error.instance) - set(known), key=str)
        text = []
        for key in unknown:
            near = difflib.get_close_matches(str(key), known, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"expected one of {', '.join(known)}"
            text.append(f"unknown key {key!r} ({hint})")
        message = "; ".join(text)
    elif error.validator == "pattern":
        message = f"{error.instance!r} does not match {error.validator_value}"
        if "description" in schema:
            message += f" ({schema['description']})"
    else:
        message = error.message
    return f"{place}: {message}" if place else message


def problems(name: str, document: t.Any) -> list[str]:
    """What keeps `document` from being a valid `name`, one line each with the key's path; empty if nothing.

    Raises SchemaError if the validator cannot be had.
    """
    validator = _validator(name)
    from jsonschema.exceptions import best_match

    lines = []
    for error in sorted(validator.iter_errors(document), key=lambda e: [str(p) for p in e.absolute_path]):
        deepest = best_match([error]) or error
        lines.append(_explain(deepest))
    return lines


def require(name: str, document: t.Any, where: str) -> None:
    """Raises SchemaError naming `where`, the key and what was expected unless `document` is a valid `name`."""
    found = problems(name, document)
    if found:
        raise SchemaError(f"{where} is not a valid {name}: " + "; ".join(found))
