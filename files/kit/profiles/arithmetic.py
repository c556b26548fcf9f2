# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How much a profile trains: samples and steps, weights and memory. Pure arithmetic over its keys."""

from __future__ import annotations

from kit.profiles.model import CLASSIFICATION, Model, Profile

BYTES_OF_A_WEIGHT = 16  # itself, its gradient and two moments, of 4 bytes each
GIB = 1 << 30


def ranks(profile: Profile) -> int:
    """Return how many processes train."""
    return profile.distributed.world_size if profile.distributed.enabled else 1


def samples_per_step(profile: Profile) -> int:
    """Return the samples of an update of the weights, over all ranks."""
    training = profile.training
    return training.batch_size * training.gradient_accumulation_steps * ranks(profile)


def steps_per_epoch(profile: Profile) -> int:
    """Return the updates in which the training data is read once; a rest that makes no whole update is left out."""
    return profile.data.train_samples // samples_per_step(profile)


def steps(profile: Profile) -> int:
    """Return the updates until the epochs or max_steps are reached."""
    return min(profile.training.max_steps, profile.training.epochs * steps_per_epoch(profile))


def answers(model: Model) -> int:
    """Return the width of the head."""
    return (model.num_classes if model.task == CLASSIFICATION else model.outputs) or 1


def parameters(model: Model) -> int:
    """Return the number of the model's weights (encoder.py makes them; a test compares)."""
    width, inner = model.hidden_size, model.feedforward_size
    attention = 4 * (width * width + width)
    feedforward = 2 * width * inner + inner + width
    norms = 2 * 2 * width
    begin = model.input_features * width + width + model.max_position * width
    end = 2 * width + width * answers(model) + answers(model)
    return begin + model.num_layers * (attention + feedforward + norms) + end


def memory_bytes(profile: Profile) -> int:
    """Return an estimate of what a rank needs on its GPU: weights, gradients, moments and activations.

    Per token and block some eight activations of the model's width and three of the feed-forward part's are kept for
    the backward pass; plain attention keeps two matrices of all pairs besides. Activation checkpointing keeps one
    activation per block, and those of the one block that is being computed. Neither CUDA's own memory nor fragmentation
    is in it.
    """
    model, training = profile.model, profile.training
    size = 2 if training.mixed_precision.enabled else 4
    pairs = 2 * model.num_heads * model.window if model.attention == "math" else 0
    of_a_block = 8 * model.hidden_size + 3 * model.feedforward_size + pairs
    if training.activation_checkpointing:
        kept = model.num_layers * model.hidden_size + of_a_block
    else:
        kept = model.num_layers * of_a_block
    tokens = training.batch_size * model.window
    return parameters(model) * BYTES_OF_A_WEIGHT + tokens * kept * size
