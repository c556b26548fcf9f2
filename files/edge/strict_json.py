# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The only reader of JSON on a device: a key that appears twice in an object is rejected, as the kit's reader does."""

from __future__ import annotations

import json
from typing import Any


def parse(content: bytes) -> dict[str, Any]:
    """Return the JSON object in ``content``. Raise ValueError."""
    try:
        found = json.loads(content.decode("utf-8"), object_pairs_hook=_unique)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    if not isinstance(found, dict):
        raise ValueError("not an object")
    return found


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        names = [name for name, _value in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the key {twice[:80]!r} appears twice in one object")
    return found
