# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The order of samples: every sample once an epoch, on any number of ranks, and not the same order twice."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kit.pretraining import order

sizes = st.lists(st.integers(0, 90), min_size=1, max_size=5).filter(lambda counts: max(counts) > 8)


@given(sizes, st.integers(0, 3), st.integers(0, 5))
def test_every_sample_is_read_once_an_epoch(counts: list[int], seed: int, epoch: int) -> None:
    ordered = order.Order(counts, 8, seed)
    places = [ordered.place(epoch * ordered.samples + number) for number in range(ordered.samples)]
    assert len(set(places)) == ordered.samples == sum(max(0, count - 1) // 8 for count in counts)
    assert all(begin % 8 == 0 and begin + 8 + 1 <= counts[shard] for shard, begin in places)


@given(st.lists(st.integers(1, 90), min_size=1, max_size=5).filter(lambda counts: max(counts) > 8))
def test_what_is_left_out_is_counted(counts: list[int]) -> None:
    ordered = order.Order(counts, 8, 0)
    assert ordered.left_out == sum((count - 1) % 8 for count in counts)


def test_the_order_is_by_seed_and_epoch() -> None:
    def first(seed: int, epoch: int) -> list[tuple[int, int]]:
        ordered = order.Order([8001], 8, seed)
        return [ordered.place(epoch * 1000 + number) for number in range(20)]

    orders = [first(1, 0), first(2, 0), first(1, 1)]
    assert orders[0] == first(1, 0)
    assert len({tuple(each) for each in orders}) == 3
    assert all(each != sorted(each) for each in orders)


def test_the_order_stays_what_checkpoints_were_made_with() -> None:
    ordered = order.Order([8001, 4001], 8, 42)
    assert [ordered.place(number) for number in range(5)] == [(1, 1968), (1, 3576), (0, 7312), (1, 512), (0, 5704)]


@pytest.mark.parametrize("counts", [[], [8], [0, 8, 3]])
def test_tokens_for_no_sample_are_refused(counts: list[int]) -> None:
    with pytest.raises(ValueError, match="no shard has the 9 tokens of a sample"):
        order.Order(counts, 8, 0)


def test_one_sample_is_enough() -> None:
    ordered = order.Order([9], 8, 0)
    assert [ordered.place(number) for number in range(3)] == [(0, 0)] * 3


@pytest.mark.parametrize("ranks", [1, 2, 4, 8])
def test_the_ranks_of_a_step_read_the_whole_batch_and_nothing_twice(ranks: int) -> None:
    read = [number for step in (1, 2, 3) for rank in range(ranks) for number in order.numbers(step, 16, rank, ranks)]
    assert read == list(range(48))

