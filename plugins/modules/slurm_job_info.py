# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
---
module: slurm_job_info
short_description: Query any number of Slurm jobs at once
version_added: 0.1.0
author:
  - mlops.hpc_validation authors (@mlops)
description:
  - Returns each job as the collection's job dictionary. Slurm is queried once for all jobs (C(squeue) for one user);
    accounting (C(sacct)) only for jobs that slurmctld has forgotten and for the steps of jobs that have ended.
  - It can hold its answer for a bounded time while it watches the jobs' marker files on the share, which costs Slurm
    nothing. M(mlops.hpc_validation.slurm_job) uses it to wait.
  - A job that neither slurmctld nor accounting knows has the state V(UNKNOWN). Nothing is inferred from absence.
notes:
  - Variables that change what Slurm's commands do (C(SQUEUE_*), C(SACCT_*), C(SLURM_*) with C(SLURM_JWT) among them)
    are removed from their environment; C(SLURM_CONF) is kept.
options:
  job_ids:
    description: IDs of the jobs to query, of any user.
    type: list
    elements: str
    default: []
  jobs:
    description: Jobs to query of which more than the ID is known.
    type: list
    elements: dict
    default: []
    suboptions:
      job_id:
        description: The job's ID.
        type: str
        required: true
      comment:
        description: The comment it must have. Another job with the same ID is not this job.
        type: str
      submitted:
        description: When it was submitted, in epoch seconds.
        type: float
      submitted_by:
        description: The latest time at which it can have been submitted, if O(jobs[].submitted) is not known yet.
        type: float
        version_added: 0.3.0
      attempt:
        description: How often the job has been requeued. Markers of earlier attempts are ignored.
        type: int
        default: 0
      begin_marker:
        description: File that the job writes when it begins; C(%j) is the job ID.
        type: str
      end_marker:
        description: File that the job writes as its last act; C(%j) is the job ID.
        type: str
      progress_marker:
        description: File with the job's latest progress; C(%j) is the job ID.
        type: str
      seen:
        description: Markers (V(begin), V(end)) that the caller has already seen; they are not read again.
        type: list
        elements: str
        default: []
      needs:
        description: Nodes without which the job cannot run, as Slurm writes them.
        type: str
        version_added: 0.4.0
      stuck_after:
        description:
          - Seconds after which these nodes are queried if the job has not begun, with one query for all jobs. They are
            queried in any case if Slurm has put the job back into the queue.
        type: float
        version_added: 0.4.0
  user:
    description: The jobs' user. By default the user that the module runs as.
    type: str
  hold:
    description: Seconds to hold the answer while watching markers, at most 20. A new begin or end marker ends it early.
    type: float
    default: 0
  query:
    description: Query Slurm when the hold is over. A new end marker causes a query in any case.
    type: bool
    default: true
  confirm_after:
    description: Do not query Slurm sooner than this many seconds from now, even if an end marker appears.
    type: float
    default: 0
  gather:
    description: Seconds for which further markers are awaited after a new one, within O(hold).
    type: float
    default: 0
    version_added: 0.4.0
  settle:
    description: Seconds between an end marker and the query to Slurm, at most 5. Other ends are collected meanwhile.
    type: float
    default: 0.2
  steps:
    description: Query accounting for the steps of jobs that have ended.
    type: bool
    default: true
  tail:
    description: Number of last lines of standard error to return for jobs that did not complete, at most 100.
    type: int
    default: 0
  nodes:
    description: IDs of pending jobs for which to check whether all nodes they need are down or drained.
    type: list
    elements: str
    default: []
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
    support: full
  action:
    support: none
seealso:
  - module: mlops.hpc_validation.slurm_job
"""

EXAMPLES = r"""
- name: Query two jobs
  mlops.hpc_validation.slurm_job_info:
    job_ids: ["12", "13"]
  register: looked

- name: Wait up to 20 s for a job's end marker, then query it
  mlops.hpc_validation.slurm_job_info:
    jobs:
      - job_id: "12"
        end_marker: /mnt/beegfs/jobs/.markers/%j.end.json
    hold: 20
