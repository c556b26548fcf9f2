# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The FLOPs of a training and the peak of a GPU, for the model FLOPs utilisation (MFU)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from kit.errors import KitError

# Dense bf16 FLOP/s from the vendors' data sheets; the first name contained in the GPU's own name counts.
PEAKS = (
    ("GH200", 989.4e12),
    ("H200 NVL", 835.5e12),
    ("H200", 989.4e12),
    ("H100 PCIe", 756e12),
    ("H100 NVL", 835.5e12),
    ("H100", 989.4e12),
    ("H20", 148e12),
    ("B200", 2250e12),
    ("A100", 312e12),
    ("A800", 312e12),
    ("A40", 149.7e12),
    ("A30", 165e12),
    ("A10", 125e12),
    ("L40S", 362e12),
    ("L4", 121e12),
)


@dataclass(frozen=True)
class Shape:
    """The numbers of a model that determine its FLOPs; ``width`` is heads times head size."""

    parameters: int
    trainable: int
    layers: int
    width: int
    length: int


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


def peak_flops(gpu_name: str | None) -> float | None:
    """Return the GPU's dense bf16 FLOP/s, or None if its name is unknown."""
    words = (gpu_name or "").replace("-", " ").split()
    for name, peak in PEAKS:
        parts = name.split()
        if any(words[start : start + len(parts)] == parts for start in range(len(words))):
            return peak
    return None


def flops_per_token(shape: Shape) -> float:
    """Return training FLOPs for each token.

    Forward and activation gradients take 2 each for every parameter, weight gradients 2 for every trained one: 6N if
    all are trained. Attention adds 12 · layers · width · length.
    """
    return 4.0 * shape.parameters + 2.0 * shape.trainable + 12.0 * shape.layers * shape.width * shape.length
