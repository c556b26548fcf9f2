# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: preflight_plan
version_added: 0.2.0
short_description: Choose the nodes of a preflight and the job for each
description:
  - One job for each node that can take one, pinned to it and requesting all its GPUs, and one job over two nodes.
options:
  _input:
    description: What M(mlops.hpc_validation.slurm_cluster_info) returned.
    type: dict
    required: true
  settings:
    description: The settings of a preflight, as P(mlops.hpc_validation.preflight_settings#filter) returns them.
    type: dict
    required: true
  expected:
    description: Names of the compute nodes in the inventory.
    type: list
    elements: str
author:
  - the mlops.hpc_validation authors
"""

EXAMPLES = r"""
- name: Plan
  ansible.builtin.set_fact:
    planned: "{{ cluster | mlops.hpc_validation.preflight_plan(settings, groups.hpc_compute) }}"
"""

RETURN = r"""
_value:
  description:
    - C(nodes), C(jobs) (each with a C(key) and options of C(sbatch)), C(left_out) and C(findings) about nodes that take
      no job.
  type: dict
"""

import typing as t

from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._preflight import plan


def preflight_plan(
    info: dict[str, t.Any], settings: dict[str, t.Any], expected: t.Sequence[str] = ()
) -> dict[str, t.Any]:
    """Return the plan."""
    return plan.plan(info, settings, [str(name) for name in expected])


class FilterModule:
    def filters(self) -> dict[str, t.Any]:
        return {"preflight_plan": preflight_plan}
