# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Finds, loads, validates and selects workloads. A workload is a folder with a workload.yml."""

from __future__ import annotations

import copy
import difflib
import graphlib
import importlib.util
import re
import typing as t
from pathlib import Path

from ansible_collections.mlops.hpc_validation.plugins.module_utils import _criteria_spec
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils import _log_patterns, _schema, _yaml

MANIFEST = "workload.yml"
COMMON = Path(__file__).resolve().parents[2] / "files" / "criteria"
MAX_BYTES = 256 * 1024
NO_OPTION = "none"  # what the context of criteria says where none is chosen
LOOKS_LIKE_ID = re.compile(r"[A-Z][A-Z0-9]*(-[A-Z0-9]+)*-[0-9]+(\.[0-9]+)*")


class WorkloadError(Exception):
    """A manifest is missing, unreadable or not valid, or a selection names what does not exist."""


def load_manifest(path: Path, option: str | None = None) -> dict[str, t.Any]:
    """The validated manifest at `path`, with `folder` (absolute) and `option` added and what is optional filled in.

    `option`: which of its alternatives is meant; none of them if not given. All of them are validated. Raises
    WorkloadError naming the file, the key and what was expected.
    """
    manifest = _read(path)
    options = manifest.pop("options", {})
    whole = {name: _whole(with_option(manifest, change), path, name) for name, change in options.items()}
    if option is None:
        return _whole(manifest, path)
    if not isinstance(option, str) or option not in whole:
        raise WorkloadError(
            f"hpc_validation_workload_options names {option!r} for {manifest['id']}, which has "
            f"{', '.join(sorted(whole)) or 'no options'}"
        )
    return whole[option]


def with_option(manifest: dict[str, t.Any], option: dict[str, t.Any]) -> dict[str, t.Any]:
    """The manifest as the option has it: mappings merged deeply, criteria by id, anything else replaced."""
    changes = option.get("criteria", {})
    known = {criterion["id"]: criterion for criterion in manifest["criteria"]}
    added = {name: {"id": name} for name in changes if name not in known}
    criteria = _criteria_spec.merge({**known, **added}, changes)
    return {**_criteria_spec.merge(manifest, option), "criteria": list(criteria.values())}


def _read(path: Path) -> dict[str, t.Any]:
    """What the file says, once it fits the schema."""
    try:
        with path.open("rb") as stream:
            raw = stream.read(MAX_BYTES + 1)
        if len(raw) > MAX_BYTES:
            raise WorkloadError(f"{path} is larger than {MAX_BYTES} bytes: not a manifest")
        manifest = _yaml.parse(raw.decode("utf-8"))
    except OSError as exc:
        raise WorkloadError(f"{path} cannot be read: {exc.strerror}") from exc
    except (_yaml.YAMLError, UnicodeDecodeError) as exc:
        raise WorkloadError(f"{path} is not YAML: {exc}") from exc
    _require_schema(manifest, str(path))
    _require_ids_once(manifest["criteria"], str(path))
    return t.cast("dict[str, t.Any]", manifest)


def _require_ids_once(criteria: list[dict[str, t.Any]], where: str) -> None:
    """Refuses a second criterion of an id: where criteria are told by their ids, the first would be gone."""
    ids = [criterion["id"] for criterion in criteria]
    twice = sorted({name for name in ids if ids.count(name) > 1})
    if twice:
        raise WorkloadError(f"{where}: criteria: {', '.join(twice)} stands twice; give each criterion an id of its own")


def _require_schema(manifest: t.Any, where: str) -> None:
    try:
        _schema.require("manifest", manifest, where)
    except _schema.SchemaError as exc:
        raise WorkloadError(str(exc)) from exc


def _whole(manifest: dict[str, t.Any], path: Path, option: str = NO_OPTION) -> dict[str, t.Any]:
    """The manifest with everything that a run needs to know of it, after it was found to be sound."""
    manifest = copy.deepcopy(manifest)
    where = f"{path}: options.{option}" if option != NO_OPTION else str(path)
    if option != NO_OPTION:
        _require_schema(manifest, where)
    for key, value in manifest.items():
        if key != "criteria" and any(ord(letter) < 32 for text in _texts(value) for letter in text):
            raise WorkloadError(f"{where}: {key}: holds a line break or another control character")
    if manifest["name"] != path.parent.name:
        raise WorkloadError(f"{where}: name: {manifest['name']!r} must be the folder's name, {path.parent.name!r}")
    program, script = [*manifest["command"], ""][:2]
    if program == "python" and not script.startswith("-") and not (path.parent / script).is_file():
        raise WorkloadError(f"{where}: command: the script {script!r} is not in {path.parent}")
    _check_ranks(manifest, where)
    if "config" in manifest and not (path.parent / manifest["config"]).is_file():
        raise WorkloadError(f"{where}: config: {manifest['config']!r} is not in {path.parent}")
    for key in ("needs", "data", "models"):
        manifest.setdefault(key, [])
    manifest.setdefault("alone", "baseline" in manifest)
    manifest["output"].setdefault("artifacts", [])
    manifest["output"].setdefault("logs", "jobs")
    manifest["criteria"] += common_criteria(manifest)
    _require_ids_once(manifest["criteria"], where)
    return {**manifest, "folder": str(path.parent.resolve()), "option": option}


