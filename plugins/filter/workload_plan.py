# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: workload_plan
version_added: 0.4.0
short_description: Plan the job of a workload
description:
  - Combines a manifest, the site's settings and the earlier results of the run, for the role
    P(mlops.hpc_validation.workload#role), into the job's Slurm options, what it runs, and where it writes.
options:
  _input:
    description: The manifest, as M(mlops.hpc_validation.validation_run) returns it.
    type: dict
    required: true
  settings:
    description:
      - The public settings without their prefix, C(share), C(accelerator), C(slurm), C(workload_slurm),
        C(queue_timeout), C(run_timeout), C(baselines), C(context), C(gpu), C(nccl_tests), C(pretraining)
        and C(resume).
    type: dict
    required: true
  before:
    description:
      - What the run did before, C(check_mode), whether it is in check mode, C(selected), the IDs of its workloads,
        C(passed), the IDs of those that passed, and from the role P(mlops.hpc_validation.stage#role) C(planned),
        C(runtimes), C(missing_runtimes), C(digests) and C(data).
    type: dict
    required: true
author:
  - the mlops.hpc_validation authors
"""

EXAMPLES = r"""
- name: Plan
  ansible.builtin.set_fact:
    planned: "{{ workload | mlops.hpc_validation.workload_plan(settings, before) }}"
"""

RETURN = r"""
_value:
  description:
    - C(unmet), what the workload needs but does not have. If that is empty, also C(label), C(home), C(script),
      C(configs), C(output) and C(logs), which are paths, C(runtime), C(directives), long options of C(sbatch),
      C(several_nodes), C(legs), C(baseline), C(settings), C(settings_file), C(resume), C(files), C(context),
      C(payload), C(data) and C(submit), what M(mlops.hpc_validation.slurm_job) is given.
  type: dict
"""

import typing as t

from ansible.errors import AnsibleFilterError
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._common.plain import plain
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._workloads import plan


def workload_plan(workload: dict[str, t.Any], settings: dict[str, t.Any], before: dict[str, t.Any]) -> dict[str, t.Any]:
    """Return the plan."""
    try:
        return plan.plan(plain(workload), plain(settings), plain(before))
    except (plan.WorkloadPlanError, OSError, ValueError) as exc:
        raise AnsibleFilterError(str(exc)) from exc


class FilterModule:
    def filters(self) -> dict[str, t.Any]:
        return {"workload_plan": workload_plan}
