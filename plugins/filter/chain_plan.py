# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: chain_plan
version_added: 0.4.0
short_description: Plan a training as a chain of jobs
description:
  - For the role P(mlops.hpc_validation.chain#role). Plans the job of a workload as
    P(mlops.hpc_validation.workload_plan#filter) does, without the legs of its acceptance, and with a folder of its own.
options:
  _input:
    description: The manifest, as M(mlops.hpc_validation.validation_run) returns it.
    type: dict
    required: true
  settings:
    description: As for P(mlops.hpc_validation.workload_plan#filter).
    type: dict
    required: true
  before:
    description: As for P(mlops.hpc_validation.workload_plan#filter).
    type: dict
    required: true
  chain:
    description: The inventory's C(hpc_validation_chain).
    type: dict
    required: true
author:
  - the mlops.hpc_validation authors
"""

EXAMPLES = r"""
- name: Plan
  ansible.builtin.set_fact:
    planned: "{{ workload | mlops.hpc_validation.chain_plan(settings, before, hpc_validation_chain) }}"
"""

RETURN = r"""
_value:
  description:
    - C(workload), the manifest of a link, C(plan), its plan, C(chain), the chain's settings with C(folder), and
      C(what), what makes the training this one.
  type: dict
"""

import typing as t

from ansible.errors import AnsibleFilterError
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._common.plain import plain
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._workloads import chain, plan


def chain_plan(
    workload: dict[str, t.Any], settings: dict[str, t.Any], before: dict[str, t.Any], given: dict[str, t.Any]
) -> dict[str, t.Any]:
    """Return the plan."""
    try:
        return chain.plan_chain(plain(workload), plain(settings), plain(before), plain(given))
    except (plan.WorkloadPlanError, OSError, ValueError) as exc:
        raise AnsibleFilterError(str(exc)) from exc


class FilterModule:
    def filters(self) -> dict[str, t.Any]:
        return {"chain_plan": chain_plan}
