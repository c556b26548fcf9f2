# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A folder of tokens: read where it lies, compared with its manifest, fetched from a store and put into one.

manifest = tokens.read_manifest(folder)
train = tokens.Split(folder, manifest, "train")
ids = numpy.frombuffer(train.read(first, 2049), train.numpy_type)
"""

from __future__ import annotations

import mmap
import sys
import time
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any, Callable, Literal, TypeVar

from kit.errors import KitError
from kit.files import sha256, write_atomic
from kit.pretraining import manifest as manifests
from kit.pretraining.manifest import Manifest, Shard
from kit.pretraining.shards import require_space
from kit.pretraining.store import Store, Stored
from kit.process import unfinished
from kit.process.locks import sole

FORMATS: dict[str, Literal["H", "I"]] = {"<u2": "H", "<u4": "I"}  # of memoryview, by the manifest's type
MAX_MAPPED = 128  # shards of a split at a time: each holds a descriptor, of which a process may have 1024
WORKERS = 8  # transfers at a time
REMEDY = "fetch or stage it again"

Tell = Callable[[str], None]
Done = TypeVar("Done")
read_manifest = manifests.read


class Split:
    """The tokens of one split, memory-mapped: what is read is not copied unless it spans two shards."""

    def __init__(self, folder: Path, manifest: Manifest, split: str) -> None:
        """Look at the shards' sizes, not at their content. Raise KitError naming the shard that differs."""
        if sys.byteorder != "little":
            raise KitError("tokens are little-endian, this machine is not")
        self._folder = folder
        self._shards = manifest.splits[split]
        self._width = manifests.BYTES[manifest.dtype]
        self._format = FORMATS[manifest.dtype]
        self._starts = []
        self._mapped: OrderedDict[int, memoryview] = OrderedDict()
        self.numpy_type = manifest.dtype
        self.tokens = 0
        for shard in self._shards:
            check_size(folder, shard)
            self._starts.append(self.tokens)
            self.tokens += shard.tokens

    def __len__(self) -> int:
        """Return how many tokens there are."""
        return self.tokens

    def read(self, first: int, count: int) -> memoryview:
        """Return ``count`` tokens from number ``first``, as unsigned numbers, not to be written to.

        Raise IndexError if there are not as many, KitError if a shard cannot be read.
        """
        if not 0 <= first <= first + count <= self.tokens:
            raise IndexError(f"tokens {first} to {first + count} of {self.tokens}")
        parts = []
        number = bisect_right(self._starts, first) - 1
        while count > 0:
            at = first - self._starts[number]
            part = self._map(number)[at : at + count]
            parts.append(part)
            first, count, number = first + len(part), count - len(part), number + 1
        if len(parts) == 1:
            return parts[0]
        return memoryview(b"".join(part.cast("B") for part in parts)).cast(self._format)

    def _map(self, number: int) -> memoryview:
        if number not in self._mapped:
            self._mapped[number] = mapped(self._folder, self._shards[number]).cast(self._format)
            if len(self._mapped) > MAX_MAPPED:
                self._mapped.popitem(last=False)  # unmapped when nobody looks at it any more
        self._mapped.move_to_end(number)
        return self._mapped[number]

    def close(self) -> None:
        """Forget the mapped shards."""
        self._mapped.clear()


def mapped(folder: Path, shard: Shard) -> memoryview:
    """Return a shard's content as bytes, memory-mapped. Raise KitError if it cannot be or has another size."""
    path = folder / shard.name
    try:
        with open(path, "rb") as stream:
            content = memoryview(mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ))
    except (OSError, ValueError) as error:
        raise KitError(f"{path}: cannot be mapped: {error}; {REMEDY}") from error
    if len(content) != shard.bytes:
        raise KitError(f"{path}: {len(content)} bytes, the manifest says {shard.bytes}; {REMEDY}")
    return content


def check_size(folder: Path, shard: Shard) -> None:
    """Raise KitError if a shard is not there or has another size than the manifest says."""
    path = folder / shard.name
    try:
        size = path.stat().st_size
    except OSError as error:
        raise KitError(f"{path}, which the manifest names, cannot be read: {error.strerror}; {REMEDY}") from error
    if size != shard.bytes:
        raise KitError(f"{path}: {size} bytes, the manifest says {shard.bytes}; {REMEDY}")


