# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Make the encoder smaller: the least heads of attention, parts of heads, and units of the feed-forward parts.

The width between blocks stays. Sizes are rounded to multiples of eight: odd ones are smaller and slower.
"""

from __future__ import annotations

from typing import Any

import torch
import torch_pruning
from encoder import Attention, Encoder
from torch import nn

ROUND = 8


def prune(model: Encoder, amount: float, example: torch.Tensor) -> dict[str, Any]:
    """Take away ``amount`` (0 to 1) of what can be taken away, the weights of least magnitude; return what is left.

    ``example``: inputs of (samples, time steps, features), of one sample at least.
    """
    before = size(model, example)
    attentions = [part for part in model.modules() if isinstance(part, Attention)]
    pruner = torch_pruning.pruner.BasePruner(
        model,
        example,
        importance=torch_pruning.importance.GroupMagnitudeImportance(p=2),
        pruning_ratio=amount,
        num_heads={layer: part.heads for part in attentions for layer in (part.q, part.k, part.v)},
        prune_num_heads=False,
        prune_head_dims=True,
        ignored_layers=_kept(model),
        round_to=ROUND,
    )
    pruner.step()
    for part in attentions:
        part.heads = int(pruner.num_heads[part.q])
        part.head_size = part.q.out_features // part.heads
    after = size(model, example)
    return {
        "asked": amount,
        "before": before,
        "after": after,
        "macs": after["macs"] / before["macs"],
        "parameters": after["parameters"] / before["parameters"],
        "blocks": [
            {"heads": each.attention.heads, "head_size": each.attention.head_size, "feedforward": each.f1.out_features}
            for each in model.blocks
        ],
    }


def size(model: Encoder, example: torch.Tensor) -> dict[str, int]:
    """Return how many parameters a model has, and multiplications with additions for one sample."""
    was = model.training
    model.eval()
    macs, parameters = torch_pruning.utils.count_ops_and_params(model, example[:1])
    model.train(was)
    return {"macs": int(macs), "parameters": int(parameters)}


def _kept(model: Encoder) -> list[nn.Module]:
    """Return the layers whose outputs are the width between blocks, or the answers."""
    return [model.input, model.head, *(layer for block in model.blocks for layer in (block.attention.o, block.f2))]
