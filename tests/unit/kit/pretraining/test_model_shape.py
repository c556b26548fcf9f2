# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The arithmetic of the model, against figures computed by hand."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from kit.errors import KitError
from kit.pretraining import shape

from tests.unit.kit.pretraining_job import EIGHT, GPT, SETTINGS

WIDE = shape.Model(n_embd=1792, n_layer=24, n_head=28, n_positions=2048, vocab_size=50_000)
TINY = shape.Model(n_embd=128, n_layer=4, n_head=4, n_positions=128, vocab_size=2048)


@pytest.mark.parametrize(
    ("model", "count"),
    [
        # 50,000 · 1536 = 76,800,000; 2048 · 1536 = 3,145,728; a layer 12 · 1536² + 13 · 1536 = 28,331,520; 2 · 1536
        (GPT, 76_800_000 + 3_145_728 + 24 * 28_331_520 + 3_072),
        (GPT, 759_905_280),
        (dataclasses.replace(GPT, tied=False), 759_905_280 + 76_800_000),
        (WIDE, 1_018_676_736),
        (dataclasses.replace(GPT, n_layer=32), 759_905_280 + 8 * 28_331_520),
        # 2048 · 128 = 262,144; 128 · 128 = 16,384; 4 · (12 · 128² + 13 · 128) = 793,088; 256
        (TINY, 262_144 + 16_384 + 793_088 + 256),
        (TINY, 1_071_872),
    ],
)
def test_parameters(model: shape.Model, count: int) -> None:
    assert shape.parameters(model) == count


def test_flops_for_each_token_are_6n_and_the_attentions() -> None:
    # 12 · 24 · 1536 · 2048 = 905,969,664
    assert shape.flops_per_token(GPT) == 6 * 759_905_280 + 905_969_664


def test_a_step_has_as_many_tokens_as_its_sequences() -> None:
    assert shape.tokens_per_step(GPT, 512) == 1_048_576


@pytest.mark.parametrize(
    ("model", "largest"),
    [
        (GPT, 50_000 * 1536),  # the embedding
        (dataclasses.replace(GPT, vocab_size=100), 4 * 1536 * 1536),  # the network's first layer
        (dataclasses.replace(TINY, vocab_size=100, n_positions=1000), 1000 * 128),  # the positions
    ],
)
def test_the_largest_parameter(model: shape.Model, largest: int) -> None:
    assert shape.largest_parameter(model) == largest


@pytest.mark.parametrize(
    ("changed", "states"),
    [
        # 18 · 759,905,280 / 8 = 1,709,786,880; 4 · 76,800,000 = 307,200,000: 2.02 GB
        ({}, 1_709_786_880 + 307_200_000),
        ({"ranks": 4}, 3_419_573_760 + 307_200_000),
        ({"ranks": 7}, 1_954_042_149 + 307_200_000),  # 13,678,295,040 / 7 = 1,954,042,148.57
        ({"offloaded": True}, 307_200_000),
        # In 32 bits (4 + 4 + 12) · 759,905,280 / 8, and 8 for each value of the largest
        ({"value_bytes": 4}, 1_899_763_200 + 614_400_000),
    ],
)
def test_states_on_each_rank(changed: dict[str, Any], states: int) -> None:
    assert shape.states_bytes(GPT, dataclasses.replace(EIGHT, **changed)) == states


@pytest.mark.parametrize(
    ("changed", "activations"),
    [
        # 34 · 8192 tokens · 1536 · 24 = 10,267,656,192, and 8192 · 50,000 logits · 10 bytes
        ({}, 10_267_656_192 + 4_096_000_000),
        ({"micro": 8}, 2 * (10_267_656_192 + 4_096_000_000)),
        # 2 · 8192 · 1536 · 24 = 603,979,776 for the inputs, and one layer of 427,819,008
        ({"recomputed": True}, 603_979_776 + 427_819_008 + 4_096_000_000),
        ({"value_bytes": 4}, 20_535_312_384 + 4_915_200_000),
    ],
)
def test_activations_on_each_rank(changed: dict[str, Any], activations: int) -> None:
    assert shape.activation_bytes(GPT, dataclasses.replace(EIGHT, **changed)) == activations