def check_shard(folder: Path, shard: Shard, digest: str | None = None) -> None:
    """Raise KitError if a shard's size or SHA-256 is another than the manifest's.

    ``digest``: the SHA-256, if the shard was read already.
    """
    check_size(folder, shard)
    path = folder / shard.name
    try:
        found = digest or sha256(path)
    except OSError as error:
        raise KitError(f"{path}: cannot be read: {error.strerror}; {REMEDY}") from error
    if found != shard.sha256:
        raise KitError(f"{path}: SHA-256 {found}, the manifest says {shard.sha256}; {REMEDY}")


def largest_token(folder: Path, manifest: Manifest, shard: Shard) -> int:
    """Return a shard's largest token. Raise KitError naming shard, position and both numbers if it is none of the
    vocabulary.
    """
    view = mapped(folder, shard).cast(FORMATS[manifest.dtype])
    found = _largest(view)
    if found >= manifest.vocab:
        position = next(number for number, token in enumerate(view) if token >= manifest.vocab)
        raise outside(str(folder / shard.name), position, view[position], manifest.vocab)
    return found


def outside(where: str, position: int, token: int, vocab: int) -> KitError:
    """Return the error about a token that the vocabulary does not have."""
    return KitError(
        f"{where}: token {token} at position {position} is not below the vocabulary of {vocab} tokens: the model could "
        "not look it up. Is this the model's tokenizer?"
    )


def _largest(view: memoryview) -> int:
    try:
        import numpy  # noqa: PLC0415 - only in the runtime; without it this takes seconds a shard
    except ImportError:
        return max(view)
    return int(numpy.asarray(view).max())


def verify(
    folder: Path,
    manifest: Manifest | None = None,
    shards: Sequence[Shard] | None = None,
    *,
    scan: bool = False,
    workers: int = WORKERS,
) -> dict[str, Any]:
    """Read shards, all by default, and compare them with the manifest; return what there is and was verified.

    With ``scan`` every token is compared with the vocabulary as well. Raise KitError about the first that differs.
    """
    manifest = manifest or read_manifest(folder)
    chosen = manifest.shards if shards is None else shards

    def look(shard: Shard) -> int:
        check_shard(folder, shard)
        return largest_token(folder, manifest, shard) if scan else manifest.max_token

    with ThreadPoolExecutor(workers) as pool:
        found = list(pool.map(look, chosen))
    check_largest(folder, manifest, found, whole=len(chosen) == len(manifest.shards))
    return {**describe(manifest), "verified_shards": len(chosen)}


def check_largest(folder: Path, manifest: Manifest, found: Iterable[int], *, whole: bool) -> None:
    """Raise KitError if the largest tokens of shards (of ``whole``: all of them) contradict the manifest."""
    largest = max(found, default=0)
    if largest > manifest.max_token or (whole and largest != manifest.max_token):
        raise KitError(
            f"{folder}: the largest token is {largest}, the manifest says {manifest.max_token}; convert it again"
        )


def describe(manifest: Manifest) -> dict[str, Any]:
    """Return what people and criteria want to know of a folder of tokens."""
    return {
        "tokens": manifest.tokens(),
        "train_tokens": manifest.tokens(manifests.TRAIN),
        "validation_tokens": manifest.tokens(manifests.VALIDATION),
        "bytes": manifest.bytes,
        "shards": len(manifest.shards),
        "dtype": manifest.dtype,
        "vocab": manifest.vocab,
        "max_token": manifest.max_token,
        "entropy": manifest.entropy,
        "source": manifest.source,
        "manifest_sha256": manifest.sha256,
        "size": manifests.counted(manifest.tokens(), manifest.dtype),
    }


def check_stated(manifest: Manifest, stated: int) -> None:
    """Raise KitError if there are not as many tokens as stated, with the space that each number takes."""
    held = manifest.tokens()
    if held != stated:
        raise KitError(
            f"{stated:,} tokens are stated, {held:,} are there: {manifests.counted(held, manifest.dtype)}, "
            f"{manifests.counted(stated, manifest.dtype)}"
        )


