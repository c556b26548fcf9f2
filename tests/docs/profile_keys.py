# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The tables of docs/reference/profiles.md and the schema for editors, both from the model of a training profile."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from kit.profiles.check import PATTERNS
from kit.profiles.model import Profile

from tests.docs.pages import prose, table

Json = dict[str, Any]
HEADING = ["Key", "Meaning", "Value", "Default", "Requirement"]
KINDS = {"integer": "whole number", "number": "number", "boolean": "true or false", "string": "text", "null": "null"}
BOUNDS = {"minimum": "≥", "exclusiveMinimum": ">", "maximum": "≤", "exclusiveMaximum": "<"}
LENGTHS = {"minItems": "at least", "maxItems": "at most"}


def schema() -> str:
    """Return the JSON Schema of a profile."""
    return json.dumps(Profile.model_json_schema(), indent=2, ensure_ascii=False) + "\n"


def tables() -> str:
    """Return a table of the keys of each section."""
    whole = Profile.model_json_schema()
    own = {name: each for name, each in whole["properties"].items() if _section(each) is None}
    parts = [part for name, inner in _sections(whole, whole, "") for part in (f"## {name}", *_described(inner))]
    return "\n\n".join([*parts, "## Beside the sections", table(HEADING, [_row(*each) for each in own.items()])])


def _described(section: Json) -> list[str]:
    rows = [
        _row(name, each, required=name in section["required"])
        for name, each in section["properties"].items()
        if _section(each) is None
    ]
    return [prose(section["description"]), *([table(HEADING, rows)] if rows else [])]


def _sections(whole: Json, section: Json, prefix: str) -> Iterator[tuple[str, Json]]:
    for name, each in section["properties"].items():
        inner = _section(each)
        if inner is not None:
            found = whole["$defs"][inner]
            yield f"{prefix}{name}", found
            yield from _sections(whole, found, f"{prefix}{name}.")


def _section(field: Json) -> str | None:
    """Return the name of the section that a field is; None for a key."""
    for each in (field, *field.get("anyOf", [])):
        if "$ref" in each:
            return str(each["$ref"]).rpartition("/")[2]
    return None


def _row(name: str, field: Json, *, required: bool = True) -> list[str]:
    default = "required" if required else f"`{json.dumps(field.get('default'))}`"
    return [f"`{name}`", prose(field["description"]), prose(value(field)), default, field.get("requirement", "-")]


def value(field: Json) -> str:
    """Return what a key may be, in words."""
    if "anyOf" in field:
        return " or ".join(value(each) for each in field["anyOf"])
    if "enum" in field or "const" in field:
        return " or ".join(f"`{each}`" for each in field.get("enum", [field.get("const")]))
    if field["type"] == "array":
        sizes = [f"{words} {field[name]}" for name, words in LENGTHS.items() if name in field]
        return f"list of {value(field['items'])}" + (f" ({', '.join(sizes)})" if sizes else "")
    if "pattern" in field:
        return PATTERNS[field["pattern"]]
    bounds = [f"{sign} {field[name]:g}" for name, sign in BOUNDS.items() if name in field]
    return f"{KINDS[field['type']]} {', '.join(bounds)}".strip()
