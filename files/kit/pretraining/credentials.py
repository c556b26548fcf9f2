# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Read a key for Google Cloud Storage from a file that nobody else can read. No message contains what is in it."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any

from kit import strict_json
from kit.pretraining.attempts import CREDENTIALS, StoreError

BYTES = 1 << 16
# By type, what such a file must have. Other types run programs or ask other servers: those belong to the account.
KEYS = {
    "service_account": ("client_email", "private_key", "token_uri"),
    "authorized_user": ("client_id", "client_secret", "refresh_token"),
}


def read_key(path: Path) -> dict[str, Any]:
    """Return the key in ``path``, of type service_account or authorized_user.

    Raise StoreError (reason ``credentials``) if it is missing, another user can read it, or it is not such a key.
    """
    document = _parsed(path, _content(path))
    kind = document.get("type") if isinstance(document, dict) else None
    if kind not in KEYS:
        raise _refused(path, f"is not a key of type {' or '.join(KEYS)}; for any other use the application default")
    missing = [name for name in KEYS[kind] if not isinstance(document.get(name), str) or not document[name]]
    if missing:
        raise _refused(path, f"has no {missing[0]}, which a key of type {kind} must have; create the key again")
    return dict(document)


def _content(path: Path) -> bytes:
    try:
        # Not blocking: opening a pipe would wait for its writer.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise _refused(path, f"cannot be read: {error.strerror}; give the path of the key on this host") from error
    try:
        _check(path, os.fstat(descriptor))
        return os.read(descriptor, BYTES)
    finally:
        os.close(descriptor)


def _check(path: Path, found: os.stat_result) -> None:
    """Raise StoreError unless it is a file of ours, or of root, that nobody else can reach."""
    if not stat.S_ISREG(found.st_mode):
        raise _refused(path, "is not a file")
    if found.st_uid not in (os.geteuid(), 0):
        raise _refused(path, f"belongs to user {found.st_uid}, expected {os.geteuid()}, who reads it")
    if found.st_mode & 0o077:
        mode = stat.S_IMODE(found.st_mode)
        raise _refused(path, f"has mode {mode:04o}, so other users can read the key, expected 0600: chmod 600 it")
    if found.st_size > BYTES:
        raise _refused(path, f"has {found.st_size} bytes, expected at most {BYTES}")


def _parsed(path: Path, content: bytes) -> Any:
    try:
        return strict_json.parse(content)
    except (ValueError, RecursionError):
        pass
    raise _refused(path, "is not JSON")  # outside, so that no traceback shows a part of it


def _refused(path: Path, why: str) -> StoreError:
    return StoreError(f"credentials {path}: the file {why}", CREDENTIALS)
