# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# ruff: noqa: PT009 - unittest, for pytest is not in the runtime
"""The stand-in for MNIST, made from scikit-learn's own digits.

PYTHONPATH=files:files/datasets/mnist PYTHON -m unittest discover -s tests/workloads/standin -p 'check_*.py'
"""

from __future__ import annotations

import unittest

import idx
import numpy as np
import stage
import stand_in
from sklearn.datasets import load_digits


def images(contents: dict[str, bytes], split: str) -> np.ndarray:
    """Return a split's images."""
    pixels = np.frombuffer(contents[idx.images_name(split)], dtype=np.uint8, offset=16)
    return pixels.reshape(-1, idx.SIDE, idx.SIDE)


def labels(contents: dict[str, bytes], split: str) -> np.ndarray:
    """Return a split's labels."""
    return np.frombuffer(contents[idx.labels_name(split)], dtype=np.uint8, offset=8)


def glyphs(pictures: np.ndarray) -> set[bytes]:
    """Return the pictures cut to their ink: the same for every shift of one original."""
    found = set()
    for picture in pictures:
        rows, columns = np.nonzero(picture.any(1))[0], np.nonzero(picture.any(0))[0]
        cut = picture[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]
        found.add(bytes(cut.shape) + cut.tobytes())
    return found


class StandIn(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        cls.contents = stand_in.make(copies=stage.COPIES, seed=stage.SEED)

    def test_it_is_in_mnists_format(self) -> None:
        self.assertEqual(idx.check(self.contents), {"train": 1437 * stage.COPIES, "test": 360})

    def test_no_original_is_in_both_sets(self) -> None:
        train, test = (glyphs(images(self.contents, split)) for split in ("train", "test"))
        self.assertEqual((len(train), len(test)), (1437, 360))
        self.assertEqual(train & test, set())

    def test_no_shift_cuts_ink_away(self) -> None:
        ink = stand_in.enlarge(load_digits().images).sum(dtype=np.int64)
        test = images(self.contents, "test").sum(dtype=np.int64)
        self.assertEqual(images(self.contents, "train").sum(dtype=np.int64), (ink - test) * stage.COPIES)

    def test_an_enlarged_digit_fills_mnists_field(self) -> None:
        enlarged = stand_in.enlarge(np.full((1, 8, 8), 16.0))
        self.assertEqual(enlarged[0, 4:24, 4:24].min(), 255)
        self.assertEqual(enlarged.sum(), 255 * 400)

    def test_a_seed_repeats_and_another_differs(self) -> None:
        self.assertEqual(stand_in.make(stage.COPIES, stage.SEED), self.contents)
        self.assertNotEqual(stand_in.make(stage.COPIES, stage.SEED + 1), self.contents)

    def test_shuffled_labels_are_the_same_labels_on_other_images(self) -> None:
        shuffled = stand_in.make(stage.COPIES, stage.SEED, shuffle_labels=True)
        name = idx.labels_name("train")
        self.assertEqual(
            {key: value for key, value in shuffled.items() if key != name}.items() <= self.contents.items(), True
        )
        before, after = labels(self.contents, "train"), labels(shuffled, "train")
        self.assertEqual(np.bincount(before).tolist(), np.bincount(after).tolist())
        self.assertLess((before == after).mean(), 0.15)


if __name__ == "__main__":
    unittest.main()
