# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which steps count for a speed, and how a step is made of passes."""

from __future__ import annotations

import sys

import pytest

from tests.unit.conftest import ROOT

sys.path.insert(0, str(ROOT / "files/workloads/smollm_multi_gpu"))

import smollm_steady
from smollm_steady import Steady, accumulation, steady, steps_for


def rows(*ended: float, seconds: float = 1.0) -> list[dict[str, float]]:
    return [{"ended": moment, "step_seconds": seconds, "tokens_seen": 100 * n} for n, moment in enumerate(ended, 1)]


def test_the_warm_up_does_not_count():
    assert smollm_steady.WARM_UP == 3
    assert steady(rows(1, 2, 3, 4, 5)) == Steady([[3, 5]], 2.0, 200, 2)


@pytest.mark.parametrize("count", [0, 1, 3])
def test_a_run_that_ends_in_its_warm_up_has_no_window(count):
    assert steady(rows(*range(1, count + 1))) == Steady([], 0.0, 0, 0)


def test_saving_is_no_part_of_a_window():
    found = steady(rows(1, 2, 3, 4, 5, 16, 17))
    assert found.windows == [[3, 5], [15, 17]]
    assert (found.seconds, found.tokens, found.steps) == (4.0, 400, 4)


def test_steps_that_follow_each_other_within_the_gap_are_one_window():
    assert steady(rows(1, 2, 3, 4, 5.05, 6.11)).windows == [[3, 5.05], [pytest.approx(5.11), 6.11]]


def test_tokens_that_are_not_counted_are_none():
    uncounted = [{**row, "tokens_seen": None} for row in rows(1, 2, 3, 4)]
    assert steady(uncounted).tokens == 0


def test_two_runs_add_up():
    assert Steady([[0, 1]], 1.0, 10, 1) + Steady([[5, 7]], 2.0, 20, 2) == Steady([[0, 1], [5, 7]], 3.0, 30, 3)


def test_so_many_steps_make_a_window_of_some_seconds_with_a_margin():
    assert steps_for(rows(1, 2, 3, 4, 5), 10.0) == 3 + 11
    assert steps_for(rows(1, seconds=100.0), 10.0) == 3 + 1


@pytest.mark.parametrize(("ranks", "passes"), [(1, 4), (2, 2), (4, 1)])
def test_a_step_is_the_same_rows_on_however_many_ranks(ranks, passes):
    assert accumulation(32, 8, ranks) == passes


@pytest.mark.parametrize("ranks", [3, 8])
def test_ranks_that_do_not_divide_a_step_are_refused(ranks):
    with pytest.raises(ValueError, match=f"a step of 32 rows cannot be split into passes of 8 on {ranks} ranks"):
        accumulation(32, 8, ranks)
