# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: job_paths
version_added: 0.4.0
short_description: Return the paths that a workload's job wrote to
description:
  - The output, the logs and the end marker of one job, from the plan of its workload.
options:
  _input:
    description: What P(mlops.hpc_validation.workload_plan#filter) returned.
    type: dict
    required: true
  job:
    description: The job, as M(mlops.hpc_validation.slurm_job) returns it.
    type: dict
    required: true
author:
  - the mlops.hpc_validation authors
"""

EXAMPLES = r"""
- name: Show the path of the log
  ansible.builtin.debug:
    msg: "{{ (planned | mlops.hpc_validation.job_paths(job)).logs.stdout }}"
"""

RETURN = r"""
_value:
  description: C(output), C(logs) with C(stdout) and C(stderr), and C(end_marker).
  type: dict
"""

import typing as t

from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._workloads import plan


def job_paths(planned: dict[str, t.Any], job: dict[str, t.Any]) -> dict[str, t.Any]:
    """Return the paths."""
    return plan.paths(planned, job)


class FilterModule:
    def filters(self) -> dict[str, t.Any]:
        return {"job_paths": job_paths}
