# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Small folders of tokens for tests."""

from __future__ import annotations

import typing as t
from array import array
from pathlib import Path

from kit.pretraining import converter
from kit.pretraining.converter import Blocks, Source
from kit.pretraining.manifest import Manifest

TYPES = {"<u2": "H", "<u4": "I"}


def numbers(ids: t.Sequence[int], block: int = 7, stated: int | None = None) -> Source:
    """A source of these tokens, some at a time."""

    def blocks(dtype: str, _vocab: int) -> Blocks:
        for first in range(0, len(ids), block):
            part = ids[first : first + block]
            yield array(TYPES[dtype], part).tobytes(), max(part)

    return Source("numbers", len(ids) if stated is None else stated, blocks)


def make(folder: Path, ids: t.Sequence[int] = range(100), **options: t.Any) -> Manifest:
    """A folder of shards of 20 tokens (of two bytes), the last 10 tokens of which are for validation."""
    folder.mkdir(parents=True, exist_ok=True)
    options = {"vocab": 200, "source": "a test", "validation": 10, "limit": 40, **options}
    return converter.convert([numbers(ids)], folder, **options)
