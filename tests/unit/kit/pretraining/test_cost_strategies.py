# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The document's five ways to save cost, and what each does to a training."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from kit.pretraining import shape, strategies
from kit.pretraining.strategies import COSTS, NEITHER, SAVES, UNKNOWN

from tests.unit.kit.pretraining_job import EIGHT, GPT

MEMORY = 80 << 30


def found(
    training: shape.Training = EIGHT, sequences: int = 512, memory: int | None = MEMORY, each: str | None = None
) -> dict[str, strategies.Strategy]:
    return {each.name: each for each in strategies.all_of(GPT, training, sequences, memory, each)}


def test_there_are_five() -> None:
    assert list(found()) == [
        "Larger batches",
        "FP16",
        "Activation checkpointing",
        "Offloading to the CPU",
        "Frequent checkpoints",
    ]


@pytest.mark.parametrize(
    ("changed", "effect", "said"),
    [
        # 20 fit into 80 GiB; of 5 to 20 those that divide 512 / 8 are 8 and 16
        ({}, SAVES, "up to 16 fit: try `batch.micro: 16`"),
        ({"training": dataclasses.replace(EIGHT, micro=8)}, SAVES, "batch.micro: 16"),
        ({"training": dataclasses.replace(EIGHT, micro=15)}, SAVES, "batch.micro: 16"),
        ({"training": dataclasses.replace(EIGHT, micro=16)}, NEITHER, "no larger number fits"),
        ({"memory": 20 << 30}, NEITHER, "no larger number fits"),
        # 17 sequences of one rank are 17 passes of one, or one pass of 17, which is the most that fit
        ({"training": shape.Training(ranks=1, micro=1), "sequences": 17}, SAVES, "batch.micro: 17"),
        ({"training": shape.Training(ranks=1, micro=1), "sequences": 3}, SAVES, "batch.micro: 3"),
        # 15 fit into 64 GB, of which 8 divides
        ({"memory": 64_000_000_000}, SAVES, "batch.micro: 8`"),
        # 19 fit beside half of the states; with 2 ranks the parts of 20 divide 40
        ({"training": shape.Training(ranks=2, micro=1), "sequences": 40}, SAVES, "batch.micro: 10`"),
        ({"memory": None}, UNKNOWN, "not known without the GPU's memory"),
    ],
)
def test_larger_batches_help_if_they_fit_and_divide(changed: dict[str, Any], effect: str, said: str) -> None:
    batches = found(**changed)["Larger batches"]
    assert batches.effect == effect
    assert said in batches.here


def test_sixteen_bits_save_only_what_32_bits_waste() -> None:
    assert found()["FP16"].effect == NEITHER
    assert "in use already" in found()["FP16"].here
    wide = found(dataclasses.replace(EIGHT, value_bytes=4))["FP16"]
    assert wide.effect == SAVES
    assert wide.here.startswith("fp32 is in use")


def test_activation_checkpointing_costs_a_third_of_the_time() -> None:
    # It frees 10,267,656,192 - 1,031,798,784 bytes
    one = found()["Activation checkpointing"]
    assert one.effect == COSTS
    assert one.here.startswith("it frees 9.24 GB on each GPU")
    assert "up to 33% more time" in one.here
    on = found(dataclasses.replace(EIGHT, recomputed=True))["Activation checkpointing"]
    assert on.here.startswith("it is in use: it frees 9.24 GB")


def test_offloading_is_slower_and_frees_little() -> None:
    one = found()["Offloading to the CPU"]  # 18 N / 8
    assert one.effect == COSTS
    assert one.here.startswith("slower: it frees 1.71 GB on each GPU")
    on = found(dataclasses.replace(EIGHT, offloaded=True))["Offloading to the CPU"]
    assert on.here.startswith("it is in use, and slower: it frees 1.71 GB")


def test_checkpoints_limit_what_a_failure_loses() -> None:
    assert found()["Frequent checkpoints"].effect == NEITHER
    assert found()["Frequent checkpoints"].here.endswith("the restart on average")
    assert found(each="16 minutes")["Frequent checkpoints"].here.endswith("the restart on average, 16 minutes here")
