# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Detect files that are not what their name says, as interrupted or misdirected downloads leave them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from kit import strict_json
from kit.errors import KitError

HEAD_BYTES = 512


def lookalike(head: bytes) -> str | None:
    """Return what a file is instead of data, from its first bytes, or None if it is none of the known kinds."""
    text = head.lstrip()[:64].lower()
    if not head:
        return "an empty file"
    if head.startswith(b"version https://git-lfs"):
        return "a Git LFS pointer, not the file itself (git lfs pull fetches that)"
    if text.startswith((b"<!doctype html", b"<html", b"<?xml")):
        return "an HTML or XML page, such as one from a proxy or a login page"
    if head.startswith(b"PK\x03\x04"):
        return "a ZIP archive, such as a pickled PyTorch file"
    if head[:1] == b"\x80" and head[1:2] in (b"\x02", b"\x03", b"\x04", b"\x05"):
        return "a pickle"
    if not head.strip(b"\0"):
        return "nothing but zero bytes"
    return None


def refuse_lookalike(path: Path) -> bytes:
    """Return the file's first bytes. Raise KitError if it is something else or cannot be read."""
    try:
        with open(path, "rb") as stream:
            head = stream.read(HEAD_BYTES)
    except OSError as error:
        raise KitError(f"{path.name}: cannot be read: {error.strerror}") from error
    instead = lookalike(head)
    if instead:
        raise KitError(f"{path.name} is {instead}")
    return head


def read_json(path: Path, limit: int) -> Any:
    """Return a file's JSON document.

    Raise KitError with the file's name if it cannot be read, has more than ``limit`` bytes or is not JSON.
    """
    refuse_lookalike(path)
    try:
        size = os.stat(path).st_size
        if size > limit:
            raise KitError(f"{path.name} has {size} bytes, expected at most {limit}")
        return strict_json.read(path)
    except OSError as error:
        raise KitError(f"{path.name}: cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise KitError(f"{path.name} is not JSON: {error}") from error
