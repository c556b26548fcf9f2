# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Read what jobs and devices wrote for a card: a number, else a text that says why there is none. Never raises."""

from __future__ import annotations

import re
import typing as t

from ansible_collections.mlops.hpc_validation.plugins.module_utils._common import scalars

Json = dict[str, t.Any]
Measured = t.Union[int, float, str]  # a text says why there is no number
SHA256 = re.compile(r"[0-9a-f]{64}")


def at(document: t.Any, *keys: str) -> t.Any:
    """Return the value at the path `keys`, or None."""
    for key in keys:
        document = document.get(key) if isinstance(document, dict) else None
    return document


def part(document: t.Any, *keys: str) -> Json:
    """Return the object at the path `keys`; an empty one if there is none."""
    found = at(document, *keys)
    return found if isinstance(found, dict) else {}


def entries(value: t.Any) -> list[t.Any]:
    """Return the value if it is a list, else an empty one."""
    return value if isinstance(value, list) else []


def measured(value: t.Any, lacking: str) -> Measured:
    """Return the value if it is a finite number, else why there is none: the value if it is a text, or `lacking`."""
    if scalars.is_number(value):
        return t.cast("int | float", value)
    if value is None or value == "":
        return lacking
    if isinstance(value, str) and not scalars.is_non_finite(value):
        return str(scalars.bounded(value))
    return f"expected a number, found {scalars.describe(value)}"


def words(value: t.Any, most: int = scalars.MAX_TEXT) -> str | None:
    """Return a text of one printable line, of `most` characters at most; None if there is none."""
    if value is None or value == "":
        return None
    plain = scalars.printable(value) if isinstance(value, str) else scalars.show(value)
    return plain if len(plain) <= most else plain[: most - 1] + "…"


def digest(value: t.Any) -> str | None:
    """Return the value if it is a SHA-256, else None."""
    return value if isinstance(value, str) and SHA256.fullmatch(value) else None