def test_a_checkpoint_takes_12_bytes_a_parameter_and_the_export_4() -> None:
    assert shape.checkpoint_bytes(GPT) == 9_118_863_360
    assert shape.export_bytes(GPT) == 3_039_621_120


def test_it_fits_if_the_usable_part_of_the_memory_holds_states_and_activations() -> None:
    needed = 2_016_986_880 + 14_363_656_192
    assert shape.needed_bytes(GPT, EIGHT) == needed
    enough = next(size for size in range(int(needed / 0.9) - 3, needed * 2) if int(0.9 * size) >= needed)
    assert shape.fits(GPT, EIGHT, enough)
    assert not shape.fits(GPT, EIGHT, enough - 2)


@pytest.mark.parametrize(
    ("size", "micro"),
    [
        (80 << 30, 20),  # (0.9 · 85,899,345,920 - 2,016,986,880) / 3,590,914,048 = 20.97
        (20_000_000_000, 4),  # (18e9 - 2,016,986,880) / 3,590,914,048 = 4.45
        (6_231_001_031, 0),  # one byte short of one: 0.9 · it = 5,607,900,927.9
        (6_231_001_033, 1),
        (1_000_000_000, 0),  # not even the states
    ],
)
def test_the_largest_micro_batch(size: int, micro: int) -> None:
    assert shape.largest_micro(GPT, EIGHT, size) == micro


def test_all_of_it_at_once() -> None:
    assert shape.describe(GPT, EIGHT, 80 << 30) == {
        "parameters": 759_905_280,
        "flops_per_token": 5_465_401_344.0,
        "states_bytes": 2_016_986_880,
        "activations_bytes": 14_363_656_192,
        "needed_bytes": 16_380_643_072,
        "checkpoint_bytes": 9_118_863_360,
        "export_bytes": 3_039_621_120,
        "device_bytes": 80 << 30,
        "fits": True,
        "largest_micro": 20,
    }


def test_without_a_device_nothing_is_said_about_it() -> None:
    found = shape.describe(GPT, EIGHT)
    assert (found["device_bytes"], found["fits"], found["largest_micro"]) == (None, None, None)


@pytest.mark.parametrize(
    ("sequences", "micro", "ranks"),
    [
        (512, 4, [1, 2, 4, 8, 16, 32, 64, 128]),
        (24, 4, [1, 2, 3, 6]),
        (16, 16, [1]),
        (16, 5, []),
    ],
)
def test_ranks_that_divide_the_batch(sequences: int, micro: int, ranks: list[int]) -> None:
    assert shape.ranks_that_fit(sequences, micro) == ranks


def test_the_model_of_the_settings() -> None:
    assert shape.read_model(SETTINGS["model"]) == GPT
    assert shape.read_model({**SETTINGS["model"], "tied": False}) == dataclasses.replace(GPT, tied=False)
    assert shape.read_model({**SETTINGS["model"], "n_layer": 1}).n_layer == 1


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"n_layer": 0}, "model.n_layer: expected a whole number from 1 to .*, found 0"),
        ({"n_embd": True}, "model.n_embd: .*, found True"),
        ({"n_head": 24.0}, "model.n_head: .*, found 24.0"),
        ({"n_positions": None}, "model.n_positions: .*, found None"),
        ({"vocab_size": "50000"}, "model.vocab_size: .*, found '50000'"),
        ({"tied": 1}, "model.tied: expected true or false, found 1"),
    ],
)
def test_a_number_that_is_none_is_named(changed: dict[str, Any], said: str) -> None:
    with pytest.raises(KitError, match=said):
        shape.read_model({**SETTINGS["model"], **changed})


def test_a_model_that_is_no_object_is_refused() -> None:
    with pytest.raises(KitError, match=r"model: expected an object .*, found list"):
        shape.read_model([1536])
