# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The record of an Apptainer image, by which a job recognises it.

An image has gigabytes, so its SHA-256 is recorded together with what identifies the file (size, time, the image's own
UUID); as long as these do not change, the hash is valid.
"""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import Any

from kit import strict_json
from kit.errors import KitError
from kit.runtime import sif


def record_path(folder: Path, name: str, path: Path) -> Path:
    """Return the path of the record of image ``name`` at ``path``: two sites may share a folder."""
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]*", name):
        raise KitError(f"image name {name!r}: use letters, digits, - and _")
    return folder / ".staged" / f"{name}-{hashlib.sha256(str(path).encode()).hexdigest()[:12]}.json"


def known(record: Path, path: Path) -> tuple[dict[str, Any] | None, str | None]:
    """Return (record, None) if ``path`` is still the recorded file, else (None, why not)."""
    try:
        document = strict_json.read(record)
        now = sif.read(path)
        if document["path"] != str(path) or any(document[key] != value for key, value in now.file.items()):
            return None, f"{path} is not the file that was staged: it has since been replaced or changed"
        return dict(document), None
    except FileNotFoundError:
        return None, f"nothing is known about {path}: {record} does not exist"
    except (KitError, OSError, ValueError, KeyError, TypeError) as error:
        return None, str(error)
