# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The stand-in's chain: the same everywhere, and as uncertain as it says."""

from __future__ import annotations

import hashlib
import math
from collections import Counter

import pytest
from kit.pretraining import markov

FIRST = [96, 9, 83, 105, 0, 1018, 1511, 18]
DIGEST = "17083d3309082389906544ffe2c761686c36c6e8b53e01aa0db5d382766809f9"


@pytest.fixture(scope="module")
def following() -> list[int]:
    return list(markov.table(0))


def tokens(count: int, seed: int = 0) -> list[int]:
    found: list[int] = []
    for content, largest in markov.source(count, seed).blocks("<u2", 2048):
        part = memoryview(content).cast("H").tolist()
        assert largest == max(part)
        found += part
    return found


def test_its_first_tokens_are_these():
    assert tokens(8) == FIRST


def test_every_token_has_sixteen_successors_of_the_same_probabilities(following):
    assert len(following) == 2048 * 256
    for token in range(2048):
        row = Counter(following[token * 256 : token * 256 + 256])
        assert sorted(row.values(), reverse=True) == list(markov.WEIGHTS)
    assert sum(markov.WEIGHTS) == 256
    assert 0 <= min(following) <= max(following) < 2048


@pytest.fixture(scope="module")
def many() -> list[int]:
    return tokens(60_000)


def test_the_entropy_is_that_of_the_probabilities(following, many):
    assert pytest.approx(1.9398430191) == markov.ENTROPY
    rows = {token: Counter(following[token * 256 : token * 256 + 256]) for token in set(many)}
    measured = -sum(math.log(rows[a][b] / 256) for a, b in zip(many, many[1:])) / (len(many) - 1)
    assert measured == pytest.approx(markov.ENTROPY, abs=0.02)


def test_who_only_counts_tokens_stays_far_above(many):
    frequencies = [count / len(many) for count in Counter(many).values()]
    assert 5.5 < -sum(share * math.log(share) for share in frequencies) < 6.5
    assert len(frequencies) > 1200


def test_it_is_the_same_on_every_machine():
    found = tokens(70_000)
    assert hashlib.sha256(b"".join(token.to_bytes(2, "little") for token in found)).hexdigest() == DIGEST
    assert tokens(1000) == found[:1000]
    assert tokens(1000, seed=1) != found[:1000]


def test_other_types_are_not_what_it_makes():
    for dtype, vocab in (("<u4", 2048), ("<u2", 2049)):
        with pytest.raises(ValueError, match=f"{dtype} for a vocabulary of {vocab}"):
            next(markov.source(10, 0).blocks(dtype, vocab))
