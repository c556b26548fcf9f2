# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A store of whole objects: a folder, or a bucket of Google Cloud Storage.

    store = open_store("gs://bucket/prefix", credentials=Path("key.json"), deadline=120)
    store.put(Path("train-00000.bin"), "train-00000.bin")
    store.get("train-00000.bin", Path("cache/train-00000.bin"), size=268435456, sha256="…")

Parts of objects are never read: the service keeps a checksum of each object, not of a part, so a bit that flips on the
way would not be noticed. An object is written once; writing the same content again is no error, other content is.
"""

from __future__ import annotations

import hashlib
import math
import os
import re
import shutil
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from kit.files import sha256, sync_directory, write_atomic
from kit.pretraining.attempts import CONFLICT, DAMAGED, LOCAL, MISSING, STOPPED, Patience, StoreError
from kit.pretraining.credentials import read_key
from kit.process import unfinished

__all__ = ["Store", "StoreError", "Stored", "open_store"]

BLOCK = 1_000_000  # bytes
SCHEME = "gs://"
MAX_READ = 64 << 20  # bytes of an object that is read into memory
MAX_LISTED = 200_000  # objects
DEADLINE = 120.0  # seconds: 256 MiB at 2.3 MB/s


@dataclass(frozen=True)
class Stored:
    """An object of a store."""

    name: str
    size: int  # bytes
    crc32c: str | None  # as the service states it; a folder has none


Listing = list[Stored]  # the name that it has where `list` is a method


class Store(ABC):
    """Whole objects by name. Every method raises StoreError naming the object; those that read compare content.

    Methods may be called by several threads.
    """

    def __init__(self, url: str, deadline: float) -> None:
        """Be a store at ``url`` that allows each operation ``deadline`` seconds."""
        self.url = url
        self.patience = Patience(deadline)

    @property
    def retries(self) -> int:
        """How many attempts were needed after the first, of all operations so far."""
        return self.patience.retries

    def stop(self) -> None:
        """Give up: transfers of other threads end with an error at their next block, and none begins."""
        self.patience.stopped.set()

    def where(self, name: str) -> str:
        """Return what messages call an object."""
        return f"{self.url}/{name}"

    @abstractmethod
    def put(self, path: Path, name: str) -> None:
        """Store a file as the new object ``name`` and compare what the store then has."""

    def get(self, name: str, path: Path, *, size: int, sha256: str) -> bool:
        """Have the object in the file ``path``, whole and with this size and SHA-256; return whether it was fetched.

        A file that is so already is kept; anything else is replaced only by a verified one.
        """
        check_name(name)
        if is_verified(path, size, sha256):
            return False
        with _local(self.where(name)):
            path.parent.mkdir(parents=True, exist_ok=True)
            free = shutil.disk_usage(path.parent).free
        if free < size:
            raise StoreError(
                f"{self.where(name)}: no space: {path.parent} has {free} bytes free, the object needs {size}", LOCAL
            )
        building = unfinished.beside(path)
        try:
            self._fetch(name, building, size, sha256)
            with _local(self.where(name)):
                os.replace(building, path)
                sync_directory(path.parent)
        finally:
            building.unlink(missing_ok=True)
        return True

    @abstractmethod
    def _fetch(self, name: str, path: Path, size: int, digest: str) -> None:
        """Write the object's verified content to ``path``, synced."""

    @abstractmethod
    def list(self, prefix: str = "") -> Listing:
        """Return the objects whose names begin with ``prefix``, by name."""

    @abstractmethod
    def delete(self, name: str) -> None:
        """Remove an object; one that is not there is removed already."""

    @abstractmethod
    def read(self, name: str) -> bytes:
        """Return an object's content, of at most 64 MiB, compared with the store's checksum if it has one."""

    @abstractmethod
    def write(self, name: str, content: bytes) -> None:
        """Store ``content`` as the new object ``name``, like ``put``."""


