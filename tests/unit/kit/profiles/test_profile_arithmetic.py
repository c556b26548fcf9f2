# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Steps, weights and memory of the document's profile for four A100, worked out by hand."""

from __future__ import annotations

import pytest
from kit.profiles import arithmetic, document
from kit.profiles.model import Profile

from tests.unit.kit.profiles import samples

HPC = Profile.model_validate(document.parse(samples.HPC).value)
WEIGHTS = 38_371_329
OF_WEIGHTS = 16 * WEIGHTS  # bytes
TOKENS = 128 * 16


def with_(section: str, **values: object) -> Profile:
    """The profile with these keys of a section replaced, unchecked."""
    return HPC.model_copy(update={section: getattr(HPC, section).model_copy(update=values)})


def test_a_step_takes_the_batch_of_all_ranks_so_many_times():
    assert (arithmetic.ranks(HPC), arithmetic.samples_per_step(HPC)) == (4, 128 * 4 * 4)
    alone = with_("distributed", enabled=False)
    assert (arithmetic.ranks(alone), arithmetic.samples_per_step(alone)) == (1, 128 * 4)


@pytest.mark.parametrize(("most", "steps"), [(4199, 4199), (4200, 4200), (5000, 4200)])
def test_it_ends_with_the_epochs_or_with_the_steps(most, steps):
    assert arithmetic.steps_per_epoch(HPC) == 42  # a rest of 984 samples makes none
    assert arithmetic.steps(with_("training", max_steps=most)) == steps


@pytest.mark.parametrize(
    ("values", "answers"),
    [
        ({}, 1),
        ({"outputs": 3}, 3),
        ({"outputs": None}, 1),
        ({"task": "classification", "num_classes": 4, "outputs": None}, 4),
    ],
)
def test_each_answer_has_its_weights(values, answers):
    model = with_("model", **values).model
    assert arithmetic.answers(model) == answers
    assert arithmetic.parameters(model) == WEIGHTS + (answers - 1) * (512 + 1)


def test_another_width_window_and_depth_have_other_weights():
    model = with_("model", hidden_size=8, feedforward_size=16, max_position=4, input_features=3, num_layers=2).model
    block = 4 * (64 + 8) + (128 + 128 + 16 + 8) + 32
    assert arithmetic.parameters(model) == (24 + 8 + 32) + 2 * block + (16 + 8 + 1)


ACTIVATIONS = 8 * 512 + 3 * 2048  # of a token in a block


@pytest.mark.parametrize(
    ("profile", "of_a_token"),
    [
        (HPC, 12 * ACTIVATIONS * 2),
        (with_("model", attention="math"), 12 * (ACTIVATIONS + 2 * 8 * 16) * 2),
        (with_("training", activation_checkpointing=True), (12 * 512 + ACTIVATIONS) * 2),
        (
            with_("training", mixed_precision=HPC.training.mixed_precision.model_copy(update={"enabled": False})),
            12 * ACTIVATIONS * 4,
        ),
    ],
)
def test_memory_is_that_of_the_weights_and_of_the_activations(profile, of_a_token):
    assert arithmetic.GIB == 1024**3
    assert arithmetic.memory_bytes(profile) == OF_WEIGHTS + TOKENS * of_a_token
