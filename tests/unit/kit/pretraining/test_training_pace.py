# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The pace of a training: a median of its last steps, with quartiles."""

from __future__ import annotations

from typing import Any

import pytest
from kit.pretraining import pace
from kit.pretraining.pace import Spread

from tests.unit.kit.pretraining_job import history, rows


def test_the_median_and_the_quartiles_of_the_steps() -> None:
    # Of 1 to 11 s the quartiles are 3.5, 6 and 8.5 s.
    found = pace.of(rows(range(1, 12)))
    assert found is not None
    assert found.steps == 11
    assert found.steps_per_hour == Spread(pytest.approx(3600 / 8.5), pytest.approx(600), pytest.approx(3600 / 3.5))


def test_one_slow_last_step_changes_nothing() -> None:
    found = pace.of([*rows([1.8] * 99), *rows([600.0], first=100)])
    assert found is not None
    assert found.steps_per_hour.median == pytest.approx(2000)


def test_the_last_hundred_count() -> None:
    found = pace.of(rows([*[9.0] * 500, *[1.8] * 100]))
    assert found is not None
    assert (found.steps, found.steps_per_hour.low) == (100, pytest.approx(2000))


def test_ten_steps_are_enough_and_nine_are_not() -> None:
    assert pace.of(rows([2.0] * 10)) is not None
    assert pace.of(rows([2.0] * 9)) is None
    assert pace.of([]) is None


def test_another_attempt_begins_anew() -> None:
    first, second = rows([1.0] * 50), rows([4.0] * 10, first=21, attempt=1)
    found = pace.of([*first, *second])
    assert found is not None
    assert (found.steps, found.steps_per_hour.median) == (10, pytest.approx(900))
    assert pace.of([*first, *second[:9]]) is None


@pytest.mark.parametrize("useless", [None, "NaN", 0, -1.0, True, float("nan"), float("inf"), 5e-324, 10**400])
def test_a_row_without_a_speed_does_not_count(useless: Any) -> None:
    found = pace.of([*rows([2.0] * 10), *rows([2.0] * 5, first=11, steps_per_second=useless)])
    assert found is not None
    assert found.steps == 10
    assert pace.of([*rows([2.0] * 9), *rows([2.0] * 5, first=10, steps_per_second=useless)]) is None


def test_the_slowest_speed_still_counts() -> None:
    found = pace.of(rows([2.0] * 10, steps_per_second=pace.SLOWEST))
    assert found is not None
    assert found.steps_per_hour.median == pytest.approx(3600 * pace.SLOWEST)


@pytest.mark.parametrize(("seconds", "is_told"), [(1e-18, True), (9e-19, False)])
def test_times_too_near_to_each_other_tell_nothing(seconds: float, is_told: bool) -> None:
    found = rows([2.0] * 10)
    for row in found:
        row["time"] = 0.0
    found[-1]["time"] = seconds
    told = pace.of(found)
    assert told is not None
    assert (told.overall is not None) == is_told


def test_the_largest_number_is_one_and_any_larger_is_none() -> None:
    assert pace.LARGEST == 1e18
    assert pace.is_number(pace.LARGEST)
    assert pace.is_number(-pace.LARGEST)
    assert not pace.is_number(2 * pace.LARGEST)
    assert not pace.is_number(-(10**400))


def test_the_clock_says_what_lies_between_the_steps() -> None:
    found = rows([2.0] * 11)
    for row in found[6:]:
        row["time"] += 30.0  # a checkpoint
    measured = pace.of(found)
    assert measured is not None
    assert measured.steps_per_hour.median == pytest.approx(1800)
    assert measured.overall == pytest.approx(10 * 3600 / 50)  # ten steps between the first row and the last


@pytest.mark.parametrize(
    "changed", [{"time": 1002.0}, {"time": 900.0}, {"time": None}, {"time": "NaN"}, {"step": None}, {"step": 1}]
)
def test_a_clock_that_was_set_says_nothing(changed: dict[str, Any]) -> None:
    found = rows([2.0] * 11)
    found[-1].update(changed)
    measured = pace.of(found)
    assert measured is not None
    assert measured.overall is None


def test_a_single_step_and_less_than_a_second_are_enough_for_the_clock() -> None:
    found = rows([2.0] * 11)
    found[-1]["step"] = 2
    measured = pace.of(found)
    assert measured is not None
    assert measured.overall == pytest.approx(3600 / 20)
    measured = pace.of(rows([0.05] * 11))
    assert measured is not None
    assert measured.overall == pytest.approx(72_000)


def test_a_spread_divides_and_multiplies() -> None:
    speed = Spread(1000.0, 2000.0, 4000.0)
    assert speed.divide(8000) == Spread(2.0, 4.0, 8.0)
    assert speed.divide(8000).times(7.92) == Spread(15.84, 31.68, 63.36)


def test_a_history_knows_the_hours_of_all_attempts() -> None:
    # From the first row to the last of an attempt: 99 · 36 s and 9 · 400 s
    kept = history([*rows([36.0] * 100), *rows([400.0] * 10, first=51, attempt=1)])
    assert kept.hours == pytest.approx(0.99 + 1.0)
    assert kept.rows == 110
    assert len(kept.window) == 10
    assert kept.last is not None
    assert kept.last["step"] == 60


def test_a_history_of_other_jobs_keeps_their_hours_apart() -> None:
    later = [{**row, "job_id": "13", "time": row["time"] + 1e6} for row in rows([36.0] * 101)]
    assert history([*rows([36.0] * 101), *later]).hours == pytest.approx(2.0)


def test_an_empty_history_has_no_last_row_and_no_hours() -> None:
    kept = pace.History()
    assert (kept.last, kept.hours, kept.rows) == (None, 0.0, 0)


def test_hours_never_run_backwards() -> None:
    kept = history([*rows([36.0] * 101), {"job_id": "12", "attempt": 1, "time": 500.0}])
    kept.add({"job_id": "12", "attempt": 1, "time": 100.0})
    kept.add({"job_id": "12", "attempt": 1, "time": None})
    assert kept.hours == pytest.approx(1.0)