def fetch(
    store: Store, folder: Path, *, manifest_sha256: str | None = None, workers: int = WORKERS, tell: Tell | None = None
) -> dict[str, Any]:
    """Have a store's folder of tokens in ``folder``, verified; return what there is and how it came there.

    Whole shards that are there already are kept, so that an interrupted fetch is continued. manifest.json comes last.
    ``manifest_sha256``: the SHA-256 that the manifest must have. ``tell`` is called with a line for each shard. Raise
    KitError.
    """
    begun, retries = time.monotonic(), store.retries
    content = store.read(manifests.NAME)
    manifest = manifests.parse(content, store.where(manifests.NAME))
    if manifest_sha256 and manifest.sha256 != manifest_sha256:
        raise KitError(
            f"{store.where(manifests.NAME)}: SHA-256 {manifest.sha256}, expected {manifest_sha256}: other tokens"
        )
    check_listing(store.url, manifest, store.list())
    folder.mkdir(parents=True, exist_ok=True)
    with sole(folder / ".lock", f"fetching {folder}"):
        _check_other(folder, manifest)
        for shard in manifest.shards:
            unfinished.remove_beside(folder / shard.name)
        _check_space(folder, manifest)

        def get(shard: Shard) -> bool:
            return store.get(shard.name, folder / shard.name, size=shard.bytes, sha256=shard.sha256)

        fetched = _each(get, manifest.shards, store, workers, tell)
        write_atomic(folder / manifests.NAME, lambda stream: stream.write(content))
    return {
        **describe(manifest),
        "verified_shards": len(fetched),
        "fetched_shards": sum(fetched),
        "retries": store.retries - retries,
        "seconds": _since(begun),
    }


def upload(folder: Path, store: Store, *, workers: int = WORKERS, tell: Tell | None = None) -> dict[str, Any]:
    """Put a folder of tokens into a store, verified before and after; return what there is and how it went.

    manifest.json comes last. What the store has already is kept, so that an interrupted upload is continued. Raise
    KitError.
    """
    begun, retries = time.monotonic(), store.retries
    manifest = read_manifest(folder)

    def put(shard: Shard) -> None:
        check_shard(folder, shard)
        store.put(folder / shard.name, shard.name)

    _each(put, manifest.shards, store, workers, tell)
    check_listing(store.url, manifest, store.list())
    store.put(folder / manifests.NAME, manifests.NAME)
    return {
        **describe(manifest),
        "verified_shards": len(manifest.shards),
        "retries": store.retries - retries,
        "seconds": _since(begun),
    }


def check_listing(where: str, manifest: Manifest, listed: Iterable[Stored]) -> None:
    """Raise KitError if a store lacks a shard of the manifest or states another size or checksum of it."""
    stored = {each.name: each for each in listed}
    for shard in manifest.shards:
        found = stored.get(shard.name)
        if found is None:
            raise KitError(f"{where}/{shard.name}, which the manifest names, is not there; upload the folder again")
        if found.size != shard.bytes:
            raise KitError(
                f"{where}/{shard.name}: {found.size} bytes, the manifest says {shard.bytes}; upload the folder again"
            )
        if found.crc32c not in (None, shard.crc32c):
            raise KitError(
                f"{where}/{shard.name}: CRC32C {found.crc32c}, the manifest says {shard.crc32c}; upload it again"
            )


def _check_other(folder: Path, manifest: Manifest) -> None:
    """Raise KitError if the folder holds other tokens, which a training may be reading."""
    if (folder / manifests.NAME).exists() and read_manifest(folder).sha256 != manifest.sha256:
        raise KitError(f"{folder} holds other tokens: remove it, or give another folder")


def _check_space(folder: Path, manifest: Manifest) -> None:
    """Raise KitError if there is less space than the shards need that are not there yet."""
    sizes = {path.name: path.lstat().st_size for path in folder.iterdir()}
    needed = sum(shard.bytes for shard in manifest.shards if sizes.get(shard.name) != shard.bytes)
    require_space(folder, needed)


def _since(begun: float) -> float:
    """Return the seconds since a reading of the monotonic clock."""
    return round(time.monotonic() - begun, 3)


def _each(
    work: Callable[[Shard], Done], shards: Sequence[Shard], store: Store, workers: int, tell: Tell | None
) -> list[Done]:
    """Return what ``work`` returns for each shard, done by several threads; the first error ends it."""
    with ThreadPoolExecutor(workers) as pool:
        doing = {pool.submit(work, shard): shard for shard in shards}
        try:
            for number, done in enumerate(as_completed(doing), start=1):
                done.result()
                if tell:
                    tell(f"{number} of {len(shards)} shards: {doing[done].name}")
        except BaseException as error:
            if not isinstance(error, Exception):
                store.stop()  # this process is to end: not even what runs may go on
            pool.shutdown(cancel_futures=True)
            raise
    return [done.result() for done in doing]
