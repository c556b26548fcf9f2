# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Find, load and validate workloads. A workload is a folder with a workload.yml."""

from __future__ import annotations

import copy
import functools
import graphlib
import typing as t
from pathlib import Path

from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._common import schema, strict_yaml
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._common.paths import FILES
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._judge.overrides import merge
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._workloads import criteria_check, soundness

MANIFEST = "workload.yml"
COMMON = FILES / "criteria"
MAX_BYTES = 256 * 1024
NO_OPTION = "none"  # the value in the context of criteria if none is chosen


class WorkloadError(Exception):
    """A manifest is missing, unreadable or invalid, or a selection names something that does not exist."""


def load_manifest(path: Path, option: str | None = None) -> dict[str, t.Any]:
    """Return the validated manifest at `path`, with `folder` (absolute), `manifest` and `option` added, and defaults.

    `folder` is the one whose files it runs, `manifest` is `path`.
    `option`: the chosen one of its options; none if not given. All options are validated. Raise WorkloadError naming
    the file, the key and what was expected.
    """
    manifest = _read(path)
    options = manifest.pop("options", {})
    whole = {name: _with_option(manifest, change, path, name) for name, change in options.items()}
    if option is None:
        return _whole(manifest, path)
    if not isinstance(option, str) or option not in whole:
        raise WorkloadError(
            f"hpc_validation_workload_options: unknown option {option!r} of {manifest['id']}; available: "
            f"{', '.join(sorted(whole)) or 'none'}"
        )
    return whole[option]


def _with_option(manifest: dict[str, t.Any], change: dict[str, t.Any], path: Path, name: str) -> dict[str, t.Any]:
    changed = with_option(manifest, change)
    # Criteria that the option leaves as they are have been validated with the file, and are most of the work.
    left = {criterion["id"] for criterion in manifest["criteria"]} - set(change.get("criteria", {}))
    others = [criterion for criterion in changed["criteria"] if criterion.get("id") not in left]
    if schema.problems("manifest", {**changed, "criteria": others or changed["criteria"][:1]}):
        _require_schema(changed, f"{path}: options.{name}")
    return _whole(changed, path, name)


def with_option(manifest: dict[str, t.Any], option: dict[str, t.Any]) -> dict[str, t.Any]:
    """Return the manifest with the option applied: mappings merged deeply, criteria by ID, anything else replaced."""
    changes = option.get("criteria", {})
    known = {criterion["id"]: criterion for criterion in manifest["criteria"]}
    added = {name: {"id": name} for name in changes if name not in known}
    criteria = merge({**known, **added}, changes)
    return {**merge(manifest, option), "criteria": list(criteria.values())}


def _read(path: Path) -> dict[str, t.Any]:
    """Return the content of the file, which matches the schema."""
    try:
        with path.open("rb") as stream:
            raw = stream.read(MAX_BYTES + 1)
        if len(raw) > MAX_BYTES:
            raise WorkloadError(f"{path} is larger than {MAX_BYTES} bytes: not a manifest")
        manifest = strict_yaml.parse(raw.decode("utf-8"))
    except OSError as exc:
        raise WorkloadError(f"{path} cannot be read: {exc.strerror}") from exc
    except (strict_yaml.YAMLError, UnicodeDecodeError) as exc:
        raise WorkloadError(f"{path} is not YAML: {exc}") from exc
    _require_schema(manifest, str(path))
    _require_ids_once(manifest["criteria"], str(path))
    return t.cast("dict[str, t.Any]", manifest)


def _require_ids_once(criteria: list[dict[str, t.Any]], where: str) -> None:
    """Reject a second criterion with the same ID: where criteria are looked up by ID, the first would be lost."""
    ids = [criterion["id"] for criterion in criteria]
    twice = sorted({name for name in ids if ids.count(name) > 1})
    if twice:
        raise WorkloadError(f"{where}: criteria: {', '.join(twice)} appears twice; give each criterion its own ID")


def _require_schema(manifest: t.Any, where: str) -> None:
    try:
        schema.require("manifest", manifest, where)
    except schema.SchemaError as exc:
        raise WorkloadError(str(exc)) from exc


