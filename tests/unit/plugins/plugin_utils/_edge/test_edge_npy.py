# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Arrays of float32 without NumPy, and how many answers are near others."""

from __future__ import annotations

import struct
import typing as t

import pytest
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._edge import npy

from tests.unit.plugins.plugin_utils._edge import made_edge


def test_an_array_is_read() -> None:
    found = npy.parse(made_edge.npy([0, 1.5, -2, 3], (2, 2)))
    assert found.shape == (2, 2)
    assert list(found.values) == [0, 1.5, -2, 3]


def test_later_versions_have_a_longer_header() -> None:
    whole = made_edge.npy([1, 2], (2,))
    header = whole[10 : 10 + int.from_bytes(whole[8:10], "little")]
    for version in (2, 3):
        content = b"\x93NUMPY" + bytes([version, 0]) + struct.pack("<I", len(header)) + header + made_edge.raw([1, 2])
        assert list(npy.parse(content).values) == [1, 2]


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "not a .npy file"),
        (b"PK" + b"\0" * 20, "not a .npy file"),
        (made_edge.npy([1], (1,)).replace(b"NUMPY", b"NUMPX"), "not a .npy file"),
        (b"\x93NUMPY", "not a .npy file"),
        (b"\x93NUMPY\x01\x00\x01\x00 ", "not a .npy file"),
        (b"\x93NUMPY\x01\x00\x02\x00{}", "its header cannot be read"),
        (b"\x93NUMPY\x09\x00" + b"\0" * 20, "not a .npy file"),
        (made_edge.npy([1], (1,))[:40], "cut off"),
        (b"\x93NUMPY\x02\x00" + struct.pack("<I", 1 << 30) + b"{}", "cut off"),
        (made_edge.npy([1], (1,))[:-1], "3 bytes; expected 4"),
        (made_edge.npy([1, 2], (1,)), "8 bytes; expected 4"),
        (made_edge.npy([1], (1,), kind="<f8"), "'<f8'; expected '<f4'"),
        (made_edge.npy([1], (1,), kind=">f4"), "'>f4'; expected"),
        (made_edge.npy([1], (1,), kind="|O"), "'|O'; expected"),
        (made_edge.npy([1], (1,), order="True"), "in Fortran order"),
        (made_edge.npy([1], (-1,)), "expected whole numbers"),
        (made_edge.npy([1], (1,)).replace(b"'shape'", b"'shapp'"), "its header cannot be read"),
        (made_edge.npy([1], (1,)).replace(b"(1,)", b"f(1)"), "its header cannot be read"),
        (made_edge.npy([], (10**9,)), "at most"),
    ],
)
def test_anything_else_is_told(content: bytes, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        npy.parse(content)


@pytest.mark.parametrize("shape", [None, "8", [8.0], [True], {"a": 1}, 8, [8, -1]])
def test_a_shape_is_of_whole_numbers(shape: t.Any) -> None:
    with pytest.raises(ValueError, match="expected whole numbers"):
        npy.floats(made_edge.raw([1.0] * 8), shape)


def with_header(length: int) -> bytes:
    header = b"{'descr': '<f4', 'fortran_order': False, 'shape': (1,)}"
    content = b"\x93NUMPY\x02\x00" + struct.pack("<I", length)
    return content + header + b" " * (length - len(header)) + made_edge.raw([1])


def test_a_header_has_a_bounded_length() -> None:
    assert list(npy.parse(with_header(npy.MAX_HEADER)).values) == [1]
    with pytest.raises(ValueError, match="cut off"):
        npy.parse(with_header(npy.MAX_HEADER + 1))


def test_so_many_values_are_read_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(npy, "MAX_VALUES", 4)
    assert list(npy.floats(made_edge.raw(range(4)), [2, 2]).values) == [0, 1, 2, 3]
    with pytest.raises(ValueError, match="it has 6 values; at most 4 are read"):
        npy.floats(made_edge.raw(range(6)), [3, 2])


def test_the_largest_array_is_read_whole() -> None:
    assert npy.MAX_BYTES == 12 + 10_000 + 4 * 5_000_000


def test_bytes_are_in_the_order_of_the_file_on_every_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    assert list(npy.floats(struct.pack("<f", 1.5), (1,)).values) == [1.5]
    monkeypatch.setattr(npy.sys, "byteorder", {"little": "big", "big": "little"}[npy.sys.byteorder])
    assert list(npy.floats(struct.pack(">f", 1.5), (1,)).values) == [1.5]


def floats(*values: float, shape: tuple[int, ...] | None = None) -> npy.Floats:
    return npy.floats(made_edge.raw(values), (len(values), 1) if shape is None else shape)


TRUTH = floats(-1, 1, -1, 1)  # of deviation 1


@pytest.mark.parametrize(
    ("answers", "share"),
    [
        ((-1, 1, -1, 1), 1.0),
        ((-1.015625, 1.015625, -1, 1), 1.0),
        ((-1.03125, 1, -1, 1), 0.75),
        ((1, -1, 1, -1), 0.0),
        ((float("nan"), 1, -1, 1), 0.75),
        ((float("inf"), 1, -1, 1), 0.75),
    ],
)
def test_the_share_of_answers_that_are_near(answers: tuple[float, ...], share: float) -> None:
    assert npy.near(floats(*answers), TRUTH, 0.02) == share


def test_near_is_a_share_of_the_deviation_that_itself_included() -> None:
    assert npy.near(floats(-1.015625, 1.015625), floats(-1, 1), 0.015625) == 1.0
    assert npy.near(floats(-2.03125, 2.03125), floats(-2, 2), 0.015625) == 1.0
    assert npy.near(floats(-2.046875, 2), floats(-2, 2), 0.015625) == 0.5


def test_all_values_of_an_answer_must_be_near() -> None:
    truth = floats(-1, 1, 1, -1, shape=(2, 2))
    assert npy.near(floats(-1, 2, 1, -1, shape=(2, 2)), truth, 0.02) == 0.5
    assert npy.near(floats(-2, 2, 1, -1, shape=(2, 2)), truth, 0.02) == 0.5


def test_each_value_is_near_by_the_deviation_of_its_place() -> None:
    truth = floats(-1000, -1, 1000, 1, shape=(2, 2))
    assert npy.near(floats(-1000, 1, 1000, -1, shape=(2, 2)), truth, 0.02) == 0.0
    assert npy.near(floats(-990, -1, 1000, 1, shape=(2, 2)), truth, 0.02) == 1.0
    assert npy.near(floats(-1000, -1, 1000, 1.03125, shape=(2, 2)), truth, 0.02) == 0.5


@pytest.mark.parametrize(
    ("answers", "truth", "says"),
    [
        (floats(1, 2), TRUTH, r"shape \(2, 1\); expected \(4, 1\)"),
        (floats(-1, 1, -1, 1, shape=(2, 2)), TRUTH, "shape"),
        (floats(shape=(0, 1)), floats(shape=(0, 1)), "there are no answers"),
        (floats(1, 1), floats(1, 1), "all the same in place 0"),
        (floats(1, 5, 2, 5, shape=(2, 2)), floats(1, 5, 2, 5, shape=(2, 2)), "all the same in place 1"),
        (floats(1, shape=()), floats(1, shape=()), "all the same"),
        (floats(1, 2), floats(1, float("nan")), "not finite"),
        (floats(1, 2), floats(1, float("inf")), "not finite"),
    ],
)
def test_where_there_is_no_share_it_is_told(answers: npy.Floats, truth: npy.Floats, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        npy.near(answers, truth, 0.02)
