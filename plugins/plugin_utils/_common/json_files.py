# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Read and write JSON files on the controller."""

from __future__ import annotations

import json
import re
import typing as t
from pathlib import Path

from ansible_collections.mlops.hpc_validation.plugins.module_utils._common import strict_json
from ansible_collections.mlops.hpc_validation.plugins.module_utils._common.atomic import write_atomic

NOT_ASCII = re.compile(r"[^\n -~]")


def encode(document: t.Any) -> bytes:
    """Return `document` as JSON; raise ValueError for NaN and infinities, which JSON does not have.

    Control characters of terminals are written as JSON escapes, and so are surrogates, which UTF-8 does not have.
    """
    text = json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    return NOT_ASCII.sub(_escaped, text).encode("utf-8")


def encode_compact(document: t.Any) -> bytes:
    """Return `document` as ASCII without blanks, for files that people do not read. Raise ValueError as encode()."""
    return json.dumps(document, separators=(",", ":"), allow_nan=False).encode("ascii")


def write_json(path: Path, document: t.Any) -> None:
    """Write `document` to `path` as a whole or not at all. Raise OSError, or ValueError as encode() does."""
    write_atomic(str(path), encode(document))


def _escaped(match: re.Match[str]) -> str:
    return match[0] if match[0].isprintable() else json.dumps(match[0])[1:-1]


def read_json(path: Path) -> t.Any:
    """Return the JSON document at `path`. Raise OSError or ValueError."""
    return strict_json.parse(path.read_bytes())
