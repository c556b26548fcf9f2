# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which alerts fire over a training's rows, at each side of each bound."""

from __future__ import annotations

import pytest
from kit.pretraining import alerts
from kit.pretraining.alerts import Fired, replay

from tests.unit.kit.training_rows import BEGAN, probe_row, step_row, step_rows


def names(fired: list[Fired]) -> list[str]:
    return [each.alert for each in fired]


def test_nothing_fires_over_a_good_training_or_none():
    rows = step_rows(400, loss_scale=None)
    probes = [probe_row(step, BEGAN + step * 10, [0.10, 0.11, None]) for step in range(20, 400, 20)]
    assert replay(rows, probes, checkpoint_every=200, until=rows[-1]["time"] + 419) == []
    assert replay([], until=BEGAN) == []


@pytest.mark.parametrize(
    ("broken", "value"),
    [
        ({"loss": "NaN"}, "nan"),
        ({"loss": float("nan")}, "nan"),
        ({"loss": "Infinity"}, "inf"),
        ({"loss": "-Infinity"}, "-inf"),
        ({"grad_norm": "NaN"}, "nan"),
        ({"loss": 2.0, "grad_norm": "Infinity"}, "inf"),
    ],
)
def test_one_step_that_is_not_finite_fires(broken, value):
    rows = step_rows(10)
    rows[4].update(broken)
    (fired,) = replay(rows)
    assert (fired.alert, fired.step, fired.time, fired.bound) == (alerts.NOT_FINITE, 5, BEGAN + 50, 0.0)
    assert str(float(fired.value)) == value
    assert fired.text.startswith("loss ")
    assert fired.text.endswith(" in step 5")


def test_gradients_that_overflow_in_half_precision_are_only_skipped():
    rows = step_rows(10, loss_scale=65536.0)
    rows[4].update(grad_norm="Infinity")
    assert replay(rows) == []
    rows[4].update(loss="NaN")
    assert [(each.alert, each.step) for each in replay(rows)] == [(alerts.NOT_FINITE, 5)]


def test_steps_that_are_not_finite_are_one_alert_until_fifteen_minutes_are_good():
    rows = step_rows(300)
    for place in (0, 50, 139, 230):  # 500 s, 890 s and 910 s apart
        rows[place]["loss"] = "NaN"
    assert [(each.alert, each.step) for each in replay(rows)] == [(alerts.NOT_FINITE, 1), (alerts.NOT_FINITE, 231)]
    rows = step_rows(300)
    rows[0]["loss"] = rows[90]["loss"] = "NaN"  # 900 s apart
    assert [each.step for each in replay(rows)] == [1]
    rows[90]["loss"], rows[91]["loss"] = 3.0, "NaN"
    assert [each.step for each in replay(rows)] == [1, 92]


def test_the_last_row_fires_too():
    assert names(replay([step_row(1, 0.25, loss="NaN", skipped_steps=1)])) == [alerts.NOT_FINITE, alerts.SKIPPED]
    assert replay([step_row(1, 0.25, loss="NaN")])[0].time == 0.25


def test_a_skipped_step_fires_once():
    rows = step_rows(10)
    for row in rows[3:]:
        row["skipped_steps"] = 1
    assert replay(rows) == [
        Fired(alerts.SKIPPED, 4, BEGAN + 40, 1.0, 0, "1 steps were skipped in 15 minutes, up to step 4")
    ]


def test_what_was_skipped_before_the_first_row_counts_unless_it_is_known():
    rows = step_rows(3, skipped_steps=2)
    assert [(each.alert, each.step, each.value) for each in replay(rows)] == [(alerts.SKIPPED, 1, 2.0)]
    assert replay(rows, skipped_before=2) == []


def test_a_counter_that_begins_again_has_lost_nothing():
    rows = step_rows(4)
    rows[1]["skipped_steps"] = 3  # another attempt of the job counts from zero
    rows[2]["skipped_steps"] = 0
    rows[3]["skipped_steps"] = 2
    assert [(each.step, each.value) for each in replay(rows)] == [(2, 3.0)]


def skipping(count: int, every: float) -> list[dict]:
    """Rows in half precision that skip their first ``count`` steps."""
    rows = step_rows(count + 100, every=every, loss_scale=1024.0)
    for place, row in enumerate(rows):
        row["skipped_steps"] = min(place + 1, count)
    return rows


