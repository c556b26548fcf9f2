# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The only reader of JSON: reject a key that appears twice in an object, with both lines. PRIVATE to the collection.

Python's own reader silently takes the second of two keys, so that what the first demanded would be lost.
"""

from __future__ import annotations

import json
import re
from typing import Any

# In JSON that was parsed this far, only strings, with the colon that makes one a key, and brackets matter.
_TOKEN = re.compile(r'("(?:[^"\\]|\\.)*")[ \t\r\n]*(:?)|[{}\[\]]', re.DOTALL)


class DuplicateKeyError(ValueError):
    """A key appears twice in one object."""

    def __init__(self, key: str, lines: tuple[int, int] | None = None) -> None:
        where = f", on lines {lines[0]} and {lines[1]}" if lines else ""
        super().__init__(f"the key {json.dumps(key[:80])} appears twice in one object{where}")
        self.key = key
        self.lines = lines


def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the object of these pairs, for json.loads as object_pairs_hook; raise DuplicateKeyError."""
    result = dict(pairs)
    if len(result) != len(pairs):
        seen: set[str] = set()
        for key, _value in pairs:
            if key in seen:
                raise DuplicateKeyError(key)
            seen.add(key)
    return result


def parse(content: str | bytes, **hooks: Any) -> Any:
    """Return the JSON value in `content`; `hooks` are json.loads's. Raise ValueError, or RecursionError as it does."""
    text = content.decode("utf-8") if isinstance(content, bytes) else content
    try:
        return json.loads(text, object_pairs_hook=unique, **hooks)
    except DuplicateKeyError as error:
        raise DuplicateKeyError(error.key, _lines(text)) from None


def _lines(text: str) -> tuple[int, int] | None:
    """Return the lines of the first duplicate key, in the object with duplicates that ends first."""
    objects: list[dict[str, int]] = []
    found: list[tuple[int, int] | None] = []
    line, read = 1, 0
    for token in _TOKEN.finditer(text):
        line, read = line + text.count("\n", read, token.start()), token.start()
        if token[0] in ("{", "["):
            objects.append({})
            found.append(None)
        elif token[0] in ("}", "]"):
            objects.pop()
            lines = found.pop()
            if lines:
                return lines
        elif token[2]:
            key = json.loads(token[1])
            if key in objects[-1] and not found[-1]:
                found[-1] = (objects[-1][key], line)
            objects[-1].setdefault(key, line)
    return None
