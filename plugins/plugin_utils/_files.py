# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Files on the controller, written whole or not at all."""

from __future__ import annotations

import json
import os
import tempfile
import typing as t
from pathlib import Path


def write_atomic(path: Path, content: bytes, mode: int = 0o644) -> None:
    """Writes beside `path`, syncs and renames, so that nobody ever sees half a file. Raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        os.chmod(temporary, mode)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise
    directory = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)


def write_json(path: Path, document: t.Any) -> None:
    """`document` as JSON; NaN and infinities are refused with ValueError, since JSON has none."""
    write_atomic(path, (json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n").encode("utf-8"))


def read_json(path: Path) -> t.Any:
    """The JSON document at `path`. Raises OSError or ValueError."""
    return json.loads(path.read_text(encoding="utf-8"))
