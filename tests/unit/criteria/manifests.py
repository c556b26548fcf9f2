# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The manifests there are, and what is written beside each."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._workloads import manifests

from tests.unit.conftest import ROOT
from tests.unit.criteria import job_folder

HERE = Path(__file__).parent


@dataclass(frozen=True)
class Workload:
    """A manifest and the description of its opposites, which is empty where nobody has written it yet."""

    name: str
    manifest: dict[str, Any]
    described: dict[str, Any]

    @property
    def criteria(self) -> dict[str, dict[str, Any]]:
        """The manifest's criteria by id, but those that its option leaves out."""
        option = self.described.get("context", {}).get("option")
        return {
            criterion["id"]: criterion
            for criterion in self.manifest["criteria"]
            if option in criterion.get("applies_when", {}).get("option", [option])
        }

    def cases(self, criterion: str, verdict: str) -> list[dict[str, Any]]:
        """Return the changes that are described for a criterion; without any it passes."""
        found = self.described.get("criteria", {}).get(criterion, {}).get(verdict, [])
        return found if isinstance(found, list) else [found]


def _workload(path: Path) -> Workload:
    beside = HERE / f"{path.parent.name}.yml"
    described = yaml.safe_load(beside.read_text(encoding="utf-8")) if beside.exists() else {}
    return Workload(path.parent.name, yaml.safe_load(path.read_text(encoding="utf-8")), described)


def _options(workload: Workload) -> list[Workload]:
    """The workload's alternatives; beside it is written what of its description is different."""
    manifest, described = dict(workload.manifest), dict(workload.described)
    options, changes = manifest.pop("options", {}), described.pop("options", {})
    return [
        Workload(
            f"{workload.name} {name}",
            manifests.with_option(manifest, option),
            job_folder.merged(described, {**changes[name], "context": {"option": name}}) if name in changes else {},
        )
        for name, option in options.items()
    ]


def _common(path: Path) -> Workload:
    """Criteria that workloads have besides their own, as if a workload had no others."""
    criteria = yaml.safe_load(path.read_text(encoding="utf-8"))
    described = yaml.safe_load((HERE / f"common_{path.stem}.yml").read_text(encoding="utf-8"))
    manifest = {
        "id": path.stem,
        "output": {"metrics": "metrics.json"},
        "criteria": criteria,
        **described.get("manifest", {}),
    }
    return Workload(f"common_{path.stem}", manifest, described)


COMMON = [_common(path) for path in sorted((ROOT / "files/criteria").glob("*.yml"))]
SHIPPED = [_workload(path) for path in sorted((ROOT / "files/workloads").glob("*/workload.yml"))]
OPTIONS = [option for workload in SHIPPED for option in _options(workload)]
# A manifest with each form that a criterion may have, whether or not a shipped one uses it yet.
EVERY_FORM = _workload(HERE / "every_form" / "workload.yml")
WORKLOADS = [*SHIPPED, *OPTIONS, *COMMON, EVERY_FORM]


def repeats(workload: Workload, criterion: str, verdict: str, change: dict[str, Any]) -> bool:
    """Say whether the same change is made to the same criterion without the option that this is the workload with."""
    if workload not in OPTIONS:
        return False
    (base,) = (shipped for shipped in SHIPPED if shipped.name == workload.name.split()[0])
    same = base.criteria.get(criterion) == workload.criteria[criterion]
    return same and change in base.cases(criterion, verdict)
