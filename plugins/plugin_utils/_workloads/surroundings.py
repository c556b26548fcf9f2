# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Check what a manifest refers to: other workloads, environments, datasets, models.

PRIVATE to the collection.
"""

from __future__ import annotations

import os
import typing as t
from dataclasses import dataclass, field
from pathlib import Path

from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._common import strict_yaml
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._common.paths import FILES
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._workloads.soundness import code_folder

MANIFEST = "workload.yml"
# Folders of the collection itself in <share>/scripts, where each workload has a folder with its name.
TAKEN = ("containers", "datasets", "kit", "models", "requirements")
SHELLS = ("bash", "sh")

Manifest = dict[str, t.Any]
Faults = t.Iterator[tuple[tuple[t.Any, ...], str]]


@dataclass
class Surroundings:
    """The other workloads that a run would find: the folder of each ID, and of each name."""

    ids: dict[str, str] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)


def around(path: Path, folders: t.Iterable[str] = ()) -> Surroundings:
    """Return the workloads of the collection, those next to the manifest at `path`, and those in further folders."""
    others = Surroundings()
    roots = [FILES / "workloads", path.parent.parent, *(Path(os.path.expanduser(folder)) for folder in folders)]
    for root in dict.fromkeys(root.resolve() for root in roots):
        for other in sorted(root.glob(f"*/{MANIFEST}")):
            if other.resolve() != path.resolve():
                others.names.setdefault(other.parent.name, str(other.parent))
                others.ids.setdefault(_id(other), str(other.parent))
    return others


def _id(path: Path) -> str:
    """Return the ID of another workload, empty if its manifest cannot be read, which is not a fault of this one."""
    try:
        manifest = strict_yaml.read(path)
    except (OSError, strict_yaml.YAMLError):
        return ""
    found = manifest.get("id") if isinstance(manifest, dict) else None
    return found if isinstance(found, str) else ""


def faults(manifest: Manifest, folder: Path, others: Surroundings, broken: t.Container[str] = ()) -> Faults:
    """Yield the faults in references to other things; the top-level keys in `broken` are not checked."""
    code = folder if "code" in broken else code_folder(manifest, folder)
    for key, check in _CHECKS.items():
        if key not in broken and key in manifest:
            yield from check(manifest, code, others)


def _id_is_free(manifest: Manifest, _folder: Path, others: Surroundings) -> Faults:
    if manifest["id"] in others.ids:
        yield ("id",), f"{manifest['id']} is already the id of {others.ids[manifest['id']]}; choose another"


def _name_is_free(manifest: Manifest, _folder: Path, others: Surroundings) -> Faults:
    name = manifest["name"]
    if name in others.names:
        yield ("name",), f"{name} is already the name of {others.names[name]}: both would share a folder on the share"
    if name in TAKEN:
        yield ("name",), f"{name} is the name of a folder of the collection itself on the share; choose another"


def _needs_are_known(manifest: Manifest, _folder: Path, others: Surroundings) -> Faults:
    for position, need in enumerate(manifest["needs"]):
        if need == manifest.get("id"):
            yield ("needs", position), f"{need} needs itself"
        elif need not in others.ids:
            known = ", ".join(sorted(filter(None, others.ids)))
            yield (
                ("needs", position),
                f"unknown workload {need}; available: {known}. Those of another folder are available if "
                "hpc_validation_workload_folders names it",
            )


def _runtime_is_known(manifest: Manifest, _folder: Path, _others: Surroundings) -> Faults:
    known = sorted(path.stem for path in (FILES / "requirements").glob("*.txt"))
    if manifest["runtime"] not in known:
        yield ("runtime",), f"unknown environment {manifest['runtime']!r}; available: {', '.join(known)}"


def _sources_are_known(key: str, kind: str) -> t.Callable[[Manifest, Path, Surroundings], Faults]:
    def check(manifest: Manifest, _folder: Path, _others: Surroundings) -> Faults:
        known = sorted(path.parent.name for path in (FILES / kind).glob("*/source.yml"))
        for position, name in enumerate(manifest[key]):
            if name not in known:
                yield (key, position), f"{name!r} does not exist in files/{kind}; available: {', '.join(known)}"

    return check


def _command_can_start(manifest: Manifest, folder: Path, _others: Surroundings) -> Faults:
    program, script = [*manifest["command"], ""][:2]
    if "launcher" in manifest and program != "python":
        yield ("command", 0), "expected python: with a launcher the runtime's interpreter starts the script"
    elif program in SHELLS and not script.startswith(("-", "/")) and not (folder / script).is_file():
        yield ("command", 1), f"the script {script!r} is not in {folder}"
    elif not program.startswith("/") and (folder / program).is_file():
        yield (
            ("command", 0),
            f"{program} is deployed without execute permission; name a program to run it, such as [bash, {program}]",
        )


_CHECKS: dict[str, t.Callable[[Manifest, Path, Surroundings], Faults]] = {
    "id": _id_is_free,
    "name": _name_is_free,
    "needs": _needs_are_known,
    "runtime": _runtime_is_known,
    "data": _sources_are_known("data", "datasets"),
    "models": _sources_are_known("models", "models"),
    "command": _command_can_start,
}
