# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is known of an Apptainer image, so that a job knows it again.

An image has gigabytes, so its SHA-256 is written down beside what tells the file from another (size, time, the image's
own UUID); as long as these stay, so does the hash.
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
    """Return where it is written down what the image ``name`` at ``path`` is: two sites may share a folder."""
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]*", name):
        raise KitError(f"image name {name!r}: use letters, digits, - and _")
    return folder / ".staged" / f"{name}-{hashlib.sha256(str(path).encode()).hexdigest()[:12]}.json"


def known(record: Path, path: Path) -> tuple[dict[str, Any] | None, str | None]:
    """Return (what was written down, None) where ``path`` is still that very file, else (None, why not)."""
    try:
        document = strict_json.read(record)
        now = sif.read(path)
        if document["path"] != str(path) or any(document[key] != value for key, value in now.file.items()):
            return None, f"{path} is not the file that was staged: it was replaced or changed since"
        return dict(document), None
    except FileNotFoundError:
        return None, f"nothing is known of {path}: {record} is missing"
    except (KitError, OSError, ValueError, KeyError, TypeError) as error:
        return None, str(error)
