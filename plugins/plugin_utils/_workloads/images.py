# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Plan the Apptainer images of the selected workloads, and where each comes from. PRIVATE to the collection."""

from __future__ import annotations

import re
import typing as t
from pathlib import Path

from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._common.paths import FILES

Json = dict[str, t.Any]
KINDS = ("venv", "apptainer")
SOURCES = ("path", "build")
KEYS = {"source", "path", "sha256", "base", "python"}
SETTING = "hpc_validation_images"
BY_WORKLOAD = "hpc_validation_workload_runtime"
BASE = "docker://docker.io/library/python:3.13-slim-trixie"
PYTHON = "/opt/hpc_validation/runtime/bin/python"  # where containers/runtime.def puts it


class ImagePlanError(Exception):
    """A setting of images or runtimes is invalid."""


def check(settings: Json, workloads: list[str], files: Path = FILES) -> None:
    """Raise ImagePlanError naming the invalid setting.

    `settings`: {runtime, workload_runtime, images, binds} as in the inventory. `workloads`: all workload IDs.
    """
    by_workload = settings.get("workload_runtime") or {}
    for name in by_workload:
        if name not in workloads:
            raise ImagePlanError(f"{BY_WORKLOAD}: unknown workload '{name}'; available: {', '.join(workloads)}")
    kinds = {"hpc_validation_runtime": settings.get("runtime") or KINDS[0]}
    for where, kind in (kinds | {f"{BY_WORKLOAD}.{name}": kind for name, kind in by_workload.items()}).items():
        if kind not in KINDS:
            raise ImagePlanError(f"{where}: expected one of {', '.join(KINDS)}, found {kind!r}")
    binds = settings.get("binds") or []
    if not isinstance(binds, list) or not all(isinstance(bind, str) and bind.startswith("/") for bind in binds):
        raise ImagePlanError(f"hpc_validation_apptainer.binds: expected a list of absolute paths, found {binds!r}")
    _check_images(settings.get("images") or {}, sorted(path.stem for path in (files / "requirements").glob("*.txt")))


def _check_images(images: Json, known: list[str]) -> None:
    for name, given in images.items():
        where = f"{SETTING}.{name}"
        if name not in known:
            raise ImagePlanError(f"{where}: unknown environment; available: {', '.join(known)}")
        if not isinstance(given, dict) or set(given) - KEYS:
            raise ImagePlanError(
                f"{where}: expected a mapping with some of the keys {', '.join(sorted(KEYS))}, found {given!r}"
            )
        if given.get("source", "path") not in SOURCES:
            raise ImagePlanError(f"{where}.source: expected one of {', '.join(SOURCES)}, found {given['source']!r}")
        amiss = _amiss(given)
        if amiss:
            raise ImagePlanError(f"{where}{amiss}")


def _amiss(given: Json) -> str | None:
    built = given.get("source") == "build"
    out_of_place = sorted(set(given) & ({"path", "sha256", "python"} if built else {"base"}))
    if out_of_place:
        return f".{out_of_place[0]} does not belong to source: {'build' if built else 'path'}; leave it out"
    if "sha256" in given and not re.fullmatch(r"[0-9a-f]{64}", str(given["sha256"])):
        return f".sha256: expected 64 lower-case hexadecimal digits, found {given['sha256']!r}"
    if not isinstance(given.get("path", "/"), str):
        return f".path: expected a path, found {given['path']!r}"
    if not re.fullmatch(r"/[^\x00-\x1f\x7f]+", str(given.get("python", PYTHON))):
        return f".python: expected an absolute path in the image, found {given['python']!r}"
    if not re.fullmatch(r"[a-z][a-z-]*:[^\x00-\x20\x7f]+", str(given.get("base", BASE))):
        return f".base: expected an Apptainer image source, such as {BASE}, found {given['base']!r}"
    return None


def image(name: str, given: Json, share: str) -> Json:
    """Return {key, name, kind, locked, path, copied, incoming, sha256, base, python} of the image of an environment.

    `path` is its path on the cluster, `copied` the file on the controller that is first copied to `incoming`, `locked`
    whether it must contain the collection's lock, which an image with its Python elsewhere does not. Raise
    ImagePlanError if that file does not exist or has no SHA-256 in the settings.
    """
    folder = f"{share}/containers"
    path, copied = f"{folder}/{name}_latest.sif", None
    if "path" in given:
        if Path(share) in Path(given["path"]).parents:
            path = given["path"]
        else:
            copied = str(Path(given["path"]).expanduser().absolute())
            if not Path(copied).is_file():
                raise ImagePlanError(
                    f"{SETTING}.{name}.path: expected a local file or one below {share}, found {given['path']!r}"
                )
            if "sha256" not in given:
                raise ImagePlanError(
                    f"{SETTING}.{name}.sha256 is missing: give the SHA-256 of the file (sha256sum {copied})"
                )
    return {
        "key": f"{name}.sif",
        "name": name,
        "kind": "apptainer",
        "locked": "python" not in given,
        "path": path,
        "copied": copied,
        "incoming": f"{folder}/.incoming/{name}.sif" if copied else None,
        "sha256": given.get("sha256"),
        "base": given.get("base", BASE) if given.get("source") == "build" else None,
        "python": given.get("python", PYTHON),
    }
