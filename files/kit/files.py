# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Write files for other nodes to read: complete, or not there at all."""

from __future__ import annotations

import hashlib
import json
import math
import os
import stat
import tempfile
from pathlib import Path
from typing import Any, BinaryIO, Callable

# The name of the metrics document in the output folders of workloads and of their runs on fewer ranks.
METRICS_FILE = "metrics.json"


def plain(value: Any) -> Any:
    """Return ``value`` in a form that valid JSON can hold.

    JSON has no NaN or infinity. They become the strings "NaN", "Infinity" and "-Infinity": never a number, so no
    numeric criterion can pass on them, and never null, so that a diverged loss differs from one not measured.
    """
    if isinstance(value, float) and not math.isfinite(value):
        return json.dumps(value)  # Python's own names for them
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return value


def write_atomic(
    path: str | os.PathLike[str], fill: Callable[[BinaryIO], object], mode: int = 0o644, durable: bool = True
) -> None:
    """Let ``fill`` write a temporary file in the same folder, then put it in place; OSError leaves the old file.

    Without ``durable`` the file may be lost if the machine crashes, and the call does not wait for the disk.
    """
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    descriptor, temporary = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            fill(stream)
            stream.flush()
            os.fchmod(stream.fileno(), mode)
            if durable:
                os.fsync(stream.fileno())
        os.replace(temporary, target)
    except BaseException:
        os.unlink(temporary)
        raise
    if durable:
        sync_directory(target.parent)


def write_json(path: str | os.PathLike[str], document: Any, durable: bool = True) -> None:
    """Write ``document`` as JSON, atomically."""
    text = json.dumps(plain(document), indent=1, allow_nan=False) + "\n"
    write_atomic(path, lambda stream: stream.write(text.encode()), durable=durable)


def json_line(row: Any) -> bytes:
    """Return ``row`` as one line of JSON Lines."""
    return json.dumps(plain(row), allow_nan=False).encode() + b"\n"


def sync_directory(path: str | os.PathLike[str]) -> None:
    """Make a rename in ``path`` durable, if the file system can."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError:
        pass  # some network file systems do not sync folders; the rename itself has happened
    finally:
        os.close(descriptor)


def only_ours(path: str | os.PathLike[str]) -> bool:
    """Return whether only this user and root can change a file: it is ours, not a link, and writable only by us."""
    found = os.lstat(path)
    return stat.S_ISREG(found.st_mode) and found.st_uid == os.geteuid() and not found.st_mode & 0o022


def sha256(path: str | os.PathLike[str]) -> str:
    """Return the SHA-256 of a file, in hexadecimal."""
    digest = hashlib.sha256()
    with open(path, "rb") as stream:
        for block in iter(lambda: stream.read(1 << 20), b""):
            digest.update(block)
    return digest.hexdigest()
