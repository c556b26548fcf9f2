# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The journal of submissions on the share, written before sbatch runs. No job is lost, none is submitted twice.

One file per content hash, <journal>/<hash>.json. A lock beside it lets one task at a time submit that content.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import stat
import time
from collections.abc import Callable, Iterator

from ansible_collections.mlops.hpc_validation.plugins.module_utils._common import strict_json
from ansible_collections.mlops.hpc_validation.plugins.module_utils._common.atomic import write_atomic
from ansible_collections.mlops.hpc_validation.plugins.module_utils._slurm.cli import SlurmError

Entry = dict[str, object]
ENTRY_BYTES = 4 * 1024 * 1024
LOCK_SECONDS = 180.0
_REVOKED = "revoked."
_REVOKED_KEPT_SECONDS = 86400.0


class Journal:
    """Entries of one directory. Every error says which file and what to do."""

    def __init__(self, directory: str) -> None:
        self.directory = directory

    def prepare(self) -> None:
        """Create the directory if its parent exists; raise SlurmError if it cannot be written."""
        parent = os.path.dirname(self.directory)
        try:
            with contextlib.suppress(FileExistsError):
                os.mkdir(self.directory, 0o700)
            if not os.path.isdir(self.directory) or not os.access(self.directory, os.W_OK | os.X_OK):
                raise PermissionError("not a writable directory")
        except OSError as error:
            raise SlurmError(
                f"The journal {self.directory} cannot be written ({error}), so nothing was submitted. "
                f"Look at: ls -ld {self.directory} {parent}; df {parent}"
            ) from error

    def path(self, content_hash: str) -> str:
        """Return the file of one entry."""
        return os.path.join(self.directory, content_hash + ".json")

    def read(self, content_hash: str) -> Entry | None:
        """Return an entry; None if it is missing or unreadable (the comment in Slurm still identifies the job)."""
        return _load(self.path(content_hash))

    def write(self, entry: Entry) -> None:
        """Write one entry so that a crash leaves the old or the new one complete. Raise SlurmError on failure."""
        path = self.path(str(entry["hash"]))
        try:
            write_atomic(path, (json.dumps(entry, indent=1, sort_keys=True) + "\n").encode("utf-8"), mode=0o600)
        except OSError as error:
            raise SlurmError(
                f"The journal entry {path} could not be written: {error}. Look at: df {self.directory}"
            ) from error

    def entries(self) -> list[Entry]:
        """Return every readable entry, oldest first; [] if there is no journal."""
        try:
            names = [name for name in os.listdir(self.directory) if name.endswith(".json")]
        except OSError:
            return []
        loaded = (_load(os.path.join(self.directory, name)) for name in names)
        return sorted((entry for entry in loaded if entry is not None), key=_written)

    @contextlib.contextmanager
    def lock(
        self,
        content_hash: str,
        seconds: float = LOCK_SECONDS,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> Iterator[None]:
        """Hold the lock of one content; the kernel releases it if its holder dies. Raise SlurmError after `seconds`."""
        path = os.path.join(self.directory, content_hash + ".lock")
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        except OSError as error:
            raise SlurmError(f"The journal's lock {path} cannot be opened: {error}") from error
        try:
            end = clock() + seconds
            while True:
                try:
                    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    if clock() > end:
                        raise SlurmError(
                            f"Another task has held the lock {path} for more than {seconds:.0f} s. "
                            f"See which: fuser -v {path}"
                        ) from None
                    sleep(0.2)
                except OSError as error:
                    raise SlurmError(f"The file system of {path} cannot lock ({error})") from error
            yield
        finally:
            os.close(descriptor)

    def revoke(self, token: str) -> None:
        """Forbid every later submission under this token: the task that would have made it was interrupted."""
        path = os.path.join(self.directory, _REVOKED + token)
        with contextlib.suppress(OSError):
            os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600))

    def is_revoked(self, token: str) -> bool:
        """Return whether the task with this token was interrupted."""
        return bool(token) and os.path.exists(os.path.join(self.directory, _REVOKED + token))

    def sweep(self, now: float) -> None:
        """Remove revocations whose tasks are long gone."""
        with contextlib.suppress(OSError):
            for name in os.listdir(self.directory):
                path = os.path.join(self.directory, name)
                if name.startswith(_REVOKED) and now - os.path.getmtime(path) > _REVOKED_KEPT_SECONDS:
                    os.unlink(path)


def _written(entry: Entry) -> float:
    value = entry.get("written")
    return float(value) if isinstance(value, (int, float)) else 0.0


def _load(path: str) -> Entry | None:
    """Return an entry that this user wrote: another user's could get any of this user's jobs cancelled."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid():
            os.close(descriptor)
            return None
        with os.fdopen(descriptor, "rb") as stream:
            document = strict_json.parse(stream.read(ENTRY_BYTES))
    except (OSError, ValueError, RecursionError):
        return None
    if not isinstance(document, dict) or not isinstance(document.get("hash"), str):
        return None
    return document if os.path.basename(path) == document["hash"] + ".json" else None
