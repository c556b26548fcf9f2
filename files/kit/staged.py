# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Check a staged dataset or model before a job uses it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kit import strict_json
from kit.errors import KitError
from kit.files import sha256

STAND_IN = "stand-in"
FACTS = ("name", "source", "description", "revision", "train", "test", "rows")


def read_staged(folder: Path, *, hashed: bool = True) -> dict[str, Any]:
    """Return the staged folder's provenance after comparing its files with it; raise KitError if they differ.

    Without ``hashed`` only sizes are compared, so that many gigabytes of weights are not read twice.
    """
    remedy = "stage it again (the playbooks do it)"
    try:
        provenance = strict_json.read(folder / "provenance.json")
        for name, file in provenance["files"].items():
            path = folder / name
            size = path.stat().st_size
            if size != file["size"]:
                raise KitError(f"{path} is damaged: it has {size} bytes, provenance.json says {file['size']}; {remedy}")
            if hashed and sha256(path) != file["sha256"]:
                raise KitError(f"{path} is damaged: its SHA-256 is not the one in provenance.json; {remedy}")
        return {name: provenance[name] for name in FACTS if name in provenance}
    except OSError as error:
        raise KitError(f"{folder}: cannot read {error.filename}: {error.strerror}; {remedy}") from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise KitError(f"{folder}: provenance.json is damaged ({error!r}); {remedy}") from error


def is_stand_in(folder: Path) -> bool:
    """Return whether the staged folder holds a stand-in, generated because the real one was not available."""
    return bool(strict_json.read(folder / "provenance.json")["source"] == STAND_IN)
