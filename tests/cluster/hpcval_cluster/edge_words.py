# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The words of `cluster edge`: what they make of edge01's board and of the host. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from hpcval_cluster import edge_board
from hpcval_cluster.state import ClusterError

MEMORY = 512  # MiB that edge01 has
MOST_HELD = MEMORY - 32  # MiB: more, and no one could log in
OFF = {"throttled": "0", "busy": "off", "memory": "off", "full": "off", "gone": "off"}
_CHOICES = {
    "busy": ("on", "off"),
    "full": ("on", "off"),
    "gone": ("on", "silent", "off"),
    "unreadable": ("thermal", "power", "all", "none"),
    "mode": edge_board.MODES,
}
_NUMBERS = {"hot": (0, 150_000), "throttled": (1, 1000), "memory": (1, MOST_HELD)}
_FACTORS = (1, 100)


@dataclass
class Change:
    """Texts and modes of the board's files, and what is to go on in the host."""

    texts: dict[str, str] = field(default_factory=dict)
    modes: dict[str, int] = field(default_factory=dict)
    acts: dict[str, str] = field(default_factory=dict)


def parse(words: list[str]) -> Change:
    """The change that `cluster edge WORD…` asks for; refuses what it does not know."""
    change = Change()
    for word in words:
        key, _equals, value = word.partition("=")
        if word == "healthy":
            change = Change(edge_board.files(), edge_board.unreadable(None), dict(OFF))
        elif key == "power":
            change.texts |= edge_board.currents(_factor(value))
        elif key == "hot":
            change.texts |= edge_board.hot(int(_number(key, value)))
        elif key == "mode":
            change.texts |= edge_board.mode(_choice(key, value))
        elif key == "unreadable":
            chosen = _choice(key, value)
            change.modes |= edge_board.unreadable(None if chosen == "none" else chosen)
        elif key in OFF:
            change.acts[key] = _choice(key, value) if key in _CHOICES else _number(key, value)
        else:
            keys = ", ".join(sorted({*OFF, *_CHOICES, *_NUMBERS, "power"}))
            raise ClusterError(f"{word!r}: expected healthy, or KEY=VALUE with one of these keys: {keys}")
    return change


def _choice(key: str, value: str) -> str:
    if value not in _CHOICES[key]:
        raise ClusterError(f"{key}={value}: expected {key}={'|'.join(_CHOICES[key])}")
    return value


def _number(key: str, value: str) -> str:
    low, high = _NUMBERS[key]
    if value != OFF.get(key) and not (re.fullmatch(r"[0-9]{1,9}", value) and low <= int(value) <= high):
        or_off = f", or {OFF[key]}" if key in OFF else ""
        raise ClusterError(f"{key}={value}: expected a whole number from {low} to {high}{or_off}")
    return value


def _factor(value: str) -> int:
    low, high = _FACTORS
    if not re.fullmatch(r"x[0-9]{1,3}", value) or not low <= int(value[1:]) <= high:
        raise ClusterError(f"power={value}: expected power=x{low} to power=x{high}, times the healthy board's")
    return int(value[1:])
