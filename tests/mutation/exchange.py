# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Other bodies for the functions of a module that others have imported already."""

from __future__ import annotations

import gc
import inspect
from collections import defaultdict
from types import CodeType, FunctionType

COMPREHENSIONS = ("<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>")


class NotExchangeableError(Exception):
    """Part of the change runs when the module is imported."""


class Functions:
    """The functions of a module, wherever they are held."""

    def __init__(self, path: str) -> None:
        self._found: defaultdict[tuple[str, int], list[FunctionType]] = defaultdict(list)
        for each in gc.get_objects():
            if isinstance(each, FunctionType) and each.__code__.co_filename == path:
                self._found[_key(each.__code__)].append(each)

    def exchange(self, was: CodeType, now: CodeType) -> None:
        """Let them behave as in the other program of the module. Raise NotExchangeableError, and change nothing."""
        pairs = _pairs(was, now, imported=True)
        keys = [_key(code) for code in _all(was)]
        for position, (old, new) in enumerate(pairs):
            # An inner function need not be there: its outer one makes it, as it is then.
            if keys.count(_key(old)) > 1 or (position == 0 and not self._found[_key(old)]):
                raise NotExchangeableError
            if old.co_freevars != new.co_freevars:
                raise NotExchangeableError
        for old, new in pairs:
            for function in self._found[_key(old)]:
                function.__code__ = new

    def give(self, name: str, value: object) -> None:
        """Put a value into the module under that name."""
        for function in (each for found in self._found.values() for each in found):
            function.__globals__[name] = value


def _key(code: CodeType) -> tuple[str, int]:
    return code.co_qualname, code.co_firstlineno


def _pairs(was: CodeType, now: CodeType, *, imported: bool) -> list[tuple[CodeType, CodeType]]:
    """Which functions' programs differ, outer ones first."""
    same = _own(was) == _own(now)
    if imported and not same:
        raise NotExchangeableError
    pairs = [] if imported or was == now else [(was, now)]
    if same:
        for old, new in zip(_inner(was), _inner(now), strict=True):
            if old != new:
                pairs += _pairs(old, new, imported=imported and not _is_function(old))
    return pairs


def _own(code: CodeType) -> CodeType:
    return code.replace(co_consts=tuple(None if isinstance(each, CodeType) else each for each in code.co_consts))


def _inner(code: CodeType) -> list[CodeType]:
    return [each for each in code.co_consts if isinstance(each, CodeType)]


def _all(code: CodeType) -> list[CodeType]:
    return [each for inner in _inner(code) for each in (inner, *_all(inner))]


def _is_function(code: CodeType) -> bool:
    return bool(code.co_flags & inspect.CO_OPTIMIZED) and code.co_name not in COMPREHENSIONS
