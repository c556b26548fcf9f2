# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Handwritten digits in random colours, as CIFAR-10's files, for machines that cannot download it."""

from __future__ import annotations

from typing import Any

import numpy as np
import records
from kit.stand_in.digits import enlarge
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

GLYPH = 24  # pixels: the margin is as wide as the usual random crop is shifted
TRAIN_IMAGES, TEST_IMAGES = 1280, 320
BACKGROUND, INK = (0, 96), (160, 256)  # of each channel; the upper bounds are excluded


def make(seed: int, shuffle_labels: bool = False) -> dict[str, bytes]:
    """Return the seven files, of originals that are all different, and so none is in both sets.

    ``shuffle_labels`` breaks the tie between training images and labels: what learns nothing must be seen to fail.
    """
    digits = load_digits()
    random = np.random.default_rng(seed)
    sizes = {"train_size": TRAIN_IMAGES, "test_size": TEST_IMAGES}
    originals = np.arange(len(digits.target))
    train, test = train_test_split(originals, **sizes, stratify=digits.target, random_state=seed)
    images = colour(enlarge(digits.images, GLYPH, records.SIDE), random)
    labels = digits.target.astype(np.uint8)
    if shuffle_labels:
        labels[train] = random.permutation(labels[train])
    made = {records.NAMES: "".join(f"digit {number}\n" for number in range(records.CLASSES)).encode()}
    for split, chosen in {"train": train, "test": test}.items():
        names = records.SPLITS[split]
        for name, part in zip(names, np.array_split(chosen, len(names))):
            made[name] = records.encode(labels[part].tobytes(), images[part].tobytes())
    return made


def colour(images: np.ndarray[Any, Any], random: np.random.Generator) -> np.ndarray[Any, Any]:
    """Turn grey images of 0…255 into red, green and blue: each ink of a light colour, on a dark one."""
    shape = (len(images), 3, 1, 1)
    background, ink = random.integers(*BACKGROUND, size=shape), random.integers(*INK, size=shape)
    return np.rint(background + (ink - background) * (images[:, None] / 255)).astype(np.uint8)
