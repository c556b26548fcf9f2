# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A bucket of Google Cloud Storage as a store: google-cloud-storage's requests, our deadlines and comparisons.

The library would retry by itself, 120 s a call, and continue a transfer that broke off by reading the rest as a part,
of which it compares no checksum. So each attempt here is one plain request for the whole object.
"""

from __future__ import annotations

import hashlib
import http.client
import io
import os
import re
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO, Callable, TypeVar

import requests
import urllib3
from google.api_core.exceptions import GoogleAPICallError, NotFound, PreconditionFailed
from google.auth import exceptions as auth_exceptions
from google.auth.credentials import AnonymousCredentials
from google.cloud import storage
from google.cloud.storage.exceptions import DataCorruption
from google.oauth2 import service_account
from google.oauth2.credentials import Credentials

from kit.pretraining import crc32c, store
from kit.pretraining.attempts import (
    CREDENTIALS,
    DAMAGED,
    LOCAL,
    MISSING,
    REFUSED,
    UNREACHABLE,
    Clock,
    Failure,
    StoreError,
)

CONNECT, SILENCE = 5.0, 20.0  # seconds to connect, and without a byte; the latter at most a quarter of the deadline
CHUNK = 16 << 20  # bytes of an upload in one request; the library holds as many in memory
SCOPE = "https://www.googleapis.com/auth/devstorage.read_write"
EMULATOR = "STORAGE_EMULATOR_HOST"
# With this set, the library does not ask for the bucket's own metadata, in a thread, for traces that nobody records.
NO_TRACES = "DISABLE_GCS_PYTHON_CLIENT_OTEL_BUCKET_METADATA"
PATIENT = (408, 429, 500, 502, 503, 504)  # HTTP's ways to say: later
BROKEN = (ConnectionError, requests.RequestException, urllib3.exceptions.HTTPError, http.client.HTTPException)

Done = TypeVar("Done")


class LocalError(Exception):
    """An error of this machine's file system amid a transfer, which is not the service's."""


class DamagedError(Exception):
    """Content that is not what it should be."""


class Bucket(store.Store):
    """A store in a bucket, below a prefix."""

    def __init__(
        self, bucket: str, prefix: str, *, key: dict[str, Any] | None, key_path: Path | None, deadline: float
    ) -> None:
        """Be the store in gs://BUCKET/PREFIX, with a key, read from ``key_path``, or with the application default.

        Raise StoreError for unusable credentials.
        """
        super().__init__(f"{store.SCHEME}{bucket}{'/' if prefix else ''}{prefix}", deadline)
        self._bucket_name, self._prefix = bucket, f"{prefix}/" if prefix else ""
        self._account = f"the key {key_path}" if key_path else "the application default"
        self._client = _client(self.url, key, self._account)
        self._bucket = self._client.bucket(bucket)

    def put(self, path: Path, name: str) -> None:
        """Upload the file in one attempt or several; see Store."""
        try:
            with open(path, "rb") as stream:
                size = os.fstat(stream.fileno()).st_size
                self._upload(name, stream, size)
        except OSError as error:
            raise StoreError(f"{self.where(name)}: {path}: {error.strerror or error}", LOCAL) from error

    def write(self, name: str, content: bytes) -> None:
        """Upload the content; see Store."""
        self._upload(name, io.BytesIO(content), len(content))

    def _upload(self, name: str, stream: BinaryIO, size: int) -> None:
        """Create the object unless it is there, ask for its size and checksum, and compare them with what was sent."""
        expected = (size, _checksum(stream))
        spoiled: list[int] = []  # generations that we made and that are not what we sent

        def attempt(clock: Clock) -> None:
            self._remove(name, spoiled, clock)
            # Asked first, although the upload is conditional: what an earlier attempt has sent is not sent again.
            found = self._stated(name, clock)
            if found is None:
                generation = self._create(name, stream, size, clock)
                found = self._stated(name, clock)
                if found != expected and generation is not None:
                    spoiled.append(generation)
                    self._remove(name, spoiled, clock)
                    raise DamagedError(f"there {_shown(found)}, sent {_shown(expected)}")
            if found != expected:
                raise store.conflict(f"{self.where(name)}: there {_shown(found)}, to be sent {_shown(expected)}")

        self._persist("the upload", name, attempt)

    def _create(self, name: str, stream: BinaryIO, size: int, clock: Clock) -> int | None:
        """Upload if there is no such object; return the new one's generation, None if there is one after all."""
        blob = self._blob(name)
        blob.chunk_size = CHUNK
        stream.seek(0)
        with suppress(PreconditionFailed):
            blob.upload_from_file(
                _Watched(stream, clock),
                size=size,
                content_type="application/octet-stream",
                if_generation_match=0,
                checksum="crc32c",
                timeout=self._timeout(clock),
                retry=None,
            )
            return int(blob.generation)
        return None

    def _remove(self, name: str, generations: list[int], clock: Clock) -> None:
        """Delete these generations of an object, and nobody else's; empty the list as it is done."""
        while generations:
            with suppress(NotFound, PreconditionFailed):
                self._blob(name).delete(if_generation_match=generations[0], timeout=self._timeout(clock), retry=None)
            del generations[0]

    def _stated(self, name: str, clock: Clock) -> tuple[int, str] | None:
        """Return what the service states of an object: size and CRC32C; None if there is none."""
        blob = self._blob(name)
        try:
            blob.reload(timeout=self._timeout(clock), retry=None)
        except NotFound:
            return None
        return blob.size, blob.crc32c

    def _fetch(self, name: str, path: Path, size: int, digest: str) -> None:
        """Download the object; see Store."""

        def attempt(clock: Clock) -> None:
            with _opened(path) as stream:
                receiver = _Receiver(stream, clock, size)
                self._download(name, receiver, clock)
                receiver.finish()
            difference = store.differs(receiver.received, receiver.hexdigest(), size, digest)
            if difference:
                raise DamagedError(difference)

        self._persist("the download", name, attempt)

    def read(self, name: str) -> bytes:
        """Download the object into memory; see Store."""

        def attempt(clock: Clock) -> bytes:
            stream = io.BytesIO()
            stated = self._download(name, _Receiver(stream, clock, store.MAX_READ), clock)
            found = _checksum(stream)
            if stated != found:  # the library compares it too, but only where the answer states it
                raise DamagedError(f"CRC32C {found}, expected {stated}")
            return stream.getvalue()

        return store.check_length(self.where(name), self._persist("the download", name, attempt))

    def _download(self, name: str, receiver: _Receiver, clock: Clock) -> str | None:
        """Let the receiver have the object as it is stored; return the CRC32C that the service states."""
        blob = self._blob(name)
        blob.download_to_file(receiver, raw_download=True, checksum="crc32c", timeout=self._timeout(clock), retry=None)
        stated: str | None = blob.crc32c
        return stated

    def list(self, prefix: str = "") -> store.Listing:
        """Return the objects below the store's prefix; see Store."""

        def attempt(clock: Clock) -> store.Listing:
            found = []
            pages = self._client.list_blobs(
                self._bucket_name,
                prefix=f"{self._prefix}{prefix}",
                fields="items(name,size,crc32c),nextPageToken",
                timeout=self._timeout(clock),
                retry=None,
            )
            for blob in pages:
                clock.check()
                found.append(store.Stored(blob.name[len(self._prefix) :], blob.size, blob.crc32c))
                store.check_count(self.url, len(found))
            return sorted(found, key=lambda each: each.name)

        return self._persist("listing", f"{prefix}*", attempt)

    def delete(self, name: str) -> None:
        """Delete the object; see Store."""

        def attempt(clock: Clock) -> None:
            self._blob(name).delete(timeout=self._timeout(clock), retry=None)

        try:
            self._persist("deleting", name, attempt)
        except StoreError as error:
            if error.reason != MISSING:  # perhaps an earlier attempt deleted it, whose answer was lost
                raise

    def _blob(self, name: str) -> Any:
        return self._bucket.blob(f"{self._prefix}{store.check_name(name)}")

    def _timeout(self, clock: Clock) -> tuple[float, float]:
        """Return how long to wait for a connection and for the next byte, in seconds."""
        clock.check()
        left = max(clock.left(), 0.1)  # zero would mean: do not wait at all
        return min(CONNECT, left), min(SILENCE, self.patience.deadline / 4, left)

    def _persist(self, what: str, name: str, attempt: Callable[[Clock], Done]) -> Done:
        return self.patience.persist(what, self.where(name), attempt, self._explain)

    def _explain(self, error: Exception) -> Failure:
        """Return what an exception of an attempt means."""
        if isinstance(error, LocalError):
            return Failure(LOCAL, str(error))
        if isinstance(error, (DamagedError, DataCorruption)):
            how = str(error) if isinstance(error, DamagedError) else "its CRC32C is not the one that the service states"
            return Failure(DAMAGED, f"it arrives damaged: {how}", "is the object itself damaged? Upload it again")
        if isinstance(error, TimeoutError):
            return Failure(UNREACHABLE, "no time was left", "is the connection too slow? Give it a longer deadline")
        if isinstance(error, GoogleAPICallError):
            return self._answered(error)
        if isinstance(error, auth_exceptions.GoogleAuthError) and not _is_passing(error):
            return Failure(CREDENTIALS, f"no token for {self._account}: {_line(error)}", "is it still valid?")
        if isinstance(error, (*BROKEN, auth_exceptions.GoogleAuthError)):
            return Failure(UNREACHABLE, _line(error), "check the network, the proxy and the service's status")
        return Failure(LOCAL if isinstance(error, OSError) else REFUSED, _line(error))

    def _answered(self, error: GoogleAPICallError) -> Failure:
        """Return what an answer other than success means."""
        code = int(error.code or 0)
        if code in PATIENT:
            return Failure(UNREACHABLE, f"HTTP {code}", "check the service's status and this project's quota")
        if code in (401, 403):
            return Failure(
                REFUSED,
                f"HTTP {code}{_said(error)}",
                f"may the account of {self._account} use the bucket {self._bucket_name}? It needs the role "
                "roles/storage.objectUser, or roles/storage.objectViewer to read",
            )
        if code == 404:
            return Failure(MISSING, "there is no such object or bucket")
        return Failure(REFUSED, f"HTTP {code}{_said(error)}")