def test_half_precision_may_skip_ten_steps_in_fifteen_minutes():
    assert replay(skipping(10, 10)) == []
    (fired,) = replay(skipping(11, 10))
    assert (fired.alert, fired.step, fired.value, fired.bound) == (alerts.SKIPPED, 11, 11.0, 10)
    assert replay(skipping(11, 90)) == []  # the first of them is 900 s before the last
    assert names(replay(skipping(11, 89))) == [alerts.SKIPPED]


def test_a_gap_of_seven_minutes_is_no_step():
    rows = [*step_rows(5), *(step_row(step, BEGAN + step * 10 + 410, loss=3.0) for step in range(6, 9))]
    assert replay(rows) == [
        Fired(alerts.NO_STEP, 5, BEGAN + 50, 420.0, 420, "no step for 420 s after step 5"),
    ]
    rows = [*step_rows(5), *(step_row(step, BEGAN + step * 10 + 409) for step in range(6, 9))]
    assert replay(rows) == []


def test_a_step_again_is_none():
    rows = [step_row(1, BEGAN), step_row(1, BEGAN + 300), step_row(2, BEGAN + 421)]
    assert [(each.alert, each.time, each.value) for each in replay(rows)] == [(alerts.NO_STEP, BEGAN, 421.0)]
    rows = [step_row(2, BEGAN), step_row(1, BEGAN + 300), step_row(2, BEGAN + 421)]  # resumed from before it
    assert replay(rows) == []


def test_the_time_after_the_last_row_counts():
    rows = step_rows(5)
    end = rows[-1]["time"]
    assert replay(rows, until=end + 419) == []
    assert names(replay(rows, until=end + 420)) == [alerts.NO_STEP]
    assert replay(rows, until=end - 1000) == []
    late = [step_row(201, BEGAN), step_row(202, BEGAN + 59.5)]
    assert replay(late, checkpoint_every=100, until=BEGAN) == []
    assert names(replay(late, checkpoint_every=100, until=BEGAN + 60)) == [alerts.CHECKPOINT]


def test_a_clock_that_is_set_back_stands_still():
    rows = step_rows(10)
    rows[5]["time"] -= 3600
    rows[8]["loss"] = "NaN"
    assert [(each.alert, each.step) for each in replay(rows)] == [(alerts.NOT_FINITE, 9)]
    rows[-1]["time"] = rows[0]["time"]
    assert [(each.alert, each.step) for each in replay(rows)] == [(alerts.NOT_FINITE, 9)]


def test_two_checkpoints_that_are_missing_fire_after_a_minute():
    rows = step_rows(206)
    assert replay(rows, checkpoint_every=100) == []
    assert replay(step_rows(207)) == []
    (fired,) = replay(step_rows(207), checkpoint_every=100)
    assert fired == Fired(
        alerts.CHECKPOINT, 201, BEGAN + 2010, 201, 200, "step 201, the last whole checkpoint is of step 0"
    )
    for row in (saved := step_rows(400)):
        row["checkpoint_step"] = row["step"] // 100 * 100
    assert replay(saved, checkpoint_every=100) == []


def test_a_checkpoint_in_time_ends_the_wait():
    rows = step_rows(300)
    for row in rows[205:]:  # 50 s after step 201
        row["checkpoint_step"] = 200
    assert replay(rows, checkpoint_every=100) == []
    for row in rows[205:207]:
        row["checkpoint_step"] = 0
    assert names(replay(rows, checkpoint_every=100)) == [alerts.CHECKPOINT]


def probes(pace: float, seconds: float, begin: float = BEGAN) -> list[dict]:
    """Probes every 20 s, of which rank 1 is slow for so long."""
    return [
        probe_row(place, begin + 20 * place, [0.9, 0.9 / pace if 20 <= 20 * place < 20 + seconds else 0.9, None])
        for place in range(60)
    ]


