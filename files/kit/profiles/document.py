# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Read a profile's YAML: its values and the line of each key. Nothing is constructed from tags.

Plain scalars are read as YAML 1.2 does, so that `1e-3` is a number; what the 1.1 of most other readers takes for
something else (`48:00:00`, `yes`, `010`) has to be written so that all of them agree.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from kit.errors import KitError
from kit.profiles.findings import Finding, Place

LIMIT = 1 << 20  # bytes
DEEPEST = 20  # levels
_WHOLE = re.compile(r"[-+]?(?:0|[1-9][0-9]{0,17})")
_NUMBER = re.compile(r"[-+]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]{1,4})?")
_NO_NUMBER = {".nan": math.nan, ".inf": math.inf, "+.inf": math.inf, "-.inf": -math.inf}
_FIXED = {"": None, "~": None, "null": None, "true": True, "false": False}
# What YAML 1.1 reads as something else: booleans, numbers of base 8, 16, 60 or with underscores.
_OTHERWISE = re.compile(
    r"(?i:yes|no|on|off|y|n)|True|TRUE|False|FALSE|Null|NULL"
    r"|[-+]?0[0-7_]+|[-+]?0x[0-9a-fA-F_]+|[-+]?0b[01_]+|[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+|[-+]?[0-9]+_[0-9_]*"
)
_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class UnreadableError(KitError):
    """There is no YAML document to judge."""

    def __init__(self, line: int, why: str) -> None:
        """Say where the reading ended."""
        super().__init__(f"{line}: error: {why}" if line else why)


@dataclass(frozen=True)
class Document:
    """A profile as it was written."""

    value: Any
    text: str
    lines: dict[Place, int]
    findings: list[Finding] = field(default_factory=list)

    def line(self, place: Place) -> int:
        """Return the line of what is there, or of the nearest key around it."""
        while place and place not in self.lines:
            place = place[:-1]
        return self.lines.get(place, 1)


def read(path: Path) -> Document:
    """Return the document at ``path``. Raise UnreadableError if there is no YAML to be judged."""
    try:
        with path.open("rb") as stream:
            content = stream.read(LIMIT + 1)
    except OSError as error:
        raise UnreadableError(0, f"cannot be read: {error.strerror}") from error
    if len(content) > LIMIT:
        raise UnreadableError(0, f"has more than {LIMIT:,} bytes; a profile has some thousands")
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise UnreadableError(line, f"byte {error.start} is not UTF-8") from error
    return parse(text)


def parse(text: str) -> Document:
    """Return the document in ``text``. Raise UnreadableError if it is not YAML."""
    try:
        return _Reader(text).document()
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        problem = getattr(error, "problem", None) or str(error)
        raise UnreadableError(mark.line + 1 if mark else 1, f"not YAML: {problem}") from error


class _Reader:
    """Makes values of the events of a YAML parser."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._events: Iterator[Any] = iter(yaml.parse(text, Loader=_Loader))
        self._lines: dict[Place, int] = {(): 1}
        self._findings: list[Finding] = []

    def document(self) -> Document:
        """Read the only document."""
        value, count, line = None, 0, 1
        for event in self._events:
            if isinstance(event, yaml.DocumentStartEvent):
                mark: Any = event.start_mark
                count, line = count + 1, mark.line + 1
                found = self._value(next(self._events), ())
                value = found if count == 1 else value
        if count > 1:
            self._refuse(line, (), f'{count} documents, expected one ("---" at the end begins another)', "S4-9")
        elif count == 0:
            self._refuse(1, (), "an empty file, expected a profile", "S4-9")
        elif not isinstance(value, dict):
            self._refuse(1, (), "expected sections such as model and training, each with its keys", "S4-9")
        return Document(value, self._text, self._lines, self._findings)

    def _refuse(self, line: int, place: Place, text: str, requirement: str = "") -> None:
        self._findings.append(Finding(place, text, requirement=requirement, line=line))

    def _value(self, event: Any, place: Place) -> Any:
        line = event.start_mark.line + 1
        if isinstance(event, yaml.AliasEvent):
            self._refuse(line, place, "an alias (*name) is used; write the value out")
            return None
        if event.anchor:
            self._refuse(line, place, "an anchor (&name) is used; write the value out wherever it belongs")
        if event.tag:
            self._refuse(line, place, f"the tag {event.tag!r} is used; a profile has none")
        if len(place) > DEEPEST:
            raise UnreadableError(line, f"nested deeper than {DEEPEST} levels")
        if isinstance(event, yaml.MappingStartEvent):
            return self._mapping(place)
        if isinstance(event, yaml.SequenceStartEvent):
            return self._sequence(place)
        return self._scalar(event, place)

    def _mapping(self, place: Place) -> dict[str, Any]:
        found: dict[str, Any] = {}
        while not isinstance(event := next(self._events), yaml.MappingEndEvent):
            line = event.start_mark.line + 1
            key = event.value if isinstance(event, yaml.ScalarEvent) else None
            if key is None:
                self._value(event, place)
                self._refuse(line, place, "a key that is no text")
            elif key == "<<":
                self._refuse(line, place, "a merge key (<<) is used; write the values out")
            elif key in found:
                first = self._lines[(*place, key)]
                self._refuse(line, (*place, key), f"the key is there twice, first on line {first}; keep one of them")
            inner = (*place, str(key))
            known = key in found
            if not known:
                self._lines[inner] = line
            value = self._value(next(self._events), inner)
            if key is not None and key != "<<" and not known:
                found[key] = value
        return found

    def _sequence(self, place: Place) -> list[Any]:
        found: list[Any] = []
        while not isinstance(event := next(self._events), yaml.SequenceEndEvent):
            inner = (*place, len(found))
            self._lines[inner] = event.start_mark.line + 1
            found.append(self._value(event, inner))
        return found

    def _scalar(self, event: Any, place: Place) -> Any:
        text: str = event.value
        if event.style:  # quoted, or a block
            return text
        if _OTHERWISE.fullmatch(text):
            read = yaml.safe_load(text)
            if read != text:
                advice = f'write {str(read).lower()}, or "{text}" if it is a text'
                self._refuse(event.start_mark.line + 1, place, f"{text} is {read!r} for most readers of YAML; {advice}")
            return read
        if text in _FIXED:
            return _FIXED[text]
        if _WHOLE.fullmatch(text):
            return int(text)
        if text.lower() in _NO_NUMBER:
            return _NO_NUMBER[text.lower()]
        return float(text) if _NUMBER.fullmatch(text) else text
