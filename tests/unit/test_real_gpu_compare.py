# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How a value of the probe and one of nvidia-smi compare (tests/real_gpu/compare.py)."""

from __future__ import annotations

import typing as t

import pytest

from tests.real_gpu import compare


@pytest.mark.parametrize(
    ("mine", "theirs", "most", "found"),
    [
        (True, "Enabled", 0, "equal"),
        (False, "Disabled", 0, "equal"),
        (None, "N/A", 0, "equal"),
        (0, "P0", 0, "equal"),
        (1980, "1980 MHz", 0, "equal"),
        (16, "16x", 0, "equal"),
        (78.031, "78.13 W", 1, "near, 0.099 apart"),
        (700, "690.00 W", 0, compare.DIFFERENT),
        (700, "690.00 W", 5, compare.DIFFERENT),
        (89, None, 0, compare.MISSING),
        ("NVIDIA H200", "NVIDIA H100", 5, compare.DIFFERENT),
    ],
)
def test_two_values(mine: t.Any, theirs: str | None, most: float, found: str) -> None:
    assert compare.verdict(compare.plain(mine), compare.plain(theirs), most) == found


def test_memory_is_compared_in_mib() -> None:
    assert compare.plain(150754820096, "memory.total") == compare.plain("143771 MiB") == "143771"
