# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
---
module: slurm_cluster_info
short_description: Show a Slurm cluster's controllers, partitions and nodes
version_added: 0.1.0
author:
  - mlops.hpc_validation authors (@mlops)
description:
  - Only reads. Uses the text output of C(scontrol), C(sinfo) and C(sacct), which is the same from Slurm 22.05 on.
  - What did not answer is listed under RV(problems). An unknown value is null or absent.
options: {}
extends_documentation_fragment:
  - mlops.hpc_validation.attributes
  - mlops.hpc_validation.slurm
attributes:
  check_mode:
    support: full
  diff_mode:
    support: none
  idempotent:
    support: full
  async:
    support: full
  action:
    support: none
seealso:
  - module: mlops.hpc_validation.slurm_job
"""

EXAMPLES = r"""
- name: Query the cluster
  mlops.hpc_validation.slurm_cluster_info:
  register: cluster

- name: Stop if the controller is down
  ansible.builtin.assert:
    that: cluster.controllers | selectattr('up') | length > 0
"""

RETURN = r"""
version:
  description: The version of Slurm's commands on this host.
  type: str
  returned: always
  sample: 24.11.5
cluster_name:
  description: The cluster's name; null if the controller does not answer.
  type: str
  returned: always
controllers:
  description: Controllers, each with C(host), C(role) and whether it is C(up).
  type: list
  elements: dict
  returned: always
  sample: [{host: login, role: primary, up: true}]
accounting:
  description: Whether accounting answers. V(false) if it is turned off, null if it is on but does not answer.
  type: bool
  returned: always
min_job_age_seconds:
  description: How long slurmctld remembers a job that has ended.
  type: int
  returned: always
partitions:
  description: Partitions with C(name), C(state), C(default), C(max_time_seconds) (null if unlimited) and C(nodes).
  type: list
  elements: dict
  returned: always
nodes:
  description: >-
    Nodes with C(name), C(state) (base word in lower case), C(flags), C(reason), C(gres), C(gres_types),
    C(gres_allocated), C(cpus), C(memory_mb), C(features), C(partitions) and C(version) (of its slurmd).
  type: list
  elements: dict
  returned: always
  sample: [{name: compute01, state: idle, flags: [drain], reason: fan, gres: {gpu: 2}, gres_allocated: {}}]
user:
  description: The user that asked.
  type: str
  returned: always
problems:
  description: What did not answer, each with C(source) and C(problem).
  type: list
  elements: dict
  returned: always
"""

import os
import pwd

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.mlops.hpc_validation.plugins.module_utils._slurm.cli import run
from ansible_collections.mlops.hpc_validation.plugins.module_utils._slurm.cluster import cluster_info


def main() -> None:
    """Run the module."""
    module = AnsibleModule(argument_spec={}, supports_check_mode=True)
    module.exit_json(changed=False, **cluster_info(run, pwd.getpwuid(os.geteuid()).pw_name))


if __name__ == "__main__":
    main()
