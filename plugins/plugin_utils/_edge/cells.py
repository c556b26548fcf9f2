# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Write the cells and lines of a card in Markdown; foreign text in them is never markup. Pure."""

from __future__ import annotations

import typing as t
from collections.abc import Iterable, Sequence

from ansible_collections.mlops.hpc_validation.plugins.module_utils._common import scalars
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._edge.unmeasured import TITLES
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._report.markdown import NOT_MEASURED, code, text

NOT_TOLD = "not told"
MAX_LINES = 60
MAX_NAMES = 20


def told(value: t.Any) -> str:
    """Return a text; `not told` if there is none."""
    return NOT_TOLD if value is None else text(value)


def coded(value: t.Any) -> str:
    """Return a text as code, which is not for tables: a stroke in it would end the cell."""
    return NOT_TOLD if value is None else code(value)


def figure(value: t.Any, form: str = ".4g", unit: str = "") -> str:
    """Return a number; where there is a text, which says why not, only that there is none."""
    if not scalars.is_number(value):
        return NOT_MEASURED
    shown = f"{value:,}" if isinstance(value, int) and abs(value) < 10**15 else f"{value:{form}}"
    return f"{shown} {unit}" if unit else shown


def size(value: t.Any) -> str:
    """Return bytes as people read them."""
    if not scalars.is_number(value):
        return NOT_MEASURED
    return f"{value / 1e6:.2f} MB" if value >= 1e6 else f"{value / 1e3:.1f} kB"


def share(value: t.Any) -> str:
    """Return a share in per cent."""
    return f"{value:.2%}" if scalars.is_number(value) else NOT_MEASURED


def names(hosts: list[str]) -> str:
    """Return names with commas, MAX_NAMES at most."""
    more = f" and {len(hosts) - MAX_NAMES} more" if len(hosts) > MAX_NAMES else ""
    return ", ".join(map(text, hosts[:MAX_NAMES])) + more


def title(model: str) -> str:
    """Return the name of a model at the head of a row or column."""
    return TITLES[model][0].upper() + TITLES[model][1:]


def table(heads: Sequence[str], rows: Iterable[Sequence[str]], left: int = 1) -> list[str]:
    """Return a table; the first `left` columns are texts, the others figures."""
    rules = ["---"] * left + ["---:"] * (len(heads) - left)
    return [f"| {' | '.join(cells)} |" for cells in (heads, rules, *rows)]


def bounded(lines: list[str], where: str) -> list[str]:
    """Return the lines of a list, MAX_LINES at most, and where the others are."""
    more = len(lines) - MAX_LINES
    return lines if more <= 0 else [*lines[:MAX_LINES], f"- … and {more} more, in {where}"]
