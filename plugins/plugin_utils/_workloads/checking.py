# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Check manifests for their authors: everything that can be checked without a cluster, each fault with its line.

PRIVATE to the collection.
"""

from __future__ import annotations

import os
import typing as t
from dataclasses import dataclass
from pathlib import Path

from ansible_collections.mlops.hpc_validation.plugins.module_utils._common import scalars
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._common import schema, strict_yaml, tree
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._workloads import (
    criteria_check,
    manifests,
    soundness,
    surroundings,
)

Place = strict_yaml.Place
Found = t.Iterator[tuple[Place, str]]


class CheckError(Exception):
    """There is no manifest to check."""


@dataclass(frozen=True, order=True)
class Fault:
    """A fault at a key of a manifest; the key is empty if the file or the folder itself is at fault."""

    file: str
    line: int
    key: str
    why: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {f'{self.key}: ' if self.key else ''}{self.why}"


def manifests_in(folder: str) -> list[Path]:
    """Return the manifest of a workload's folder, or those of all workloads in it. Raise CheckError if it has none."""
    if not folder:
        raise CheckError("no folder was given: add -e folder=FOLDER, such as -e folder=workloads/my_training")
    root = Path(os.path.abspath(os.path.expanduser(folder)))
    if not root.is_dir():
        raise CheckError(f"the folder {root} does not exist")
    own = root / manifests.MANIFEST
    found = [own] if own.exists() else sorted(root.glob(f"*/{manifests.MANIFEST}"))
    if not found:
        raise CheckError(
            f"neither {root} nor a folder in it has a {manifests.MANIFEST}. To start with a workload that passes: "
            "ansible-playbook mlops.hpc_validation.new_workload -e name=NAME"
        )
    return found


def check(path: Path, folders: t.Iterable[str] = ()) -> list[Fault]:
    """Return all faults of the manifest at `path`, by line; `folders` have further workloads of the site."""
    try:
        raw = path.read_bytes()
        if len(raw) > manifests.MAX_BYTES:
            return [Fault(str(path), 1, "", f"it is larger than {manifests.MAX_BYTES} bytes: not a manifest")]
        source = strict_yaml.review(raw.decode("utf-8"))
    except OSError as exc:
        return [Fault(str(path), 1, "", f"it cannot be read: {exc.strerror}")]
    except UnicodeDecodeError as exc:
        line = raw[: exc.start].count(b"\n") + 1
        return [Fault(str(path), line, "", f"byte {exc.start} is not UTF-8")]
    found = [Fault(str(path), refusal.line, "", refusal.why) for refusal in source.refused]
    if not source.lines and not found:
        found = [Fault(str(path), 1, "", "it is empty")]
    if source.lines:
        others = surroundings.around(path, folders)
        places = [*_folder(path.parent), *_manifest(source.value, path.parent, others)]
        found += [Fault(str(path), source.line(place), _key(source.value, place), why) for place, why in places]
    return sorted(set(found))


def report(paths: list[Path], faults: list[Fault]) -> list[str]:
    """Return the faults, one line each and safe to print, and a summary line."""
    lines = [scalars.printable(str(fault)) for fault in faults]
    read = f"{len(paths)} manifest{'s' if len(paths) > 1 else ''} checked"
    if not faults:
        return [f"{read}: no fault that can be found without a cluster"]
    return [*lines, f"{read}: {len(faults)} fault{'s' if len(faults) > 1 else ''}, as listed above"]


def _key(manifest: t.Any, place: Place) -> str:
    """Return the path to a key, with the ID of a criterion in place of its position."""
    if len(place) > 1 and place[0] == "criteria" and isinstance(place[1], int):
        criterion = manifest["criteria"][place[1]]
        name = criterion.get("id") if isinstance(criterion, dict) else None
        if isinstance(name, str):
            return ".".join(["criteria", name, *map(str, place[2:])])
    return schema.place_text(place)


def _folder(folder: Path) -> Found:
    """Yield what prevents the folder from being deployed."""
    try:
        tree.read_tree(folder)
    except (OSError, ValueError) as exc:
        yield (), f"the folder cannot be deployed: {exc}"


def _manifest(manifest: t.Any, folder: Path, others: surroundings.Surroundings) -> Found:
    if not isinstance(manifest, dict):
        yield (), "expected keys with values, such as id: TEST-1"
        return
    own = set(_one(manifest, folder, others))
    yield from own
    options = manifest.get("options")
    for name, option in options.items() if isinstance(options, dict) else ():
        try:
            merged = manifests.with_option({key: value for key, value in manifest.items() if key != "options"}, option)
        except (AttributeError, KeyError, TypeError):  # one of the two does not match the schema
            continue
        for place, why in set(_one(merged, folder, others)) - own:
            yield ("options", name, *_place_of_change(merged["criteria"], place)), why


def _place_of_change(criteria: list[dict[str, t.Any]], place: Place) -> Place:
    """Return the place in an option for `place` in the merged manifest: an option has criteria by their IDs."""
    if len(place) > 1 and place[0] == "criteria":
        return ("criteria", criteria[place[1]]["id"], *place[2:])
    return place


def _one(manifest: dict[str, t.Any], folder: Path, others: surroundings.Surroundings) -> Found:
    """Yield the faults of a manifest, except those of its options."""
    criteria = list(criteria_check.faults(manifest))
    told = {place[:2] for place, _why in criteria}
    broken: set[t.Any] = set()
    for fault in schema.faults("manifest", manifest):
        broken.update(fault.place[:1])
        if fault.place[:2] not in told:  # the reader of criteria reports the same in plain words
            yield fault.place, fault.why
    yield from criteria
    yield from soundness.unsound(manifest, folder, broken)
    yield from surroundings.faults(manifest, folder, others, broken)