def test_a_rank_below_nine_tenths_of_the_fastest_for_ten_minutes_is_slow():
    rows = step_rows(120)
    assert replay(rows, probes(0.5, 580)) == []
    (fired,) = replay(rows, probes(0.5, 600))
    assert (fired.alert, fired.step, fired.time, fired.value, fired.bound) == (
        alerts.SLOW,
        1,
        BEGAN + 20,
        0.5,
        0.9,
    )
    assert fired.text == "rank 1 computes at 50% of the fastest rank's pace: 1.8 s, 0.9 s"
    assert names(replay(rows, probes(0.89, 600))) == [alerts.SLOW]
    assert replay(rows, probes(0.9, 600)) == []


def test_each_slow_rank_fires():
    rows = step_rows(120)
    slow = [probe_row(place, BEGAN + 20 * place, [1.0, 2.0, 4.0]) for place in range(60)]
    slow.insert(3, probe_row(3, BEGAN + 60, [], solo_seconds=None))
    slow.insert(4, {**slow[3]})
    del slow[4]["solo_seconds"]
    assert [(each.alert, each.value) for each in replay(rows, slow)] == [(alerts.SLOW, 0.5), (alerts.SLOW, 0.25)]


def test_what_is_slow_at_the_end_counts_until_then():
    rows = step_rows(61)
    late = [probe_row(1, rows[0]["time"], [1.0, 2.0])]
    assert names(replay(rows, late)) == [alerts.SLOW]
    assert replay(rows[:60], late) == []
    assert names(replay(rows[:60], late, until=rows[60]["time"])) == [alerts.SLOW]
    assert names(replay(rows, late, until=BEGAN)) == [alerts.SLOW]
    assert names(replay(rows, [probe_row(1, rows[0]["time"], [1.0, 86399])])) == [alerts.SLOW]


def test_a_loss_above_twice_its_mean_for_a_minute_is_a_spike():
    rows = step_rows(200)
    for row in rows[150:157]:
        row["loss"] = 9.0
    (fired,) = replay(rows)
    assert (fired.alert, fired.step, fired.value) == (alerts.SPIKE, 151, 9.0)
    mean = (3.0 * 150 + 9.0) / 151
    assert fired.bound == pytest.approx(2 * mean)
    assert fired.text == f"loss 9.0000 in step 151, {mean:.4f} on average in 30 minutes"
    rows[156]["loss"] = 3.0
    assert names(replay(rows)) == [alerts.SPIKE]  # 60 s
    rows[155]["loss"] = 3.0
    assert replay(rows) == []


def test_the_mean_is_of_the_last_thirty_minutes():
    rows = step_rows(400)
    for row in rows[:200]:
        row["loss"] = 1.0
    for row in rows[200:]:
        row["loss"] = 1.9
    for row in rows[381:]:
        row["loss"] = 3.7  # twice 1.85, above twice the mean only while older rows count
    assert replay(rows) == []
    rows = step_rows(60, every=60.0, loss=1.0)
    rows[10]["loss"] = 0.0  # with it in the mean, the next would be a spike
    rows[40]["loss"] = 2.04
    assert replay(rows) == []
    rows[11]["loss"], rows[40]["loss"] = 0.0, 2.04
    assert names(replay(rows)) == [alerts.SPIKE]


def test_a_mean_that_is_not_a_number_makes_no_spike_and_is_not_for_ever():
    rows = step_rows(400, every=10.0)
    rows[10]["loss"] = "NaN"
    for row in rows[100:110]:
        row["loss"] = 9.0
    assert names(replay(rows)) == [alerts.NOT_FINITE]
    for row in rows[300:310]:
        row["loss"] = 9.0
    assert [(each.alert, each.step) for each in replay(rows)] == [(alerts.NOT_FINITE, 11), (alerts.SPIKE, 301)]
    rows = step_rows(60, every=60.0)
    rows[5]["loss"], rows[50]["loss"] = "NaN", 6.3  # above twice 3.11, the mean of 29 losses of 3 and this one
    assert [(each.alert, each.step) for each in replay(rows)] == [(alerts.NOT_FINITE, 6), (alerts.SPIKE, 51)]


def test_twice_the_mean_is_no_spike():
    assert replay(step_rows(20, loss=0.0)) == []


def test_alerts_are_in_the_order_of_time():
    rows = step_rows(20)
    rows[12]["loss"] = "NaN"
    for row in rows[4:]:
        row["skipped_steps"] = 1
    assert names(replay(rows, until=BEGAN + 1000)) == [alerts.SKIPPED, alerts.NOT_FINITE, alerts.NO_STEP]


