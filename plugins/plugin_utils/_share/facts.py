# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Read single values from facts of the share, which may be damaged. PRIVATE to the collection."""

from __future__ import annotations

import typing as t

from ansible_collections.mlops.hpc_validation.plugins.module_utils._common import scalars

Json = dict[str, t.Any]


def at(document: t.Any, *keys: str) -> t.Any:
    """Return the value at `keys`, or None if a key is absent or something on the way is not an object."""
    for key in keys:
        document = document.get(key) if isinstance(document, dict) else None
    return document


def rows(value: t.Any) -> list[Json]:
    """Return `value` if it is a list of objects, else an empty list."""
    return list(value) if are_rows(value) else []


def are_rows(value: t.Any) -> bool:
    """Return whether `value` is a list that holds only objects."""
    return isinstance(value, list) and all(isinstance(item, dict) for item in value)


def flat(value: t.Any) -> list[Json]:
    """Return the objects of a list; their values that are not text, number or boolean become None."""
    return [
        {key: item if isinstance(item, (str, int, float)) else None for key, item in row.items()} for row in rows(value)
    ]


def text(value: t.Any) -> str | None:
    """Return `value` if it is a non-empty string, else None."""
    return value if isinstance(value, str) and value else None


def words(seen: t.Any, keys: t.Iterable[str]) -> str | None:
    """Return chosen values of an object as one line, to compare and show; None if one is absent."""
    if not isinstance(seen, dict) or not set(keys) <= set(seen):
        return None
    return ", ".join(f"{key} {scalars.show(seen[key])}" for key in keys)
