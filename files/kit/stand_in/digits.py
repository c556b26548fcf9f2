# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The handwritten digits that ship with scikit-learn, enlarged to stand in for datasets of images."""

from __future__ import annotations

from typing import Any

import numpy as np


def enlarge(images: np.ndarray[Any, Any], glyph: int, side: int) -> np.ndarray[Any, Any]:
    """Enlarge 8x8 images of 0…16 to glyph x glyph of 0…255 (bilinear) and centre them in side x side pixels."""
    weights = _bilinear(images.shape[1], glyph)
    enlarged = np.clip(np.rint(weights @ images @ weights.T * (255 / 16)), 0, 255).astype(np.uint8)
    margin = (side - glyph) // 2
    return np.pad(enlarged, ((0, 0), (margin, margin), (margin, margin)))


def _bilinear(small: int, large: int) -> np.ndarray[Any, Any]:
    """Return the (large x small) matrix that interpolates along one axis, end points on end points."""
    place = np.linspace(0, small - 1, large)
    return np.maximum(0, 1 - np.abs(place[:, None] - np.arange(small)[None, :]))
