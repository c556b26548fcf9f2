# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""MNIST's IDX format: written and checked with the standard library alone."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from pathlib import Path

IMAGES_MAGIC, LABELS_MAGIC = 2051, 2049
SIDE = 28  # pixels
CLASSES = 10
SPLITS = {"train": "train", "test": "t10k"}  # split → the prefix of its two files


class IdxError(ValueError):
    """A file that is not what MNIST's loader expects."""


def images_name(split: str) -> str:
    """Return the name of a split's image file."""
    return f"{SPLITS[split]}-images-idx3-ubyte"


def labels_name(split: str) -> str:
    """Return the name of a split's label file."""
    return f"{SPLITS[split]}-labels-idx1-ubyte"


FILES = tuple(name(split) for split in SPLITS for name in (images_name, labels_name))


def encode_images(pixels: bytes) -> bytes:
    """Return an image file of 28x28 unsigned bytes an image."""
    return struct.pack(">4i", IMAGES_MAGIC, len(pixels) // SIDE**2, SIDE, SIDE) + pixels


def encode_labels(labels: bytes) -> bytes:
    """Return a label file."""
    return struct.pack(">2i", LABELS_MAGIC, len(labels)) + labels


def count_images(name: str, content: bytes) -> int:
    """Check an image file and return how many images it holds."""
    magic, count, rows, columns = _header(name, content, 4)
    if magic != IMAGES_MAGIC:
        raise IdxError(f"{name}: magic number {magic}, expected {IMAGES_MAGIC}")
    if (rows, columns) != (SIDE, SIDE):
        raise IdxError(f"{name}: images of {rows}x{columns} pixels, expected {SIDE}x{SIDE}")
    _check_length(name, content, 16, count * SIDE**2)
    if not any(content[16:]):
        raise IdxError(f"{name}: every pixel is zero")
    return count


def count_labels(name: str, content: bytes) -> int:
    """Check a label file and return how many labels it holds."""
    magic, count = _header(name, content, 2)
    if magic != LABELS_MAGIC:
        raise IdxError(f"{name}: magic number {magic}, expected {LABELS_MAGIC}")
    _check_length(name, content, 8, count)
    found = set(content[8:])
    if found != set(range(CLASSES)):
        raise IdxError(f"{name}: labels are {sorted(found)[:12]}, expected every digit from 0 to 9 and nothing else")
    return count


def check(contents: Mapping[str, bytes]) -> dict[str, int]:
    """Check the four files; return the number of images of each split. IdxError names the file and the fault."""
    counts = {}
    for split in SPLITS:
        images = count_images(images_name(split), contents[images_name(split)])
        labels = count_labels(labels_name(split), contents[labels_name(split)])
        if images != labels:
            raise IdxError(f"{split}: {images} images but {labels} labels")
        counts[split] = images
    return counts


def read(folder: Path) -> dict[str, bytes]:
    """Read the four files of a folder; OSError where one is missing."""
    return {name: (folder / name).read_bytes() for name in FILES}


def _header(name: str, content: bytes, numbers: int) -> tuple[int, ...]:
    if len(content) < 4 * numbers:
        raise IdxError(f"{name}: {len(content)} bytes are too few for a header")
    return struct.unpack(f">{numbers}i", content[: 4 * numbers])


def _check_length(name: str, content: bytes, header: int, expected: int) -> None:
    if expected <= 0 or len(content) - header != expected:
        raise IdxError(f"{name}: {len(content) - header} bytes of data, the header promises {expected}")
