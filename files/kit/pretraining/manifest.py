# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a folder of tokens says of itself: manifest.json, which names every shard with its size and checksums."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from kit import strict_json
from kit.errors import KitError
from kit.files import write_atomic

NAME = "manifest.json"
SCHEMA = 1
TRAIN, VALIDATION = "train", "validation"
SPLITS = (TRAIN, VALIDATION)
BYTES = {"<u2": 2, "<u4": 4}  # of a token, by type: little-endian, without sign
MAX_SHARD = 256 << 20  # bytes
MAX_BYTES = 16 << 20  # of the manifest; 10,000 shards have some 2 MB


@dataclass(frozen=True)
class Shard:
    """A file of tokens."""

    name: str
    tokens: int
    bytes: int
    sha256: str
    crc32c: str  # in base64, as Google Cloud Storage states it


@dataclass(frozen=True)
class Manifest:
    """A folder of tokens."""

    dtype: str  # a key of BYTES
    vocab: int  # every token is below
    max_token: int
    splits: Mapping[str, tuple[Shard, ...]]
    entropy: float | None  # nats per token of a stand-in's source: what no model can fall below; None if not known
    source: str
    sha256: str = ""  # of the file that it was read from

    def tokens(self, *splits: str) -> int:
        """Return how many tokens these splits hold; all without names."""
        return sum(shard.tokens for split in splits or SPLITS for shard in self.splits[split])

    @property
    def shards(self) -> tuple[Shard, ...]:
        """All shards, in the order of their splits."""
        return tuple(shard for split in SPLITS for shard in self.splits[split])

    @property
    def bytes(self) -> int:
        """The size of all shards."""
        return sum(shard.bytes for shard in self.shards)

    def document(self) -> dict[str, Any]:
        """Return what manifest.json holds."""
        splits = {
            split: {"tokens": self.tokens(split), "shards": [asdict(shard) for shard in self.splits[split]]}
            for split in SPLITS
        }
        return {
            "schema": SCHEMA,
            "dtype": self.dtype,
            "vocab": self.vocab,
            "max_token": self.max_token,
            "splits": splits,
            "entropy": self.entropy,
            "source": self.source,
        }

    def write(self, folder: Path) -> None:
        """Write manifest.json, after which the folder is whole."""
        text = json.dumps(self.document(), indent=1, allow_nan=False) + "\n"
        write_atomic(folder / NAME, lambda stream: stream.write(text.encode()))


def shard_name(split: str, number: int) -> str:
    """Return the name of a split's shard, counted from 0."""
    return f"{split}-{number:05d}.bin"


def dtype_for(vocab: int) -> str:
    """Return the smallest type that every token below ``vocab`` fits into. Raise KitError if none does."""
    if not 0 < vocab <= 1 << 32:
        raise KitError(f"a vocabulary of {vocab} tokens: expected 1 to {1 << 32}")
    return "<u2" if vocab <= 1 << 16 else "<u4"


def counted(tokens: int, dtype: str) -> str:
    """Return how much space tokens take, in words."""
    return f"{tokens:,} tokens of {BYTES[dtype]} bytes are {tokens * BYTES[dtype] / 1e9:,.1f} GB"


def read(folder: Path) -> Manifest:
    """Return the manifest of a folder of tokens. Raise KitError."""
    path = folder / NAME
    try:
        with open(path, "rb") as stream:
            content = stream.read(MAX_BYTES + 1)
    except OSError as error:
        raise KitError(
            f"{folder} is not a folder of tokens: {NAME} cannot be read: {error.strerror}; "
            "python3 -B -m kit tokens convert makes one"
        ) from error
    return parse(content, str(path))


def parse(content: bytes, where: str) -> Manifest:
    """Return the manifest in ``content``. Raise KitError naming ``where``, the value and what was expected."""
    if len(content) > MAX_BYTES:
        raise KitError(f"{where} has more than {MAX_BYTES} bytes")
    try:
        document = strict_json.parse(content)
    except (ValueError, RecursionError) as error:
        raise KitError(f"{where} is not JSON: {error}") from error
    try:
        manifest = _manifest(document, hashlib.sha256(content).hexdigest())
    except (KeyError, TypeError, AttributeError) as error:
        raise KitError(f"{where} is not a manifest of tokens: {error!r}") from error
    except ValueError as error:
        raise KitError(f"{where}: {error}") from error
    return manifest


def _manifest(document: Any, digest: str) -> Manifest:
    """Return the checked manifest. Raise ValueError for a wrong value, another exception for a wrong form."""
    _expect(document["schema"] == SCHEMA, "schema", document["schema"], str(SCHEMA))
    dtype = document["dtype"]
    _expect(isinstance(dtype, str) and dtype in BYTES, "dtype", dtype, " or ".join(BYTES))
    vocab = _whole(document["vocab"], "vocab", 1)
    max_token = _whole(document["max_token"], "max_token", 0)
    if max_token >= vocab:
        raise ValueError(f"max_token is {max_token}, not below the vocabulary of {vocab}")
    _expect(max_token < 1 << 8 * BYTES[dtype], "max_token", max_token, f"a value that {dtype} can hold")
    entropy = document["entropy"]
    if entropy is not None:
        number = isinstance(entropy, (int, float)) and not isinstance(entropy, bool)
        _expect(number and 0 <= entropy <= math.log(vocab), "entropy", entropy, f"0 to ln {vocab}, or null")
    _expect(isinstance(document["source"], str), "source", document["source"], "a text")
    _expect(set(document["splits"]) == set(SPLITS), "splits", sorted(document["splits"]), " and ".join(SPLITS))
    splits = {split: _split(split, document["splits"][split], BYTES[dtype]) for split in SPLITS}
    return Manifest(dtype, vocab, max_token, splits, entropy, document["source"], digest)


def _split(split: str, document: Any, width: int) -> tuple[Shard, ...]:
    shards = tuple(_shard(split, number, each, width) for number, each in enumerate(document["shards"]))
    held = sum(shard.tokens for shard in shards)
    _expect(document["tokens"] == held, f"{split}.tokens", document["tokens"], f"{held}, the sum of its shards")
    _expect(held > 0, f"{split}.tokens", held, "at least 1")
    return shards


def _shard(split: str, number: int, document: Any, width: int) -> Shard:
    name, where = shard_name(split, number), f"{split}.shards[{number}]"
    _expect(document["name"] == name, f"{where}.name", document["name"], name)
    tokens, size = _whole(document["tokens"], f"{where}.tokens", 1), document["bytes"]
    _expect(size == tokens * width, f"{where}.bytes", size, f"{tokens * width} for {tokens} tokens")
    _expect(size <= MAX_SHARD, f"{where}.bytes", size, f"at most {MAX_SHARD}")
    for key, form in (("sha256", "[0-9a-f]{64}"), ("crc32c", "[A-Za-z0-9+/]{6}==")):
        value = document[key]
        _expect(isinstance(value, str) and bool(re.fullmatch(form, value)), f"{where}.{key}", value, "a checksum")
    return Shard(name, tokens, size, document["sha256"], document["crc32c"])


def _whole(value: Any, what: str, least: int) -> int:
    right = isinstance(value, int) and not isinstance(value, bool) and value >= least
    _expect(right, what, value, f"a whole number from {least}")
    return int(value)


def _expect(right: bool, what: str, value: object, expected: str) -> None:
    if not right:
        raise ValueError(f"{what} is {str(value)[:80]!r}, expected {expected}")
