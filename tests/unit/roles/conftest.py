# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the tests of rendered job scripts share."""

from __future__ import annotations

import typing as t

import yaml
from ansible.parsing.dataloader import DataLoader
from ansible.template import Templar, trust_as_template
from ansible_collections.mlops.hpc_validation.plugins.filter.workload_plan import workload_plan

from tests.unit.conftest import ROOT


def trusted(value: t.Any) -> t.Any:
    """Values as Ansible loads them from a role's own files: templates."""
    if isinstance(value, dict):
        return {key: trusted(item) for key, item in value.items()}
    if isinstance(value, list):
        return [trusted(item) for item in value]
    return trust_as_template(value) if isinstance(value, str) else value


def settings_of(*paths: str) -> dict[str, t.Any]:
    """The variables that these files of roles define."""
    variables: dict[str, t.Any] = {}
    for path in paths:
        variables.update(trusted(yaml.safe_load((ROOT / path).read_text(encoding="utf-8"))))
    return variables


def directives(script: str) -> list[str]:
    """What sbatch reads of a script."""
    return [line.removeprefix("#SBATCH ") for line in script.splitlines() if line.startswith("#SBATCH ")]


def planned_by_role(workload: dict[str, t.Any], **settings: t.Any) -> dict[str, t.Any]:
    """The plan of a manifest's job, from the settings that the role hands to the filter."""
    variables = settings_of("roles/hpc_validation/defaults/main.yml", "roles/workload/vars/main.yml")
    variables.update({"__run": {"workloads": [workload]}, "ansible_check_mode": False, **settings})
    templar = Templar(loader=DataLoader(), variables=variables)
    given = [templar.template(variables[name]) for name in ("__workload_settings", "__workload_before")]
    return workload_plan(workload, *given)


def job_script(workload: dict[str, t.Any], *, chain: str | None = None, **settings: t.Any) -> str:
    """The job script of a manifest, or of a link of a chain, as roles render it; all digests of files are zeros."""
    variables = settings_of("roles/hpc_validation/defaults/main.yml", "roles/workload/vars/main.yml")
    staged = {"__stage_digests": dict.fromkeys([*workload["data"], *workload["models"]], "0" * 64)}
    plan = {**planned_by_role(workload, **{**staged, **settings}), "payload": "0" * 64}
    plan.update({"chain": chain} if chain else {})
    variables.update({"__workload": workload, "__workload_plan": plan, **settings})
    template = (ROOT / "roles/workload/templates/job.sbatch.j2").read_text(encoding="utf-8")
    rendered: str = Templar(loader=DataLoader(), variables=variables).template(trust_as_template(template))
    return rendered
