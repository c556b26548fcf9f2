# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
---
module: slurm_chain
short_description: Submit a long training as a chain of Slurm jobs, find it again, stop it
version_added: 0.4.0
author:
  - mlops.hpc_validation authors (@mlops)
description:
  - Submits the same script several times, each job after the one before it (C(--dependency=afterany)), so that a
    training that takes longer than a partition's time limit goes on by itself. Compute nodes need not be allowed to
    submit.
  - The chain's record is C(chain.json) in O(folder), on the share and under a lock. It is written before and after each
    submission. Run again, from another controller, the task finds the chain and submits only the links that are
    missing; another user is shown it. There is never a second chain in the same folder.
  - A submission whose answer was lost is found again by the job's comment, as by M(mlops.hpc_validation.slurm_job). The
    chain's journal is its own, so that nothing which cancels the jobs of a journal finds them.
  - The script decides by itself whether it has anything to do; the collection's job script uses C(kit link) for that.
notes:
  - Only one login node should submit for the same user and share at a time. The locks are the file system's, and by
    default BeeGFS locks hold on one client only.
  - Times are asked for on the command line of C(sbatch), so a C(--time) in the script has no effect.
options:
  state:
    description:
      - V(present) begins the chain, or adds the links that are missing.
      - V(looked) only looks.
      - V(stopped) cancels the links that wait, and leaves word (a file C(stop)) for the one that runs to end with a
        checkpoint, and for those that begin later to end at once.
    type: str
    choices: [present, looked, stopped]
    default: present
  folder:
    description: The chain's folder on the share.
    type: path
    required: true
  name:
    description: What the chain is called, up to 40 lower-case letters, digits and hyphens.
    type: str
    required: true
  path:
    description: Absolute path of the batch script on the cluster.
    type: path
  script:
    description: Text of the batch script, for check mode, in which it is not on the cluster.
    type: str
  sha256:
    description: SHA-256 that the script must have, in hexadecimal; otherwise nothing is submitted.
    type: str
  options:
    description: More options of C(sbatch), as for M(mlops.hpc_validation.slurm_job).
    type: dict
    default: {}
  what:
    description:
      - What makes the training this one, as names and texts. It is kept in the record and compared; a chain that
        differs is not added to, unless O(go_on).
    type: dict
    default: {}
  links:
    description:
      - How many links may wait or run at a time. Fewer are submitted where the site allows a user fewer jobs
        (C(MaxSubmitJobs) and C(MaxJobCount), for example); the next call adds the others.
    type: int
    default: 8
  time:
    description:
      - Time of each link, as C(sbatch) takes it, in quotes. By default as much as the partition gives a job, or a day
        if it does not limit that.
    type: str
  go_on:
    description:
      - Let a chain go on that was stopped, that came to its end, that made no progress, or whose O(what) differs from
        now on. None of its links may wait or run.
    type: bool
    default: false
  output:
    description: Output folder of the jobs; C(%j) is the job ID. Required for V(stopped).
    type: str
  wait:
    description: With V(stopped), seconds to wait for the end of the link that runs.
    type: float
    default: 600
extends_documentation_fragment:
  - mlops.hpc_validation.attributes
  - mlops.hpc_validation.slurm
attributes:
  action:
    support: none
  async:
    support: none
  check_mode:
    support: full
    details: Nothing is submitted, cancelled or written. A chain that differs from O(what) is an error all the same.
  diff_mode:
    support: none
  idempotent:
    support: full
    details: Submits only links that are missing.
seealso:
  - module: mlops.hpc_validation.slurm_job
"""

EXAMPLES = r"""
- name: Train for as long as it takes, in jobs of a day
  mlops.hpc_validation.slurm_chain:
    folder: /mnt/beegfs/models/gpt-pretraining/chain-november
    name: november
    path: /mnt/beegfs/models/gpt-pretraining/chain-november/workload/gpt_pretraining.sbatch
    links: 5
    time: "1-00:00:00"
  register: chain

- name: Show it
  ansible.builtin.debug:
    msg: "{{ chain.lines }}"

- name: Stop it, with a checkpoint
  mlops.hpc_validation.slurm_chain:
    state: stopped
    folder: /mnt/beegfs/models/gpt-pretraining/chain-november
    output: /mnt/beegfs/models/gpt-pretraining/job-%j
"""

RETURN = r"""
chain:
  description:
    - The chain's record with its C(links), each with C(number), C(job_id), C(slurm) (its state) and C(said) (what the
      job said of itself). Null if there is none.
  type: dict
  returned: always
lines:
  description: The same for people.
  type: list
  elements: str
  returned: always
submitted:
  description: IDs of the jobs that this call submitted, or found again.
  type: list
  elements: str
  returned: always