class Folder(Store):
    """A store in a folder of a file system."""

    def __init__(self, root: Path, deadline: float = DEADLINE) -> None:
        """Be the store in ``root``, which is created by the first ``put``."""
        super().__init__(str(root), deadline)
        self._root = root

    def put(self, path: Path, name: str) -> None:
        """Copy the file; see Store."""
        with _local(self.where(name)):
            size = path.stat().st_size
            digest = sha256(path)
            if self._is_there(name, size, digest):
                return
            with open(path, "rb") as source:
                self._create(name, source)
        self._read_back(name, size, digest)

    def write(self, name: str, content: bytes) -> None:
        """Write the content; see Store."""
        size, digest = len(content), hashlib.sha256(content).hexdigest()
        with _local(self.where(name)):
            if self._is_there(name, size, digest):
                return
            write_atomic(self._path(name), lambda stream: stream.write(content))
        self._read_back(name, size, digest)

    def _is_there(self, name: str, size: int, digest: str) -> bool:
        """Return whether the object exists with this content. Raise StoreError if it has another."""
        path = self._path(name)
        if not os.path.lexists(path):
            return False
        if is_verified(path, size, digest):
            return True
        raise conflict(self.where(name))

    def _create(self, name: str, source: BinaryIO) -> None:
        def fill(stream: BinaryIO) -> None:
            while block := source.read(BLOCK):
                self._go_on(name)
                stream.write(block)

        write_atomic(self._path(name), fill)

    def _go_on(self, name: str) -> None:
        if self.patience.stopped.is_set():
            raise StoreError(f"{self.where(name)}: the copy was given up", STOPPED)

    def _read_back(self, name: str, size: int, digest: str) -> None:
        if not is_verified(self._path(name), size, digest):
            raise StoreError(f"{self.where(name)}: what was written differs from what is there now", DAMAGED)

    def _fetch(self, name: str, path: Path, size: int, digest: str) -> None:
        """Copy the object; see Store."""
        found = hashlib.sha256()
        with self._existing(name) as source, _local(self.where(name)), open(path, "wb") as stream:
            while block := source.read(BLOCK):
                self._go_on(name)
                found.update(block)
                stream.write(block)
            stream.flush()
            os.fsync(stream.fileno())
            received = stream.tell()
        difference = differs(received, found.hexdigest(), size, digest)
        if difference:
            raise StoreError(f"{self.where(name)}: the object is damaged: {difference}", DAMAGED)

    @contextmanager
    def _existing(self, name: str) -> Iterator[BinaryIO]:
        try:
            stream = open(self._path(name), "rb")  # noqa: SIM115 - closed below
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError) as error:
            raise missing(self.where(name)) from error
        except OSError as error:
            raise StoreError(f"{self.where(name)}: cannot be read: {error.strerror}", LOCAL) from error
        with stream:
            yield stream

    def list(self, prefix: str = "") -> Listing:
        """Return the folder's files, apart from hidden ones; see Store."""
        found = []
        with _local(self.url):
            for folder, below, names in os.walk(self._root, onerror=_raise_unless_missing):
                below[:] = [name for name in below if not name.startswith(".")]
                for name in names:
                    path = Path(folder, name)
                    relative = path.relative_to(self._root).as_posix()
                    if not name.startswith(".") and relative.startswith(prefix) and path.is_file():
                        found.append(Stored(relative, path.stat().st_size, None))
                        check_count(self.url, len(found))
        return sorted(found, key=lambda each: each.name)

    def delete(self, name: str) -> None:
        """Remove the file; see Store."""
        path = self._path(name)
        with _local(self.where(name)):
            path.unlink(missing_ok=True)

    def read(self, name: str) -> bytes:
        """Return the file's content; see Store."""
        with self._existing(name) as stream, _local(self.where(name)):
            content = stream.read(MAX_READ + 1)
        return check_length(self.where(name), content)

    def _path(self, name: str) -> Path:
        return self._root / check_name(name)


