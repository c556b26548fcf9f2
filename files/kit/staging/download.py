# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Download one file of known size with the standard library: bounded in bytes and in time."""

from __future__ import annotations

import http.client
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

from kit.errors import KitError

SILENCE = 60.0  # seconds without an answer
PATIENCE = 1800.0  # seconds for all of it
BLOCK = 1 << 20


def download(url: str, path: Path, size: int) -> None:
    """Write what ``url`` sends to ``path``, by the proxy of the environment if one is named there.

    KitError where it cannot be reached, takes too long, or sends another number of bytes than ``size``; OSError where
    ``path`` cannot be written. Compare the file's hash before it is used.
    """
    with open(path, "wb") as out:
        for block in _blocks(url, size):
            out.write(block)


def _blocks(url: str, size: int) -> Iterator[bytes]:
    until, received = time.monotonic() + PATIENCE, 0
    try:
        with urllib.request.urlopen(url, timeout=SILENCE) as answer:  # noqa: S310 - a constant of the caller's
            while block := answer.read1(BLOCK):
                received += len(block)
                if received > size:
                    raise ValueError(f"it sends more than the {size} bytes expected")
                if time.monotonic() > until:
                    raise TimeoutError(f"{received} of {size} bytes came in {PATIENCE:.0f} s")
                yield block
        if received < size:
            raise ValueError(f"it ended after {received} of {size} bytes")
    except (OSError, ValueError, http.client.HTTPException) as error:
        raise KitError(
            f"cannot download {url}: {error or type(error).__name__}. Check the proxy and run it again; without "
            "internet use --source path, or --source stand-in"
        ) from error
