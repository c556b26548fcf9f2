# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Read arrays of float32 as NumPy writes them, by the standard library alone. Pure. PRIVATE to the collection."""

from __future__ import annotations

import ast
import math
import sys
import typing as t
from array import array

MAGIC = b"\x93NUMPY"
MAX_HEADER = 10_000
MAX_VALUES = 5_000_000
MAX_BYTES = 4 * MAX_VALUES + MAX_HEADER + 12


class Floats(t.NamedTuple):
    """An array: its shape, and its values one after the other, the last axis fastest."""

    shape: tuple[int, ...]
    values: array[float]


def parse(content: bytes) -> Floats:
    """Return the array of a .npy file. Raise ValueError for any but float32, little endian, in C order."""
    if content[:6] != MAGIC or len(content) < 12 or content[6] not in (1, 2, 3):
        raise ValueError("it is not a .npy file")
    width = 2 if content[6] == 1 else 4
    begin = 8 + width
    length = int.from_bytes(content[8:begin], "little")
    if length > MAX_HEADER or len(content) < begin + length:
        raise ValueError("its header is cut off")
    try:
        header = ast.literal_eval(content[begin : begin + length].decode("latin-1").strip())
        kind, is_fortran, shape = header["descr"], header["fortran_order"], header["shape"]
    except (ValueError, SyntaxError, KeyError, TypeError, MemoryError, RecursionError) as exc:
        raise ValueError("its header cannot be read") from exc
    if kind != "<f4" or is_fortran is not False:
        raise ValueError(f"it has {kind!r}{' in Fortran order' if is_fortran else ''}; expected '<f4' in C order")
    return floats(content[begin + length :], shape)


def floats(content: bytes, shape: t.Any) -> Floats:
    """Return an array of these bytes, float32 in little endian. Raise ValueError if they are not of this shape."""
    if not isinstance(shape, (tuple, list)) or not all(
        isinstance(size, int) and not isinstance(size, bool) and size >= 0 for size in shape
    ):
        raise ValueError(f"its shape is {str(shape)[:80]}; expected whole numbers")
    wanted = math.prod(shape)
    if wanted > MAX_VALUES:
        raise ValueError(f"it has {wanted} values; at most {MAX_VALUES} are read")
    if len(content) != 4 * wanted:
        raise ValueError(f"it has {len(content)} bytes; expected {4 * wanted} for the shape {tuple(shape)}")
    values = array("f", content)
    if sys.byteorder == "big":
        values.byteswap()
    return Floats(tuple(shape), values)


def near(answers: Floats, truth: Floats, deviations: float) -> float:
    """Return the share of answers whose values are no further from those of `truth` than so many standard deviations.

    An answer is what belongs to one sample; all of its values must be near, each by the deviation of the values in its
    place: one that varies much would hide others. Raise ValueError if there is no such share.
    """
    if answers.shape != truth.shape:
        raise ValueError(f"the answers have the shape {answers.shape}; expected {truth.shape}")
    if not truth.values:
        raise ValueError("there are no answers")
    if not all(map(math.isfinite, truth.values)):
        raise ValueError("some of the cluster's answers are not finite numbers")
    samples = truth.shape[0] if truth.shape else 1
    each = len(truth.values) // samples
    bounds = [deviations * _deviation(truth.values[at::each], at) for at in range(each)]
    far = {
        at // each
        for at, (one, other) in enumerate(zip(answers.values, truth.values))
        if not abs(one - other) <= bounds[at % each]
    }
    return (samples - len(far)) / samples


def _deviation(values: array[float], place: int) -> float:
    """Return the standard deviation of all samples' values in one place. Raise ValueError if there is none."""
    mean = math.fsum(values) / len(values)
    found = math.sqrt(math.fsum((value - mean) ** 2 for value in values) / len(values))
    if not found > 0:
        raise ValueError(f"the cluster's answers are all the same in place {place}")
    return found
