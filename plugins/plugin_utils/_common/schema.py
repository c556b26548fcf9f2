# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Validate documents against the schemas of files/schemas, with messages that people can act on."""

from __future__ import annotations

import difflib
import typing as t
from dataclasses import dataclass
from functools import cache

from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._common.json_files import read_json
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._common.paths import FILES

if t.TYPE_CHECKING:
    from jsonschema import ValidationError


class SchemaError(Exception):
    """A document does not match its schema, or the validator is missing."""


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
        if "$schema" not in contents:  # wire.json
            continue
        registry = registry.with_resource(path.name, referencing.Resource.from_contents(contents))
    schema = registry.contents(f"{name}.json")
    return jsonschema.Draft202012Validator(schema, registry=registry)


@dataclass(frozen=True)
class Fault:
    """A mismatch with the schema and its key; `place` is the path to the unknown or missing key itself."""

    place: tuple[str | int, ...]
    at: str
    why: str

    def __str__(self) -> str:
        return f"{self.at}: {self.why}" if self.at else self.why


def place_text(place: t.Iterable[t.Any]) -> str:
    """Return the path to a value as people write it, such as criteria[2].gt."""
    text = ""
    for part in place:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else str(part)
    return text


def _faults_of(error: ValidationError) -> t.Iterator[Fault]:
    place = tuple(error.absolute_path)
    at = place_text(place)
    schema: dict[str, t.Any] = error.schema if isinstance(error.schema, dict) else {}
    if error.validator == "additionalProperties" and isinstance(error.instance, dict):
        known = sorted(schema.get("properties", {}))
        for key in sorted(set(error.instance) - set(known), key=str):
            near = difflib.get_close_matches(str(key), known, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"expected one of {', '.join(known)}"
            yield Fault((*place, key), at, f"unknown key {key!r} ({hint})")
        return
    why = error.message
    if error.validator == "required":
        keys = t.cast("list[str]", error.validator_value)
        place += tuple(key for key in keys if why == f"{key!r} is a required property")
    if error.validator == "pattern":
        why = f"{error.instance!r} does not match {error.validator_value}"
        if "description" in schema:
            why += f" ({schema['description']})"
    yield Fault(place, at, why)


def faults(name: str, document: t.Any) -> list[Fault]:
    """Return all faults of `document` as a `name`; empty if it is valid.

    Raise SchemaError if the validator is missing.
    """
    validator = _validator(name)
    from jsonschema.exceptions import best_match

    found: list[Fault] = []
    for error in sorted(validator.iter_errors(document), key=lambda e: [str(p) for p in e.absolute_path]):
        deepest = best_match([error]) or error
        found += _faults_of(deepest)
    return found


def problems(name: str, document: t.Any) -> list[str]:
    """Return the faults as text, one line each with the path of the key."""
    return [str(fault) for fault in faults(name, document)]


def require(name: str, document: t.Any, where: str) -> None:
    """Raise SchemaError naming `where`, the key and what was expected, unless `document` is a valid `name`."""
    found = problems(name, document)
    if found:
        raise SchemaError(f"{where} is not a valid {name}: " + "; ".join(found))
