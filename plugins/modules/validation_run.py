#!/usr/bin/python
# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: validation_run
version_added: 0.1.0
short_description: Start a validation run and make its verdict
description:
  - Selects the workloads of a run and creates its folder, with a V(undetermined) verdict until there is another. At the
    end it makes C(verdict.json) and C(junit.xml) from what M(mlops.hpc_validation.validation_record) recorded, and, if
    the run had the single-GPU baseline, C(record.md), a readable validation record.
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
    details: O(state=started) creates a new run each time.
  async:
    support: none
  action:
    support: full
options:
  state:
    description:
      - V(started) selects workloads and creates the run's folder.
      - V(selected) selects workloads after the same checks, and creates nothing.
      - V(finished) makes the verdict, prints it, and fails unless it is V(pass).
      - >-
        V(expanded) writes the verdict of a run that has ended to C(verdict-1.json) beside it, with every finding, in
        the form of versions before 0.4.0.
      - V(recalled) and V(recorded) belong to M(mlops.hpc_validation.validation_record). Until 0.5.0 they are passed on
        to it, with a warning.
    type: str
    required: true
    choices: [started, selected, finished, expanded]
  results:
    description: Folder on the controller in which the run's folder is created. Relative to the current directory.
    type: path
  title:
    description: The run's name in reports.
    type: str
  accelerator:
    description: What the cluster computes on, according to the inventory.
    type: str
    choices: [cuda, simulated, cpu]
  folders:
    description: Folders that hold workload folders, on the controller.
    type: list
    elements: path
  categories:
    description:
      - Select all workloads of these categories, and those that they need, for which an earlier pass may still hold
        (M(mlops.hpc_validation.validation_record)).
    type: list
    elements: int
    default: []
  everything:
    description: Select all workloads, whatever their category.
    type: bool
    default: false
    version_added: 0.4.0
  options:
    description: Which of its options a workload runs as, by workload ID. The manifests list them.
    type: dict
    default: {}
  only:
    description: Select only these IDs, whatever their category.
    type: list
    elements: str
    default: []
  leave_out:
    description:
      - The inventory's C(hpc_validation_leave_out), the reason why each of these workloads is not to be run, by ID.
      - >-
        Rejected if it names an unknown workload, one that is selected by ID, or one that another selected workload
        needs, or if a reason is empty.
    type: dict
    default: {}
    version_added: 0.4.0
  edge_hosts:
    description:
      - The hosts of the inventory's group C(edge). Without any, workloads that are measured on edge hosts are left out
        with O(everything), else rejected.
    type: list
    elements: str
    default: []
    version_added: 0.4.0
  probes_only:
    description: Select no workload; only the findings of probes make the verdict.
    type: bool
    default: false
  needs_days:
    description: The inventory's C(hpc_validation_needs_days), rejected if negative.
    type: int
    default: 7
  window:
    description: The inventory's C(hpc_validation_window), rejected if less than 1.
    type: int
    default: 200
  node_grace:
    description: The inventory's C(hpc_validation_node_grace), rejected unless more than 0.
    type: float
    default: 60
  verdict_schema:
    description: The inventory's C(hpc_validation_verdict_schema).
    type: int
    choices: [1, 2]
    default: 2
  run_tags:
    description: The run's C(ansible_run_tags); IDs among them select like O(only).
    type: list
    elements: str
    default: [all]
  overrides:
    description: The inventory's C(hpc_validation_overrides); rejected if they name an unknown workload or criterion.
    type: dict
    default: {}
  by_workload:
    description:
      - The inventory's other settings that are by workload, C(workload_slurm), C(resume), C(baselines), C(pretraining)
        and C(profile), without their prefix.
      - Rejected if one names an unknown workload.
    type: dict
    default: {}
    version_added: 0.4.0
  runtimes:
    description:
      - The inventory's C(hpc_validation_runtime), C(hpc_validation_workload_runtime) and C(hpc_validation_images), and
        C(binds) of its C(hpc_validation_apptainer), as C(runtime), C(workload_runtime), C(images) and C(binds).
      - Rejected if they cannot be applied.
    type: dict
    default: {}
    version_added: 0.4.0
  references:
    description: The inventory's C(hpc_validation_references).
    type: dict
    default: {}
  expected_gpu:
    description: The inventory's C(hpc_validation_gpu); unknown keys are rejected.
    type: dict
    default: {}
  expected_node_gpus:
    description: The inventory's C(hpc_validation_node_gpus).
    type: dict
    default: {}
  expected_share:
    description: The inventory's C(hpc_validation_share_expect).
    type: dict
    default: {}
  settings:
    description: Names of all C(hpc_validation_) variables that are set; an unknown one is rejected.
    type: list
    elements: str
    default: []
  folder:
    description: The run's folder, as RV(folder) of O(state=started).
    type: path
seealso:
  - module: mlops.hpc_validation.validation_record
author:
  - mlops.hpc_validation authors (@mlops)
"""

EXAMPLES = r"""
- name: Start a run
  mlops.hpc_validation.validation_run:
    state: started
    results: results
    title: Category 1
    accelerator: cuda
    folders: ["{{ playbook_dir }}/../files/workloads"]
    categories: [1]
  register: run

- name: Make the verdict
  mlops.hpc_validation.validation_run:
    state: finished
    folder: "{{ run.folder }}"
"""

RETURN = r"""
folder:
  description: The run's folder on the controller.
  returned: O(state=started) and O(state=finished)
  type: str
run:
  description: The run's ID.
  returned: O(state=started)
  type: str
interrupted:
  description: >-
    Earlier runs of the last hours, with the same results folder and from the same host, that have not finished although
    their play is over.
  returned: O(state=started)
  type: list
  elements: str
workloads:
  description: The selected manifests that are not left out, each with its C(folder).
  returned: O(state=started) and O(state=selected)
  type: list
  elements: dict
waves:
  description: The IDs of RV(workloads) in order, grouped by whose jobs may be in the queue at the same time.
  returned: O(state=started) and O(state=selected)
  type: list
  elements: list
  sample: [[MLOPS-1.1], [MLOPS-1.2], [MLOPS-2.1]]
edge_hosts:
  description: The hosts of O(edge_hosts) if a selected workload is measured on edge hosts, else none.
  returned: O(state=started)
  type: list
  elements: str
  version_added: 0.4.0
msg:
  description: The verdict as the screen shows it, coverage, failures, evidence and next command included.
  returned: O(state=finished)
  type: str
verdict:
  description: V(pass), V(fail) or V(undetermined).
  returned: O(state=finished)
  type: str
"""
