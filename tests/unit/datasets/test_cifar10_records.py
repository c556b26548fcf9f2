# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""CIFAR-10's file format: what is written is read back, and nothing damaged passes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.conftest import ROOT
from tests.unit.scripts import load

records = load(ROOT / "files/datasets/cifar10/records.py")
LABELS = bytes(range(10))
PICTURE = bytes(range(256)) * 12


def contents() -> dict[str, bytes]:
    """Seven sound files: ten images in each batch, one of each class."""
    names = b"".join(b"class %d\n" % number for number in LABELS) + b"\n"
    return {name: records.encode(LABELS, PICTURE * 10) for name in records.FILES if name != records.NAMES} | {
        records.NAMES: names
    }


def test_sound_files_are_counted() -> None:
    assert records.check(contents()) == {"train": 50, "test": 10}


def test_files_on_disk_are_counted_too(tmp_path: Path) -> None:
    for name, content in contents().items():
        (tmp_path / name).write_bytes(content)
    assert records.check({name: tmp_path / name for name in records.FILES}) == {"train": 50, "test": 10}


def test_a_record_is_a_label_and_then_the_pixels() -> None:
    encoded = records.encode(b"\x03\x09", PICTURE + PICTURE[::-1])
    assert encoded == b"\x03" + PICTURE + b"\x09" + PICTURE[::-1]
    assert records.read_labels("x", encoded) == b"\x03\x09"
    assert records.RECORD == 3073
    assert records.FILES == (
        "data_batch_1.bin",
        "data_batch_2.bin",
        "data_batch_3.bin",
        "data_batch_4.bin",
        "data_batch_5.bin",
        "test_batch.bin",
        "batches.meta.txt",
    )


SOUND = records.encode(LABELS, PICTURE * 10)


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        ("data_batch_1.bin", b"", "0 bytes, expected whole records of 3073"),
        ("data_batch_5.bin", SOUND[:-1], "30729 bytes, expected whole records"),
        ("test_batch.bin", SOUND + b"x", "30731 bytes, expected whole records"),
        ("data_batch_2.bin", b"<!DOCTYPE html>" * 99, "1485 bytes, expected whole records"),
        ("data_batch_2.bin", SOUND + b"\x0a" + PICTURE, "the label of image 11 is 10, expected 0 to 9"),
        ("data_batch_3.bin", b"\x80" + SOUND[1:], "the label of image 1 is 128"),
        ("data_batch_4.bin", bytes(30730), "in 10 of 10 images all pixels are equal, at most 1%"),
        ("data_batch_4.bin", records.encode(LABELS, b"\x07" * 30720), "in 10 of 10 images"),
        ("data_batch_4.bin", SOUND + bytes(3073), "in 1 of 11 images"),
        ("test_batch.bin", SOUND[:3073] * 10, "no image of class 1, expected all of 10 classes"),
        ("batches.meta.txt", b"", "0 lines, expected the names of 10 classes"),
        ("batches.meta.txt", b"x\n" * 11, "11 lines, expected the names"),
    ],
)
def test_a_damaged_file_is_named_with_its_fault(name: str, content: bytes, told: str) -> None:
    with pytest.raises(records.RecordsError, match=told) as error:
        records.check({**contents(), name: content})
    assert name in str(error.value)


def test_a_class_that_no_training_image_has_is_told() -> None:
    without = records.encode(LABELS[:9], PICTURE * 9)
    spoiled = {**contents(), **dict.fromkeys(records.SPLITS["train"], without)}
    with pytest.raises(records.RecordsError, match=r"data_batch_1\.bin, .*: no image of class 9"):
        records.check(spoiled)


def test_a_class_may_be_missing_in_one_training_batch() -> None:
    without = records.encode(LABELS[:9], PICTURE * 9)
    assert records.check({**contents(), "data_batch_1.bin": without}) == {"train": 49, "test": 10}


def test_a_few_images_of_one_colour_are_the_datasets_own() -> None:
    assert len(records.read_labels("x", SOUND * 10 + bytes(3073))) == 101


def test_a_file_that_is_far_too_large_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "large").write_bytes(SOUND)
    monkeypatch.setattr(records, "MAX_BYTES", len(SOUND) - 1)
    with pytest.raises(records.RecordsError, match=r"test_batch\.bin: more than 30729 bytes"):
        records.check({**contents(), "test_batch.bin": tmp_path / "large"})
