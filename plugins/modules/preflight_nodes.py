#!/usr/bin/python
# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: preflight_nodes
version_added: 0.4.0
short_description: Plan the jobs of a preflight, and judge what they reported
description:
  - >-
    Keeps what grows with the cluster in files of the run's folder (C(cluster.json), C(nodes.json), C(jobs.json),
    C(reports.jsonl.gz)): the task returns numbers only.
  - For the collection's roles. V(planned) queries Slurm on the host as M(mlops.hpc_validation.slurm_cluster_info) does.
extends_documentation_fragment:
  - mlops.hpc_validation.attributes
attributes:
  check_mode:
    support: full
  diff_mode:
    support: none
  idempotent:
    support: none
    details: Each call records findings.
  async:
    support: none
  action:
    support: full
options:
  state:
    description:
      - >-
        V(planned) records the cluster, the scope and findings about both, and plans a job for each node in scope. In
        check mode the scope is not recorded, since no job follows.
      - >-
        V(judged) records the findings about every node, from C(jobs.json), as M(mlops.hpc_validation.slurm_job) saved
        it, and C(reports.jsonl.gz).
    type: str
    required: true
    choices: [planned, judged]
  folder:
    description: The run's folder on the controller.
    type: path
    required: true
  settings:
    description: What P(mlops.hpc_validation.preflight_settings#filter) returned.
    type: dict
    required: true
  expected:
    description: The compute nodes of the inventory, for O(state=planned).
    type: list
    elements: str
    default: []
  workloads:
    description: The selected manifests, for O(state=planned).
    type: list
    elements: dict
    default: []
  workload_slurm:
    description: The inventory's C(hpc_validation_workload_slurm), for O(state=planned).
    type: dict
    default: {}
author:
  - mlops.hpc_validation authors (@mlops)
"""

EXAMPLES = r"""
- name: Plan a job for each node
  mlops.hpc_validation.preflight_nodes:
    state: planned
    folder: "{{ run.folder }}"
    settings: "{{ settings }}"
    expected: "{{ groups['hpc_compute'] }}"
  register: planned
"""

RETURN = r"""
jobs:
  description: Number of the planned jobs.
  returned: O(state=planned)
  type: int
  sample: 1001
held_back:
  description:
    - IDs of the workloads that are not to be submitted, since the partition cannot hold them or start them now, and
      of those that need one of them. A line on the screen says why.
  returned: O(state=planned)
  type: list
  elements: str
amiss:
  description:
    - Number of the run's findings so far that failed or are undetermined, without those that only hold a workload back.
  returned: success
  type: int
  sample: 0
"""
