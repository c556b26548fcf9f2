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
  - Takes what the steps of a run found, and looks whether an earlier pass of a workload stands, so that it need not run
    again. M(mlops.hpc_validation.validation_run) makes the verdict of what was recorded.
  - Works on the controller. It opens no connection, so that a run whose host went away still ends in a report.
extends_documentation_fragment:
  - mlops.hpc_validation.attributes
attributes:
  check_mode:
    support: full
    details: Writes the same files in check mode, since they are the record of what the check found.
  diff_mode:
    support: none
  idempotent:
    support: none
    details: Findings that are recorded twice stand twice. What else is recorded takes the place of what was.
  async:
    support: none
  action:
    support: full
options:
  state:
    description:
      - V(recorded) adds O(document).
      - V(recalled) adds that an earlier pass of O(workload) stands, if it does, and prints that or why it does not.
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
    description: Id of the workload that is only needed. Required with O(state=recalled).
    type: str
  script_sha256:
    description:
      - SHA-256 of the job script that would be submitted for O(workload). An earlier pass must be of the same.
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
      - As for M(mlops.hpc_validation.metrics_assert). By it, O(overrides) and O(references) the evidence of the earlier
        pass is judged again.
    type: dict
    default: {}
seealso:
  - module: mlops.hpc_validation.validation_run
author:
  - mlops.hpc_validation authors (@mlops)
"""

EXAMPLES = r"""
- name: Record what was found
  mlops.hpc_validation.validation_record:
    state: recorded
    folder: "{{ run.folder }}"
    kind: findings
    document: "{{ ansible_version.full | mlops.hpc_validation.controller_findings }}"

- name: Look whether an earlier pass stands
  mlops.hpc_validation.validation_record:
    state: recalled
    folder: "{{ run.folder }}"
    workload: MLOPS-1.1
    script_sha256: "{{ lookup('ansible.builtin.file', 'job.sbatch') | hash('sha256') }}"
"""

RETURN = r"""
amiss:
  description: How many findings that were recorded so far are V(fail) or V(undetermined).
  returned: O(state=recorded)
  type: int
passed:
  description: Ids of the workloads that were recorded so far and passed, now or earlier.
  returned: success
  type: list
  elements: str
"""
