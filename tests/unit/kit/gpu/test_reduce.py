# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reductions of samples."""

from __future__ import annotations

import math
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kit.gpu import reduce


def test_percentiles_are_interpolated() -> None:
    assert reduce.reduced(range(1, 102)) == {"count": 101, "mean": 51, "min": 1, "p5": 6, "p95": 96}
    assert reduce.percentile([10.0, 20.0], 5) == 10.5


@pytest.mark.parametrize("values", [[], [None, "NaN", True, math.nan, math.inf, [1]]])
def test_what_is_no_number_is_no_sample(values: list[object]) -> None:
    assert reduce.reduced(values) is None


def test_rows_are_grouped_by_gpu() -> None:
    rows = [
        {"uuid": "a", "util": 10},
        {"uuid": "b", "util": 20},
        {"uuid": "a", "util": None},
        {"uuid": None, "error": "x"},
    ]
    found = reduce.by_gpu(rows)
    assert set(found) == {"a", "b"}
    assert found["a"]["util"] == {"count": 1, "mean": 10, "min": 10, "p5": 10, "p95": 10}
    assert found["a"]["power_w"] is None


@given(st.lists(st.floats(-1e6, 1e6), min_size=2))
def test_reductions_lie_between_the_extremes(values: list[float]) -> None:
    found = reduce.reduced(values)
    assert found is not None
    assert found["min"] == min(values) <= found["p5"] <= found["p95"] <= max(values)
    assert found["mean"] == pytest.approx(statistics.fmean(values), abs=1e-6)
