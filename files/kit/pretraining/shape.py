# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The arithmetic of a GPT-2-like decoder: parameters, FLOPs, memory on each rank, bytes of a checkpoint.

With V words, width d, L layers and inputs of T tokens there are V·d + T·d embeddings, 12d² + 13d parameters in each
layer (four weight matrices with biases, two norms) and 2d in the last norm; a model that is not tied has V·d more.

Memory follows DeepSpeed's own estimate for ZeRO stage 3 (`estimate_zero3_model_states_mem_needs`) and, for the
activations, Korthikanti et al., "Reducing Activation Recomputation in Large Transformer Models" (arXiv:2205.05198):
34 bytes for each token, width and layer in 16 bits, if the attention does not keep its scores.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from kit import flops
from kit.errors import KitError
from kit.pretraining.pace import LARGEST

OPTIMIZER_BYTES = 12  # AdamW: the weight and both moments in 32 bits
GRADIENT_BYTES = 4
LARGEST_BYTES = 4  # of the largest parameter, which is gathered whole: its weight and its gradient in 16 bits
ACTIVATION_BYTES = 34  # for each token, width and layer in 16 bits
KEPT_BYTES = 2  # a layer's input in 16 bits, the only thing kept of it if the rest is computed again
LOSS_BYTES = 8  # a logit in 32 bits and its gradient, besides the logit as the model returns it
USABLE = 0.9  # of a GPU's memory: CUDA's context, NCCL's buffers and what fragments take the rest


@dataclass(frozen=True)
class Model:
    """A model's numbers under GPT-2's names; ``tied``: the input embedding is also the output's."""

    n_embd: int
    n_layer: int
    n_head: int
    n_positions: int
    vocab_size: int
    tied: bool = True


@dataclass(frozen=True)
class Training:
    """What determines the memory on a rank, besides the model.

    ``value_bytes`` is 2 for bf16 and fp16, 4 for fp32. ``offloaded``: optimizer and parameters stay in the host's
    memory. ``recomputed``: activation checkpointing.
    """

    ranks: int
    micro: int
    value_bytes: int = 2
    offloaded: bool = False
    recomputed: bool = False


def read_model(document: Any) -> Model:
    """Return the model of ``settings.json``'s ``model``. Raise KitError for a number that is missing or none."""
    if not isinstance(document, dict):
        raise KitError(f"model: expected an object with the model's numbers, found {type(document).__name__}")
    numbers = {}
    for name in ("n_embd", "n_layer", "n_head", "n_positions", "vocab_size"):
        value = document.get(name)
        if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= LARGEST:
            raise KitError(f"model.{name}: expected a whole number from 1 to {LARGEST:g}, found {value!r}")
        numbers[name] = value
    tied = document.get("tied", True)
    if not isinstance(tied, bool):
        raise KitError(f"model.tied: expected true or false, found {tied!r}")
    return Model(**numbers, tied=tied)


def parameters(model: Model) -> int:
    """Return the number of parameters; a tied embedding counts once."""
    width = model.n_embd
    embeddings = model.vocab_size * width * (1 if model.tied else 2) + model.n_positions * width
    return embeddings + model.n_layer * (12 * width * width + 13 * width) + 2 * width


def largest_parameter(model: Model) -> int:
    """Return the number of values in the largest single parameter."""
    return model.n_embd * max(model.vocab_size, model.n_positions, 4 * model.n_embd)


def flops_per_token(model: Model) -> float:
    """Return the training FLOPs for each token: 6N + 12 · L · d · T."""
    count = parameters(model)
    return flops.flops_per_token(flops.Shape(count, count, model.n_layer, model.n_embd, model.n_positions))


def tokens_per_step(model: Model, sequences: int) -> int:
    """Return the tokens of an optimizer step over ``sequences`` whole inputs."""
    return sequences * model.n_positions


def states_bytes(model: Model, training: Training) -> int:
    """Return the bytes of weights, gradients and optimizer on each rank under ZeRO stage 3, rounded up.

    In 16 bits it is 18N / ranks + 4 for each value of the largest parameter; offloaded, only the latter.
    """
    whole = largest_parameter(model) * LARGEST_BYTES * training.value_bytes // 2
    if training.offloaded:
        return whole
    each = training.value_bytes + GRADIENT_BYTES + OPTIMIZER_BYTES
    return -(-each * parameters(model) // training.ranks) + whole


def activation_bytes(model: Model, training: Training) -> int:
    """Return an estimate of the bytes that a forward pass keeps on each rank, the logits included."""
    tokens = training.micro * model.n_positions
    layer = ACTIVATION_BYTES * tokens * model.n_embd
    layers = layer * model.n_layer
    if training.recomputed:
        layers = KEPT_BYTES * tokens * model.n_embd * model.n_layer + layer
    logits = tokens * model.vocab_size * (training.value_bytes + LOSS_BYTES)
    return layers * training.value_bytes // 2 + logits


def checkpoint_bytes(model: Model) -> int:
    """Return the bytes of a checkpoint over all ranks: each parameter and both moments in 32 bits."""
    return OPTIMIZER_BYTES * parameters(model)


def export_bytes(model: Model) -> int:
    """Return the bytes of the exported model in 32 bits."""
    return 4 * parameters(model)


def largest_micro(model: Model, training: Training, device_bytes: int) -> int:
    """Return the largest micro-batch, in sequences, for which ``fits`` holds; 0 if not even one does."""
    free = int(USABLE * device_bytes) - states_bytes(model, training)
    return max(0, free // activation_bytes(model, replace(training, micro=1)))  # they are proportional to it


def needed_bytes(model: Model, training: Training) -> int:
    """Return the estimated bytes on each rank: states and activations."""
    return states_bytes(model, training) + activation_bytes(model, training)


def fits(model: Model, training: Training, device_bytes: int) -> bool:
    """Return whether what a rank needs fits into the usable part of a device's memory."""
    return needed_bytes(model, training) <= int(USABLE * device_bytes)


def describe(model: Model, training: Training, device_bytes: int | None = None) -> dict[str, Any]:
    """Return all of it, for the leg ``shape`` and for checking settings; without a device three are None."""
    return {
        "parameters": parameters(model),
        "flops_per_token": flops_per_token(model),
        "states_bytes": states_bytes(model, training),
        "activations_bytes": activation_bytes(model, training),
        "needed_bytes": needed_bytes(model, training),
        "checkpoint_bytes": checkpoint_bytes(model),
        "export_bytes": export_bytes(model),
        "device_bytes": device_bytes,
        "fits": None if device_bytes is None else fits(model, training, device_bytes),
        "largest_micro": None if device_bytes is None else largest_micro(model, training, device_bytes),
    }


def ranks_that_fit(sequences: int, micro: int) -> list[int]:
    """Return the numbers of ranks that divide a batch of ``sequences`` into whole micro-batches.

    With each of them the batch stays the same: they accumulate gradients over sequences / (micro · ranks) passes.
    """
    passes, left = divmod(sequences, micro)
    return [] if left else [passes // times for times in range(passes, 0, -1) if passes % times == 0]
