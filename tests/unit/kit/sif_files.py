# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Files with the header of an Apptainer image, for tests."""

from __future__ import annotations

import uuid
from pathlib import Path

from kit.runtime.sif import HEADER, MAGIC

AMD64, ARM64 = b"02\0", b"04\0"


def write_sif(path: Path, data: bytes = b"squashfs", architecture: bytes = AMD64) -> Path:
    """Write an image that is whole, with ``data`` in the place of its file system."""
    path.parent.mkdir(parents=True, exist_ok=True)
    numbers = (0, 0, 47, 48, HEADER.size, 0, HEADER.size, len(data))
    identity = uuid.uuid4().bytes
    path.write_bytes(HEADER.pack(b"#!/usr/bin/env x\n", MAGIC, b"01\0", architecture, identity, *numbers) + data)
    return path
