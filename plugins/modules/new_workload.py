#!/usr/bin/python
# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: new_workload
version_added: 0.4.0
short_description: Create the folder of a new workload
description:
  - Creates a folder with a manifest and a script that pass as they are, as a starting point for your own training.
  - Runs on the controller without a connection, and changes nothing but the new folder.
extends_documentation_fragment:
  - mlops.hpc_validation.attributes
attributes:
  check_mode:
    support: full
  diff_mode:
    support: none
  idempotent:
    support: none
    details: An existing folder is rejected, so that no work is lost.
  async:
    support: none
  action:
    support: full
options:
  name:
    description:
      - The workload's name, and its folder's. At most 63 lower-case letters, digits and C(_), beginning with a letter.
      - Rejected if another workload in the collection or in O(dest) has it.
    type: str
    required: true
  dest:
    description: Folder on the controller in which the workload's folder is created. It is created if it does not exist.
    type: path
    default: workloads
seealso:
  - module: mlops.hpc_validation.check_workload
author:
  - mlops.hpc_validation authors (@mlops)
"""

EXAMPLES = r"""
- name: Create a workload
  mlops.hpc_validation.new_workload:
    name: triad
    dest: workloads
"""

RETURN = r"""
folder:
  description: The new folder.
  returned: success
  type: str
  sample: /home/me/workloads/triad
id:
  description: The workload's ID, used in reports and with C(--tags).
  returned: success
  type: str
  sample: TRIAD-1
files:
  description: The names of its files.
  returned: success
  type: list
  elements: str
  sample: [train.py, train_standard_library.py, workload.yml]
"""
