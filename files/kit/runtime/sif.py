# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The header of an Apptainer image (SIF): enough to check without Apptainer that it is complete and for this machine.

Layout: github.com/apptainer/sif, pkg/sif/sif.go (header, little-endian, 128 bytes).
"""

from __future__ import annotations

import os
import struct
import uuid
from dataclasses import dataclass

from kit.errors import KitError

HEADER = struct.Struct("<32s10s3s3s16s8q")
MAGIC = b"SIF_MAGIC\0"
# The codes of the architectures, by `uname -m`.
ARCHITECTURES = {b"01\0": "i686", b"02\0": "x86_64", b"03\0": "armv7l", b"04\0": "aarch64", b"06\0": "ppc64le"}


@dataclass(frozen=True)
class Sif:
    """An image's header and its file's attributes."""

    identity: str  # a UUID, created with the image
    machine: str  # as `uname -m` prints it, or the header's own code
    size: int  # bytes
    modified: int  # the file's time in whole seconds: some file systems keep no more

    @property
    def file(self) -> dict[str, object]:
        """Return what distinguishes this file from one that replaces it."""
        return {"uuid": self.identity, "bytes": self.size, "mtime": self.modified}


def read(path: str | os.PathLike[str]) -> Sif:
    """Return an image's header. Raise KitError if the file does not exist, is not an image, or is truncated."""
    try:
        with open(path, "rb") as stream:
            status = os.fstat(stream.fileno())
            content = stream.read(HEADER.size)
    except OSError as error:
        raise KitError(f"image {path}: {error.strerror}") from error
    if len(content) < HEADER.size or content[32:42] != MAGIC:
        raise KitError(f"image {path} is not an Apptainer image (SIF): was something else downloaded instead?")
    _launch, _magic, _version, code, identity, *numbers = HEADER.unpack(content)
    whole = numbers[6] + numbers[7]  # where the data begins, and its size
    if status.st_size < whole:
        raise KitError(f"image {path} is truncated: it has {status.st_size} of {whole} bytes; copy or pull it again")
    machine = ARCHITECTURES.get(code, code.rstrip(b"\0").decode("ascii", "replace"))
    return Sif(str(uuid.UUID(bytes=identity)), machine, status.st_size, int(status.st_mtime))
