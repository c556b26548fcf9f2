# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""CRC32C, which Google Cloud Storage keeps of every object, in the form in which it states it: base64."""

from __future__ import annotations

import base64
from typing import Any

POLYNOMIAL = 0x82F63B78  # Castagnoli's, reversed


def _entry(value: int) -> int:
    for _bit in range(8):
        value = (value >> 1) ^ (POLYNOMIAL if value & 1 else 0)
    return value


TABLE = tuple(map(_entry, range(256)))


class Slow:
    """The same as google_crc32c.Checksum, some 10 MB a second, for a Python that has no google_crc32c."""

    def __init__(self) -> None:
        """Begin with no content."""
        self._value = 0xFFFFFFFF

    def update(self, content: bytes | memoryview) -> None:
        """Add content."""
        value = self._value
        for byte in bytes(content):
            value = TABLE[(value ^ byte) & 0xFF] ^ (value >> 8)
        self._value = value

    def digest(self) -> bytes:
        """Return the four bytes of the checksum, the highest first."""
        return (self._value ^ 0xFFFFFFFF).to_bytes(4, "big")


def checksum() -> Any:
    """Return an empty checksum with ``update`` and ``digest``: google_crc32c's, or ours where there is none."""
    try:
        import google_crc32c  # noqa: PLC0415 - only in the runtime
    except ImportError:
        return Slow()
    return google_crc32c.Checksum()


def text(found: Any) -> str:
    """Return a checksum as the service states it."""
    return base64.b64encode(found.digest()).decode("ascii")
