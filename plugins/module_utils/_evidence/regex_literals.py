# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The literal texts that every match of a regular expression holds, along each of its paths. PRIVATE, pure."""

from __future__ import annotations

import re
from typing import Any

from ansible_collections.mlops.hpc_validation.plugins.module_utils._evidence.regex_tree import codes, parse

MAX_PATHS = 4096
# A class of at most this many characters is followed as separate paths: [Ee]rror is error or Error.
MAX_CLASS = 4

# A path is the literal runs along it, with None between two runs that need not be adjacent.
Path = tuple[object, ...]


class TooManyPathsError(ValueError):
    """The expression has too many alternatives to check one by one."""


def always_holds(regex: str, texts: list[str]) -> bool:
    """Return whether every match of `regex` holds one of `texts`. Raise re.error, TooManyPathsError."""
    parsed = parse(regex)
    if parsed.state.flags & re.IGNORECASE:
        return False
    return all(any(text in run for run in _runs(path) for text in texts) for path in _paths(parsed))


def _runs(path: Path) -> list[str]:
    runs = [""]
    for part in path:
        if part is None:
            runs.append("")
        else:
            runs[-1] += str(part)
    return runs


def _paths(sequence: Any) -> list[Path]:
    found: list[Path] = [()]
    for code, argument in sequence:
        after = _of(code, argument)
        found = [(*path, *more) for path in found for more in after]
        if len(found) > MAX_PATHS:
            raise TooManyPathsError(f"it has more than {MAX_PATHS} alternatives")
    return found


def _of(code: Any, argument: Any) -> list[Path]:
    """Return the paths through one element; anything uncertain is a gap."""
    if code is codes.LITERAL:
        return [(chr(argument),)]
    if code is codes.IN and len(argument) <= MAX_CLASS and all(kind is codes.LITERAL for kind, _char in argument):
        return [(chr(char),) for _kind, char in argument]
    if code is codes.BRANCH:
        return [path for branch in argument[1] for path in _paths(branch)]
    if code is codes.SUBPATTERN:
        _group, added, _removed, inner = argument
        return [(None,)] if added & re.IGNORECASE else _paths(inner)
    if code in (codes.MAX_REPEAT, codes.MIN_REPEAT):
        least, most, inner = argument
        if (least, most) == (0, 1):
            return [(), *_paths(inner)]
        return [(None,)] if least == 0 else [(*path, None) for path in _paths(inner)]
    if code in (codes.AT, codes.ASSERT, codes.ASSERT_NOT):
        return [()]
    return [(None,)]
