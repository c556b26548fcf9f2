# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Expand and fold Slurm's expressions for many nodes, such as n[001-097,099]. Pure; never raises."""

from __future__ import annotations

import re
import typing as t

from ansible_collections.mlops.hpc_validation.plugins.module_utils._slurm.text import number

_LIMIT = 65536  # nodes of one expression


def expand_nodes(expression: str) -> list[str]:
    """Expand 'n[1-2,5],gpu-[001-003]x' to node names; [] when there are none or the expression is unreadable."""
    if expression.strip() == "None":  # (null), None assigned and N/A cannot be node names anyway
        return []
    names: list[str] = []
    for word in _split_outside_brackets(expression.strip()):
        grown = _expand_word(word, _LIMIT - len(names))
        if grown is None:
            return []
        names.extend(grown)
    return names


def _split_outside_brackets(expression: str) -> list[str]:
    words, depth, start = [], 0, 0
    for index, char in enumerate(expression):
        depth += (char == "[") - (char == "]")
        if char == "," and depth == 0:
            words.append(expression[start:index])
            start = index + 1
    words.append(expression[start:])
    return [word.strip() for word in words if word.strip()]


def _expand_word(word: str, limit: int) -> list[str] | None:
    match = re.fullmatch(r"([\w.\-]*)\[([0-9,\-]+)\](.*)", word, re.ASCII)
    if not match:
        return [word] if re.fullmatch(r"[\w.\-]+", word, re.ASCII) and limit > 0 else None
    prefix, ranges, rest = match.groups()
    tails = _expand_word(rest, limit) if rest else [""]
    if tails is None:
        return None
    names: list[str] = []
    for item in ranges.split(","):
        low, _sep, high = item.partition("-")
        first, last = number(low), number(high or low)
        if first is None or last is None or last < first or (last - first + 1) * len(tails) > limit - len(names):
            return None
        names.extend(f"{prefix}{value:0{len(low)}d}{tail}" for value in range(first, last + 1) for tail in tails)
    return names


def fold_nodes(names: t.Iterable[str]) -> str:
    """Return the names as Slurm writes them: each once, sorted, those that differ in their last digits in brackets."""
    by_prefix: dict[str, list[str]] = {}
    for name in dict.fromkeys(names):
        prefix = name.rstrip("0123456789")
        by_prefix.setdefault(prefix, []).append(name[len(prefix) :])
    return ",".join(_fold(prefix, by_prefix[prefix]) for prefix in sorted(by_prefix))


def _fold(prefix: str, digits: list[str]) -> str:
    """Return one word for the names of one prefix."""
    ranges: list[tuple[str, str]] = []
    for each in sorted(digits, key=lambda each: (len(each), each)):
        if ranges and each == _next(*ranges[-1]):
            ranges[-1] = (ranges[-1][0], each)
        else:
            ranges.append((each, each))
    words = [first if first == last else f"{first}-{last}" for first, last in ranges]
    bare = [prefix] if "" in words else []
    return ",".join([*bare, *_bracketed(prefix, [word for word in words if word])])


def _bracketed(prefix: str, words: list[str]) -> list[str]:
    if len(words) == 1 and "-" not in words[0]:
        return [prefix + words[0]]
    return [f"{prefix}[{','.join(words)}]"] if words else []


def _next(first: str, last: str) -> str | None:
    """Return the digits that follow `last` in a range that begins with `first`; None if there are none."""
    value = number(last)
    return None if value is None else f"{value + 1:0{len(first)}d}"
