# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: node_findings
version_added: 0.2.0
short_description: Judge what the jobs of a preflight found
description:
  - Findings on every node (its job, clock, Python, GPUs, confinement, share) and on what two nodes see of each other.
options:
  _input:
    description: What C(python -m kit reports) printed.
    type: dict
    required: true
  planned:
    description: What P(mlops.hpc_validation.preflight_plan#filter) returned.
    type: dict
    required: true
  waited:
    description: What M(mlops.hpc_validation.slurm_job) returned for its jobs.
    type: dict
    required: true
  settings:
    description: As for P(mlops.hpc_validation.preflight_plan#filter).
    type: dict
    required: true
author:
  - the mlops.hpc_validation authors
"""

EXAMPLES = r"""
- name: Judge the nodes
  ansible.builtin.set_fact:
    judged: "{{ reports | mlops.hpc_validation.node_findings(planned, waited, settings) }}"
"""

RETURN = r"""
_value:
  description: The C(findings) (schema C(finding.json)), and C(probed), which nodes and GPUs were checked.
  type: dict
"""

import typing as t

from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._preflight import nodes


def node_findings(
    reports: dict[str, t.Any], planned: dict[str, t.Any], waited: dict[str, t.Any], settings: dict[str, t.Any]
) -> dict[str, t.Any]:
    """Return the findings and the coverage."""
    return {
        "findings": nodes.judge(planned, waited, reports, settings),
        "probed": nodes.probed(planned, waited, reports),
    }


class FilterModule:
    def filters(self) -> dict[str, t.Any]:
        return {"node_findings": node_findings}
