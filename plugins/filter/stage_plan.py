# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: stage_plan
version_added: 0.4.0
short_description: Plan what workloads need on the share
description:
  - The environments or images that workloads run in, the datasets and models that they read, and the source of each.
options:
  _input:
    description: Manifests of the selected workloads.
    type: list
    elements: dict
    required: true
  settings:
    description:
      - The site's settings by name, C(datasets), C(models) and C(images), and C(runtime) and C(workload_runtime).
    type: dict
    required: true
  share:
    description: Root of the share on the cluster.
    type: path
    required: true
author:
  - the mlops.hpc_validation authors
"""

EXAMPLES = r"""
- name: Plan
  ansible.builtin.set_fact:
    planned: "{{ workloads | mlops.hpc_validation.stage_plan({'datasets': {}, 'models': {}}, '/mnt/beegfs') }}"
"""

RETURN = r"""
_value:
  description:
    - C(runtimes), one dictionary for each environment and image, C(sources), one for each dataset and model, and
      C(by_workload), the key of a workload's runtime.
  type: dict
"""

import typing as t

from ansible.errors import AnsibleFilterError
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._workloads import staging


def stage_plan(workloads: list[dict[str, t.Any]], settings: dict[str, t.Any], share: str) -> dict[str, t.Any]:
    """Return the plan."""
    try:
        return staging.plan(workloads, settings, share)
    except staging.StagePlanError as exc:
        raise AnsibleFilterError(str(exc)) from exc


class FilterModule:
    def filters(self) -> dict[str, t.Any]:
        return {"stage_plan": stage_plan}
