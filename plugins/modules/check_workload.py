#!/usr/bin/python
# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: check_workload
version_added: 0.4.0
short_description: Check the manifests of workloads without a cluster
description:
  - Reads manifests as a run does, and reports all errors at once, each with file, line and key.
  - >-
    Besides the form, it checks that IDs and names are unused, that environments, datasets, models and needed workloads
    are known, that the scripts are in the folder, and that the job's output can answer the criteria.
  - Runs on the controller without a connection, and changes nothing.
extends_documentation_fragment:
  - mlops.hpc_validation.attributes
attributes:
  check_mode:
    support: full
  diff_mode:
    support: none
  idempotent:
    support: full
  async:
    support: none
  action:
    support: full
options:
  folder:
    description: A workload's folder, or a folder of such folders, on the controller.
    type: path
    required: true
  known:
    description:
      - Further folders of workloads, such as the inventory's C(hpc_validation_workload_folders). The workload may need
        those in them, and must not use their IDs. The collection's own, and those beside it, are always known.
    type: list
    elements: path
    default: []
seealso:
  - module: mlops.hpc_validation.new_workload
author:
  - mlops.hpc_validation authors (@mlops)
"""

EXAMPLES = r"""
- name: Check one workload
  mlops.hpc_validation.check_workload:
    folder: workloads/triad
"""

RETURN = r"""
manifests:
  description: The manifests that were checked.
  returned: always
  type: list
  elements: str
  sample: [/home/me/workloads/triad/workload.yml]
faults:
  description: What is wrong. The module fails unless this is empty.
  returned: always
  type: list
  elements: dict
  sample: [{file: /home/me/triad/workload.yml, line: 9, key: limits.queue, why: "'soon' is not of type 'integer'"}]
"""
