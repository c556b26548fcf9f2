#!/usr/bin/python
# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: edge_host
version_added: 0.4.0
short_description: Look at an edge host, measure a model there, or remove what that left
description:
  - For the collection's roles. An edge host is a device that answers with a model by itself, such as a Jetson or a
    Raspberry Pi. It needs ssh and Python 3.8, and no package.
  - No module runs on the host, since ansible-core asks for a newer Python there than many a device has. A single file
    is put into a temporary folder, and removed again. So it works over any connection plugin that has a shell.
  - >-
    What a host does never fails the task. RV(problem) says why there is no answer. C(ansible_become) for such a host is
    rejected, since all that is needed there belongs to the user who connects.
extends_documentation_fragment:
  - mlops.hpc_validation.attributes
attributes:
  check_mode:
    support: full
    details: Nothing is put on the host, and the task is skipped.
  diff_mode:
    support: none
  idempotent:
    support: partial
    details: Each measurement is a new one.
  async:
    support: none
  action:
    support: full
options:
  state:
    description:
      - V(looked) returns what the host says of itself, and which of the collection's locks fits it.
      - >-
        V(measured) sends the bundle that a job left, with the wheels for the host and the programs of C(files/edge),
        has the deployed model measured there, and writes the answer to C(<run>/edge/<workload>/<host>.json) on the
        controller. If the job did not end well, or the bundle is torn or of another job, that is the answer, and the
        host is left alone.
      - V(absent) removes O(folder) if it has the collection's mark, C(.mlops-hpc-validation), and nothing measures
        there. If somebody else has put something into it, that stays, and the folder too.
    type: str
    required: true
    choices: [looked, measured, absent]
  python:
    description: The host's Python, by name or absolute path.
    type: str
    default: python3
  folder:
    description: The collection's folder on the host.
    type: str
    default: ~/.hpc_validation
  root:
    description: Where the host's sensors are read below, C(/) but for tests.
    type: str
    default: /
  timeout:
    description:
      - Seconds that one host may take in all; the measurement itself may take half of it. The task's own C(timeout)
        must be the same.
    type: int
    default: 3600
  run:
    description:
      - The run's folder on the controller, with the bundle at C(edge/bundle-<workload>.zip). Required with
        O(state=measured).
    type: path
  workload:
    description: The ID of the workload. Required with O(state=measured).
    type: str
  job:
    description:
      - The job that left the bundle, as M(mlops.hpc_validation.slurm_job) returned it. Required with O(state=measured).
    type: dict
  wheelhouse:
    description: What C(kit wheelhouse) answered for the host, C(folder), C(wheels) and C(packages).
    type: dict
  found:
    description: >-
      What M(ansible.builtin.stat) found of the bundle in the job's folder, or C(msg), why it could not be fetched.
      Required with O(state=measured).
    type: dict
  problem:
    description: Why the host cannot be measured, as C(id) and C(text), if that is known. Then that is written down.
    type: dict
seealso:
  - module: mlops.hpc_validation.metrics_assert
author:
  - mlops.hpc_validation authors (@mlops)
"""

EXAMPLES = r"""
- name: Look at it
  mlops.hpc_validation.edge_host:
    state: looked
  register: looked

- name: Measure there
  mlops.hpc_validation.edge_host:
    state: measured
    run: "{{ run.folder }}"
    workload: PROFILE-EMBEDDED
    job: "{{ job }}"
    found: "{{ found }}"
    wheelhouse: "{{ wheels.stdout | from_json }}"
  timeout: 3600

- name: Remove what is ours
  mlops.hpc_validation.edge_host:
    state: absent
"""

RETURN = r"""
problem:
  description:
    - Why there is no answer, or null. C(id) is V(unreachable), V(python), V(wheels), V(files), V(space), V(memory),
      V(busy), V(runtime), V(killed), V(crashed), V(limit), V(timeout), V(result), V(job), V(bundle) or V(controller).
  returned: success
  type: dict
  sample: {"id": "space", "text": "/home/admin/.hpc_validation needs 400 MB, 120 MB are free"}
look:
  description: What the host says of itself, null if it cannot be had.
  returned: O(state=looked)
  type: dict
  sample:
    board: null
    free_mb: 1234
    home: /home/admin
    implementation: cpython
    libc: glibc 2.36
    machine: x86_64
    python: 3.11.2
    system: Linux
requirement:
  description: C(lock), C(python), C(machine) and C(libc) of the wheels that it needs, null if there are none for it.
  returned: O(state=looked)
  type: dict
  sample: {"lock": "python311", "python": "3.11", "machine": "x86_64", "libc": "2.36"}
path:
  description: The file with the answer, on the controller.
  returned: O(state=measured)
  type: str
"""
