# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A stand-in for a corpus: a Markov chain of tokens whose entropy is known.

Each token has 16 successors of its own, always with the same 16 probabilities. So every token, whatever came before,
is as uncertain as ENTROPY says, and no model can have a lower loss on tokens that it has not seen; one that learns
only how frequent tokens are stays far above. Frequent tokens are successors of many, as in texts.

All chance comes from SHAKE-256, so that the tokens are the same with any Python on any machine.
"""

from __future__ import annotations

import hashlib
import math
from array import array
from bisect import bisect_right
from itertools import accumulate

from kit.pretraining.converter import Blocks, Source

VOCAB = 2048
WEIGHTS = (96, 48, 32, 24, 16, 12, 8, 6, 4, 3, 2, 1, 1, 1, 1, 1)  # of the successors, of 256
ENTROPY = -sum(weight / 256 * math.log(weight / 256) for weight in WEIGHTS)  # nats per token
FREQUENCY_OFFSET = 8  # the token of rank r is a successor of as many as 1 / (r + this) says
PIECE = 1 << 16  # tokens that are made at once


def table(seed: int) -> array[int]:
    """Return for each token and each of 256 values of a byte the token that comes next: table[token << 8 | byte]."""
    frequencies = list(accumulate((1 << 24) // (rank + FREQUENCY_OFFSET) for rank in range(VOCAB)))
    following = array("H")
    for token in range(VOCAB):
        successors: dict[int, None] = {}
        chance = iter(hashlib.shake_256(f"successors {seed} {token}".encode()).digest(4096))
        while len(successors) < len(WEIGHTS):
            drawn = int.from_bytes(bytes(next(chance) for _byte in range(5)), "big") % frequencies[-1]
            successors.setdefault(bisect_right(frequencies, drawn))
        for successor, weight in zip(successors, WEIGHTS):
            following.extend([successor] * weight)
    return following


def source(tokens: int, seed: int) -> Source:
    """Return the chain as a source of so many tokens."""

    def blocks(dtype: str, vocab: int) -> Blocks:
        if (dtype, vocab) != ("<u2", VOCAB):
            raise ValueError(f"{dtype} for a vocabulary of {vocab}")
        following, token = table(seed), 0
        for first in range(0, tokens, PIECE):
            chance = hashlib.shake_256(f"tokens {seed} {first // PIECE}".encode()).digest(min(PIECE, tokens - first))
            made = array("H", bytes(2 * len(chance)))
            for position, byte in enumerate(chance):
                token = following[token << 8 | byte]
                made[position] = token
            yield made.tobytes(), max(made)

    return Source(f"Markov chain {seed}", tokens, blocks)
