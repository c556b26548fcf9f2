# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The files of CIFAR-10's binary version: written and checked with the standard library alone.

A batch is records of 3,073 bytes: the label, then 1,024 red, 1,024 green and 1,024 blue pixels, row by row.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

SIDE = 32  # pixels
PIXELS = 3 * SIDE**2  # bytes of an image
RECORD = 1 + PIXELS
CLASSES = 10
SPLITS = {"train": tuple(f"data_batch_{number}.bin" for number in range(1, 6)), "test": ("test_batch.bin",)}
NAMES = "batches.meta.txt"  # of the classes
FILES = (*SPLITS["train"], *SPLITS["test"], NAMES)
MAX_BYTES = 64 << 20  # of one file; the largest of CIFAR-10's has 30,730,000
MAX_BLANK = 0.01  # of a file's images; more, and something is missing in it


class RecordsError(ValueError):
    """A file that is not what CIFAR-10's readers expect."""


def encode(labels: bytes, pixels: bytes) -> bytes:
    """Return a batch of these labels and as many images."""
    images = (pixels[start : start + PIXELS] for start in range(0, len(pixels), PIXELS))
    return b"".join(bytes([label]) + image for label, image in zip(labels, images))


def read_labels(name: str, content: bytes) -> bytes:
    """Check a batch and return its labels. RecordsError names the file and the fault."""
    if not content or len(content) % RECORD:
        raise RecordsError(f"{name}: {len(content)} bytes, expected whole records of {RECORD}")
    labels = content[::RECORD]
    if max(labels) >= CLASSES:
        number = next(number for number, label in enumerate(labels) if label >= CLASSES)
        raise RecordsError(f"{name}: the label of image {number + 1} is {labels[number]}, expected 0 to {CLASSES - 1}")
    blank = sum(_is_blank(content, start) for start in range(1, len(content), RECORD))
    if blank > MAX_BLANK * len(labels):
        raise RecordsError(
            f"{name}: in {blank} of {len(labels)} images all pixels are equal, at most {MAX_BLANK:.0%} may be so"
        )
    return labels


def _is_blank(content: bytes, start: int) -> bool:
    """Tell whether all pixels of the image at ``start`` are equal."""
    return content.count(content[start], start, start + PIXELS) == PIXELS


def check_names(name: str, content: bytes) -> None:
    """Check the file of the classes' names; RecordsError."""
    found = sum(bool(line.strip()) for line in content.splitlines())
    if found != CLASSES:
        raise RecordsError(f"{name}: {found} lines, expected the names of {CLASSES} classes")


def check(contents: Mapping[str, bytes | Path]) -> dict[str, int]:
    """Check the seven files, one in memory at a time; return the number of images of each split.

    RecordsError names the file and the fault; OSError where one cannot be read.
    """
    check_names(NAMES, _read(NAMES, contents[NAMES]))
    counts = {}
    for split, names in SPLITS.items():
        labels = b"".join(read_labels(name, _read(name, contents[name])) for name in names)
        missing = sorted(set(range(CLASSES)) - set(labels))
        if missing:
            raise RecordsError(f"{', '.join(names)}: no image of class {missing[0]}, expected all of {CLASSES} classes")
        counts[split] = len(labels)
    return counts


def _read(name: str, content: bytes | Path) -> bytes:
    """Return a file's content; RecordsError where it is larger than any of CIFAR-10."""
    if isinstance(content, bytes):
        return content
    with open(content, "rb") as stream:
        read = stream.read(MAX_BYTES + 1)
    if len(read) > MAX_BYTES:
        raise RecordsError(f"{name}: more than {MAX_BYTES} bytes, no file of CIFAR-10 has as many")
    return read
