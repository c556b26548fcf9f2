# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Any source of tokens becomes shards for training and, from its end, for validation."""

from __future__ import annotations

import shutil

import pytest
from kit.errors import KitError
from kit.pretraining import converter
from kit.pretraining.tokens import Split

from tests.unit.kit.token_folders import make, numbers


def read(folder, manifest, split: str) -> list[int]:
    opened = Split(folder, manifest, split)
    return list(opened.read(0, len(opened)))


@pytest.mark.parametrize("block", [1, 7, 40, 100])
@pytest.mark.parametrize("held_out", [1, 10, 99])
def test_the_last_tokens_are_held_out_and_none_is_lost(tmp_path, block, held_out):
    sources = [numbers(range(30), block), numbers([]), numbers(range(30, 100), block)]
    made = converter.convert(sources, tmp_path, vocab=100, validation=held_out, source="x", limit=40)
    assert read(tmp_path, made, "train") == list(range(100 - held_out))
    assert read(tmp_path, made, "validation") == list(range(100 - held_out, 100))
    assert (made.max_token, made.vocab, made.dtype, made.entropy, made.source) == (99, 100, "<u2", None, "x")


def test_the_largest_token_is_that_of_all_sources(tmp_path):
    sources = [numbers([1, 88, 3]), numbers([2, 5]), numbers([7])]
    assert converter.convert(sources, tmp_path, vocab=100, source="x").max_token == 88


def test_the_largest_token_may_be_the_first_of_the_vocabulary(tmp_path):
    assert make(tmp_path, [0] * 20, vocab=1).max_token == 0


def test_a_large_vocabulary_takes_four_bytes(tmp_path):
    made = make(tmp_path, range(65500, 65600), vocab=65600)
    assert (made.dtype, made.max_token, made.bytes) == ("<u4", 65599, 400)
    assert read(tmp_path, made, "validation") == list(range(65590, 65600))


@pytest.mark.parametrize(
    ("total", "held_out"), [(2, 1), (399, 1), (400, 2), (20_000, 100), (2_000_000_000, 10_000_000), (10**12, 10**7)]
)
def test_one_in_two_hundred_is_held_out_but_not_too_many(total, held_out):
    assert converter.validation_tokens(total, None) == held_out


@pytest.mark.parametrize(("total", "asked"), [(100, 0), (100, 100), (100, -1), (1, None), (0, None), (100, 101)])
def test_both_splits_have_tokens(total, asked):
    with pytest.raises(KitError, match=f" of {total} tokens for validation: expected 1 to {total - 1}"):
        converter.validation_tokens(total, asked)


@pytest.mark.parametrize("stated", [99, 101])
def test_a_source_that_holds_other_than_it_says_is_damaged(tmp_path, stated):
    with pytest.raises(KitError, match=f"numbers: 100 tokens, its header says {stated}: it is damaged"):
        converter.convert([numbers(range(100), stated=stated)], tmp_path, vocab=100, source="x")
    assert not (tmp_path / "manifest.json").exists()


def test_without_space_nothing_is_written(tmp_path, monkeypatch):
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda _path: usage._replace(free=199))
    with pytest.raises(KitError, match=r"no space: the shards need 200 bytes, 199 are free"):
        make(tmp_path, range(100), vocab=100)
    assert list(tmp_path.iterdir()) == []
    monkeypatch.setattr(shutil, "disk_usage", lambda _path: usage._replace(free=200))
    assert make(tmp_path, range(100), vocab=100).bytes == 200
