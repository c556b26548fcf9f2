#!/usr/bin/python
# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: validation_record
version_added: 0.4.0
short_description: Add to the record of a validation run
description:
  - Records the results of a run's steps, and checks whether an earlier pass of a workload still holds, so that it need
    not run again. M(mlops.hpc_validation.validation_run) makes the verdict from these records.
  - Runs on the controller without a connection, so that a run whose host becomes unreachable still ends in a report.
extends_documentation_fragment:
  - mlops.hpc_validation.attributes
attributes:
  check_mode:
    support: full
    details: Writes the same files in check mode, since they are the record of the check.
  diff_mode:
    support: none
  idempotent:
    support: none
    details: Findings recorded twice appear twice, a workload cannot be recorded twice, and facts replace those before.
  async:
    support: none
  action:
    support: full
options:
  state:
    description:
      - V(recorded) adds O(document).
      - V(recalled) records that an earlier pass of O(workload) still holds, if it does, and prints that or why not.
    type: str
    required: true
    choices: [recorded, recalled]
  folder:
    description: The run's folder, as M(mlops.hpc_validation.validation_run) returned it.
    type: path
    required: true
  kind:
    description: What is recorded. Required with O(state=recorded).
    type: str
    choices: [workload, findings, cluster, probed]
  document:
    description: The record itself. Required with O(state=recorded).
    type: raw
  workload:
    description: ID of a workload that is selected only because another needs it. Required with O(state=recalled).
    type: str
  script_sha256:
    description:
      - SHA-256 of the job script that would be submitted for O(workload). An earlier pass must have the same.
      - Required with O(state=recalled).
    type: str
  overrides:
    description: The inventory's C(hpc_validation_overrides).
    type: dict
    default: {}
  references:
    description: The inventory's C(hpc_validation_references).
    type: dict
    default: {}
  context:
    description:
      - As for M(mlops.hpc_validation.metrics_assert). The evidence of the earlier pass is judged again with it,
        O(overrides) and O(references).
    type: dict
    default: {}
seealso:
  - module: mlops.hpc_validation.validation_run
author:
  - mlops.hpc_validation authors (@mlops)
"""

EXAMPLES = r"""
- name: Record findings
  mlops.hpc_validation.validation_record:
    state: recorded
    folder: "{{ run.folder }}"
    kind: findings
    document: "{{ ansible_version.full | mlops.hpc_validation.controller_findings }}"

- name: Check whether an earlier pass still holds
  mlops.hpc_validation.validation_record:
    state: recalled
    folder: "{{ run.folder }}"
    workload: MLOPS-1.1
    script_sha256: "{{ lookup('ansible.builtin.file', 'job.sbatch') | hash('sha256') }}"
"""

RETURN = r"""
amiss:
  description:
    - Number of findings recorded so far that are V(fail) or V(undetermined), without those that only hold a workload
      back.
  returned: O(state=recorded)
  type: int
passed:
  description: IDs of the workloads recorded so far that passed, now or earlier.
  returned: success
  type: list
  elements: str
"""
