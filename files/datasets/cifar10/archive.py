# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The published archive of CIFAR-10's binary version."""

from __future__ import annotations

import tarfile
import zlib
from pathlib import Path

import records
from kit.errors import KitError
from kit.files import sha256
from kit.staging.content import refuse_lookalike

URL = "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz"
NAME = "cifar-10-binary.tar.gz"
SIZE = 170_052_171  # bytes
# Of the file whose MD5 its publisher gives as c32a1d4ab5d03f1284b67883e8d87530.
SHA256 = "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd"
FOLDER = "cifar-10-batches-bin"


def unpack(path: Path) -> dict[str, bytes]:
    """Return the seven files that the archive holds, once it was seen to be the published one; KitError."""
    refuse_lookalike(path)
    try:
        found = sha256(path)
        if found != SHA256:
            raise KitError(
                f"{path.name} has {path.stat().st_size} bytes and the SHA-256 {found}, the published one {SIZE} and "
                f"{SHA256}: fetch it again from {URL}, or give the files that it should hold"
            )
        with tarfile.open(path, "r:gz") as archive:
            return {name: _read(archive, f"{FOLDER}/{name}") for name in records.FILES}
    except (tarfile.TarError, OSError, EOFError, zlib.error, KeyError) as error:
        raise KitError(f"cannot unpack {path.name}: {error}; fetch it again from {URL}") from error


def _read(archive: tarfile.TarFile, name: str) -> bytes:
    """Return a member's content; KeyError where there is none, KitError where it is no file or a huge one."""
    member = archive.getmember(name)
    stream = archive.extractfile(member) if member.isreg() else None
    if stream is None or member.size > records.MAX_BYTES:
        raise KitError(f"{name} in {archive.name} is no file of at most {records.MAX_BYTES} bytes")
    return stream.read()
