# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which tokens a sample is: by its number and the seed alone, so that the order is the same on any number of ranks.

Samples are numbered through the whole training. An epoch is a permutation of all samples; it is computed one by one, as
a Feistel cipher, since a list of them would take memory on every rank and time at every resume.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate

ROUNDS = 4


class Order:
    """The samples of shards with ``tokens`` tokens each, of ``length`` tokens to read and one more to predict."""

    def __init__(self, tokens: Sequence[int], length: int, seed: int) -> None:
        """Raise ValueError if no shard has a whole sample."""
        self.length = length
        # Neighbours share a token: the last that one predicts is the first that the next reads.
        counts = [max(0, (count - 1) // length) for count in tokens]
        self._ends = list(accumulate(counts))
        self.samples = self._ends[-1] if self._ends else 0
        if not self.samples:
            raise ValueError(f"no shard has the {length + 1} tokens of a sample")
        # What is predicted is counted: the first token of a shard never is.
        self.left_out = sum(tokens) - len(tokens) - self.samples * length
        self._seed = seed
        # The cipher permutes 2 ** (2 * bits) numbers, fewer than four times as many as there are.
        self._bits = max(1, ((self.samples - 1).bit_length() + 1) // 2)

    def place(self, number: int) -> tuple[int, int]:
        """Return the shard of sample ``number``, counted from 0 over all epochs, and the position of its first token."""
        epoch, within = divmod(number, self.samples)
        sample = self._permuted(epoch, within)
        shard = bisect_right(self._ends, sample)
        return shard, (sample - (self._ends[shard - 1] if shard else 0)) * self.length

    def _permuted(self, epoch: int, number: int) -> int:
        while True:  # what falls outside is permuted again: on a cycle each number inside has one follower inside
            number = self._ciphered(epoch, number)
            if number < self.samples:
                return number

    def _ciphered(self, epoch: int, number: int) -> int:
        mask = (1 << self._bits) - 1
        left, right = number >> self._bits, number & mask
        for turn in range(ROUNDS):
            said = hashlib.blake2b(f"{self._seed} {epoch} {turn} {right}".encode(), digest_size=8).digest()
            left, right = right, left ^ (int.from_bytes(said, "big") & mask)
        return (left << self._bits) | right


def numbers(step: int, batch: int, rank: int, ranks: int) -> range:
    """Return the numbers of the samples that a rank reads in a step, counted from 1, of ``batch`` samples in all."""
    each = batch // ranks
    first = (step - 1) * batch + rank * each
    return range(first, first + each)
