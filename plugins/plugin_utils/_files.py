# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""JSON files on the controller."""

from __future__ import annotations

import json
import typing as t
from pathlib import Path

from ansible_collections.mlops.hpc_validation.plugins.module_utils._atomic import write_atomic


def write_json(path: Path, document: t.Any) -> None:
    """`document` as JSON; NaN and infinities are refused with ValueError, since JSON has none."""
    write_atomic(
        str(path), (json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n").encode("utf-8")
    )


def read_json(path: Path) -> t.Any:
    """The JSON document at `path`. Raises OSError or ValueError."""
    return json.loads(path.read_text(encoding="utf-8"))
