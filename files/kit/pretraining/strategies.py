# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The five ways to save cost that the document of this workload names, and what each does to the training at hand."""

from __future__ import annotations

from dataclasses import dataclass, replace

from kit.pretraining import shape

SAVES, COSTS, NEITHER = "saves", "costs more", "neither"
UNKNOWN = "not known"
# What computing activations again adds: a forward pass, which is a third of forward and backward.
RECOMPUTED = 1 / 3


@dataclass(frozen=True)
class Strategy:
    """``effect`` is one of SAVES, COSTS, NEITHER and UNKNOWN; ``here`` says why, with this training's numbers."""

    name: str
    effect: str
    here: str


def all_of(
    model: shape.Model, training: shape.Training, sequences: int, device_bytes: int | None, each_loss: str | None
) -> list[Strategy]:
    """Return the five; ``each_loss`` is what a failure loses, in words, if that is known."""
    return [
        _batch(model, training, sequences, device_bytes),
        _sixteen_bits(training),
        _recomputed(model, training),
        _offloaded(model, training),
        _checkpoints(each_loss),
    ]


def _batch(model: shape.Model, training: shape.Training, sequences: int, device_bytes: int | None) -> Strategy:
    name = "Larger batches"
    fixed = f"a step has {sequences} sequences whatever is set here; a GPU computes {training.micro} of them at a time"
    if device_bytes is None:
        return Strategy(name, UNKNOWN, f"{fixed}; how many fit is not known without the GPU's memory")
    most = shape.largest_micro(model, training, device_bytes)
    larger = range(training.micro + 1, min(most, sequences // training.ranks) + 1)
    possible = [micro for micro in larger if sequences % (micro * training.ranks) == 0]
    if not possible:
        return Strategy(name, NEITHER, f"{fixed}, and no larger number fits into its memory and divides the batch")
    return Strategy(name, SAVES, f"{fixed}, and up to {possible[-1]} fit: try `batch.micro: {possible[-1]}`")


def _sixteen_bits(training: shape.Training) -> Strategy:
    same = "GPUs compute both as fast, but fp16 has to scale the loss and skips the steps in which that fails"
    if training.value_bytes == 2:
        return Strategy("FP16", NEITHER, f"16 bits are in use already, bf16 by default: {same}")
    return Strategy("FP16", SAVES, f"fp32 is in use: bf16 takes half the memory and computes faster; {same}")


def _recomputed(model: shape.Model, training: shape.Training) -> Strategy:
    kept, again = (shape.activation_bytes(model, replace(training, recomputed=each)) for each in (False, True))
    is_on = "it is in use: " if training.recomputed else ""
    return Strategy(
        "Activation checkpointing",
        COSTS,
        f"{is_on}it frees {_gigabytes(kept - again)} on each GPU and computes each forward pass twice, up to "
        f"{RECOMPUTED:.0%} more time; it pays only if the memory allows batches that are faster by more",
    )


def _offloaded(model: shape.Model, training: shape.Training) -> Strategy:
    on, off = (shape.states_bytes(model, replace(training, offloaded=each)) for each in (False, True))
    is_on = "it is in use, and " if training.offloaded else ""
    return Strategy(
        "Offloading to the CPU",
        COSTS,
        f"{is_on}slower: it frees {_gigabytes(on - off)} on each GPU, and each step waits for the host's memory and "
        "processors; 350 steps/h, the document's first figure, are what it looks like",
    )


def _checkpoints(each_loss: str | None) -> Strategy:
    lost = f", {each_loss} here" if each_loss else ""
    return Strategy(
        "Frequent checkpoints",
        NEITHER,
        f"they make no step cheaper but limit what a failure loses: half an interval and the restart on average{lost}",
    )


def _gigabytes(count: int) -> str:
    return f"{count / 1e9:.2f} GB"
