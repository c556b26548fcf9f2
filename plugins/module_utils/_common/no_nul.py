# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reject options with a NUL: neither paths nor program arguments can hold one. PRIVATE to the collection."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

NUL = "\0"


def refusal(options: Any) -> str | None:
    """Return a message that names the first option with a NUL; None if there is none."""
    where = next(_places(options, ""), None)
    return None if where is None else f"{where} contains a NUL character, which no path can hold; remove it"


def problems(options: Any) -> list[str]:
    """Return the same as a list, to be added to a list of problems."""
    return [told for told in [refusal(options)] if told is not None]


def _places(value: Any, where: str) -> Iterator[str]:
    """Yield the places in `value` that hold a NUL."""
    if isinstance(value, str):
        if NUL in value:
            yield where
    elif isinstance(value, dict):
        for key, item in value.items():
            name = str(key)
            below = f"{where}.{name}" if where else name
            if NUL in name:
                yield f"a name in {where or 'the options'} ({name!r})"
            yield from _places(item, below)
    elif isinstance(value, (list, tuple)):
        for number, item in enumerate(value):
            yield from _places(item, f"{where}[{number}]")