def _check_ranks(manifest: dict[str, t.Any], where: str) -> None:
    """Refuses a baseline that is none."""
    if "baseline" not in manifest:
        return
    if "launcher" not in manifest:
        raise WorkloadError(f"{where}: baseline: needs a launcher, which starts fewer ranks")
    each = manifest["resources"]["ntasks_per_node"]
    ranks, baseline = each * manifest["resources"]["nodes"], manifest["baseline"]["ranks"]
    if baseline >= ranks:
        raise WorkloadError(f"{where}: baseline: ranks: expected fewer than the workload's {ranks}")
    if baseline > each and baseline % each:
        raise WorkloadError(f"{where}: baseline: ranks: {baseline} do not fill nodes of {each} each")


def common_criteria(manifest: dict[str, t.Any]) -> list[dict[str, t.Any]]:
    """The criteria that a workload has besides its own: of GPUs and ranks, if it has such, and of images.

    Raises WorkloadError naming the collection's file that cannot be read.
    """
    criteria: list[dict[str, t.Any]] = []
    kinds = {"gpu": manifest["resources"].get("gres"), "ranks": manifest.get("launcher"), "container": True}
    for name in (name for name, has in kinds.items() if has):
        path = COMMON / f"{name}.yml"
        try:
            criteria += _yaml.read(path)
        except (OSError, _yaml.YAMLError, TypeError) as exc:
            raise WorkloadError(f"{path} cannot be read ({exc}); is the collection installed whole?") from exc
    return criteria


def _texts(value: t.Any) -> t.Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, (dict, list)):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _texts(item)


