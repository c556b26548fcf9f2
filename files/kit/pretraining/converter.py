# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Make a folder of tokens: shards and their manifest, from anything that yields tokens in order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Callable

from kit.errors import KitError
from kit.pretraining import manifest as manifests
from kit.pretraining.manifest import MAX_SHARD, TRAIN, VALIDATION, Manifest
from kit.pretraining.shards import Writer, require_space

VALIDATION_SHARE, VALIDATION_MOST = 200, 10_000_000  # by default one token in 200 is held out, but no more than this

Blocks = Iterator[tuple[bytes, int]]  # tokens in the wanted type, and the largest of them


@dataclass(frozen=True)
class Source:
    """Tokens in order."""

    name: str
    tokens: int
    blocks: Callable[[str, int], Blocks]  # from the type and the vocabulary; raises KitError for a token out of it


def validation_tokens(total: int, asked: int | None) -> int:
    """Return how many tokens at the end are held out. Raise KitError if there are not enough."""
    held_out = max(1, min(total // VALIDATION_SHARE, VALIDATION_MOST)) if asked is None else asked
    if not 0 < held_out < total:
        raise KitError(f"{held_out:,} of {total:,} tokens for validation: expected 1 to {total - 1:,}")
    return held_out


def convert(
    sources: Sequence[Source],
    folder: Path,
    *,
    vocab: int,
    source: str,
    validation: int | None = None,
    entropy: float | None = None,
    limit: int = MAX_SHARD,
) -> Manifest:
    """Write the sources' tokens into ``folder``, which exists and is empty: the last ones are for validation.

    ``vocab``: every token must be below; it decides the type. ``validation``: how many are held out, by default one in
    200. ``entropy``: nats per token of the source, if known. ``limit``: bytes of a shard. Raise KitError.
    """
    dtype = manifests.dtype_for(vocab)
    total = sum(each.tokens for each in sources)
    held_out = validation_tokens(total, validation)
    require_space(folder, total * manifests.BYTES[dtype])
    writers = {split: Writer(folder, split, dtype, limit) for split in manifests.SPLITS}
    left, largest = (total - held_out) * manifests.BYTES[dtype], 0
    for content, most in _blocks(sources, dtype, vocab):
        largest = max(largest, most)
        writers[TRAIN].write(content[:left])
        writers[VALIDATION].write(content[left:])
        left -= min(left, len(content))
    splits = {split: writer.close() for split, writer in writers.items()}
    made = Manifest(dtype, vocab, largest, splits, entropy, source)
    made.write(folder)
    return manifests.read(folder)


def _blocks(sources: Iterable[Source], dtype: str, vocab: int) -> Blocks:
    """Yield all tokens. Raise KitError if a source has more or fewer than it said."""
    for each in sources:
        found = 0
        for content, most in each.blocks(dtype, vocab):
            found += len(content) // manifests.BYTES[dtype]
            yield content, most
        if found != each.tokens:
            raise KitError(f"{each.name}: {found} tokens, its header says {each.tokens}: it is damaged")
