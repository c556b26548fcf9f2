# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Put an Apptainer image on the share: existing, copied, or built; checked, hashed and recorded."""

from __future__ import annotations

import os
import platform
import stat
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kit.errors import KitError
from kit.files import sha256, write_json
from kit.process.locks import sole
from kit.runtime import image_build, sif
from kit.runtime.image_record import known, record_path


@dataclass(frozen=True)
class Wanted:
    """An image required at ``path``; one of the other three says how it gets there, otherwise it must exist."""

    name: str
    path: Path
    sha256: str | None = None
    incoming: Path | None = None  # a copy, to be put in place
    recipe: image_build.Recipe | None = None


def is_ready(wanted: Wanted, folder: Path) -> bool:
    """Return whether nothing is left to copy, build or hash."""
    document, _why = known(record_path(folder, wanted.name, wanted.path), wanted.path)
    if document is None or (wanted.sha256 and document["sha256"] != wanted.sha256):
        return False
    return wanted.recipe is None or bool(document["recipe"] == wanted.recipe.digest)


def stage(wanted: Wanted, folder: Path, machine: str = platform.machine()) -> dict[str, Any]:
    """Put the image in place and return its description. ``folder`` keeps the records of images.

    Raise KitError if it is missing, truncated, of another architecture or not the requested one.
    """
    started, record = time.monotonic(), record_path(folder, wanted.name, wanted.path)
    record.parent.mkdir(parents=True, exist_ok=True)
    changed = False
    with sole(record.with_suffix(".lock"), f"staging {wanted.path}"):
        if not is_ready(wanted, folder):
            changed = True
            if wanted.recipe:
                built = image_build.build(wanted.recipe, wanted.path, folder)
                _accept(built, wanted, machine)
                os.replace(built, wanted.path)
            elif wanted.incoming and wanted.incoming.exists():
                _accept(wanted.incoming, wanted, machine)
                os.replace(wanted.incoming, wanted.path)
            if not wanted.path.exists():
                raise KitError(
                    f"image {wanted.path} does not exist: pull or build it there, or let hpc_validation_images."
                    f"{wanted.name} name a file (path) or have the login node build it (source: build)"
                )
            _write_down(wanted, record, machine)
        elif wanted.incoming:
            wanted.incoming.unlink(missing_ok=True)  # another run put it in place while this one copied
    document, why = known(record, wanted.path)
    if document is None:
        raise KitError(f"image {wanted.path}: {why}; is another run staging it right now?")
    return {**document, "changed": changed, "seconds": round(time.monotonic() - started, 1)}


def _accept(path: Path, wanted: Wanted, machine: str) -> tuple[sif.Sif, str]:
    """Return header and SHA-256 of an image that may be used here.

    The header is read before the hashing, so that a file replaced in the meantime does not match it.
    """
    found = sif.read(path)
    _require_own(path, os.getuid())
    if found.machine != machine:
        raise KitError(f"image {path} is built for {found.machine}, but this is {machine}: provide one for {machine}")
    digest = sha256(path)
    if wanted.sha256 and digest != wanted.sha256:
        raise KitError(
            f"image {path} has SHA-256 {digest}, expected {wanted.sha256} "
            f"(hpc_validation_images.{wanted.name}.sha256): it is damaged, or not the intended image"
        )
    return found, digest


def _require_own(path: Path, user: int) -> None:
    """Raise KitError if another user can change an image: jobs run its content as this user."""
    file, folder = path.stat(), path.parent.stat()
    if file.st_uid not in (0, user, folder.st_uid):
        raise KitError(f"image {path} belongs to user {file.st_uid}: it must belong to you, root or the folder's owner")
    for place, mode in ((path, file.st_mode), (path.parent, folder.st_mode)):
        if mode & stat.S_IWOTH:
            raise KitError(f"everybody may write to {place}, and so change the image: chmod o-w {place}")


def _write_down(wanted: Wanted, record: Path, machine: str) -> None:
    found, digest = _accept(wanted.path, wanted, machine)
    document = {
        "schema": 1,
        "name": wanted.name,
        "path": str(wanted.path),
        "sha256": digest,
        "machine": machine,
        "recipe": wanted.recipe.digest if wanted.recipe else None,
        **found.file,
    }
    write_json(record, document)
