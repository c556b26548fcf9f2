# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Read a profile's YAML: its values and the line of each key. Nothing is constructed from tags.

Plain scalars are read as YAML 1.2 does, so that `1e-3` is a number; what the 1.1 of most other readers takes for
something else (`48:00:00`, `yes`, `010`, `2026-01-31`) has to be written so that all of them agree.
"""

from __future__ import annotations

import math
import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from kit.errors import KitError
from kit.profiles.findings import Finding, Place
from kit.profiles.leaks import HIDDEN, is_named

LIMIT = 1 << 20  # bytes
DEEPEST = 20  # levels
_WHOLE = re.compile(r"[-+]?(?:0|[1-9][0-9]{0,99})")
_NUMBER = re.compile(r"[-+]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]{1,4})?")
_NO_NUMBER = {".nan": math.nan, ".inf": math.inf, "+.inf": math.inf, "-.inf": -math.inf}
_WORDS = {"null": None, "true": True, "false": False}
_FIXED: dict[str, bool | None] = {"": None, "~": None}
_FIXED.update({form: value for word, value in _WORDS.items() for form in (word, word.capitalize(), word.upper())})
_RESOLVER = yaml.resolver.Resolver()
_KINDS = {type(None): "null", bool: "bool", int: "int", float: "float", str: "str"}
_MOST = 40  # characters of a word that is shown
# Line breaks for YAML and for few others.
_BREAKS = re.compile("[\x85\u2028\u2029]")
_NOT_ALLOWED = yaml.reader.Reader.NON_PRINTABLE
# What messages quote is the file's, unless it is one character, or `<block end>` and the like.
_QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"")
_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class UnreadableError(KitError):
    """There is no YAML document to judge."""

    def __init__(self, line: int, why: str) -> None:
        """Say where the reading ended."""
        super().__init__(f"{line}: error: {why}" if line else why)
        self.line = line


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
        if stat.S_ISFIFO(path.stat().st_mode):  # one that nobody writes to would be waited for without end
            raise UnreadableError(0, "is a pipe; expected a file")
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
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    odd = _BREAKS.search(text)
    if odd:
        raise UnreadableError(
            text.count("\n", 0, odd.start()) + 1, f"the line break U+{ord(odd[0]):04X}; expected plain ones"
        )
    odd = _NOT_ALLOWED.search(text)
    if odd:
        raise UnreadableError(
            text.count("\n", 0, odd.start()) + 1, f"not YAML: a character that it does not allow: U+{ord(odd[0]):04X}"
        )
    try:
        return _Reader(text).document()
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        problem = getattr(error, "problem", None) or str(error)
        raise UnreadableError(mark.line + 1 if mark else 1, f"not YAML: {_unquoted(problem)}") from error


def _unquoted(problem: str) -> str:
    """Return PyYAML's words without those of the file, which may be a secret."""
    return _QUOTED.sub(lambda found: found[0] if len(found[0]) == 3 or found[0][1] == "<" else HIDDEN, problem)


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
            self._refuse(line, (), f'{count} documents, expected one ("---" at the end begins another)')
        elif count == 0:
            self._refuse(1, (), "an empty file, expected a profile")
        elif not isinstance(value, dict):
            self._refuse(1, (), "expected sections such as model and training, each with its keys")
        return Document(value, self._text, self._lines, self._findings)

    def _refuse(self, line: int, place: Place, text: str) -> None:
        self._findings.append(Finding(place, text, line=line))

    def _value(self, event: Any, place: Place) -> Any:
        line = event.start_mark.line + 1
        if isinstance(event, yaml.AliasEvent):
            self._refuse(line, place, "an alias (*name) is used; write the value out")
            return None
        if event.anchor:
            self._refuse(line, place, "an anchor (&name) is used; write the value out wherever it belongs")
        if event.tag:
            text = "a tag (!name) is used; a profile has none: write a text that begins with ! in quotes"
            self._refuse(line, place, text)
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
                self._value(event, (*place, ""))
                self._refuse(line, place, "a key that is no text")
            elif event.tag or event.anchor:
                self._refuse(line, place, "a tag or an anchor at a key is used; a profile has none")
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
        read = _plain(text)
        tag = _RESOLVER.resolve(yaml.ScalarNode, text, (True, False)).rpartition(":")[2]
        # 1e-3 is a text for readers of YAML 1.1, as every text is; that it is meant as a number is beyond doubt.
        if tag != _KINDS[type(read)] and not (tag == "str" and "e" in text.lower() and isinstance(read, float)):
            self._refuse(event.start_mark.line + 1, place, _disputed(text, tag, place))
        return read


def _plain(text: str) -> Any:
    """Return what a word without quotes is by YAML 1.2."""
    if text in _FIXED:
        return _FIXED[text]
    if _WHOLE.fullmatch(text):
        return int(text)
    if text.lower() in _NO_NUMBER:
        return _NO_NUMBER[text.lower()]
    return float(text) if _NUMBER.fullmatch(text) else text


def _disputed(text: str, tag: str, place: Place) -> str:
    """Return the words for a value that readers of YAML take for different things."""
    if is_named(place) or len(text) > _MOST:
        return f"most readers of YAML take it for something else ({tag}); write it in quotes if it is a text"
    try:
        read = yaml.safe_load(text)
    except (ValueError, yaml.YAMLError):
        return f'{text} is no number that can be read; write "{text}" if it is a text'
    plain = {"bool": str(read).lower(), "null": "null", "int": str(read), "float": str(read)}.get(tag)
    advice = f'write {plain}, or "{text}" if it is a text' if plain else f'write "{text}"'
    if ":" in text:  # nobody who writes a time means its seconds
        advice = f'write "{text}"'
    what = "a date" if tag == "timestamp" else repr(read)
    return f"{text} is {what} for most readers of YAML; {advice}"
