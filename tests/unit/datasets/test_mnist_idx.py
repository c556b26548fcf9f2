# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""MNIST's file format: what is written is read back, and nothing damaged passes."""

from __future__ import annotations

import struct

import idx
import pytest

LABELS = bytes(range(10)) * 2


def contents(count: int = 20) -> dict[str, bytes]:
    """Four sound files."""
    images, labels = idx.encode_images(bytes([7]) * (count * 784)), idx.encode_labels((LABELS * count)[:count])
    return {name: images if "images" in name else labels for name in idx.FILES}


def test_sound_files_are_counted() -> None:
    assert idx.check(contents()) == {"train": 20, "test": 20}


def test_the_header_is_mnists() -> None:
    assert idx.encode_images(bytes(784))[:16] == bytes.fromhex("00000803 00000001 0000001c 0000001c")
    assert idx.encode_labels(b"\x05")[:8] == bytes.fromhex("00000801 00000001")
    assert idx.FILES == (
        "train-images-idx3-ubyte",
        "train-labels-idx1-ubyte",
        "t10k-images-idx3-ubyte",
        "t10k-labels-idx1-ubyte",
    )


def images(
    magic: int = 2051, count: int = 20, rows: int = 28, columns: int = 28, data: bytes = bytes([1]) * 784 * 20
) -> bytes:
    return struct.pack(">4i", magic, count, rows, columns) + data


def labels(magic: int = 2049, count: int = 20, data: bytes = LABELS) -> bytes:
    return struct.pack(">2i", magic, count) + data


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        ("train-images-idx3-ubyte", b"", "too few for a header"),
        ("train-images-idx3-ubyte", b"\x00" * 15, "too few for a header"),
        ("train-images-idx3-ubyte", images(magic=2049), "magic number 2049"),
        ("train-images-idx3-ubyte", b"<!DOCTYPE html>" * 99, "magic number"),
        ("train-images-idx3-ubyte", images()[:-1], "the header promises 15680"),
        ("train-images-idx3-ubyte", images() + b"x", "the header promises"),
        ("train-images-idx3-ubyte", images(count=-1), "the header promises"),
        ("train-images-idx3-ubyte", images(count=0, data=b""), "the header promises 0"),
        ("train-images-idx3-ubyte", images(rows=32, columns=32), "32x32"),
        ("train-images-idx3-ubyte", images(data=bytes(784 * 20)), "every pixel is zero"),
        ("t10k-labels-idx1-ubyte", labels(magic=2051), "magic number 2051"),
        ("t10k-labels-idx1-ubyte", labels()[:-3], "the header promises 20"),
        ("t10k-labels-idx1-ubyte", labels(data=b"\x0a" + LABELS[1:]), "labels are"),
        ("t10k-labels-idx1-ubyte", labels(data=b"\x01" * 20), r"labels are \[1\]"),
        ("t10k-labels-idx1-ubyte", labels(count=10, data=LABELS[:10]), "20 images but 10 labels"),
    ],
)
def test_a_damaged_file_is_named_with_its_fault(name: str, content: bytes, told: str) -> None:
    with pytest.raises(idx.IdxError, match=told) as error:
        idx.check({**contents(), name: content})
    assert name in str(error.value) or "test:" in str(error.value)