class _Watched:
    """A file to upload, of which nothing is read after the deadline."""

    def __init__(self, stream: BinaryIO, clock: Clock) -> None:
        self._stream, self._clock = stream, clock

    def read(self, size: int = -1) -> bytes:
        self._clock.check()
        return self._stream.read(size)

    def tell(self) -> int:
        return self._stream.tell()

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        return self._stream.seek(offset, whence)


class _Receiver:
    """A file to download into, hashed as it comes, that takes no more than was announced and nothing too late."""

    def __init__(self, stream: BinaryIO, clock: Clock, limit: int) -> None:
        self._stream, self._clock, self._limit = stream, clock, limit
        self._digest = hashlib.sha256()
        self.received = 0

    def write(self, block: bytes) -> int:
        self._clock.check()
        self.received += len(block)
        if self.received > self._limit:
            raise DamagedError(f"more than the expected {self._limit} bytes")
        self._digest.update(block)
        try:
            return self._stream.write(block)
        except OSError as error:
            raise LocalError(f"{error.strerror or error}, after {self.received} of {self._limit} bytes") from error

    def hexdigest(self) -> str:
        return self._digest.hexdigest()

    def finish(self) -> None:
        """Wait until the disk has it."""
        try:
            self._stream.flush()
            os.fsync(self._stream.fileno())
        except OSError as error:
            raise LocalError(f"{error.strerror or error}, after {self.received} of {self._limit} bytes") from error


