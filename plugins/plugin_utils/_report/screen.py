# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Keep what is shown within the width of a terminal; name each phase of a play once it has ended, and what lasts."""

from __future__ import annotations

import textwrap
import threading
import typing as t

WIDTH = 120
TO_TYPE = "next: "  # a command that would not work in two lines
# This role only holds the settings of all others: its tasks belong to the phase that includes it.
SETTINGS = "hpc_validation"


def fitted(text: str) -> str:
    """Return the lines of `text`, those that are too long continued below, further to the right."""
    return "\n".join(part for line in text.split("\n") for part in _wrapped(line))


def _wrapped(line: str) -> list[str]:
    if len(line) <= WIDTH or line.startswith(TO_TYPE):
        return [line]
    indent = line[: len(line) - len(line.lstrip())] + "    "
    parts = textwrap.wrap(
        line, WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False, drop_whitespace=True
    )
    return [piece for part in parts for piece in _cut(part, indent)]


def _cut(part: str, indent: str) -> list[str]:
    """Return a part that is too long still, such as a list of many nodes, in pieces that end with a comma."""
    pieces = []
    while len(part) > WIDTH and "," in part[:WIDTH]:
        end = part.rindex(",", 0, WIDTH) + 1
        pieces.append(part[:end])
        part = indent + part[end:]
    return [*pieces, part]


class Phases:
    """The phases of a play: the roles that its tasks belong to, one after another."""

    def __init__(self, clock: t.Callable[[], float]) -> None:
        self._clock = clock
        self._name = ""
        self._began = clock()
        self._failed = False

    def enter(self, role: str | None) -> str | None:
        """Take note of a task of `role`, and return the line of the phase that ended before it, if one did."""
        name = (role or "").rpartition(".")[2]
        if name in ("", SETTINGS, self._name):
            return None
        line = self.end()
        self._name, self._began, self._failed = name, self._clock(), False
        return line

    @property
    def current(self) -> str:
        """The name of the current phase; empty before the first."""
        return self._name

    def failed(self) -> None:
        """Take note of a task that failed, even if the play goes on."""
        self._failed = True

    def end(self) -> str | None:
        """Return the line of the current phase; None before the first."""
        if not self._name:
            return None
        outcome = "failed" if self._failed else "ok"
        return f"{self._name:<11} {outcome:<6} {self._clock() - self._began:6.1f} s"


class Patience:
    """Says that a task lasts: after `first` seconds, and whenever it has taken twice as long as when last said."""

    def __init__(self, first: float, say: t.Callable[[str], None]) -> None:
        self._first, self._say = first, say
        self._ended = threading.Event()

    def begin(self, phase: str, task: str) -> None:
        """Take note of a task that begins, which ends the one before it."""
        self.end()
        self._ended = threading.Event()
        threading.Thread(target=self._watch, args=(phase, task, self._ended), daemon=True).start()

    def end(self) -> None:
        """Take note that no task runs."""
        self._ended.set()

    def _watch(self, phase: str, task: str, ended: threading.Event) -> None:
        said, due = 0.0, self._first
        while not ended.wait(due - said):
            said, due = due, 2 * due
            self._say(f"{phase:<11} for {said:.0f} s: {task}")
