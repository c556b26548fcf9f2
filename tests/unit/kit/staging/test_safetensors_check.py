# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A safetensors file is whole, or is named for what it is."""

from __future__ import annotations

import struct
import typing as t
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kit.errors import KitError
from kit.staging.safetensors_file import MAX_HEADER, read_header

from tests.unit.kit.model_files import HTML_PAGE, LFS_POINTER, SHAPES, encode, entries, weights


def write(folder: Path, content: bytes) -> Path:
    path = folder / "model.safetensors"
    path.write_bytes(content)
    return path


def test_a_sound_file_is_read(tmp_path: Path) -> None:
    header = read_header(write(tmp_path, weights()))
    assert header.tensors == {name: tuple(shape) for name, shape in SHAPES.items()}
    assert (header.parameters, header.data_bytes) == (44, 88)


def test_tensors_may_be_listed_in_any_order_and_be_empty_or_scalar(tmp_path: Path) -> None:
    header = entries({"a": [2], "b": [], "c": [0, 3]}, "F32")
    assert read_header(write(tmp_path, encode(dict(reversed(header.items()))))).parameters == 3


def changed(name: str = "model.norm.weight", **values: t.Any) -> dict[str, t.Any]:
    header = entries(SHAPES)
    header[name] = {**header[name], **values}
    return header


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"", "an empty file"),
        (LFS_POINTER, "a Git LFS pointer.*git lfs pull"),
        (HTML_PAGE, "an HTML or XML page"),
        (b"\n <html>", "an HTML or XML page"),
        (b"PK\x03\x04" + bytes(100), "a ZIP archive, such as a pickled"),
        (b"\x80\x02}q\x00." + bytes(100), "a pickle"),
        (bytes(4096), "nothing but zero bytes"),
        (weights()[:5], "has 5 bytes, too few.*truncated"),
        (weights()[:8], "has 8 bytes, its header says.*truncated"),
        (weights()[:60], "has 60 bytes, its header says.*truncated, fetch it again"),
        (weights()[:-1], "truncated, fetch it again"),
        (weights() + b"x", "is damaged, fetch it again"),
        (b'{"error": "Invalid credentials"}', "not a safetensors file"),
        (struct.pack("<Q", MAX_HEADER + 1) + b"{" + bytes(100), "not a safetensors file"),
        (struct.pack("<Q", 50) + b"[" + bytes(100), "not a safetensors file"),
        (encode(b"{not json", b""), "header of this safetensors file is damaged"),
        (encode(b'{"a": ' * 60000, b""), "header of this safetensors file is damaged"),
        (encode(b'{"a": {}, "a": {}}', b""), "appears twice"),
        (encode(b'{"a": 1}', b""), "damaged"),
        (encode(b'{"a": {"dtype": "F32", "shape": [1]}}', bytes(4)), "damaged.*data_offsets"),
        (encode(b'{"__metadata__": {}}', b""), "has no tensors"),
        (encode(changed(dtype="F31")), "unknown type 'F31'"),
        (encode(changed(shape=[5])), "'model.norm.weight' has 8 bytes of data, its shape needs 10"),
        (encode(changed(shape=[-4])), "invalid shape or offset"),
        (encode(changed(shape=[True, 4])), "invalid shape or offset"),
        (encode(changed(shape=[2.0, 2])), "invalid shape or offset"),
        (encode(changed(data_offsets=[0, 8])), "begins at byte 0 of the data, expected 8"),
        (encode(changed(data_offsets=[90, 98])), "begins at byte 90 of the data, expected 80"),
        (encode(changed(data_offsets=[80])), "damaged"),
    ],
)
def test_what_is_wrong_is_told(tmp_path: Path, content: bytes, told: str) -> None:
    with pytest.raises(KitError, match=told) as error:
        read_header(write(tmp_path, content))
    assert "model.safetensors" in str(error.value)
    assert len(str(error.value)) < 300


def test_a_header_that_claims_to_be_endless_is_not_read(tmp_path: Path) -> None:
    with pytest.raises(KitError, match="not a safetensors file"):
        read_header(write(tmp_path, struct.pack("<Q", 2**63) + b"{" + bytes(64)))


def test_a_missing_file_is_told(tmp_path: Path) -> None:
    with pytest.raises(KitError, match="cannot be read: No such file"):
        read_header(tmp_path / "model.safetensors")


@given(cut=st.integers(0, len(weights()) - 1))
def test_no_file_that_was_cut_short_passes(tmp_path_factory: pytest.TempPathFactory, cut: int) -> None:
    with pytest.raises(KitError):
        read_header(write(tmp_path_factory.mktemp("cut"), weights()[:cut]))


@given(content=st.binary(max_size=200))
def test_whatever_a_file_holds_the_answer_is_a_kit_error(
    tmp_path_factory: pytest.TempPathFactory, content: bytes
) -> None:
    with pytest.raises(KitError):
        read_header(write(tmp_path_factory.mktemp("any"), content))