def _opened(path: Path) -> BinaryIO:
    try:
        return open(path, "wb")
    except OSError as error:
        raise LocalError(f"{path}: {error.strerror or error}") from error


def _client(url: str, key: dict[str, Any] | None, account: str) -> Any:
    """Return the library's client. Raise StoreError for unusable credentials."""
    os.environ.setdefault(NO_TRACES, "true")
    if os.environ.get(EMULATOR):
        return storage.Client(project="none", credentials=AnonymousCredentials())
    try:
        # No project: none of the requests made here is about one.
        return storage.Client(project=None, credentials=_credentials(key) if key else None)
    except auth_exceptions.DefaultCredentialsError as error:
        raise StoreError(f"{url}: no credentials: {_line(error)}; give the file of a key", CREDENTIALS) from error
    except (ValueError, auth_exceptions.GoogleAuthError) as error:
        kind = type(error).__name__
    raise StoreError(
        f"{url}: {account} cannot be used ({kind}); create it again", CREDENTIALS
    )  # the cause may quote it


def _credentials(key: dict[str, Any]) -> Any:
    if key["type"] == "service_account":
        return service_account.Credentials.from_service_account_info(key, scopes=[SCOPE])
    return Credentials.from_authorized_user_info(key, scopes=[SCOPE])


def _checksum(stream: BinaryIO) -> str:
    found = crc32c.checksum()
    stream.seek(0)
    while block := stream.read(store.BLOCK):
        found.update(block)
    return crc32c.text(found)


def _is_passing(error: Exception) -> bool:
    """Return whether an error about a token may pass by itself."""
    return isinstance(error, auth_exceptions.TransportError) or bool(getattr(error, "retryable", False))


def _said(error: GoogleAPICallError) -> str:
    """Return the service's own explanation, if it gave one."""
    with suppress(Exception):  # whatever else a proxy answers
        return f": {_plain(error.response.json()['error']['message'])}"
    return ""


def _line(error: Exception) -> str:
    """Return an exception's type and text on one line."""
    text = _plain(str(error))
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _plain(text: str) -> str:
    """Return a text on one line of limited length, without the password of an address."""
    return re.sub(r"(://)[^/\s@]+@", r"\1***@", " ".join(text.split()))[:300]


def _shown(found: tuple[int, str] | None) -> str:
    return f"{found[0]} bytes of CRC32C {found[1]}" if found else "no object"
