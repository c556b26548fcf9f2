# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Plan what the selected workloads need on the share: environments, datasets and models, and their sources.

Each dataset and model is a folder of files/ with a stage.py and a source.yml. PRIVATE to the collection.
"""

from __future__ import annotations

import re
import typing as t
from pathlib import Path

from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._common import strict_yaml
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._common.paths import FILES
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._workloads import images as workloads_images

Json = dict[str, t.Any]
SOURCES = ("download", "path", "stand-in")
KEYS = ("source", "path", "revision", "url", "credentials")
BUCKET = re.compile(r"gs://[a-z0-9][a-z0-9._-]{1,220}[a-z0-9](/[A-Za-z0-9_.=-]+)*")
# By kind: the manifest's key, the setting, and the folder on the share for staged data.
KINDS = {
    "datasets": ("data", "hpc_validation_datasets", "datasets"),
    "models": ("models", "hpc_validation_models", "huggingface/models"),
}


class StagePlanError(Exception):
    """A setting or a manifest names something that does not exist, or leaves out something needed."""


def plan(workloads: list[Json], settings: Json, share: str, files: Path = FILES) -> Json:
    """Return {runtimes: [{key, name, kind, …}, …], sources: [{kind, name, source, …}, …], by_workload: {id: key}}.

    `settings` has `datasets` and `models`, each {name: {source and others of KEYS}}, and `images`, `runtime` and
    `workload_runtime`, which `images.check` has checked. Runtimes of the kind `apptainer` are made by `images.image`,
    sources by `_source`: `script`, `target` and `incoming` are below the share; `copied` is the folder on the
    controller to copy to `incoming`, if there is one; `options` are stage.py's. Raise StagePlanError naming setting
    and key.
    """
    try:
        runtimes = {each["id"]: _runtime(each, settings, share) for each in workloads}
    except workloads_images.ImagePlanError as exc:
        raise StagePlanError(str(exc)) from exc
    sources: list[Json] = []
    for kind, (_key, setting, _place) in KINDS.items():
        _check(kind, setting, settings.get(kind) or {}, share, files)
        for name, workload in _readers(workloads, kind).items():
            given = (settings.get(kind) or {}).get(name) or {}
            sources.append(_source(kind, name, runtimes[workload["id"]]["key"], given, share, files))
    needed = {runtime["key"]: runtime for runtime in runtimes.values()}
    for source in sources:  # sources whose staging needs its own environment
        needed.setdefault(source["runtime"], _environment(source["runtime"]))
    by_workload = {name: runtime["key"] for name, runtime in runtimes.items()}
    return {"runtimes": list(needed.values()), "sources": sources, "by_workload": by_workload}


def _environment(name: str) -> Json:
    return {"key": name, "name": name, "kind": "venv", "locked": True}


def _runtime(workload: Json, settings: Json, share: str) -> Json:
    """Return the runtime of the workload: its own setting, else the site's."""
    kind = (settings.get("workload_runtime") or {}).get(workload["id"]) or settings.get("runtime") or "venv"
    name = workload["runtime"]
    images = settings.get("images") or {}
    return _environment(name) if kind == "venv" else workloads_images.image(name, images.get(name) or {}, share)


def _readers(workloads: list[Json], kind: str) -> dict[str, Json]:
    """Return the first workload that reads each dataset or model, by name."""
    readers: dict[str, Json] = {}
    for workload in workloads:
        for name in workload.get(KINDS[kind][0]) or []:
            readers.setdefault(name, workload)
    return readers


def _check(kind: str, setting: str, given: Json, share: str, files: Path) -> None:
    known = sorted(path.parent.name for path in (files / kind).glob("*/source.yml"))
    for name, value in given.items():
        where = f"{setting}.{name}"
        if name not in known:
            raise StagePlanError(f"{where}: unknown name; available: {', '.join(known)}")
        if not isinstance(value, dict):
            raise StagePlanError(f"{where}: expected a source, one of {', '.join(SOURCES)}, found {value!r}")
        unknown = sorted(set(value) - set(KEYS))
        if unknown:
            raise StagePlanError(f"{where}: unknown key {', '.join(unknown)}; expected {', '.join(KEYS)}")
        source = value.get("source", "download")
        if source not in SOURCES:
            raise StagePlanError(f"{where}.source: expected one of {', '.join(SOURCES)}, found {source!r}")
        path = value.get("path")
        if source == "path" and not (isinstance(path, str) and (_on_share(path, share) or _local(path).is_dir())):
            raise StagePlanError(f"{where}.path: expected a folder on the controller or below {share}, found {path!r}")
        if source != "path" and path is not None:
            raise StagePlanError(f"{where}.path belongs to source: path; its source is {source}")
        if "revision" in value and (source != "download" or not _offers(kind, name, files).get("revision")):
            raise StagePlanError(f"{where}.revision is only for downloads from a hub; leave it out")
        _check_bucket(where, source, value, bool(_offers(kind, name, files).get("url")))


def _check_bucket(where: str, source: str, value: Json, offered: bool) -> None:
    """Raise StagePlanError if the bucket of a download, or the key for it, cannot be used."""
    url, credentials = value.get("url"), value.get("credentials")
    if "url" in value and not (offered and source == "download"):
        raise StagePlanError(f"{where}.url is only for downloads from a bucket; leave it out")
    if "url" in value and not (isinstance(url, str) and BUCKET.fullmatch(url)):
        raise StagePlanError(f"{where}.url: expected gs://BUCKET/PREFIX, found {url!r}")
    if "credentials" in value and "url" not in value:
        raise StagePlanError(f"{where}.credentials is only for a download with a url; leave it out")
    if "credentials" in value and not (isinstance(credentials, str) and credentials.startswith("/")):
        raise StagePlanError(
            f"{where}.credentials: expected the path of a key on the login node, found {credentials!r}"
        )


def _local(path: str) -> Path:
    return Path(path).expanduser().absolute()


def _on_share(path: str, share: str) -> bool:
    """Return whether the path is on the cluster, where stage.py itself checks that it exists."""
    return Path(share) in Path(path).parents


def _offers(kind: str, name: str, files: Path) -> Json:
    path = files / kind / name / "source.yml"
    try:
        offers = strict_yaml.read(path)
    except (OSError, strict_yaml.YAMLError) as exc:
        raise StagePlanError(f"{path} cannot be read ({exc}); is there such a folder in files/{kind}?") from exc
    return t.cast(Json, offers)


def _source(kind: str, name: str, runtime: str, given: Json, share: str, files: Path) -> Json:
    offers = _offers(kind, name, files)
    source = given.get("source", "download")
    place = KINDS[kind][2]
    copied, options = None, ["--revision", str(given["revision"])] if "revision" in given else []
    if source == "path":
        copied = None if _on_share(given["path"], share) else str(_local(given["path"]))
        options = ["--from", f"{share}/{place}/.incoming/{name}" if copied else given["path"]]
    for key in ("url", "credentials"):
        options += [f"--{key}", given[key]] if key in given else []
    return {
        "kind": kind,
        "name": name,
        "source": source,
        "copied": copied,
        "script": f"scripts/{kind}/{name}/stage.py",
        "target": f"{place}/{name}",
        "incoming": f"{place}/.incoming/{name}",
        "runtime": runtime if offers[source] == "workload" else offers[source],
        "options": options,
    }
