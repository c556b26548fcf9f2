# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Write tokens into shards of limited size, with their checksums."""

from __future__ import annotations

import hashlib
import os
import shutil
from pathlib import Path
from typing import Any, BinaryIO

from kit.errors import KitError
from kit.pretraining import crc32c
from kit.pretraining.manifest import BYTES, MAX_SHARD, Shard, shard_name

BLOCK = 4_000_000  # bytes that are written and hashed together


def require_space(folder: Path, needed: int) -> None:
    """Raise KitError if fewer bytes are free where the folder is."""
    free = shutil.disk_usage(folder).free
    if needed > free:
        raise KitError(f"{folder}: no space: the shards need {needed} bytes, {free} are free")


class Writer:
    """The shards of one split, written in order."""

    def __init__(self, folder: Path, split: str, dtype: str, limit: int = MAX_SHARD) -> None:
        """Write into ``folder`` shards of at most ``limit`` bytes."""
        self._width = BYTES[dtype]
        if not self._width <= limit <= MAX_SHARD:
            raise KitError(f"shards of {limit} bytes: expected {self._width} to {MAX_SHARD}")
        self._folder, self._split = folder, split
        self._limit = limit - limit % self._width
        self._shards: list[Shard] = []
        self._open: _Open | None = None

    def write(self, content: bytes | memoryview) -> None:
        """Add tokens, as the bytes of whole little-endian numbers of the split's type."""
        rest = memoryview(content).cast("B")
        if len(rest) % self._width:
            raise ValueError(f"{len(rest)} bytes are not whole tokens of {self._width}")
        while rest:
            if self._open is None:
                self._open = _Open(self._folder / shard_name(self._split, len(self._shards)))
            part = rest[: min(self._limit - self._open.size, BLOCK)]
            self._open.write(part)
            rest = rest[len(part) :]
            if self._open.size == self._limit:
                self._finish(self._open)

    def close(self) -> tuple[Shard, ...]:
        """Finish the last shard and return all of them."""
        if self._open is not None:
            self._finish(self._open)
        return tuple(self._shards)

    def _finish(self, shard: _Open) -> None:
        self._shards.append(shard.close(self._width))
        self._open = None


class _Open:
    """A shard that is being written."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._stream: BinaryIO = open(path, "wb")  # noqa: SIM115 - closed by close()
        self._sha256, self._crc32c = hashlib.sha256(), crc32c.checksum()
        self.size = 0

    def write(self, content: Any) -> None:
        self._stream.write(content)
        self._sha256.update(content)
        self._crc32c.update(bytes(content))
        self.size += len(content)

    def close(self, width: int) -> Shard:
        with self._stream as stream:
            stream.flush()
            os.fsync(stream.fileno())
        checksum = crc32c.text(self._crc32c)
        return Shard(self._path.name, self.size // width, self.size, self._sha256.hexdigest(), checksum)
