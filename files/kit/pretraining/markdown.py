# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Text and tables in Markdown, of values that a job reported: nothing in them becomes markup or a control character."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

NOTHING = "not known"
LONGEST = 200
_MARKUP = re.compile(r"([\\`*_{}\[\]()#+!|~])")
# Besides HTML: addresses become links, names become mentions, and text between dollar signs becomes a formula.
_ENTITIES = (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ("@", "&#64;"), ("$", "&#36;"))


def text(value: Any) -> str:
    """Return any value as plain text on one line; None is ``not known``."""
    if value is None:
        return NOTHING
    line = "".join(letter if letter.isprintable() else " " for letter in str(value)[:LONGEST])
    line = _MARKUP.sub(r"\\\1", line)
    for letter, entity in _ENTITIES:
        line = line.replace(letter, entity)
    return line.replace("://", ":&#47;/")


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Return the lines of a table of cells that are Markdown already."""
    return [_line(head), _line(["---"] * len(head)), *(_line(row) for row in rows)]


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
