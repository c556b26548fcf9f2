# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A split of an image dataset, all on the device, so that an epoch never waits for the host. Imports PyTorch."""

from __future__ import annotations

from dataclasses import dataclass

import torch


@dataclass(frozen=True)
class Split:
    """Images (normalised, N x channels x height x width) and labels, on one device."""

    images: torch.Tensor
    labels: torch.Tensor

    def __len__(self) -> int:
        return len(self.labels)


def split(images: torch.Tensor, labels: torch.Tensor, mean: float, deviation: float, device: torch.device) -> Split:
    """Return the split of byte images (N x channels x height x width), scaled to fractions and normalised."""
    normal = images.to(device).float().div_(255).sub_(mean).div_(deviation)
    return Split(normal.contiguous(memory_format=torch.channels_last), labels.to(device))
