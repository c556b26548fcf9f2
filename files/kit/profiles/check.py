# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Check a profile: everything that is wrong with it at once, each with its line."""

from __future__ import annotations

import difflib
import typing
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from kit.errors import KitError
from kit.printable import printable
from kit.profiles import document, leaks, rules
from kit.profiles.findings import CHECK, WARNING, Finding, Place, errors
from kit.profiles.model import ADDRESS, NAME, Profile

SHOWN = 60  # characters of a value
NOT_RUN = (
    "keys were not compared with one another before these errors are mended; these checks did not run: "
    f"{', '.join(rule.__name__ for rule in rules.RULES)}"
)


@dataclass(frozen=True)
class Checked:
    """A file with what was found in it; ``profile`` is there if all keys are of their kinds and within their ranges."""

    findings: list[Finding]
    profile: Profile | None

    @property
    def good(self) -> bool:
        """Whether nothing is wrong with it."""
        return not errors(self.findings)


def check(path: Path, changes: Mapping[str, Any] | None = None, *, on_devices: bool = False) -> Checked:
    """Check a file, with these changes of its keys. Raise document.UnreadableError.

    ``on_devices``: for a workload whose model is measured there.
    """
    read = document.read(path)
    if changes and isinstance(read.value, dict):
        read = replace(read, value=merged(read.value, changes))
    return judged(read, on_devices=on_devices)


class UnusableError(KitError):
    """A profile that cannot be used; the message has a line for each error."""


def usable(path: Path, changes: Mapping[str, Any] | None = None) -> Profile:
    """Return the profile of a file, with these changes of its keys. Raise UnusableError."""
    try:
        checked = check(path, changes)
    except document.UnreadableError as error:
        raise UnusableError(f"{printable(str(path))}:{'' if error.line else ' '}{error}") from error
    wrong = errors(checked.findings)
    if wrong or checked.profile is None:
        raise UnusableError("\n".join(f"{printable(str(path))}:{each}" for each in wrong))
    return checked.profile


def merged(first: Mapping[str, Any], second: Mapping[str, Any]) -> dict[str, Any]:
    """Return the first with the second's keys in place of its own, section by section."""
    found = dict(first)
    for key, value in second.items():
        inner = found.get(key)
        found[key] = merged(inner, value) if isinstance(inner, dict) and isinstance(value, dict) else value
    return found


def judged(read: document.Document, *, on_devices: bool = False) -> Checked:
    """Check a document that was read; ``on_devices`` as for `check`."""
    values = [_with_line(finding, read) for finding in leaks.in_values(read.value, read.text, read.lines)]
    lines = {finding.line for finding in values}
    secret = [*values, *(finding for finding in leaks.in_text(read.text) if finding.line not in lines)]
    found = [*read.findings, *secret]
    profile = None
    if isinstance(read.value, dict):
        try:
            profile = Profile.model_validate(read.value)
        except ValidationError as error:
            on = {each.line for each in secret}
            hidden = {finding.place for finding in secret} | {place for place, line in read.lines.items() if line in on}
            told = {finding.place for finding in read.findings}
            found += [each for each in _of_kinds(error.errors(), read.value, hidden) if each.place not in told]
            found.append(Finding((), NOT_RUN, WARNING))
        else:
            found += rules.check(profile, on_devices=on_devices)
    placed = {_redacted(_with_line(finding, read)) for finding in found}
    return Checked(sorted(placed, key=lambda each: (each.line, str(each))), profile)


def _with_line(finding: Finding, read: document.Document) -> Finding:
    return finding if finding.line else replace(finding, line=read.line(finding.place))


def _redacted(finding: Finding) -> Finding:
    place = tuple(leaks.redacted(part) if isinstance(part, str) else part for part in finding.place)
    return replace(finding, text=leaks.redacted(finding.text), place=place)


def _of_kinds(problems: list[ErrorDetails], value: Any, hidden: set[Place]) -> Iterator[Finding]:
    """Say each of pydantic's errors in our words, the alternatives of one key together."""
    of_place: dict[Place, list[ErrorDetails]] = {}
    for problem in problems:
        of_place.setdefault(_there(problem, value), []).append(problem)
    # Where an element of a list is wrong, that the list is not the union's other alternative is no second error.
    around = {place[:end] for place in of_place for end in range(len(place))}
    of_place = {place: those for place, those in of_place.items() if place not in around}
    misspelt: set[Place] = set()
    for place, those in of_place.items():
        if those[0]["type"] == "extra_forbidden":
            free = _free(place, value)
            near = difflib.get_close_matches(str(place[-1]), free, 1, 0.75)
            misspelt |= {(*place[:-1], name) for name in near}
            yield Finding(place, f"unknown key; {_meant(near, free)}")
    for place, those in of_place.items():
        kind = those[0]["type"]
        if kind == "extra_forbidden" or place in misspelt:
            continue
        what, requirement = field_at(place) or ("", CHECK)
        if kind == "missing":
            yield Finding(place, f"missing: {what or _about(place)}", requirement=requirement)
            continue
        given = those[0]["input"]
        secret = place in hidden or leaks.is_named(place) or (isinstance(given, str) and leaks.redacted(given) != given)
        found = "a value that is not shown" if secret else _shown(given)
        wanted = " or ".join(dict.fromkeys(_wanted(each) for each in those))
        if kind == "string_type" and isinstance(given, (int, float)):
            wanted += ": write it in quotes"
        yield Finding(place, f"{found}; expected {wanted}", requirement=requirement)


