# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Read a folder on the controller whose files are to be deployed. PRIVATE to the collection."""

from __future__ import annotations

import base64
import hashlib
import json
import os
from pathlib import Path
from typing import NoReturn

MAX_BYTES = 8 * 1024 * 1024
IGNORED = {"__pycache__", ".mypy_cache", ".ruff_cache", ".pytest_cache"}


def read_tree(source: Path) -> dict[str, str]:
    """Return relative path → base64 of each regular file below `source`. Raise ValueError for links, or OSError."""
    files: dict[str, str] = {}
    total = 0
    for folder, folders, names in os.walk(source, onerror=_raise):
        folders[:] = sorted(set(folders) - IGNORED)
        for path in [Path(folder, name) for name in [*folders, *names]]:
            if path.is_symlink():
                raise ValueError(f"{path} is a link, not a regular file: replace it by its target")
            if path.is_dir():
                continue
            if not path.is_file():
                raise ValueError(f"{path} is not a regular file")
            content = path.read_bytes()
            total += len(content)
            if total > MAX_BYTES:
                raise ValueError(f"{source} holds more than {MAX_BYTES} bytes: large data is staged, not deployed")
            files[path.relative_to(source).as_posix()] = base64.b64encode(content).decode("ascii")
    return files


def digest(source: Path) -> str:
    """Return a SHA-256 of names and contents; raise OSError or ValueError if the folder cannot be deployed."""
    if not source.is_dir():
        raise ValueError(f"{source} is not a folder")
    return hashlib.sha256(json.dumps(read_tree(source), sort_keys=True).encode()).hexdigest()


def _raise(error: OSError) -> NoReturn:
    raise error
