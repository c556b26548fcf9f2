# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tokens in *.npz files, each with an array `input_ids` of whole numbers in one or two dimensions.

The array is read in pieces, so that a file may be larger than the memory; nothing is unpickled.
"""

from __future__ import annotations

import math
import tokenize
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy

from kit.errors import KitError
from kit.pretraining.converter import Blocks, Source
from kit.pretraining.manifest import dtype_for
from kit.pretraining.tokens import outside

ARRAY = "input_ids"
PIECE = 1 << 22  # numbers that are read at once
MAX_FILES = 200_000


def sources(folder: Path) -> list[Source]:
    """Return the folder's files, by name, each with the number of tokens in its header. Raise KitError."""
    paths = sorted(path for path in folder.glob("*.npz") if not path.name.startswith("."))
    if not paths:
        raise KitError(f"{folder} has no *.npz files")
    if len(paths) > MAX_FILES:
        raise KitError(f"{folder} has {len(paths)} *.npz files, expected at most {MAX_FILES}")
    found = [_source(path) for path in paths]
    if not any(each.tokens for each in found):
        raise KitError(f"{folder}: the *.npz files hold no tokens")
    return found


def _source(path: Path) -> Source:
    with _opened(path) as (_stream, count, _dtype):
        return Source(str(path), count, lambda dtype, vocab: _blocks(path, dtype, vocab))


def _blocks(path: Path, dtype: str, vocab: int) -> Blocks:
    """Yield a file's tokens in ``dtype``. Raise KitError naming file and position of a token not in the vocabulary."""
    if dtype != dtype_for(vocab):
        raise ValueError(f"{dtype} for a vocabulary of {vocab}")
    with _opened(path) as (stream, count, found):
        for first in range(0, count, PIECE):
            wanted = min(PIECE, count - first)
            content = stream.read(wanted * found.itemsize)
            if len(content) != wanted * found.itemsize:
                raise KitError(f"{path}: {ARRAY} ends early: it is damaged")
            piece = numpy.frombuffer(content, found)
            least, most = int(piece.min()), int(piece.max())
            if least < 0 or most >= vocab:
                at = int(numpy.flatnonzero((piece < 0) | (piece >= vocab))[0])
                raise outside(str(path), first + at, int(piece[at]), vocab)
            yield piece.astype(dtype).tobytes(), most
        if stream.read(1):  # zipfile compares its checksum at the end
            raise KitError(f"{path}: {ARRAY} holds more than its header says: it is damaged")


@contextmanager
def _opened(path: Path) -> Iterator[tuple[IO[bytes], int, Any]]:
    """Provide the stream of the array's numbers, how many there are, and their type. Raise KitError."""
    try:
        with zipfile.ZipFile(path) as archive:
            if f"{ARRAY}.npy" not in archive.namelist():
                names = ", ".join(sorted(archive.namelist())[:5]) or "nothing"
                raise KitError(f"{path} has no array {ARRAY}: it holds {names}")
            with archive.open(f"{ARRAY}.npy") as stream:
                yield (stream, *_header(path, stream))
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, NotImplementedError, RuntimeError) as error:
        raise KitError(f"{path}: this npz file is damaged or cannot be read: {error}") from error


def _header(path: Path, stream: IO[bytes]) -> tuple[int, Any]:
    """Return the number of numbers and their type from the header of a .npy file."""
    try:
        version = numpy.lib.format.read_magic(stream)
        read = {(1, 0): numpy.lib.format.read_array_header_1_0, (2, 0): numpy.lib.format.read_array_header_2_0}[version]
        shape, by_columns, dtype = read(stream)
    except (ValueError, KeyError, tokenize.TokenError) as error:
        raise KitError(f"{path}: {ARRAY} is not an array of NumPy's: {error}") from error
    if dtype.kind not in "iu":
        raise KitError(f"{path}: {ARRAY} holds {dtype}, expected whole numbers")
    if len(shape) not in (1, 2):
        raise KitError(f"{path}: {ARRAY} has {len(shape)} dimensions, expected 1 or 2")
    if min(shape) < 0:
        raise KitError(f"{path}: {ARRAY} has the shape {shape}: it is damaged")
    if by_columns and min(shape) > 1:
        raise KitError(f"{path}: {ARRAY} is stored by columns; save numpy.ascontiguousarray of it")
    return math.prod(shape), dtype
