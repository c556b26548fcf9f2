# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The FLOPs of a model of transformers, and what `kit.flops` says of them."""

from __future__ import annotations

from typing import Any

from kit.errors import KitError
from kit.flops import PEAKS, Shape, flops_per_token, peak_flops

__all__ = ["PEAKS", "Shape", "flops_per_token", "peak_flops", "shape_of"]


def shape_of(model: Any, length: int) -> Shape:
    """Return the shape of a transformers decoder that reads ``length`` tokens at a time. Raise KitError for others."""
    config = model.config
    try:
        heads = config.num_attention_heads
        size = getattr(config, "head_dim", None) or config.hidden_size // heads
        layers = config.num_hidden_layers
    except AttributeError as error:
        raise KitError(f"expected the model configuration of a decoder: {error}") from error
    parameters = list(model.parameters())
    count = sum(item.numel() for item in parameters)
    return Shape(count, sum(item.numel() for item in parameters if item.requires_grad), layers, heads * size, length)
