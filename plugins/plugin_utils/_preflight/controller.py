# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Check the controller: Ansible's version, the Python packages that judging requires, the collection's own files."""

from __future__ import annotations

import hashlib
import importlib.metadata
import typing as t
from functools import partial
from pathlib import Path

from ansible.release import __version__ as ansible_version
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._common.json_files import read_json
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._common.paths import COLLECTION
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._preflight import checks

Json = dict[str, t.Any]
# In earlier releases a worker may return a play's last result twice, and the next play hangs (upstream 85879).
LEAST_ANSIBLE = "2.19.4"
PACKAGES = ("jmespath", "jsonschema", "PyYAML")
judged = partial(checks.judged, where={"host": "localhost"})


def findings(root: Path = COLLECTION, version: str = ansible_version) -> list[Json]:
    """Return the findings about this controller."""
    return [_ansible(version), _packages(), _collection(root)]


def _ansible(version: str) -> Json:
    return checks.version_at_least(
        "controller.ansible",
        LEAST_ANSIBLE,
        version,
        source="ansible.release",
        missing=f"expected a version, found {version!r}",
        where={"host": "localhost"},
    )


def _packages() -> Json:
    missing = []
    for name in PACKAGES:
        try:
            importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            missing.append(name)
    return judged(
        "controller.packages",
        "eq",
        0,
        len(missing),
        source="importlib.metadata",
        unit="missing",
        detail=", ".join(missing) or ", ".join(PACKAGES),
    )


def _collection(root: Path) -> Json:
    """Compare an installed collection with its list of files and checksums; a checkout has no such list."""
    listed = root / "FILES.json"
    if not listed.is_file():
        return checks.finding(
            "controller.collection",
            "recorded",
            value=None,
            bound="= 0",
            source=str(root),
            why="a checkout, which has no list of published files",
            where={"host": "localhost"},
        )
    files: list[Json] = []
    changed: list[str] | None = None
    missing = None
    try:
        files = [entry for entry in read_json(listed)["files"] if entry["ftype"] == "file"]
        if not files:
            raise ValueError("it lists no files")
        changed = [entry["name"] for entry in files if not _is_whole(root / entry["name"], entry["chksum_sha256"])]
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as exc:
        missing = f"{listed} cannot be read: {exc}"
    return judged(
        "controller.collection",
        "eq",
        0,
        None if changed is None else len(changed),
        source=str(listed),
        unit="changed or missing",
        missing=missing,
        detail=", ".join(changed[:5]) if changed else f"{len(files)} files",
    )


def _is_whole(path: Path, sha256: str) -> bool:
    return path.is_file() and hashlib.sha256(path.read_bytes()).hexdigest() == sha256
