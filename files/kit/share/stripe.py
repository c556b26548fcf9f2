# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How BeeGFS stripes files created in a folder, by ioctl on an open file: needs neither a secret nor root."""

from __future__ import annotations

import fcntl
import os
import struct
import tempfile
from pathlib import Path
from typing import Any

_INFO = struct.Struct("=IIH2x")  # type of pattern, chunk size in bytes, number of targets
# _IOR('f', 25, struct): direction in the two highest bits, then the size, the type and the number
GET_STRIPEINFO = 2 << 30 | _INFO.size << 16 | ord("f") << 8 | 25
PATTERNS = {1: "raid0", 2: "raid10", 3: "buddy mirror"}


def stripe_info(folder: Path) -> dict[str, Any]:
    """Return the striping of a file just created in `folder` (it cannot be read from the folder). Raise OSError."""
    descriptor, path = tempfile.mkstemp(prefix=".check-stripe-", dir=folder)
    try:
        kind, chunk, targets = _INFO.unpack(fcntl.ioctl(descriptor, GET_STRIPEINFO, bytes(_INFO.size)))
    finally:
        os.close(descriptor)
        os.unlink(path)
    return {
        "pattern": PATTERNS.get(kind, str(kind)),
        "chunk_kib": chunk // 1024,
        "targets": targets,
        "source": "ioctl",
        "error": None,
    }
