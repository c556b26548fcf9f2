# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Read the rows that a training writes while it runs (JSON Lines), such as ``training_metrics.jsonl``."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from kit import strict_json
from kit.errors import KitError

LONGEST = 1 << 16  # bytes of a line
MOST = 1 << 28  # bytes of a file; 100,000 rows take about 35 MB


def read(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the rows; none if there is no file yet. A last line without its end is still being written and left out.

    Raise KitError, with the line, for anything that is not a row, for a link, and beyond the limits.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    except OSError as error:
        raise KitError(f"{path}: {error.strerror}") from error
    with os.fdopen(descriptor, "rb") as stream:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise KitError(f"{path}: expected a regular file")
        size = 0
        for number, line in enumerate(iter(lambda: stream.readline(LONGEST), b""), 1):
            size += len(line)
            whole = line.endswith(b"\n")
            if (len(line) == LONGEST and not whole) or size > MOST:
                raise KitError(f"{path}, line {number}: expected at most {LONGEST} bytes a line and {MOST} in all")
            if whole:
                yield _row(line, f"{path}, line {number}")


def _row(line: bytes, place: str) -> dict[str, Any]:
    try:
        row = strict_json.parse(line)
    except (ValueError, RecursionError) as error:
        raise KitError(f"{place}: {error}") from error
    if not isinstance(row, dict):
        raise KitError(f"{place}: expected an object, found {type(row).__name__}")
    return row
