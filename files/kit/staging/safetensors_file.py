# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Read the header of a safetensors file and compare it with the file: complete, truncated, or something else.

The format: 8 bytes with the header's length, a header in JSON (name → dtype, shape, first and last offset), the data.
"""

from __future__ import annotations

import math
import os
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kit import strict_json
from kit.errors import KitError
from kit.staging.content import refuse_lookalike

MAX_HEADER = 100_000_000  # bytes, the format's own bound
# Bits of one element.
BITS = {
    **dict.fromkeys(("F4",), 4),
    **dict.fromkeys(("F6_E2M3", "F6_E3M2"), 6),
    **dict.fromkeys(("BOOL", "U8", "I8", "F8_E4M3", "F8_E5M2", "F8_E8M0", "F8_E4M3FNUZ", "F8_E5M2FNUZ"), 8),
    **dict.fromkeys(("U16", "I16", "F16", "BF16"), 16),
    **dict.fromkeys(("U32", "I32", "F32"), 32),
    **dict.fromkeys(("U64", "I64", "F64", "C64"), 64),
}


@dataclass(frozen=True)
class Header:
    """The content of a safetensors file according to its header."""

    tensors: dict[str, tuple[int, ...]]  # name → shape
    data_bytes: int

    @property
    def parameters(self) -> int:
        """The number of elements in all tensors."""
        return sum(math.prod(shape) for shape in self.tensors.values())


def read_header(path: Path) -> Header:
    """Return the header of a file whose length matches it. Raise KitError with the file and the difference."""
    head = refuse_lookalike(path)
    try:
        size = os.stat(path).st_size
        length = _header_length(path.name, head, size)
        with open(path, "rb") as stream:
            stream.seek(8)
            text = stream.read(length)
    except OSError as error:
        raise KitError(f"{path.name}: cannot be read: {error.strerror}") from error
    header = _parse(path.name, text)
    _compare(path.name, 8 + length + header.data_bytes, size)
    return header


def _header_length(name: str, head: bytes, size: int) -> int:
    """Return the header's length in bytes."""
    if len(head) < 8:
        raise KitError(f"{name} has {size} bytes, too few for a safetensors file: it is truncated, fetch it again")
    (length,) = struct.unpack("<Q", head[:8])
    if length > MAX_HEADER or head[8:9] not in (b"{", b""):
        raise KitError(f"{name} is not a safetensors file: it does not begin with the length of a header and a header")
    _compare(name, 8 + length, size, exactly=False)
    return int(length)


def _compare(name: str, expected: int, size: int, exactly: bool = True) -> None:
    """Compare the length in bytes from the header with the file's."""
    if size < expected:
        raise KitError(f"{name} has {size} bytes, its header says {expected}: it is truncated, fetch it again")
    if exactly and size > expected:
        raise KitError(f"{name} has {size} bytes, its header says {expected}: it is damaged, fetch it again")


def _parse(name: str, text: bytes) -> Header:
    """Return the header if every tensor's shape matches its offsets. Raise KitError."""
    try:
        document = strict_json.parse(text)
        entries = {key: value for key, value in document.items() if key != "__metadata__"}
        tensors = {key: tuple(value["shape"]) for key, value in entries.items()}
        places = sorted((_place(key, value), key) for key, value in entries.items())
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise KitError(f"{name}: the header of this safetensors file is damaged: {error}") from error
    end = 0
    for (first, last), key in places:
        if first != end:
            raise KitError(f"{name}: tensor {key!r} begins at byte {first} of the data, expected {end}")
        end = last
    if not tensors:
        raise KitError(f"{name} has no tensors")
    return Header(tensors, end)


def _place(key: str, entry: dict[str, Any]) -> tuple[int, int]:
    """Return a tensor's offsets. Raise ValueError if they do not match its shape."""
    first, last = entry["data_offsets"]
    numbers = (first, last, *entry["shape"])
    if any(not isinstance(number, int) or isinstance(number, bool) or number < 0 for number in numbers):
        raise ValueError(f"tensor {key!r} has an invalid shape or offset")
    if entry["dtype"] not in BITS:
        raise ValueError(f"tensor {key!r} has the unknown type {entry['dtype']!r}")
    expected = math.prod(entry["shape"]) * BITS[entry["dtype"]]
    if (last - first) * 8 != expected:
        raise ValueError(f"tensor {key!r} has {last - first} bytes of data, its shape needs {expected / 8:g}")
    return first, last
