# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The FLOPs of a training and the peak of a GPU, for the model FLOPs utilisation (MFU)."""

from __future__ import annotations

from dataclasses import dataclass

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


def sheet_name(gpu_name: str | None) -> str | None:
    """Return the GPU's name in ``PEAKS``, such as H100 for ``NVIDIA H100 80GB HBM3``, or None if it is not there."""
    words = (gpu_name or "").replace("-", " ").split()
    for name, _peak in PEAKS:
        parts = name.split()
        if any(words[start : start + len(parts)] == parts for start in range(len(words))):
            return name
    return None


def peak_flops(gpu_name: str | None) -> float | None:
    """Return the GPU's dense bf16 FLOP/s, or None if its name is unknown."""
    name = sheet_name(gpu_name)
    return None if name is None else dict(PEAKS)[name]


def flops_per_token(shape: Shape) -> float:
    """Return training FLOPs for each token.

    Forward and activation gradients take 2 each for every parameter, weight gradients 2 for every trained one: 6N if
    all are trained. Attention adds 12 · layers · width · length.
    """
    return 4.0 * shape.parameters + 2.0 * shape.trainable + 12.0 * shape.layers * shape.width * shape.length
