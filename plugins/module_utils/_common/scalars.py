# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Define what counts as a number, and how values are compared and shown. PRIVATE to the collection.

A boolean is never a number, nor is text that looks like one: both have let broken machines pass elsewhere.
"""

from __future__ import annotations

import json
import math
from typing import Any

# JSON has no NaN. Evidence represents one as this object, so that it is neither lost nor taken for a value.
NON_FINITE_KEY = "non_finite"
# The kit, whose JSON must also be valid, writes them as these texts.
NON_FINITE_TEXTS = ("NaN", "Infinity", "-Infinity")

# A larger integer cannot be converted to float, so no sums or ratios can be formed with it.
MAX_INTEGER = 2**1000

MAX_TEXT = 300
MAX_ITEMS = 20
MAX_DEPTH = 4


class NotANumberError(Exception):
    """A value is not a number; the message says what it is, as in 'is null'."""


class NotComparableError(Exception):
    """Two values of different kinds cannot be compared."""


def non_finite(name: str) -> dict[str, str]:
    """Return the marker of a non-finite number; `name` is NaN, Infinity or -Infinity."""
    return {NON_FINITE_KEY: name}


def is_non_finite(value: Any) -> bool:
    """Return whether `value` is NaN, an infinity or the marker of one."""
    if isinstance(value, float):
        return not math.isfinite(value)
    if isinstance(value, str):
        return value in NON_FINITE_TEXTS
    return isinstance(value, dict) and len(value) == 1 and isinstance(value.get(NON_FINITE_KEY), str)


def is_number(value: Any) -> bool:
    """Return whether `value` is a finite number and not a boolean."""
    if isinstance(value, int):
        return not isinstance(value, bool) and abs(value) < MAX_INTEGER
    return isinstance(value, float) and not is_non_finite(value)


def number(value: Any) -> float:
    """Return `value` if it is a finite number, else raise NotANumberError."""
    if not is_number(value):
        raise NotANumberError(f"is {describe(value)}, not a finite number")
    result: float = value
    return result


def same(left: Any, right: Any) -> bool:
    """Compare two scalars of the same kind; raise NotComparableError for any others (`true` and 1 differ in kind)."""
    for kind in (bool, str):
        if isinstance(left, kind) and isinstance(right, kind):
            return bool(left == right)
    if is_number(left) and is_number(right):
        return bool(left == right)
    raise NotComparableError(f"{describe(left)} cannot be compared with {describe(right)}")


def describe(value: Any) -> str:
    """Describe `value` for a message."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return f"{str(value).lower()}, a boolean"
    if is_non_finite(value):
        return f"{value[NON_FINITE_KEY] if isinstance(value, dict) else value}"
    if isinstance(value, (int, float)):
        return show(value)
    if isinstance(value, str):
        return f"the text {show(value)}"
    if isinstance(value, list):
        return f"a list of {len(value)}" if value else "an empty list"
    if isinstance(value, dict):
        return f"an object with {len(value)} keys" if value else "an empty object"
    return type(value).__name__


def show(value: Any) -> str:
    """Return one printable line for `value`, bounded in length."""
    if value is None:
        text = "null"
    elif isinstance(value, bool):
        text = str(value).lower()
    elif is_non_finite(value):
        text = str(value[NON_FINITE_KEY] if isinstance(value, dict) else value)
    elif isinstance(value, float):
        text = f"{value:.8g}"
    elif isinstance(value, int):
        text = str(value) if abs(value) < 10**18 else f"an integer of {value.bit_length()} bits"
    elif isinstance(value, str):
        text = '"' + printable(value) + '"'
    elif isinstance(value, list):
        more = ", …" if len(value) > 6 else ""
        text = "[" + ", ".join(show(item) for item in value[:6]) + more + "]"
    elif isinstance(value, dict):
        more = ", …" if len(value) > 6 else ""
        text = (
            "{"
            + ", ".join(f"{printable(str(key))}: {show(item)}" for key, item in list(value.items())[:6])
            + more
            + "}"
        )
    else:
        text = printable(str(value))
    return text if len(text) <= MAX_TEXT else text[: MAX_TEXT - 1] + "…"


def printable(text: str) -> str:
    """Return `text` with every character replaced that could move a terminal's cursor or break a line."""
    return "".join(char if char.isprintable() else " " if char in "\t\n\r" else "\ufffd" for char in text)


def bounded(value: Any, depth: int = 0) -> Any:
    """Return a copy of `value` small enough for a report, with a note in place of what was left out."""
    if isinstance(value, str):
        text = printable(value)
        return text if len(text) <= MAX_TEXT else text[: MAX_TEXT - 1] + "…"
    if isinstance(value, float) and not math.isfinite(value):
        return non_finite(json.dumps(value))
    if isinstance(value, int) and abs(value) >= 10**18:
        return show(value)
    if isinstance(value, (list, dict)) and depth >= MAX_DEPTH:
        return describe(value)
    if isinstance(value, list):
        kept = [bounded(item, depth + 1) for item in value[:MAX_ITEMS]]
        return [*kept, f"… {len(value) - MAX_ITEMS} more"] if len(value) > MAX_ITEMS else kept
    if isinstance(value, dict):
        result = {printable(str(key)): bounded(item, depth + 1) for key, item in list(value.items())[:MAX_ITEMS]}
        if len(value) > MAX_ITEMS:
            result["…"] = f"{len(value) - MAX_ITEMS} more"
        return result
    return value