def find_workloads(folders: t.Iterable[str], options: dict[str, t.Any] | None = None) -> list[dict[str, t.Any]]:
    """All manifests in `folders`, each after those that it needs, else by id; `options`: chosen ones, by id.

    Raises WorkloadError on a bad one, on a missing folder, on equal ids and on needs that cannot be met.
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
                other = found[manifest["id"]]["folder"]
                raise WorkloadError(f"{path}: id: {manifest['id']} is already the id of {other}")
            found[manifest["id"]] = manifest
    unknown = sorted(set(options) - set(found))
    if unknown:
        raise WorkloadError(
            f"hpc_validation_workload_options names {', '.join(unknown)}, which is no workload; known are "
            f"{', '.join(sorted(found)) or 'none'}"
        )
    return in_order(found)


def in_order(workloads: dict[str, dict[str, t.Any]]) -> list[dict[str, t.Any]]:
    """`workloads` (by id), each after those that it needs. Raises WorkloadError on an unknown need and on a circle."""
    for workload in workloads.values():
        unknown = [need for need in workload["needs"] if need not in workloads]
        if unknown:
            raise WorkloadError(f"{workload['folder']}/{MANIFEST}: needs: {', '.join(unknown)} is no workload's id")
    sorter = graphlib.TopologicalSorter({name: workload["needs"] for name, workload in workloads.items()})
    try:
        sorter.prepare()
    except graphlib.CycleError as exc:
        raise WorkloadError(f"{MANIFEST}: needs go in a circle: {' needs '.join(reversed(exc.args[1]))}") from exc
    order: list[dict[str, t.Any]] = []
    ready = sorted(sorter.get_ready())
    while ready:
        order.append(workloads[ready[0]])
        sorter.done(ready.pop(0))
        ready = sorted([*ready, *sorter.get_ready()])
    return order


def select(
    workloads: list[dict[str, t.Any]], categories: list[int], only: list[str], run_tags: list[str]
) -> list[dict[str, t.Any]]:
    """Those that were asked for: by id (`only`, or ids among the tags), else all of `categories` and what these need.

    Each has `asked` added, False for one that is only needed: who names ids gets these alone. Raises WorkloadError when
    an id is unknown or nothing is left: a run of nothing proves nothing.
    """
    known = [workload["id"] for workload in workloads]
    unknown = [name for name in only if name not in known]
    if unknown:
        raise WorkloadError(f"hpc_validation_only names {', '.join(unknown)}; known are {', '.join(known) or 'none'}")
    unknown = [tag for tag in run_tags if LOOKS_LIKE_ID.fullmatch(tag) and tag not in known]
    if unknown:
        raise WorkloadError(f"--tags names {', '.join(unknown)}; known are {', '.join(known) or 'none'}")
    tagged = [name for name in known if name in run_tags]
    if "all" not in run_tags and not tagged:
        raise WorkloadError(f"--tags {','.join(run_tags)} selects no workload; known are {', '.join(known) or 'none'}")
    if only or tagged:
        asked = set(only or known) & set(tagged or known)
        wanted = set(asked)
    else:
        asked = {workload["id"] for workload in workloads if workload["category"] in categories}
        wanted = set(asked)
        for workload in reversed(workloads):  # each comes after those that it needs
            wanted |= set(workload["needs"]) if workload["id"] in wanted else set()
    chosen = [{**each, "asked": each["id"] in asked} for each in workloads if each["id"] in wanted]
    if not chosen:
        raise WorkloadError(
            f"no workload is selected: categories {categories}, hpc_validation_only {only}, --tags {run_tags}; "
            f"known are {', '.join(known) or 'none'}"
        )
    return chosen


def waves(selected: list[dict[str, t.Any]]) -> list[list[str]]:
    """The ids of `selected` in the order in which they are run, those together whose jobs may be in the queue together.

    A workload comes after those that it needs, and is the only one of its wave where its manifest says `alone`.
    """
    found: list[list[dict[str, t.Any]]] = []
    place: dict[str, int] = {}
    for workload in selected:
        first = 1 + max((place[need] for need in workload["needs"] if need in place), default=-1)
        fits = (n for n in range(first, len(found)) if not workload["alone"] and not found[n][0]["alone"])
        wave = next(fits, len(found))
        if wave == len(found):
            found.append([])
        found[wave].append(workload)
        place[workload["id"]] = wave
    return [[workload["id"] for workload in wave] for wave in found]


def check_criteria(
    selected: list[dict[str, t.Any]],
    workloads: list[dict[str, t.Any]],
    overrides: dict[str, t.Any],
    references: dict[str, t.Any],
) -> None:
    """Refuses malformed criteria and overrides before anything is submitted.

    Raises WorkloadError naming workload, criterion and key, also when an override is of a workload that does not exist.
    """
    if importlib.util.find_spec("jmespath") is None:
        raise WorkloadError(
            "the Python package jmespath is missing on the controller; install it into the Python that runs "
            "ansible-playbook (ansible --version names it): python3 -m pip install jmespath"
        )
    known = [workload["id"] for workload in workloads]
    for name, changes in overrides.items():
        if name not in known:
            raise WorkloadError(
                f"hpc_validation_overrides names {name}, which is no workload; known are {', '.join(known)}"
            )
        if not isinstance(changes, dict):
            raise WorkloadError(f"hpc_validation_overrides.{name} must map criterion ids, not {changes!r}")
    _check_reference_names(references, [*(workload["criteria"] for workload in workloads), overrides])
    patterns = _log_patterns.load()
    for workload in selected:
        try:
            _criteria_spec.read(
                workload["criteria"],
                overrides.get(workload["id"], {}),
                workload=workload["id"],
                pattern_sets=patterns,
                references=references,
            )
        except _criteria_spec.CriteriaError as exc:
            raise WorkloadError(
                f"the criteria of {workload['id']} or hpc_validation_overrides are malformed: {exc}"
            ) from exc


def _check_reference_names(references: t.Any, criteria: t.Any) -> None:
    """Refuses a reference that no criterion asks for: misspelt, it would leave one out that is to be judged."""
    asked = sorted(set(_reference_names(criteria)))
    for name in references if isinstance(references, dict) else ():
        if name not in asked:
            near = difflib.get_close_matches(str(name), asked, n=1)
            hint = f"did you mean {near[0]}?" if near else f"they ask for {', '.join(asked) or 'none'}"
            raise WorkloadError(f"hpc_validation_references names {name}, which no criterion asks for ({hint})")


def _reference_names(value: t.Any) -> t.Iterator[str]:
    """The names of references in criteria and in changes to them."""
    if isinstance(value, dict):
        within = value.get("within")
        if isinstance(within, dict) and isinstance(within.get("from"), str):
            yield within["from"]
    if isinstance(value, (dict, list)):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _reference_names(item)


def check_settings(names: list[str], known: list[str]) -> None:
    """Raises WorkloadError when a setting does not exist: it would be ignored silently."""
    for name in names:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            hint = f"did you mean {near[0]}?" if near else "see ansible-doc -t role mlops.hpc_validation.hpc_validation"
            raise WorkloadError(f"there is no setting {name} ({hint})")


def check_needs_days(days: int) -> None:
    """Raises WorkloadError for a pass that would have to come from the future."""
    if days < 0:
        raise WorkloadError(f"hpc_validation_needs_days is {days}; expected a number of days, or 0 for no earlier pass")


def public_settings(collection: Path) -> list[str]:
    """The names of all public settings of the collection at `collection`."""
    defaults = collection / "roles" / "hpc_validation" / "defaults" / "main.yml"
    return sorted(_yaml.read(defaults))


def collection_version(root: Path) -> str | None:
    """The version of the collection at `root`: a checkout has galaxy.yml, an installed artifact MANIFEST.json."""
    for name, keys in (("galaxy.yml", ["version"]), ("MANIFEST.json", ["collection_info", "version"])):
        path = root / name
        if path.is_file():
            value = _yaml.read(path)
            for key in keys:
                value = value.get(key) if isinstance(value, dict) else None
            return str(value) if value is not None else None
    return None
