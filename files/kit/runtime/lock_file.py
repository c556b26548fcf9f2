# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Read the requirements of a lock that uv has written, for a given Python and processor of Linux."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from kit.errors import KitError

# NAME==VERSION, perhaps with extras and a marker; then hashes.
REQUIREMENT = re.compile(r"([A-Za-z0-9][\w.-]*)(?:\[[\w, .-]+\])?==([\w.!+]+)(?:\s*;\s*(.+))?", re.ASCII)
HASH = re.compile(r"hash=sha256:([0-9a-f]{64})")
TOKEN = re.compile(r"\s*(?:(?P<word>[()]|[a-z_]+)|(?P<operator>[=!<>]=|[<>])|'(?P<text>[^']*)')", re.ASCII)
VERSIONS = {"python_version", "python_full_version"}


class Requirement(NamedTuple):
    """A package of a lock."""

    name: str
    version: str
    hashes: frozenset[str]


def requirements(lock: Path, python: tuple[int, ...], machine: str) -> list[Requirement]:
    """Return what a lock has for a Python, (3, 11) or with a third number, and a processor, by name.

    Raise KitError for a line that uv does not write, and if there is nothing.
    """
    known = _environment(python, machine)
    found: dict[str, Requirement] = {}
    for number, line in _lines(lock.read_text(encoding="utf-8")):
        where = f"{lock}:{number}"
        stated, *options = line.split(" --")
        matched = REQUIREMENT.fullmatch(stated.strip())
        hashes = [HASH.fullmatch(option.strip()) for option in options]
        if not matched or not hashes or None in hashes:
            raise KitError(f"{where}: {line[:80]!r} is not NAME==VERSION with SHA-256 hashes; lock again with uv")
        name, version, marker = re.sub(r"[-_.]+", "-", matched[1]).lower(), matched[2], matched[3]
        if marker and not _applies(marker, known, where):
            continue
        if name in found:
            raise KitError(f"{where}: {name} a second time for this machine; expected one version of a package")
        found[name] = Requirement(name, version, frozenset(each[1] for each in hashes if each))
    if not found:
        raise KitError(f"{lock} has nothing for Python {known['python_version']} on {machine}; name the lock for it")
    return [found[name] for name in sorted(found)]


def _lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield (number, line), with continued lines joined and without comments."""
    began, joined = 0, ""
    for number, line in enumerate(text.splitlines(), 1):
        bare = re.sub(r"(^|\s)#.*", "", line).strip()
        if not bare:
            continue
        began = began if joined else number
        joined = f"{joined} {bare}"
        if joined.endswith("\\"):
            joined = joined[:-1].strip()
        else:
            yield began, joined.strip()
            joined = ""
    if joined:
        yield began, joined.strip()


def _environment(python: tuple[int, ...], machine: str) -> dict[str, str]:
    full = [str(part) for part in (*python, 0)[:3]]
    return {
        "python_full_version": ".".join(full),
        "python_version": ".".join(full[:2]),
        "platform_machine": machine,
        "platform_python_implementation": "CPython",
        "platform_system": "Linux",
        "implementation_name": "cpython",
        "os_name": "posix",
        "sys_platform": "linux",
    }


def _applies(marker: str, known: dict[str, str], where: str) -> bool:
    try:
        return _Marker(marker, known).holds()
    except (ValueError, LookupError) as error:
        raise KitError(f"{where}: the marker {marker[:80]!r} is not one that uv writes: {error}") from error


class _Marker:
    """Reads a marker: `or` of `and` of comparisons, and of markers in brackets."""

    def __init__(self, text: str, known: dict[str, str]) -> None:
        self._known = known
        self._tokens: list[tuple[str, str]] = []
        at = 0
        while text[at:].strip():
            matched = TOKEN.match(text, at)
            if not matched:
                raise ValueError(f"unreadable from {text[at : at + 20]!r}")
            kind = str(matched.lastgroup)
            self._tokens.append((kind, matched[kind]))
            at = matched.end()

    def holds(self) -> bool:
        found = self._either()
        if self._tokens:
            raise ValueError(f"{self._tokens[0][1]!r} is too much")
        return found

    def _next(self, word: str) -> bool:
        if self._tokens[:1] == [("word", word)]:
            self._tokens.pop(0)
            return True
        return False

    def _either(self) -> bool:
        found = self._both()
        while self._next("or"):
            found = self._both() or found
        return found

    def _both(self) -> bool:
        found = self._one()
        while self._next("and"):
            found = self._one() and found
        return found

    def _one(self) -> bool:
        if self._next("("):
            found = self._either()
            if not self._next(")"):
                raise ValueError("a bracket is open")
            return found
        kinds, (name, operator, text) = zip(*(self._tokens.pop(0) for _each in range(3)))
        if kinds != ("word", "operator", "text"):
            raise ValueError(f"{name} {operator} {text}; expected NAME OPERATOR 'TEXT'")
        return _compared(name, self._known[name], operator, text)


def _compared(name: str, ours: str, operator: str, theirs: str) -> bool:
    """Compare a known value with a text; of versions the numbers."""
    if operator in ("==", "!="):
        if name not in VERSIONS:
            return (ours == theirs) == (operator == "==")
        if theirs.endswith(".*"):
            return f"{ours}.".startswith(theirs[:-1]) == (operator == "==")
    elif name not in VERSIONS:
        raise ValueError(f"{name} {operator}: a text has no order")
    one, other = [int(part) for part in ours.split(".")], [int(part) for part in theirs.split(".")]
    length = max(len(one), len(other))
    one, other = one + [0] * (length - len(one)), other + [0] * (length - len(other))
    return {
        "==": one == other,
        "!=": one != other,
        "<": one < other,
        "<=": one <= other,
        ">": one > other,
        ">=": one >= other,
    }[operator]
