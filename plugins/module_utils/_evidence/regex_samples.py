# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Lines that a regular expression should match, made from its own parts. PRIVATE, pure.

What they are for has to try them: a look around, or a word's boundary, may refuse what was made without regard to it.
"""

from __future__ import annotations

import re
import string
from collections.abc import Iterable
from typing import Any

from ansible_collections.mlops.hpc_validation.plugins.module_utils._evidence.regex_tree import codes, parse

MAX_SAMPLES = 64
MAX_LENGTH = 4096
_TOO_OFTEN = MAX_LENGTH + 1  # whatever is repeated

# Letters first, as they are the least likely to mean something to the rest of the expression.
_CHARACTERS = dict.fromkeys(f"xX1 {string.printable.strip()}".encode() + bytes(range(128, 256)))
_CATEGORIES = {
    codes.CATEGORY_DIGIT: re.compile(rb"\d"),
    codes.CATEGORY_NOT_DIGIT: re.compile(rb"\D"),
    codes.CATEGORY_SPACE: re.compile(rb"\s"),
    codes.CATEGORY_NOT_SPACE: re.compile(rb"\S"),
    codes.CATEGORY_WORD: re.compile(rb"\w"),
    codes.CATEGORY_NOT_WORD: re.compile(rb"\W"),
}
_REPEATS = (codes.MAX_REPEAT, codes.MIN_REPEAT, getattr(codes, "POSSESSIVE_REPEAT", None))


def samples(regex: str) -> list[bytes]:
    """Return up to MAX_SAMPLES lines for the alternatives of `regex`; none if it has a part that cannot be made."""
    return _sequence(parse(regex.encode()))


def _sequence(parts: Iterable[tuple[Any, Any]]) -> list[bytes]:
    found = [b""]
    for code, argument in parts:
        after = _of(code, argument)
        longer = (before + more for before in found for more in after)
        found = [each for each in longer if len(each) <= MAX_LENGTH][:MAX_SAMPLES]
    return found


def _of(code: Any, argument: Any) -> list[bytes]:
    if code is codes.LITERAL:
        return [bytes([argument])]
    if code is codes.NOT_LITERAL:
        return _one_of([(codes.NEGATE, None), (codes.LITERAL, argument)])
    if code is codes.ANY:
        return [b"x"]
    if code is codes.IN:
        return _one_of(argument)
    if code is codes.BRANCH:
        return [each for branch in argument[1] for each in _sequence(branch)][:MAX_SAMPLES]
    if code is codes.SUBPATTERN:
        return _sequence(argument[3])
    if code in _REPEATS:
        least, _most, inner = argument
        return [each * min(least, _TOO_OFTEN) for each in _sequence(inner)] if least else [b""]
    if code is codes.ASSERT:
        return [b"", *_sequence(argument[1])]
    return [b""] if code in (codes.AT, codes.ASSERT_NOT) else []


def _one_of(items: list[tuple[Any, Any]]) -> list[bytes]:
    """Return the first character that the class accepts."""
    negated = items[0][0] is codes.NEGATE
    wanted = (char for char in _CHARACTERS if any(_is(char, *item) for item in items[negated:]) is not negated)
    return [bytes([char]) for char in wanted][:1]


def _is(char: int, code: Any, argument: Any) -> bool:
    if code is codes.LITERAL:
        return bool(char == argument)
    if code is codes.RANGE:
        return bool(argument[0] <= char <= argument[1])
    return bool(_CATEGORIES[argument].match(bytes([char])))