def open_store(url: str, *, credentials: Path | None = None, deadline: float = DEADLINE) -> Store:
    """Return the store at ``url``, a folder or gs://BUCKET/PREFIX.

    ``credentials`` is the file of a key for the bucket, mode 0600; without one the application default is used, and
    with STORAGE_EMULATOR_HOST none at all. ``deadline``: seconds for each operation with all its attempts. Raise
    StoreError for a malformed address or unusable credentials; the bucket itself is not asked.
    """
    if math.isnan(deadline) or deadline <= 0:
        raise StoreError(f"{url}: the deadline is {deadline:g} s, expected more than 0", LOCAL)
    if not url.startswith(SCHEME):
        if not url or re.match(r"[a-z0-9]+://", url):
            raise StoreError(f"the store {url!r} is neither a folder nor gs://BUCKET/PREFIX", LOCAL)
        return Folder(Path(url), deadline)
    bucket, _slash, prefix = url[len(SCHEME) :].partition("/")
    prefix = prefix.rstrip("/")
    if not re.fullmatch(r"[a-z0-9][a-z0-9._-]{1,220}[a-z0-9]", bucket):
        raise StoreError(f"{url}: {bucket!r} is not the name of a bucket, expected gs://BUCKET/PREFIX", LOCAL)
    if prefix:
        check_name(prefix)
    key = read_key(credentials) if credentials else None
    try:
        from kit.pretraining import gcs  # noqa: PLC0415 - its library is only in the runtime
    except ImportError as error:
        raise StoreError(
            f"{url}: {sys.executable} has no google-cloud-storage ({error}): run this with the Python of the runtime "
            "deepspeed",
            LOCAL,
        ) from error
    return gcs.Bucket(bucket, prefix, key=key, key_path=credentials, deadline=deadline)


def check_name(name: str) -> str:
    """Return the name of an object if it is one in every store: relative, plain, and not hidden. Raise StoreError."""
    if len(name) > 900 or not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.=-]*(/[A-Za-z0-9_][A-Za-z0-9_.=-]*)*", name):
        raise StoreError(
            f"{name[:80]!r} is not the name of an object: expected letters, digits and _ . = - in parts separated by /",
            LOCAL,
        )
    return name


def check_count(where: str, count: int) -> None:
    """Raise StoreError if a listing is longer than expected."""
    if count > MAX_LISTED:
        raise StoreError(f"{where}: more than {MAX_LISTED} objects are there; give a prefix of its own", LOCAL)


def check_length(where: str, content: bytes) -> bytes:
    """Return content that was read into memory. Raise StoreError if it is longer than it may be."""
    if len(content) > MAX_READ:
        raise StoreError(f"{where}: has more than the {MAX_READ} bytes that are read at once", LOCAL)
    return content


def is_verified(path: Path, size: int, digest: str) -> bool:
    """Return whether the file has this size and SHA-256; a file that cannot be read has not."""
    try:
        return path.is_file() and path.stat().st_size == size and sha256(path) == digest
    except OSError:
        return False


def differs(size: int, digest: str, expected_size: int, expected_digest: str) -> str:
    """Return how content differs from what is expected of it; empty if it does not."""
    if size != expected_size:
        return f"{size} bytes, expected {expected_size}"
    if digest != expected_digest:
        return f"SHA-256 {digest}, expected {expected_digest}"
    return ""


def missing(where: str) -> StoreError:
    """Return the error about an object that is not there."""
    return StoreError(f"{where}: there is no such object", MISSING)


def conflict(where: str) -> StoreError:
    """Return the error about an object that has other content."""
    return StoreError(f"{where}: the object exists with other content; it is not overwritten", CONFLICT)


def _raise_unless_missing(error: OSError) -> None:
    if not isinstance(error, FileNotFoundError):
        raise error


@contextmanager
def _local(where: str) -> Iterator[None]:
    """Turn an error of the file system into a StoreError."""
    try:
        yield
    except OSError as error:
        told = f"{error.strerror or error}" + (f": {error.filename}" if error.filename else "")
        raise StoreError(f"{where}: {told}", LOCAL) from error
