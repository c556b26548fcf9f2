# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""No option holds a NUL: neither paths nor arguments of programs can, and Python raises. PRIVATE to the collection."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

NUL = "\0"


def refusal(options: Any) -> str | None:
    """Return which of a module's options holds a NUL, in words; None where none does."""
    where = next(_places(options, ""), None)
    return None if where is None else f"{where} holds a NUL character, which no path can hold; take it out"


def problems(options: Any) -> list[str]:
    """Return the same as a list, to be added to one of problems."""
    return [told for told in [refusal(options)] if told is not None]


def _places(value: Any, where: str) -> Iterator[str]:
    """Where in `value` there is one."""
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