def _whole(manifest: dict[str, t.Any], path: Path, option: str = NO_OPTION) -> dict[str, t.Any]:
    """Return the manifest with everything that a run needs, after checking it."""
    manifest = copy.deepcopy(manifest)
    where = f"{path}: options.{option}" if option != NO_OPTION else str(path)
    for place, why in (*soundness.unsound(manifest, path.parent), *criteria_check.without_edge(manifest)):
        raise WorkloadError(f"{where}: {schema.place_text(place)}: {why}")
    for key in ("needs", "data", "models"):
        manifest.setdefault(key, [])
    manifest.setdefault("alone", "baseline" in manifest or "legs" in manifest)
    manifest.setdefault("edge", False)
    manifest["output"].setdefault("artifacts", [])
    manifest["output"].setdefault("logs", "jobs")
    manifest["criteria"] += common_criteria(manifest)
    _require_ids_once(manifest["criteria"], where)
    folder = soundness.code_folder(manifest, path.parent).resolve()
    return {**manifest, "folder": str(folder), "manifest": str(path.resolve()), "option": option}


def common_criteria(manifest: dict[str, t.Any]) -> list[dict[str, t.Any]]:
    """Return the criteria that a workload has besides its own: for GPUs and ranks, if it has any, and for images.

    Raise WorkloadError naming the collection's file that cannot be read.
    """
    criteria: list[dict[str, t.Any]] = []
    kinds = {"gpu": manifest["resources"].get("gres"), "ranks": manifest.get("launcher"), "container": True}
    for name in (name for name, has in kinds.items() if has):
        path = COMMON / f"{name}.yml"
        try:
            criteria += copy.deepcopy(_common(path))
        except (OSError, strict_yaml.YAMLError, TypeError) as exc:
            raise WorkloadError(f"{path} cannot be read ({exc}); is the collection installed completely?") from exc
    return criteria


@functools.cache  # each workload has them, and each of its options
def _common(path: Path) -> list[dict[str, t.Any]]:
    return list(strict_yaml.read(path))


def find_workloads(folders: t.Iterable[str], options: dict[str, t.Any] | None = None) -> list[dict[str, t.Any]]:
    """Return all manifests in `folders`, each after those that it needs, else by ID; `options`: the chosen, by ID.

    Raise WorkloadError for an invalid manifest, a missing folder, a duplicate ID and unmet or circular needs.
    """
    found: dict[str, dict[str, t.Any]] = {}
    options = options or {}
    for folder in folders:
        root = Path(folder)
        if not root.is_dir():
            raise WorkloadError(f"the workload folder {folder} does not exist")
        for path in sorted(root.glob(f"*/{MANIFEST}")):
            manifest = load_manifest(path)
            if manifest["id"] in options:
                manifest = load_manifest(path, options[manifest["id"]])
            if manifest["id"] in found:
                other = Path(found[manifest["id"]]["manifest"]).parent
                raise WorkloadError(f"{path}: id: {manifest['id']} is already the id of {other}")
            found[manifest["id"]] = manifest
    unknown = sorted(set(options) - set(found))
    if unknown:
        raise WorkloadError(
            f"hpc_validation_workload_options: unknown workload {', '.join(unknown)}; available: "
            f"{', '.join(sorted(found)) or 'none'}"
        )
    return in_order(found)


def in_order(workloads: dict[str, dict[str, t.Any]]) -> list[dict[str, t.Any]]:
    """Return `workloads` (by ID), each after those that it needs. Raise WorkloadError for unknown or circular needs."""
    for workload in workloads.values():
        unknown = [need for need in workload["needs"] if need not in workloads]
        if unknown:
            raise WorkloadError(f"{workload['manifest']}: needs: unknown workload {', '.join(unknown)}")
        late = [need for need in workload["needs"] if workloads[need].get("edge")]
        if late:
            raise WorkloadError(
                f"{workload['manifest']}: needs: {', '.join(late)} is judged after all others, since it is measured on "
                "edge hosts: nothing can need it"
            )
    sorter = graphlib.TopologicalSorter({name: workload["needs"] for name, workload in workloads.items()})
    try:
        sorter.prepare()
    except graphlib.CycleError as exc:
        raise WorkloadError(f"{MANIFEST}: circular needs: {' needs '.join(reversed(exc.args[1]))}") from exc
    order: list[dict[str, t.Any]] = []
    ready = sorted(sorter.get_ready())
    while ready:
        order.append(workloads[ready[0]])
        sorter.done(ready.pop(0))
        ready = sorted([*ready, *sorter.get_ready()])
    return order
