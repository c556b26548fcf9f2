# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: scheduler_findings
version_added: 0.1.0
short_description: Judge whether the scheduler can start the selected workloads
description:
  - Returns findings (schema C(finding.json)) for the result of M(mlops.hpc_validation.slurm_cluster_info).
options:
  _input:
    description: The facts.
    type: dict
    required: true
  workloads:
    description: The selected manifests.
    type: list
    elements: dict
    required: true
  slurm:
    description: The value of C(hpc_validation_slurm).
    type: dict
    required: true
  accelerator:
    description: The value of C(hpc_validation_accelerator).
    type: str
    required: true
  workload_slurm:
    description: The value of C(hpc_validation_workload_slurm).
    type: dict
author:
  - the mlops.hpc_validation authors
"""

EXAMPLES = r"""
- name: Judge the scheduler
  ansible.builtin.set_fact:
    findings: "{{ info | mlops.hpc_validation.scheduler_findings(run.workloads, hpc_validation_slurm, 'cuda') }}"
"""

RETURN = r"""
_value:
  description: The findings.
  type: list
  elements: dict
"""

import typing as t

from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._preflight.scheduler import findings


class FilterModule:
    def filters(self) -> dict[str, t.Any]:
        return {"scheduler_findings": findings}
