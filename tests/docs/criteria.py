# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The tables of docs/reference/criteria.md, from the manifests and files/criteria."""

from __future__ import annotations

from typing import Any

from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._common import strict_yaml
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._judge import spec
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._judge.sources import bound_of
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._workloads import manifests

from tests.docs.pages import ROOT, cell, code, prose, table

Json = dict[str, Any]
COMMON = {
    "gpu": "Every workload that asks for GPUs",
    "ranks": "Every workload with a launcher",
    "container": "Every workload",
}
HEADING = ["Id", "Title", "Bound", "Source", "Applies where", "Remedy"]


def tables() -> str:
    """Return all tables."""
    parts = []
    paths = sorted(ROOT.glob(f"files/workloads/*/{manifests.MANIFEST}"))
    for manifest in sorted(map(manifests.load_manifest, paths), key=lambda each: str(each["id"])):
        parts += _workload(manifest)
    for name, whose in COMMON.items():
        path = ROOT / "files/criteria" / f"{name}.yml"
        parts += [f"## {whose}: [`files/criteria/{name}.yml`](../../files/criteria/{name}.yml)"]
        parts += [_table(strict_yaml.read(path))]
    return "\n\n".join(parts)


def row(criterion: Json) -> list[str]:
    """Return the row of one criterion."""
    (checked,) = spec.read([criterion], workload="this page")
    bound = bound_of(checked.source)
    unit = f" {criterion['unit']}" if "unit" in criterion else ""
    kind = "; only recorded" if criterion.get("severity") == "record" else ""
    remedy = criterion.get("remedy")
    return [
        f"`{criterion['id']}`",
        prose(criterion["title"]),
        f"{code(bound + unit)}{kind}",
        _source(criterion),
        _where(criterion.get("applies_when", {})),
        prose(remedy) if remedy else "-",
    ]


def _workload(manifest: Json) -> list[str]:
    folder = f"files/workloads/{manifest['name']}"
    shared = {each["id"] for each in manifests.common_criteria(manifest)}
    own = [each for each in manifest["criteria"] if each["id"] not in shared]
    title = f"## {manifest['id']}: {cell(manifest['title'])}"
    parts = [title, f"Manifest: [`{folder}`](../../{folder}/{manifests.MANIFEST})", _table(own)]
    path = ROOT / folder / manifests.MANIFEST
    for option in strict_yaml.read(path).get("options", {}):
        chosen = manifests.load_manifest(path, option)
        changed = [each for each in chosen["criteria"] if each not in manifest["criteria"]]
        parts += [f"With the option `{option}` ({cell(chosen['title'])}) these differ:", _table(changed)]
    return parts


def _table(criteria: list[Json]) -> str:
    return table(HEADING, [row(criterion) for criterion in criteria])


def _source(criterion: Json) -> str:
    if "log" in criterion:
        return "log " + " and ".join(criterion["log"])
    if "artifact" in criterion:
        return f"artifact {code(criterion['artifact'])}"
    if "each" in criterion:
        return f"{code(criterion['each']['query'])} of each of {code(criterion['each']['over'])}"
    return code(criterion["query"])


def _where(applies: Json) -> str:
    """Return the conditions in words: `accelerator: cuda or simulated`."""
    told = (f"{key}: {' or '.join(str(value).lower() for value in allowed)}" for key, allowed in applies.items())
    return prose("; ".join(told)) or "everywhere"
