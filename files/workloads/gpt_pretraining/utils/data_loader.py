# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a rank reads: its part of each step's samples, from shards of tokens that are mapped into memory.

Which samples a step has depends on its number and the seed alone (kit.pretraining.order), so that a training goes on
with the very next sample, on any number of ranks.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy
import torch
from kit.pretraining.order import Order, numbers
from kit.pretraining.tokens import Split

Batch = tuple[torch.Tensor, torch.Tensor]


@dataclass(frozen=True)
class Read:
    """A rank's micro batches of a step, the numbers of their samples, and a sum over the samples' checksums."""

    batches: list[Batch]
    first: int
    last: int
    checksum: int


class Loader:
    """Reads the next step while the current one computes."""

    def __init__(self, split: Split, length: int, seed: int, *, batch: int, micro: int, rank: int, ranks: int) -> None:
        """A sample of ``split`` has ``length`` tokens, a step ``batch`` samples on all ranks."""
        self._split = split
        self.order = Order(len(split), length, seed)
        self._batch, self._micro, self._rank, self._ranks = batch, micro, rank, ranks
        self._ahead: tuple[int, Future[Read]] | None = None
        self._reader = ThreadPoolExecutor(1, "loader")

    def read(self, step: int, device: torch.device) -> Read:
        """Return what this rank computes in a step, counted from 1."""
        if self._ahead is None or self._ahead[0] != step:
            self._ahead = (step, self._reader.submit(self._read, step))
        found = self._ahead[1].result()
        self._ahead = (step + 1, self._reader.submit(self._read, step + 1))
        if device.type == "cpu":
            return found
        moved = [
            (tokens.pin_memory().to(device, non_blocking=True), targets.pin_memory().to(device, non_blocking=True))
            for tokens, targets in found.batches
        ]
        return Read(moved, found.first, found.last, found.checksum)

    def _read(self, step: int) -> Read:
        mine = numbers(step, self._batch, self._rank, self._ranks)
        samples = [sample(self._split, self.order, number) for number in mine]
        checksum = sum(zlib.crc32(each.tobytes()) for each in samples)
        return Read(_batches(samples, self._micro), mine[0], mine[-1], checksum)

    def close(self) -> None:
        """End the reader."""
        self._reader.shutdown(wait=False, cancel_futures=True)


def sample(split: Split, order: Order, number: int) -> Any:
    """Return the tokens of a sample: as many as it has, and one more to predict."""
    return numpy.frombuffer(split.read(order.place(number), order.length + 1), split.numpy_type)


def _batches(samples: Sequence[Any], micro: int) -> list[Batch]:
    rows = torch.from_numpy(numpy.stack(samples).astype(numpy.int64))
    return [(part[:, :-1].contiguous(), part[:, 1:].contiguous()) for part in rows.split(micro)]


def held_out(split: Split, length: int, *, batches: int, micro: int, rank: int) -> list[Batch]:
    """Return a rank's part of the first samples of the evaluation split, as so many micro batches."""
    order = Order(len(split), length, 0)
    first = rank * batches * micro
    numbers_of_rank = range(first, first + batches * micro)
    return _batches([sample(split, order, number % order.samples) for number in numbers_of_rank], micro)
