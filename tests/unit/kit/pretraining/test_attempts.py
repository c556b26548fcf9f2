# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An operation on a store is tried as long as it may succeed, within its deadline, and every try is counted."""

from __future__ import annotations

import threading
import typing as t

import pytest
from kit.errors import KitError
from kit.pretraining import attempts
from kit.pretraining.attempts import DAMAGED, REFUSED, STOPPED, UNREACHABLE, Clock, Failure, Patience, StoreError


class Time:
    """A clock that goes on only while somebody waits, and the event that is waited for."""

    def __init__(self) -> None:
        self.now = 100.0
        self.waits: list[float] = []
        self.set = False

    def wait(self, seconds: float) -> bool:
        self.waits.append(seconds)
        self.now += seconds
        return self.set

    def is_set(self) -> bool:
        return self.set


@pytest.fixture
def time() -> Time:
    return Time()


def patience(time: Time, deadline: float, jitter: float = 1.0) -> Patience:
    stopped = t.cast("threading.Event", time)
    return Patience(deadline, stopped=stopped, now=lambda: time.now, jitter=lambda: jitter)


def explain(error: Exception) -> Failure:
    reason, _space, advice = str(error).partition(" ")
    return Failure(reason, "why", advice)


class Work:
    """An attempt that fails so often, and then returns how often it was called."""

    def __init__(self, *failures: str) -> None:
        self.failures = list(failures)
        self.calls = 0

    def __call__(self, clock: Clock) -> int:
        clock.check()
        self.calls += 1
        if self.failures:
            raise RuntimeError(self.failures.pop(0))
        return self.calls


def persist(patience: Patience, work: t.Callable[[Clock], t.Any]) -> t.Any:
    return patience.persist("the download", "gs://b/x", work, explain)


def test_what_succeeds_is_returned_and_is_no_retry(time):
    trying = patience(time, 10)
    assert persist(trying, Work()) == 1
    assert (trying.retries, time.waits) == (0, [])


def test_what_is_unreachable_is_tried_again_after_longer_and_longer_waits(time):
    trying = patience(time, 100)
    assert persist(trying, Work(*[UNREACHABLE] * 8)) == 9
    assert trying.retries == 8
    assert time.waits == [0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 8.0, 8.0]


def test_a_wait_is_between_half_and_all_of_what_it_may_be(time):
    persist(patience(time, 100, jitter=0.0), Work(UNREACHABLE, UNREACHABLE))
    assert time.waits == [0.125, 0.25]


def test_retries_of_all_operations_are_counted(time):
    trying = patience(time, 100)
    for _each in range(2):
        persist(trying, Work(UNREACHABLE))
    assert trying.retries == 2


def test_at_the_deadline_it_is_over_and_told(time):
    trying, work = patience(time, 3), Work(*[UNREACHABLE] * 9)
    with pytest.raises(StoreError) as error:
        persist(trying, work)
    assert str(error.value) == ("gs://b/x: the download failed after 4 attempts in 3.0 s (deadline 3 s): why")
    assert error.value.reason == UNREACHABLE
    assert isinstance(error.value.__cause__, RuntimeError)
    assert time.waits == [0.25, 0.5, 1.0, 1.25]
    assert (work.calls, trying.retries) == (4, 3)


def test_where_the_deadline_comes_amid_an_attempt_the_failure_before_it_is_told(time):
    failures = [f"{UNREACHABLE} check-the-network"]

    def attempt(clock: Clock) -> None:
        if failures:
            raise RuntimeError(failures.pop())
        time.now += 100
        clock.check()

    with pytest.raises(StoreError) as told:
        persist(patience(time, 10), attempt)
    assert str(told.value).endswith("failed after 2 attempts in 100.2 s (deadline 10 s): why; check-the-network")
    with pytest.raises(StoreError, match=r"failed after 1 attempt in 100\.0 s \(deadline 10 s\): why; deadline"):
        patience(time, 10).persist("it", "x", attempt, lambda error: Failure(UNREACHABLE, "why", str(error).split()[1]))


def test_the_last_moment_is_used(time):
    work = Work(*[UNREACHABLE] * 9)
    with pytest.raises(StoreError, match=r"after 4 attempts in 2\.0 s"):
        persist(patience(time, 2), work)
    assert (time.waits, work.calls) == ([0.25, 0.5, 1.0, 0.25], 4)


def test_nothing_is_waited_for_after_the_deadline(time):
    def late(_clock: Clock) -> None:
        time.now += 5
        raise RuntimeError(UNREACHABLE)

    with pytest.raises(StoreError, match=r"after 1 attempt in 5\.0 s \(deadline 3 s\)"):
        persist(patience(time, 3), late)
    assert time.waits == []


@pytest.mark.parametrize("reason", [REFUSED, attempts.MISSING, attempts.CONFLICT, attempts.CREDENTIALS, attempts.LOCAL])
def test_what_will_not_change_is_told_at_once_with_advice(time, reason):
    trying = patience(time, 10)
    with pytest.raises(KitError) as error:
        persist(trying, Work(f"{reason} ask the owner"))
    assert str(error.value) == (
        "gs://b/x: the download failed after 1 attempt in 0.0 s (deadline 10 s): why; ask the owner"
    )
    assert (error.value.reason, trying.retries, time.waits) == (reason, 0, [])


def test_content_may_arrive_damaged_twice(time):
    assert persist(patience(time, 100), Work(DAMAGED, UNREACHABLE, DAMAGED)) == 4
    with pytest.raises(StoreError, match="after 3 attempts") as error:
        persist(patience(time, 100), Work(*[DAMAGED] * 3))
    assert error.value.reason == DAMAGED


def test_an_error_of_a_store_is_final_as_it_is(time):
    def refuse(_clock: Clock) -> None:
        raise StoreError("as it is", UNREACHABLE)

    with pytest.raises(StoreError, match=r"^as it is$"):
        persist(patience(time, 10), refuse)
    assert time.waits == []


def test_a_stopped_store_begins_nothing_and_waits_for_nothing(time):
    time.set = True
    with pytest.raises(StoreError) as error:
        persist(patience(time, 10), Work())
    assert (str(error.value), error.value.reason) == ("gs://b/x: the download was given up", STOPPED)
    with pytest.raises(StoreError, match="after 1 attempt"):
        persist(patience(time, 10), lambda _clock: Work(UNREACHABLE)(Clock(1, threading.Event())))
    assert time.waits == [0.25]


def test_whoever_interrupts_is_obeyed(time):
    def interrupt(_clock: Clock) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        persist(patience(time, 10), interrupt)


def test_a_clock_tells_what_is_left(time):
    clock = Clock(4, threading.Event(), lambda: time.now)
    time.now += 3
    assert (clock.left(), clock.passed()) == (1, 3)
    clock.check()
    time.now += 1
    with pytest.raises(TimeoutError):
        clock.check()
    time.now += 1
    assert (clock.left(), clock.passed()) == (0, 5)


def test_a_store_can_be_stopped_and_is_not_by_itself():
    trying = Patience(5)
    assert trying.persist("x", "y", lambda clock: clock.left() > 4, explain)
    trying.stopped.set()
    with pytest.raises(StoreError, match="given up"):
        persist(trying, Work())
    assert 0 <= trying.jitter() < 1
