# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: preflight_jobs
version_added: 0.4.0
short_description: List the jobs of a preflight's plan for submission
description:
  - Each job has its key, the script that it runs and its options for C(sbatch).
options:
  _input:
    description: What M(mlops.hpc_validation.preflight_nodes) planned, from C(nodes.json) of the run.
    type: dict
    required: true
  folder:
    description: The folder on the share that holds the scripts.
    type: path
    required: true
author:
  - the mlops.hpc_validation authors
"""

EXAMPLES = r"""
- name: Check every node
  mlops.hpc_validation.slurm_job:
    jobs: "{{ planned | mlops.hpc_validation.preflight_jobs('/mnt/beegfs/jobs/.preflight/1') }}"
    share: /mnt/beegfs
    journal: /mnt/beegfs/jobs/.journal
"""

RETURN = r"""
_value:
  description: C(key), C(path) and C(options) of each job, as M(mlops.hpc_validation.slurm_job) takes them.
  type: list
  elements: dict
"""

import typing as t

from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._preflight import settings


def preflight_jobs(planned: dict[str, t.Any], folder: str) -> list[dict[str, t.Any]]:
    """Return the jobs."""
    return settings.jobs(planned, str(folder))


class FilterModule:
    def filters(self) -> dict[str, t.Any]:
        return {"preflight_jobs": preflight_jobs}