def _there(problem: ErrorDetails, value: Any) -> Place:
    """Return where in the document an error is: pydantic adds the names of a union's alternatives."""
    place: list[object] = []
    at = value
    for part in problem["loc"]:
        if isinstance(at, dict) and (part in at or problem["type"] == "missing"):
            at = at.get(part)
        elif isinstance(at, list) and isinstance(part, int):
            at = at[part]
        else:  # the name of an alternative
            continue
        place.append(part)
    return tuple(place)


def _free(place: Place, value: Any) -> list[str]:
    """Return the keys that a section may have and has not, of the section that a key is in."""
    for part in place[:-1]:
        value = value[part]
    return [name for name in _section_at(place[:-1]).model_fields if name not in value]


def _meant(near: list[str], free: list[str]) -> str:
    """Say which key an unknown one may be, else which there are."""
    if near:
        return f"is it {near[0]}?"
    return f"expected none, or one of {', '.join(free)}" if free else "expected none: all keys of the section are there"


def _shown(value: Any) -> str:
    if isinstance(value, dict):
        return "a section"
    if isinstance(value, list):
        return "a list"
    text = repr(value) if not isinstance(value, bool) else str(value).lower()
    return "null" if value is None else text if len(text) <= SHOWN else f"{text[: SHOWN - 1]}…"


_BOUNDS = {
    "greater_than_equal": ("at least", "ge"),
    "greater_than": ("more than", "gt"),
    "less_than_equal": ("at most", "le"),
    "less_than": ("less than", "lt"),
    "too_short": ("at least so many elements:", "min_length"),
    "too_long": ("at most so many elements:", "max_length"),
    "string_too_short": ("at least so many characters:", "min_length"),
    "string_too_long": ("at most so many characters:", "max_length"),
}
_KINDS = {
    "int_type": "a whole number",
    "float_type": "a number",
    "bool_type": "true or false",
    "string_type": "a text",
    "list_type": "a list",
    "model_type": "a section",
    "none_required": "null",
    "finite_number": "a finite number",
}
# What the patterns of model.py ask for.
PATTERNS = {
    r"^/[^\x00-\x1f\x7f-\x9f]+$": "an absolute path on one line",
    r"\S": "a text that is not blank",
    NAME: "a name on one line, without characters that are not seen",
    r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$": 'a day such as "2026-01-31"',
    r"^([0-9]{1,3}-)?[0-9]{1,3}:[0-5][0-9]:[0-5][0-9]$": 'a time such as "48:00:00", in quotes',
    ADDRESS: "an address that begins with http:// or https:// and has no user, password or query",
}


def _wanted(problem: ErrorDetails) -> str:
    kind, context = problem["type"], problem.get("ctx", {})
    if kind in _BOUNDS:
        words, name = _BOUNDS[kind]
        bound = context[name]
        return f"{words} {bound if isinstance(bound, int) else f'{bound:g}'}"
    if kind == "literal_error":
        return str(context["expected"]).replace("'", "")
    if kind == "string_pattern_mismatch":
        return PATTERNS[context["pattern"]]
    return _KINDS.get(kind, problem["msg"])


def field_at(place: Place) -> tuple[str, str] | None:
    """Return what a key means, and its requirement; None for a section, or what is no key."""
    key = next((part for part in reversed(place) if isinstance(part, str)), "")
    field = _section_at(place[:-1]).model_fields.get(key)
    if field is None or not field.description:
        return None
    more = field.json_schema_extra
    return field.description, str(more.get("requirement", CHECK)) if isinstance(more, dict) else CHECK


def _about(place: Place) -> str:
    """Return what a section that is missing says."""
    return f"expected a section: {_section_at(place).__doc__}"


def _section_at(place: Place) -> type[BaseModel]:
    """Return the innermost section of a place."""
    section: type[BaseModel] = Profile
    for part in place:
        section = section_of(section, str(part)) or section
    return section


def section_of(section: type[BaseModel], name: str) -> type[BaseModel] | None:
    """Return the section that a key of a section is; None for any other key."""
    field = section.model_fields.get(name)
    if field is None:
        return None
    for each in (field.annotation, *typing.get_args(field.annotation)):
        if isinstance(each, type) and issubclass(each, BaseModel):
            return each
    return None
