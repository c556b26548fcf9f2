# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The order of samples: every sample once an epoch, on any number of ranks, and not the same order twice."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from types import FrameType

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kit.pretraining import order


@pytest.fixture(autouse=True)
def ends() -> Iterator[None]:
    """Fail a test that takes seconds of the processor's time: where a place is looked for, it may be for ever."""

    def fail(_signal: int, _frame: FrameType | None) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGVTALRM, fail)
    signal.setitimer(signal.ITIMER_VIRTUAL, 3)
    yield
    signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    signal.signal(signal.SIGVTALRM, before)


def test_the_order_is_by_seed_and_epoch() -> None:
    def first(seed: int, epoch: int) -> list[int]:
        ordered = order.Order(8001, 8, seed)
        return [ordered.place(epoch * 1000 + number) for number in range(20)]

    orders = [first(1, 0), first(2, 0), first(1, 1)]
    assert orders[0] == first(1, 0)
    assert len({tuple(each) for each in orders}) == 3
    assert all(each != sorted(each) for each in orders)


def test_the_order_stays_what_checkpoints_were_made_with() -> None:
    ordered = order.Order(12001, 8, 42)
    assert [ordered.place(number) for number in range(5)] == [9968, 11576, 7312, 8512, 5704]


@pytest.mark.parametrize(
    ("samples", "places"),
    [
        (2, [0, 1]),
        (4, [2, 1, 3, 0]),
        (5, [4, 1, 0, 3, 2]),
        (16, [15, 9, 6, 11, 7, 0, 5, 8, 13, 1, 4, 3, 14, 2, 12, 10]),
        (17, [12, 6, 1, 5, 14, 8, 16, 7, 11, 3, 2, 4, 0, 13, 10, 9, 15]),
    ],
)
def test_the_order_of_few_samples_stays_as_well(samples: int, places: list[int]) -> None:
    ordered = order.Order(samples + 1, 1, 42)
    assert [ordered.place(number) for number in range(samples)] == places


@pytest.mark.parametrize("tokens", [0, 1, 8])
def test_tokens_for_no_sample_are_refused(tokens: int) -> None:
    with pytest.raises(ValueError, match=f"{tokens} tokens are fewer than the 9 of a sample"):
        order.Order(tokens, 8, 0)


def test_one_sample_is_enough() -> None:
    ordered = order.Order(9, 8, 0)
    assert [ordered.place(number) for number in range(3)] == [0] * 3


@pytest.mark.parametrize("ranks", [1, 2, 4, 8])
def test_the_ranks_of_a_step_read_the_whole_batch_and_nothing_twice(ranks: int) -> None:
    read = [number for step in (1, 2, 3) for rank in range(ranks) for number in order.numbers(step, 16, rank, ranks)]
    assert read == list(range(48))


@given(st.integers(9, 900), st.integers(0, 3), st.integers(0, 5))
def test_every_sample_is_read_once_an_epoch(tokens: int, seed: int, epoch: int) -> None:
    ordered = order.Order(tokens, 8, seed)
    places = [ordered.place(epoch * ordered.samples + number) for number in range(ordered.samples)]
    assert sorted(places) == [8 * number for number in range((tokens - 1) // 8)]


@given(st.integers(9, 900))
def test_what_is_left_out_is_counted(tokens: int) -> None:
    assert order.Order(tokens, 8, 0).left_out == (tokens - 1) % 8
