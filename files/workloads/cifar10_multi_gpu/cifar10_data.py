# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""CIFAR-10's binary files as tensors: fixed records, nothing is unpickled."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from kit.training.images import Split, split

SIDE, CHANNELS, CLASSES = 32, 3, 10
RECORD = 1 + CHANNELS * SIDE * SIDE  # bytes: a label, then red, green and blue, row by row
TRAIN = tuple(f"data_batch_{number}.bin" for number in range(1, 6))
TEST = ("test_batch.bin",)
MEAN, DEVIATION = 0.5, 0.5  # the documents' normalisation


def load(folder: Path, names: tuple[str, ...], device: torch.device) -> Split:
    """Load whole files onto the device, so an epoch waits for nothing on the host. Raises OSError and ValueError."""
    records = np.concatenate([np.fromfile(folder / name, dtype=np.uint8).reshape(-1, RECORD) for name in names])
    images = torch.from_numpy(records[:, 1:].reshape(-1, CHANNELS, SIDE, SIDE))
    return split(images, torch.from_numpy(records[:, 0].astype(np.int64)), MEAN, DEVIATION, device)
