# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Create the folder of a new workload that passes unchanged, from files/scaffold. PRIVATE to the collection."""

from __future__ import annotations

import itertools
import json
import os
import re
import shlex
import shutil
import string
import tempfile
import typing as t
from dataclasses import dataclass
from pathlib import Path

from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._common.paths import FILES
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._workloads import surroundings

COLLECTION_NAME = "mlops.hpc_validation"
TEMPLATES = FILES / "scaffold"
PLAIN = re.compile(r"[\w./-]+")
NAME = re.compile(r"[a-z][a-z0-9_]{0,62}")  # the same as in files/schemas/manifest.json


class ScaffoldError(Exception):
    """The folder cannot be created: the name is invalid, the folder exists, or the disk fails."""


@dataclass(frozen=True)
class Scaffold:
    """A new workload: its folder, its ID, and the text of each file."""

    folder: Path
    id: str
    files: dict[str, str]


def plan(name: str, dest: str, templates: Path = TEMPLATES) -> Scaffold:
    """Return the content of the folder for the workload `name` in `dest`. Raise ScaffoldError."""
    if not name:
        raise ScaffoldError("a workload needs a name: add -e name=NAME (make workload NAME=…), such as my_training")
    if not NAME.fullmatch(name):
        raise ScaffoldError(
            f"name: {name!r} cannot be the name of a workload; expected at most 63 lower-case letters, digits and '_', "
            "starting with a letter, such as my_training"
        )
    parent = Path(os.path.abspath(os.path.expanduser(dest)))
    folder = parent / name
    if os.path.lexists(folder):
        raise ScaffoldError(f"{folder} already exists; nothing was changed. Choose another name, or remove it first")
    others = surroundings.around(folder / surroundings.MANIFEST)
    if name in surroundings.TAKEN or name in others.names:
        whose = others.names.get(name, f"<share>/scripts/{name} of the collection itself")
        raise ScaffoldError(f"name: {name} is taken by {whose}; choose another")
    identity = _free_id(name, others.ids)
    return Scaffold(folder, identity, _rendered(templates, {"name": name, "id": identity}))


def _free_id(name: str, taken: t.Container[str]) -> str:
    """Return MY-TRAINING-1 for my_training, or with the first higher number that no other workload has."""
    stem = "-".join(part for part in name.upper().split("_") if part)
    return next(found for number in itertools.count(1) if (found := f"{stem}-{number}") not in taken)


def _rendered(templates: Path, values: dict[str, str]) -> dict[str, str]:
    try:
        files = {path.name: path.read_text(encoding="utf-8") for path in sorted(templates.iterdir()) if path.is_file()}
        return {name: string.Template(text).substitute(values) for name, text in files.items()}
    except (OSError, KeyError, ValueError) as exc:
        raise ScaffoldError(f"{templates} cannot be used ({exc}); is the collection installed completely?") from exc


def make(scaffold: Scaffold) -> None:
    """Create the folder as a whole or not at all. Raise ScaffoldError."""
    parent = scaffold.folder.parent
    try:
        parent.mkdir(parents=True, exist_ok=True)
        unfinished = Path(tempfile.mkdtemp(prefix=f".{scaffold.folder.name}.", dir=parent))
        try:
            for name, text in scaffold.files.items():
                (unfinished / name).write_text(text, encoding="utf-8")
            unfinished.chmod(0o755)
            unfinished.rename(scaffold.folder)
        except BaseException:
            shutil.rmtree(unfinished, ignore_errors=True)
            raise
    except OSError as exc:
        raise ScaffoldError(f"{scaffold.folder} cannot be created: {exc.strerror or exc}") from exc


def what_next(scaffold: Scaffold) -> list[str]:
    """Return the lines to show after creating the folder: what it contains, and how to check and run it."""
    folders = json.dumps({"hpc_validation_workload_folders": [str(scaffold.folder.parent)]})
    # Ansible splits name=value at blanks, but not JSON.
    folder = f"folder={scaffold.folder}" if PLAIN.fullmatch(str(scaffold.folder)) else _json("folder", scaffold.folder)
    play = f"ansible-playbook {COLLECTION_NAME}"
    return [
        f"{scaffold.folder}: workload {scaffold.id}, {', '.join(sorted(scaffold.files))}",
        f"check it:  {play}.check_workload -e {folder}",
        f"run it:    {play}.validate -i INVENTORY --tags {scaffold.id} -e {shlex.quote(folders)}",
    ]


def _json(name: str, path: Path) -> str:
    return shlex.quote(json.dumps({name: str(path)}))
