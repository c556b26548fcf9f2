#!/usr/bin/python
# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: new_workload
version_added: 0.4.0
short_description: Make the folder of a new workload
description:
  - Makes a folder with a manifest and a script that pass as they are, for somebody to put their own training into.
  - Works on the controller. It opens no connection, and nothing else than the new folder is changed.
extends_documentation_fragment:
  - mlops.hpc_validation.attributes
attributes:
  check_mode:
    support: full
  diff_mode:
    support: none
  idempotent:
    support: none
    details: A folder that is there already is refused, so that nobody's work is lost.
  async:
    support: none
  action:
    support: full
options:
  name:
    description:
      - The workload's name, and its folder's. At most 63 small letters, digits and C(_), beginning with a letter.
      - Refused if another workload of the collection, or of O(dest), has it.
    type: str
    required: true
  dest:
    description: Folder on the controller in which the workload's folder is made. It is made too if it is missing.
    type: path
    default: workloads
seealso:
  - module: mlops.hpc_validation.check_workload
author:
  - mlops.hpc_validation authors (@mlops)
"""

EXAMPLES = r"""
- name: Begin a workload
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
  description: The workload's id, by which reports and C(--tags) call it.
  returned: success
  type: str
  sample: TRIAD-1
files:
  description: The names of the files in it.
  returned: success
  type: list
  elements: str
  sample: [train.py, train_standard_library.py, workload.yml]
"""
