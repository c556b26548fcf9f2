# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# ruff: noqa: PT009 - unittest, for pytest is not in the runtime
"""The stand-in for CIFAR-10, made from scikit-learn's own digits.

PYTHONPATH=files:files/datasets/cifar10 PYTHON -m unittest discover -s tests/workloads/standin -p 'check_col*.py'
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import coloured_digits
import numpy as np
import records

SEED = 0


def batches(contents: dict[str, bytes], split: str) -> np.ndarray:
    """Return a split's records, a row each."""
    content = b"".join(contents[name] for name in records.SPLITS[split])
    return np.frombuffer(content, dtype=np.uint8).reshape(-1, records.RECORD)


def pictures(contents: dict[str, bytes], split: str) -> np.ndarray:
    """Return a split's images."""
    return batches(contents, split)[:, 1:].reshape(-1, 3, records.SIDE, records.SIDE)


def glyphs(images: np.ndarray) -> np.ndarray:
    """Return the images without their colours: from 0, the background, to 1, the ink at its strongest."""
    grey = images.astype(float).sum(axis=1)
    background = grey[:, :1, :1]
    return (grey - background) / (grey.max(axis=(1, 2), keepdims=True) - background)


class ColouredDigits(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        cls.contents = coloured_digits.make(SEED)

    def test_it_is_in_cifar10s_format(self) -> None:
        self.assertEqual(records.check(self.contents), {"train": 1280, "test": 320})
        sizes = {len(self.contents[name]) // records.RECORD for name in records.SPLITS["train"]}
        self.assertEqual(sizes, {256})

    def test_all_originals_differ_and_so_none_is_in_both_sets(self) -> None:
        seen = [np.rint(glyphs(pictures(self.contents, split)) * 16) for split in ("train", "test")]
        different = {glyph.tobytes() for glyph in np.concatenate(seen)}
        self.assertEqual(len(different), 1600)

    def test_ink_is_lighter_than_its_ground_and_leaves_the_margin_free(self) -> None:
        images = pictures(self.contents, "test")
        ground = images[:, :, :1, :1]
        margin = (records.SIDE - coloured_digits.GLYPH) // 2
        inside = np.zeros((records.SIDE, records.SIDE), dtype=bool)
        inside[margin:-margin, margin:-margin] = True
        self.assertTrue((images[:, :, ~inside] == ground[:, :, 0]).all())
        self.assertGreaterEqual((images.max(axis=(2, 3)).astype(int) - ground[:, :, 0, 0]).min(), 60)

    def test_colours_say_nothing_of_the_class(self) -> None:
        labels, images = batches(self.contents, "train")[:, 0], pictures(self.contents, "train")
        for colours in (images[:, :, 0, 0], images.max(axis=(2, 3))):
            means = np.array([colours[labels == number].mean(axis=0) for number in range(records.CLASSES)])
            error = colours.std(axis=0) / np.sqrt(len(labels) / records.CLASSES)
            self.assertLess(np.abs((means - colours.mean(axis=0)) / error).max(), 4)

    def test_a_seed_repeats_and_another_differs(self) -> None:
        self.assertEqual(coloured_digits.make(SEED), self.contents)
        self.assertNotEqual(coloured_digits.make(SEED + 1), self.contents)

    def test_shuffled_labels_are_the_same_labels_on_other_images(self) -> None:
        shuffled = coloured_digits.make(SEED, shuffle_labels=True)
        self.assertEqual(shuffled["test_batch.bin"], self.contents["test_batch.bin"])
        before, after = batches(self.contents, "train"), batches(shuffled, "train")
        self.assertTrue((before[:, 1:] == after[:, 1:]).all())
        self.assertEqual(np.bincount(before[:, 0]).tolist(), np.bincount(after[:, 0]).tolist())
        self.assertLess((before[:, 0] == after[:, 0]).mean(), 0.15)

    def test_it_is_staged_by_the_command_line(self) -> None:
        script = str(Path(coloured_digits.__file__).with_name("stage.py"))
        with tempfile.TemporaryDirectory() as scratch:
            command = [sys.executable, script, "--target", f"{scratch}/ci'far; 10", "--source", "stand-in"]
            answers = []
            for further in ([], [], ["--shuffle-labels"]):
                done = subprocess.run([*command, *further], capture_output=True, text=True, check=False)
                self.assertEqual((done.returncode, done.stderr), (0, ""))
                answers.append(json.loads(done.stdout))
        self.assertEqual([answer["changed"] for answer in answers], [True, False, True])
        self.assertEqual((answers[0]["train"], answers[0]["test"]), (1280, 320))


if __name__ == "__main__":
    unittest.main()