"""

RETURN = r"""
jobs:
  description: The jobs, in the order requested; empty if Slurm was not queried or did not answer.
  type: list
  elements: dict
  returned: always
  sample: [{job_id: "12", state: COMPLETED, exit_code: 0, nodes: [compute01], source: squeue}]
asked:
  description: Whether Slurm was queried.
  type: bool
  returned: always
controller:
  description: V(up), V(unreachable), V(missing) (no C(squeue) on this host) or V(not_asked).
  type: str
  returned: always
error:
  description: Why the controller gave no answer.
  type: str
  returned: always
accounting:
  description: V(up), V(down) or V(not_asked).
  type: str
  returned: always
accounting_error:
  description: Why accounting gave no answer.
  type: str
  returned: always
markers:
  description: The content of the jobs' markers, by job ID and kind, except those in O(jobs[].seen).
  type: dict
  returned: always
blocked:
  description: Why pending jobs named in O(nodes) can never start, by job ID; those that can are left out.
  type: dict
  returned: always
stuck:
  description: Why jobs with O(jobs[].needs) have not begun, by job ID; those that may just have to wait are left out.
  type: dict
  returned: always
  version_added: 0.4.0
  sample: {"12": "n042 is not responding"}
nodes_looked:
  description: IDs of the jobs whose nodes were queried for RV(stuck).
  type: list
  elements: str
  returned: always
  version_added: 0.4.0
time:
  description: When this was determined, in epoch seconds on the host.
  type: float
  returned: always
"""

import os
import pwd

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.mlops.hpc_validation.plugins.module_utils._common import no_nul
from ansible_collections.mlops.hpc_validation.plugins.module_utils._slurm.cli import run
from ansible_collections.mlops.hpc_validation.plugins.module_utils._slurm.observe import (
    Request,
    Watched,
    World,
    observe,
)


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "job_ids": {"type": "list", "elements": "str", "default": []},
            "jobs": {
                "type": "list",
                "elements": "dict",
                "default": [],
                "options": {
                    "job_id": {"type": "str", "required": True},
                    "comment": {"type": "str"},
                    "submitted": {"type": "float"},
                    "submitted_by": {"type": "float"},
                    "attempt": {"type": "int", "default": 0},
                    "begin_marker": {"type": "str"},
                    "end_marker": {"type": "str"},
                    "progress_marker": {"type": "str"},
                    "seen": {"type": "list", "elements": "str", "default": []},
                    "needs": {"type": "str"},
                    "stuck_after": {"type": "float"},
                },
            },
            "user": {"type": "str"},
            "hold": {"type": "float", "default": 0},
            "query": {"type": "bool", "default": True},
            "confirm_after": {"type": "float", "default": 0},
            "gather": {"type": "float", "default": 0},
            "settle": {"type": "float", "default": 0.2},
            "steps": {"type": "bool", "default": True},
            "tail": {"type": "int", "default": 0},
            "nodes": {"type": "list", "elements": "str", "default": []},
        },
        supports_check_mode=True,
    )
    nul = no_nul.refusal(module.params)
    if nul:
        module.fail_json(msg=nul)
    specs = [*module.params["jobs"], *({"job_id": job_id} for job_id in module.params["job_ids"])]
    bad = [spec["job_id"] for spec in specs if not (spec["job_id"].isascii() and spec["job_id"].isdigit())]
    if bad:
        module.fail_json(msg=f"job ID: expected a number such as 12, found {', '.join(map(repr, bad))}.")
    request = Request(
        jobs=[Watched.of(spec) for spec in specs],
        user=module.params["user"] or pwd.getpwuid(os.geteuid()).pw_name,
        hold=max(0.0, module.params["hold"]),
        query=module.params["query"] and bool(specs),
        confirm_after=max(0.0, module.params["confirm_after"]),
        gather=max(0.0, module.params["gather"]),
        settle=min(5.0, max(0.0, module.params["settle"])),
        steps=module.params["steps"],
        tail=min(100, max(0, module.params["tail"])),
        nodes=module.params["nodes"],
    )
    module.exit_json(changed=False, **observe(request, World(run)))


if __name__ == "__main__":
    main()
