# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which tokens a sample is: by its number and the seed alone, so that the order is the same on any number of ranks.

Samples are numbered through the whole training. An epoch is a permutation of all samples; it is computed one by one, as
a Feistel cipher, since a list of them would take memory on every rank and time at every resume.
"""

from __future__ import annotations

import hashlib

ROUNDS = 4


class Order:
    """The samples in a number of tokens, each of ``length`` tokens to read and one more to predict."""

    def __init__(self, tokens: int, length: int, seed: int) -> None:
        """Raise ValueError if there is no whole sample."""
        self.length = length
        # Neighbours share a token: the last that one predicts is the first that the next reads.
        self.samples = (tokens - 1) // length
        if self.samples < 1:
            raise ValueError(f"{tokens} tokens are fewer than the {length + 1} of a sample")
        # What is predicted is counted: the very first token never is.
        self.left_out = tokens - 1 - self.samples * length
        self._seed = seed
        # The cipher permutes 2 ** (2 * bits) numbers, fewer than four times as many as there are.
        self._bits = max(1, ((self.samples - 1).bit_length() + 1) // 2)

    def place(self, number: int) -> int:
        """Return the position of the first token of sample ``number``, counted from 0 over all epochs."""
        epoch, within = divmod(number, self.samples)
        return self._permuted(epoch, within) * self.length

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
