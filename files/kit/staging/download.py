# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Download one file of known size with the standard library, limited in bytes and time."""

from __future__ import annotations

import http.client
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

from kit.errors import KitError

SILENCE = 60.0  # seconds without an answer
PATIENCE = 1800.0  # seconds for the whole download
BLOCK = 1 << 20


def download(url: str, path: Path, size: int) -> None:
    """Write the content of ``url`` to ``path``, through the proxy from the environment, if any.

    Raise KitError if it cannot be reached, takes too long, or does not send exactly ``size`` bytes; OSError if ``path``
    cannot be written. Compare the file's hash before you use it.
    """
    with open(path, "wb") as out:
        for block in _blocks(url, size):
            out.write(block)


def _blocks(url: str, size: int) -> Iterator[bytes]:
    until, received = time.monotonic() + PATIENCE, 0
    try:
        with urllib.request.urlopen(url, timeout=SILENCE) as answer:  # noqa: S310 - a constant of the caller
            while block := answer.read1(BLOCK):
                received += len(block)
                if received > size:
                    raise ValueError(f"it sends more than the expected {size} bytes")
                if time.monotonic() > until:
                    raise TimeoutError(f"{received} of {size} bytes received in {PATIENCE:.0f} s")
                yield block
        if received < size:
            raise ValueError(f"it ended after {received} of {size} bytes")
    except (OSError, ValueError, http.client.HTTPException) as error:
        raise KitError(
            f"cannot download {url}: {error or type(error).__name__}. Check the proxy and run it again; without "
            "internet use --source path, or --source stand-in"
        ) from error
