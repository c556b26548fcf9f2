# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is found wrong with a profile."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from kit.printable import printable

ERROR, WARNING = "error", "warning"
CHECK = "S4-9"  # that profiles are checked: the requirement of what serves none of its own
Place = tuple[object, ...]  # the keys and positions that lead to a value: ("training", "optimizer", "betas", 0)


@dataclass(frozen=True)
class Finding:
    """One thing: where it is, what was found and expected, and which requirement says so."""

    place: Place
    text: str
    severity: str = ERROR
    requirement: str = CHECK
    line: int = 0  # known once it is known in which file

    def __str__(self) -> str:
        """Return it as a line, after the file's name."""
        key = f"{dotted(self.place)}: " if self.place else ""
        return f"{self.line}: {self.severity}: {key}{printable(self.text)} [{self.requirement}]"


def dotted(place: Place) -> str:
    """Return a place as people write it: training.optimizer.betas[0]."""
    text = ""
    for part in place:
        name = part if isinstance(part, str) and part.isprintable() and part else repr(part)
        text += f"[{part}]" if isinstance(part, int) else f".{name}" if text else str(name)
    return text


def errors(findings: Iterable[Finding]) -> list[Finding]:
    """Return those that are no mere warnings."""
    return [finding for finding in findings if finding.severity == ERROR]