running:
  description: With V(stopped), IDs of the jobs that had not ended when the wait was over.
  type: list
  elements: str
  returned: always
ours:
  description: Whether the chain is this user's, or there is none.
  type: bool
  returned: always
current:
  description: ID of the link that trains, or that trained last; null without one.
  type: str
  returned: always
checkpoint:
  description: Path of the newest checkpoint; null without one.
  type: str
  returned: always
"""

import os
import pwd
import re
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.mlops.hpc_validation.plugins.module_utils._common import no_nul
from ansible_collections.mlops.hpc_validation.plugins.module_utils._slurm import chain, chain_folder, chain_words
from ansible_collections.mlops.hpc_validation.plugins.module_utils._slurm.cli import SlurmError, run
from ansible_collections.mlops.hpc_validation.plugins.module_utils._slurm.journal import Journal
from ansible_collections.mlops.hpc_validation.plugins.module_utils._slurm.submit import Context

_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,39}", re.ASCII)
SPEC: dict[str, dict[str, Any]] = {
    "state": {"type": "str", "choices": ["present", "looked", "stopped"], "default": "present"},
    "folder": {"type": "path", "required": True},
    "name": {"type": "str", "required": True},
    "path": {"type": "path"},
    "script": {"type": "str"},
    "sha256": {"type": "str"},
    "options": {"type": "dict", "default": {}},
    "what": {"type": "dict", "default": {}},
    "links": {"type": "int", "default": 8},
    "time": {"type": "str"},
    "go_on": {"type": "bool", "default": False},
    "output": {"type": "str"},
    "wait": {"type": "float", "default": 600.0},
}


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec=SPEC,
        required_if=[("state", "stopped", ("output",))],
        supports_check_mode=True,
    )
    params = module.params
    nul = no_nul.refusal(params)
    if nul:
        module.fail_json(msg=nul)
    os.umask(0o022)
    user = pwd.getpwuid(os.geteuid()).pw_name
    context = Context(run, Journal(os.path.join(params["folder"], chain_folder.JOURNAL)), user)
    try:
        module.exit_json(**_answer(context, params, change=not module.check_mode))
    except (SlurmError, OSError) as error:
        details = error.details if isinstance(error, SlurmError) else {}
        module.fail_json(msg=str(error), **details)


def _answer(context: Context, params: dict[str, Any], *, change: bool) -> dict[str, Any]:
    """Do what is asked; return the result. Raise SlurmError, OSError."""
    folder, state = params["folder"], params["state"]
    if not _NAME.fullmatch(params["name"]):
        raise SlurmError(f"name {params['name']!r}: expected up to 40 lower-case letters, digits and hyphens.")
    if not 1 <= params["links"] <= 1000:
        raise SlurmError(f"links is {params['links']}; expected 1 to 1000.")
    submitted: list[str] = []
    running: list[str] = []
    changed = False
    if state == "present":
        found, submitted = chain.extend(context, folder, _wanted(params), change=change)
        changed = bool(submitted)
    elif state == "stopped" and change:
        before = chain_folder.read_record(folder)
        found, running = chain.stop(context, folder, params["output"], params["wait"])
        changed = before is not None and before["state"] != chain_folder.STOPPED
    else:
        found = chain.look_at(context, folder)
    if found is None:
        return _result(changed, None, [f"there is no chain {params['name']} ({folder})"], submitted, running)
    lines = chain_words.lines(found)
    if running:
        lines.append(f"note: after {params['wait']:.0f} s still running: job {' '.join(running)}; it ends by itself")
    result = _result(changed, {**found.record, "links": found.links}, lines, submitted, running)
    place = os.path.join(folder, chain_folder.CHECKPOINTS)
    result["ours"] = found.record["user"] == context.user
    result["current"] = chain_words.current(found)
    result["checkpoint"] = os.path.join(place, found.checkpoint) if found.checkpoint else None
    return result


def _wanted(params: dict[str, Any]) -> chain.Wanted:
    keys = ("path", "script", "sha256", "options")
    return chain.Wanted(
        name=params["name"],
        script={key: params[key] for key in keys},
        what={str(key): str(value) for key, value in params["what"].items()},
        links=params["links"],
        time=params["time"],
        go_on=params["go_on"],
    )


def _result(
    changed: bool, record: dict[str, Any] | None, lines: list[str], submitted: list[str], running: list[str]
) -> dict[str, Any]:
    return {
        "changed": changed,
        "chain": record,
        "lines": lines,
        "submitted": submitted,
        "running": running,
        "ours": True,
        "current": None,
        "checkpoint": None,
    }


if __name__ == "__main__":
    main()