@pytest.mark.parametrize(
    ("changed", "problem"),
    [
        ({"loss": None}, "row 2: loss is None, expected a number"),
        ({"loss": "nan"}, "row 2: loss is 'nan', expected a number"),
        ({"grad_norm": True}, "row 2: grad_norm is True, expected a number"),
        ({"time": "NaN"}, "row 2: time is nan, expected a finite number"),
        ({"step": "Infinity"}, "row 2: step is inf, expected a finite number"),
        ({"time": 1e15}, r"row 2: time is 1000000000000000.0, expected a finite number below 1e\+15"),
        ({"skipped_steps": [1]}, r"row 2: skipped_steps is \[1\], expected a number"),
        ({"checkpoint_step": None}, "row 2: checkpoint_step is None, expected a number"),
        ({"loss": 10**400}, "row 2: loss is too large"),
    ],
)
def test_a_row_without_its_numbers_is_refused(changed, problem):
    rows = step_rows(3)
    rows[1].update(changed)
    with pytest.raises(ValueError, match=problem):
        replay(rows, checkpoint_every=100)


@pytest.mark.parametrize("seconds", [0, -1.0, "fast", True, float("inf"), float("nan"), 86400, 10**400])
def test_a_probe_without_seconds_is_refused(seconds):
    with pytest.raises(ValueError, match=r"row 1: solo_seconds of rank 1 is .*, expected seconds"):
        replay(step_rows(1), [probe_row(1, BEGAN, [1.0, seconds])])


def test_a_probe_without_a_step_is_refused():
    with pytest.raises(ValueError, match="row 1: step is None"):
        replay(step_rows(1), [{**probe_row(1, BEGAN, [1.0]), "step": None}])


def test_a_clock_that_is_set_forward_is_no_pause():
    rows = step_rows(10)
    for row in rows[5:]:
        row["time"] += 3600
    assert names(replay(rows)) == [alerts.NO_STEP]
    for row in rows:
        row["elapsed_seconds"] = 10.0 * row["step"]
    assert replay(rows) == []
    assert replay(rows, until=rows[-1]["time"] + 419) == []
    assert names(replay(rows, until=rows[-1]["time"] + 420)) == [alerts.NO_STEP]


def test_a_pause_that_the_clock_hides_is_one():
    rows = step_rows(10)
    for row in rows:
        row["elapsed_seconds"] = 10.0 * row["step"] + (420 if row["step"] > 5 else 0)
    (fired,) = replay(rows)
    assert (fired.alert, fired.step, fired.value) == (alerts.NO_STEP, 5, 430)


@pytest.mark.parametrize("other", [{"job_id": "13"}, {"attempt": 1}, {"elapsed_seconds": 1.0}])
def test_between_two_processes_the_clock_counts(other):
    rows = [{**row, "elapsed_seconds": 10.0 * row["step"]} for row in step_rows(2)]
    later = {**step_row(3, BEGAN + 470), "elapsed_seconds": 30.0, **other}
    assert names(replay([*rows, later])) == [alerts.NO_STEP]
    assert replay([*rows, {**later, "time": BEGAN + 30}]) == []


@pytest.mark.parametrize("place", [0, 1])
def test_where_one_row_lacks_what_elapsed_the_clock_counts(place):
    rows = [step_row(1, BEGAN), step_row(2, BEGAN + 420)]
    rows[place]["elapsed_seconds"] = 10.0
    assert names(replay(rows)) == [alerts.NO_STEP]


@pytest.mark.parametrize("seconds", [0.0, 0.5])
def test_a_step_of_no_time_is_of_the_same_process(seconds):
    rows = [
        {**step_row(1, BEGAN), "elapsed_seconds": 10.0},
        {**step_row(2, BEGAN + 3600), "elapsed_seconds": 10.0 + seconds},
    ]
    assert replay(rows) == []


@pytest.mark.parametrize("place", [1, 2])
def test_an_elapsed_time_that_is_no_number_is_refused(place):
    rows = [{**row, "elapsed_seconds": 10.0 * row["step"]} for row in step_rows(2)]
    rows[place - 1]["elapsed_seconds"] = "ten"
    with pytest.raises(ValueError, match=f"row {place}: elapsed_seconds is 'ten', expected a number"):
        replay(rows)
