# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Find faults in a manifest that matches its schema. PRIVATE to the collection."""

from __future__ import annotations

import typing as t
from pathlib import Path

Manifest = dict[str, t.Any]
Faults = t.Iterator[tuple[tuple[str, ...], str]]


def unsound(manifest: Manifest, folder: Path, broken: t.Container[str] = ()) -> Faults:
    """Yield the invalid keys of a manifest in `folder`, each with the reason.

    `broken` are top-level keys that are missing or do not match the schema; they are not checked.
    """
    for needed, check in _CHECKS:
        if not any(key in broken for key in needed):
            yield from check(manifest, folder)
    for key, value in manifest.items():
        if (
            key != "criteria"
            and key not in broken
            and any(ord(letter) < 32 for text in _texts(value) for letter in text)
        ):
            yield (key,), "holds a line break or another control character"


def _name(manifest: Manifest, folder: Path) -> Faults:
    if manifest["name"] != folder.name:
        yield ("name",), f"expected the folder's name {folder.name!r}, found {manifest['name']!r}"


def code_folder(manifest: Manifest, folder: Path) -> Path:
    """Return the folder whose files a workload runs: that of its manifest, or the one beside it that `code` names."""
    return folder.parent / manifest["code"] if "code" in manifest else folder


def _code(manifest: Manifest, folder: Path) -> Faults:
    if "code" not in manifest:
        return
    if manifest["code"] == folder.name:
        yield ("code",), "is its own folder; leave it out"
    elif not code_folder(manifest, folder).is_dir():
        yield ("code",), f"{folder.parent} has no folder {manifest['code']!r}"


def _script(manifest: Manifest, folder: Path) -> Faults:
    program, script = [*manifest["command"], ""][:2]
    code = code_folder(manifest, folder)
    if program == "python" and not script.startswith("-") and not (code / script).is_file():
        yield ("command",), f"the script {script!r} is not in {code}"


def _baseline(manifest: Manifest, _folder: Path) -> Faults:
    """Yield the faults of a baseline: the same workload on fewer ranks, started by a launcher."""
    if "baseline" not in manifest:
        return
    if "launcher" not in manifest:
        yield ("baseline",), "needs a launcher, which starts fewer ranks"
    each = manifest["resources"]["ntasks_per_node"]
    ranks, baseline = each * manifest["resources"]["nodes"], manifest["baseline"]["ranks"]
    if baseline >= ranks:
        yield ("baseline", "ranks"), f"expected fewer ranks than the workload's {ranks}"
    elif baseline > each and baseline % each:
        yield ("baseline", "ranks"), f"{baseline} ranks do not fill nodes with {each} each"


def _legs(manifest: Manifest, _folder: Path) -> Faults:
    """Yield the faults of legs, as files/kit/ranks/legs.py will find them in the job."""
    if "legs" not in manifest:
        return
    if "launcher" not in manifest:
        yield ("legs",), "needs a launcher, which starts the ranks"
    if "baseline" in manifest:
        yield ("legs",), "a baseline has legs of its own: give one of the two"
    names = [text.partition(":")[0] for text in manifest["legs"]]
    if names.count("measured") != 1 or len(set(names)) < len(names):
        yield ("legs",), f"expected different names, and one of them measured, found {', '.join(names)}"
    each = manifest["resources"]["ntasks_per_node"]
    most = each * manifest["resources"]["nodes"]
    for position, text in enumerate(manifest["legs"]):
        ranks = int(text.split(":")[1] or most) if ":" in text else most
        if ranks > most:
            yield ("legs", str(position)), f"{text!r}: expected at most the workload's {most} ranks"
        elif ranks > each and ranks % each:
            yield ("legs", str(position)), f"{text!r}: {ranks} ranks do not fill nodes with {each} each"


def _config(manifest: Manifest, folder: Path) -> Faults:
    code = code_folder(manifest, folder)
    if "config" in manifest and not (code / manifest["config"]).is_file():
        yield ("config",), f"{manifest['config']!r} is not in {code}"


_CHECKS: tuple[tuple[tuple[str, ...], t.Callable[[Manifest, Path], Faults]], ...] = (
    (("name",), _name),
    (("code",), _code),
    (("command", "code"), _script),
    (("baseline", "launcher", "resources"), _baseline),
    (("legs", "launcher", "baseline", "resources"), _legs),
    (("config", "code"), _config),
)


def _texts(value: t.Any) -> t.Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, (dict, list)):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _texts(item)
