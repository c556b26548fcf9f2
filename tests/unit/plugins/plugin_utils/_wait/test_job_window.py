# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The sliding window: which jobs are submitted when, and what becomes of those that Slurm holds back."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._wait.limits import HELD_EVERY
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._wait.many import Left
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._wait.waiting import Waiting
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._wait.window import Window

from tests.unit.plugins.plugin_utils._wait.test_results import entry

WORDS = "AssocMaxSubmitJobLimit"


def made(count: int = 10, size: int = 4, **spec: Any) -> Window:
    return Window([{"key": str(number), "path": "/x", **spec} for number in range(count)], size)


def submit(window: Window, now: float = 0.0, later: str | None = None, taken: int | None = None) -> list[Waiting]:
    """Submit what is next: the first `taken` of them, the others being for later."""
    positions = window.next(now)
    taken = len(positions) if taken is None else taken
    entries = [
        entry(str(100 + position)) if number < taken else entry("", later=later if number == taken else "")
        for number, position in enumerate(positions)
    ]
    return window.take(positions, entries, now)


def test_the_first_fill_the_window_and_others_follow_in_order() -> None:
    window = made()
    first = submit(window)
    assert [one.key for one in first] == ["0", "1", "2", "3"]
    assert window.next(1.0) == []
    assert window.left == Left(6)
    first[1].give_up("ended")
    first[2].script.markers["end"] = {}
    assert window.next(2.0) == [4, 5]
    submit(window, 2.0)
    assert [one.key for one in window.jobs] == ["0", "1", "2", "3", "4", "5"]


def test_never_more_than_the_window_are_in_the_queue() -> None:
    window = made(50, 7)
    while window.left.jobs:
        submit(window)
        active = [one for one in window.jobs if one.in_queue]
        assert len(active) <= 7
        active[0].give_up("ended")
    assert [one.key for one in window.jobs] == [str(number) for number in range(50)]


def test_a_few_free_places_of_a_large_window_are_not_filled_alone() -> None:
    window = made(200, 80)
    first = submit(window)
    for one in first[:9]:
        one.give_up("ended")
    assert window.next(1.0) == []
    first[9].give_up("ended")
    assert len(window.next(1.0)) == 10


def test_the_last_jobs_are_submitted_at_once() -> None:
    window = made(81, 80)
    first = submit(window)
    first[0].give_up("ended")
    assert window.next(1.0) == [80]


def test_a_job_given_by_its_id_is_not_submitted_and_takes_a_place() -> None:
    window = Window([{"job_id": "7"}, {"path": "/x"}, {"path": "/y"}], 2)
    assert [one.job_id for one in window.jobs] == ["7"]
    assert window.next(0.0) == [1]


def test_where_more_are_in_the_queue_than_the_window_takes_none_is_submitted() -> None:
    window = Window([*({"job_id": str(number)} for number in range(1, 4)), *({"path": "/x"} for _each in range(5))], 2)
    assert window.next(0.0) == []


def test_what_there_was_no_time_for_follows() -> None:
    window = made()
    submit(window, taken=2, later="")
    assert window.left == Left(8)
    assert window.next(1.0) == [2, 3]


def test_what_is_held_back_is_tried_again_when_another_has_ended() -> None:
    window = made()
    first = submit(window, taken=2, later=WORDS)
    assert window.left == Left(8, WORDS)
    assert window.next(1.0) == []
    first[0].give_up("ended")
    assert window.next(2.0) == [2, 3, 4]
    submit(window, 2.0)
    assert window.left == Left(5)


def test_it_is_tried_again_in_any_case_after_a_while() -> None:
    window = made()
    submit(window, taken=2, later=WORDS)
    assert window.next(HELD_EVERY - 0.1) == []
    assert window.next(HELD_EVERY) == [2, 3]


def test_with_none_in_the_queue_it_is_refused_after_the_time_it_may_queue() -> None:
    window = made(3, queue_timeout=30.0)
    submit(window, 100.0, WORDS, 0)
    assert window.wake(105.0) == HELD_EVERY - 5
    assert window.wake(200.0) == 0.0
    submit(window, 100.0 + HELD_EVERY, WORDS, 0)
    assert window.give_up(129.0) == []
    refused = window.give_up(130.0)
    assert [(one.key, one.outcome, one.job_id, one.state) for one in refused] == [
        (str(number), "refused", "0", "UNKNOWN") for number in range(3)
    ]
    assert WORDS in refused[0].why
    assert refused[0].name == "0"
    assert window.left.jobs == 0


def test_a_job_without_a_key_is_refused_without_a_name() -> None:
    window = Window([{"path": "/x"}], 1)
    window.take([0], [entry("", later=WORDS)], 0.0)
    (one,) = window.give_up(600.0)
    assert one.name == ""


def test_time_in_which_one_of_ours_is_in_the_queue_does_not_count() -> None:
    window = made(3, queue_timeout=30.0)
    (one,) = submit(window, 0.0, WORDS, 1)
    assert window.give_up(1000.0) == []
    one.give_up("ended")
    submit(window, 1000.0, WORDS, 0)
    assert window.give_up(1029.0) == []
    assert len(window.give_up(1030.0)) == 2


def test_a_job_without_a_time_of_its_own_may_be_held_back_for_ten_minutes() -> None:
    window = made(1)
    submit(window, 0.0, WORDS, 0)
    assert window.give_up(599.0) == []
    assert len(window.give_up(600.0)) == 1


def test_what_is_not_held_back_is_not_given_up() -> None:
    window = made(1)
    assert window.give_up(1e6) == []
    assert window.wake(0.0) == 0.0


@pytest.mark.parametrize("size", [1, 4, 200])
def test_a_refused_job_takes_no_place(size: int) -> None:
    window = made(3, size)
    window.take([0], [entry("", refused="no")], 0.0)
    assert window.next(0.0) == [1, 2][:size]
