# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Handwritten digits that ship with scikit-learn, made into MNIST's files for machines that cannot download it."""

from __future__ import annotations

from typing import Any

import idx
import numpy as np
from kit.stand_in.digits import enlarge as enlarge_digits
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

GLYPH = 20  # pixels: MNIST's digits are 20x20, centred in 28x28
TEST_SHARE = 0.2
MAX_SHIFT = 2  # pixels


def make(copies: int, seed: int, shuffle_labels: bool = False) -> dict[str, bytes]:
    """Return the four files.

    The originals are split first, so no original is in both sets. Each training original appears ``copies`` times, once
    as it is and otherwise shifted by up to two pixels; test images are unshifted. ``shuffle_labels`` breaks the tie
    between training images and labels: what learns nothing must be seen to fail.
    """
    digits = load_digits()
    random = np.random.default_rng(seed)
    train, test = train_test_split(
        np.arange(len(digits.target)), test_size=TEST_SHARE, stratify=digits.target, random_state=seed
    )
    images = enlarge(digits.images)
    chosen = random.permutation(np.repeat(train, copies))
    first = np.zeros(len(digits.target), dtype=bool)
    shifted = np.empty((len(chosen), idx.SIDE, idx.SIDE), dtype=np.uint8)
    for position, original in enumerate(chosen):
        shift = random.integers(-MAX_SHIFT, MAX_SHIFT + 1, size=2) if first[original] else (0, 0)
        first[original] = True
        shifted[position] = np.roll(images[original], shift, axis=(0, 1))  # the margin is wider than the shift
    labels = digits.target[chosen].astype(np.uint8)
    if shuffle_labels:
        labels = random.permutation(labels)
    return {
        idx.images_name("train"): idx.encode_images(shifted.tobytes()),
        idx.labels_name("train"): idx.encode_labels(labels.tobytes()),
        idx.images_name("test"): idx.encode_images(images[test].tobytes()),
        idx.labels_name("test"): idx.encode_labels(digits.target[test].astype(np.uint8).tobytes()),
    }


def enlarge(images: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Enlarge 8x8 images of 0…16 to 20x20 of 0…255 and centre them in 28x28."""
    return enlarge_digits(images, GLYPH, idx.SIDE)
