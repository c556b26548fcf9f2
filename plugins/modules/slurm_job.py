# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
---
module: slurm_job
short_description: Submit Slurm jobs once, wait for them and report how they ended
version_added: 0.1.0
author:
  - mlops.hpc_validation authors (@mlops)
description:
  - Submits a script on the cluster, or one given inline, and waits until the job has ended. While it waits, it prints a
    line on every change of state and, at most every O(progress_interval), one with the job's progress.
  - If the user has a live job with the same script, options and share, the task attaches to it instead of submitting it
    again. Jobs are identified by their comment (C(hpc_validation:) and the beginning of the content hash) and by a
    journal on the share.
  - Ctrl-C, SIGTERM and the death of the controller process cancel what this task submitted, or leave it
    (O(on_interrupt)). Jobs it attached to are never cancelled.
  - A job that can never start is cancelled and reported at once, with the reason and a remedy.
  - A state that cannot be determined is V(UNKNOWN). It is a failure, like every end other than V(COMPLETED).
notes:
  - Waiting is done by an action plugin on the controller that calls M(mlops.hpc_validation.slurm_job_info). With an
    O(end_marker), Slurm is queried rarely while the job runs; without one it is queried every 1 to 30 seconds, less
    often the longer the job runs.
  - C(async) is rejected. To wait for many jobs at once, give O(jobs); to go on without waiting, give O(wait=false) and
    wait later with O(job_id).
  - Variables that change what Slurm's commands do (C(SBATCH_*), C(SQUEUE_*), C(SACCT_*), C(SLURM_*) with C(SLURM_JWT)
    among them) are removed from their environment; C(SLURM_CONF) is kept.
  - Only one login node should submit for the same user and share at a time. The journal's locks are the file system's,
    and by default BeeGFS locks hold on one client only.
options:
  key:
    description:
      - Your name for the job, unique in the task. The job is returned with it, and under it in RV(jobs_by_key), so that
        nothing depends on the order of the jobs. It is not passed to Slurm, and does not distinguish two submissions.
    type: str
    version_added: 0.4.0
  path:
    description: Absolute path of a batch script on the cluster. Each job has one of O(path), O(script) and O(job_id).
    type: path
  script:
    description: Text of a batch script, passed to C(sbatch) on its standard input.
    type: str
  sha256:
    description: SHA-256 that the script must have, in hexadecimal; otherwise nothing is submitted.
    type: str
    version_added: 0.3.0
  options:
    description:
      - C(sbatch)'s long options without the dashes. V(true) gives the bare option, a list is joined with commas.
      - Times must be quoted, since YAML reads an unquoted C(10:00) as the number 600.
      - Options that would change what is submitted, such as C(array), C(hold) or C(comment), are rejected, here and in
        the script's C(#SBATCH) and C(#SLURM) lines, even if their names are abbreviated (C(arr)) or joined (C(-Oa0-3)).
      - C(#PBS) and C(#BSUB) lines, from which C(sbatch) also takes options, are rejected unless V(ignore_pbs=true).
    type: dict
  chdir:
    description: Directory on the cluster in which the job runs.
    type: path
  share:
    description: Root of the share that the job uses. Jobs with different shares are different submissions.
    type: path
  job_id:
    description: Wait for, or with O(state=absent) cancel, an existing job.
    type: str
  end_marker:
    description: File that the job writes as its last act; C(%j) is the job ID. Watching it costs Slurm nothing.
    type: str
  begin_marker:
    description: File that the job writes when it begins; C(%j) is the job ID.
    type: str
  progress_marker:
    description: JSON file with the job's latest epoch, step, loss and time left; C(%j) is the job ID.
    type: str
  queue_timeout:
    description:
      - Seconds that the job may wait in the queue, 600 by default. Then it is cancelled and reported as not started.
      - Time in which another of O(jobs) runs does not count, since this job may be waiting for it.
    type: float
  run_timeout:
    description: Seconds that the job may run; then it is cancelled. By default only Slurm's own time limit applies.
    type: float
  jobs:
    description: Several jobs in one task. Each entry's keys take precedence over the task's own.
    type: list
    elements: dict
    suboptions:
      key:
        description: See O(key).
        type: str
        version_added: 0.4.0
      path:
        description: See O(path).
        type: path
      script:
        description: See O(script).
        type: str
      sha256:
        description: See O(sha256).
        type: str
        version_added: 0.3.0
      options:
        description: See O(options).
        type: dict
      chdir:
        description: See O(chdir).
        type: path
      share:
        description: See O(share).
        type: path
      job_id:
        description: See O(job_id).
        type: str
      end_marker:
        description: See O(end_marker).
        type: str
      begin_marker:
        description: See O(begin_marker).
        type: str
      progress_marker:
        description: See O(progress_marker).
        type: str
      queue_timeout:
        description: See O(queue_timeout).
        type: float
      run_timeout:
        description: See O(run_timeout).
        type: float
  journal:
    description:
      - Directory in which every submission is recorded before it is made. By default C(jobs/.journal) below
        O(share), or C(~/.cache/hpc_validation/journal) without a share.
      - With O(state=absent) and no O(job_id), every live job of this journal and user is cancelled.
    type: path
  state:
    description: V(present) submits or attaches, and waits. V(absent) cancels and checks until the jobs have ended.
    type: str
    default: present
    choices: [present, absent]
  wait:
    description: Wait for the end of the jobs.
    type: bool
    default: true
  window:
    description:
      - How many of O(jobs) may be in the queue or running at once. The others are submitted as these end, in the order
        given. A job leaves the window with its end marker, or when Slurm reports its end.
      - With more than 8 jobs it is no more than the site allows (C(MaxJobCount) in C(slurm.conf) and, where limits are
        enforced, the submitted and running jobs of the user's association and QOS).
      - A job that C(sbatch) refuses because such a limit is reached is held back and submitted when others have ended.
        If none of the task's jobs is in the queue and it stays refused for O(queue_timeout), it is refused for good.
      - Without O(wait) all jobs are submitted at once.
    type: int
    default: 200
    version_added: 0.4.0
  node_grace:
    description:
      - Seconds that a job waits for the nodes that its O(options) name as C(nodelist) if one of them is down, drained
        or not responding, or has been given the job and has not begun it (which only a O(begin_marker) shows). Then it
        is cancelled, and its outcome is C(node_unavailable), with the node and its state.
      - Such a job is also cancelled as soon as Slurm puts it back into the queue because its launch failed, which it
        does in spite of C(no-requeue).
      - In the queue it is no longer than O(queue_timeout). It does not count while a node is powering up or rebooting.
      - By default such a job is waited for like any other.
    type: float
    version_added: 0.4.0
  controller_timeout:
    description: Seconds that slurmctld, or the login node, may fail to answer before the jobs' state is V(UNKNOWN).
    type: float
    default: 300
  progress_interval:
    description:
      - Seconds between two lines on a job whose state does not change.
      - With more than 8 jobs there is one line on all of them, every 10 seconds or in this time if it is shorter, and a
        line on each that did not end well, a handful in that time.
    type: float
    default: 30
  on_interrupt:
    description: What to do with the jobs that this task submitted if it is interrupted.
    type: str
    default: cancel
    choices: [cancel, leave]
  on_refusal:
    description:
      - What to do if C(sbatch) refuses one of O(jobs). V(go_on) submits the others; the refused one is returned in its
        place with C(job_id) V(0), state C(UNKNOWN) and the reason in C(reason_text).
    type: str
    default: fail
    choices: [fail, go_on]
    version_added: 0.2.0
  fail_on_state:
    description: Fail unless every job ends V(COMPLETED). With V(false) the jobs are returned for the caller to judge.
    type: bool
    default: true
  tail:
    description: Number of last lines of standard error to return for a job that did not complete.
    type: int
    default: 20
  save:
    description:
      - >-
        File on the controller for RV(jobs_by_key) and RV(outcomes), as JSON. The task then returns neither these nor
        RV(jobs), RV(job) and RV(submitted), but their number, RV(saved): for many jobs, of which no task should return
        everything.
    type: path
    version_added: 0.4.0
  token:
    description:
      - Marks a task's own submissions in the journal, for one task only. By default the action plugin makes one up.
      - With O(state=absent), the jobs of the task with this token are cancelled, and it can submit no more.
    type: str
  looked:
    description: When this task last asked Slurm for the user's jobs, in epoch seconds. Set by the action plugin.
    type: float
    version_added: 0.4.0
extends_documentation_fragment:
  - mlops.hpc_validation.attributes
  - mlops.hpc_validation.slurm
attributes:
  action:
    support: full
  async:
    support: none
  check_mode:
    support: full
    details: C(sbatch --test-only) shows whether and when the job would start. Nothing is submitted or cancelled.
  diff_mode:
    support: full
    details: The script, compared with the one last submitted under the same name.
  idempotent:
    support: partial
    details: Attaches to a live job with the same content. One that has ended is submitted again.
seealso:
  - module: mlops.hpc_validation.slurm_job_info
"""

EXAMPLES = r"""
- name: Train, and wait for the job
  mlops.hpc_validation.slurm_job:
    path: /mnt/beegfs/scripts/mnist_single_gpu/mnist_single_gpu.sbatch
    share: /mnt/beegfs
    end_marker: /mnt/beegfs/jobs/.markers/%j.end.json
    options:
      gres: "gpu:1"
      time: "00:10:00"
    queue_timeout: 600
    run_timeout: 600
  register: training

- name: One job per node, all waited for in one task
  mlops.hpc_validation.slurm_job:
    share: /mnt/beegfs
    path: /mnt/beegfs/scripts/probe/probe.sbatch
    jobs:
      - {key: compute01, options: {nodelist: compute01, job-name: probe-compute01}}
      - {key: compute02, options: {nodelist: compute02, job-name: probe-compute02}}
  register: probes

- name: Print on which node the first one ran, and for how long
  ansible.builtin.debug:
    msg: "{{ probes.jobs_by_key.compute01.nodes }}: {{ probes.jobs_by_key.compute01.run_seconds }} s"

- name: Cancel all jobs left by earlier runs
  mlops.hpc_validation.slurm_job:
    state: absent
    journal: /mnt/beegfs/jobs/.journal
"""

RETURN = r"""
job:
  description: The first job, as the collection's job dictionary.
  type: dict
  returned: always
  sample:
    job_id: "12"
    state: COMPLETED
    exit_code: 0
    nodes: [compute01]
    queued_seconds: 1.0
    run_seconds: 63.0
jobs:
  description: All jobs, in the order given, each with its C(key) if O(key) was given.
  type: list
  elements: dict
  returned: always
jobs_by_key:
  description: The jobs with a O(key), by that key.
  type: dict
  returned: when state is present, except in check mode
  version_added: 0.4.0
  sample: {"compute01": {key: compute01, job_id: "12", state: COMPLETED}}
saved:
  description: How many jobs with a O(key) were written to the file O(save).
  type: int
  returned: if O(save) was given
  version_added: 0.4.0
attached:
  description: Whether every job already existed.
  type: bool
  returned: when state is present
submitted:
  description: What was submitted or attached to, with each job's ID and comment.
  type: list
  elements: dict
  returned: when state is present
outcomes:
  description: How the wait for each job ended, by job ID, with the reason in words.
  type: dict
  returned: when waiting
  sample: {"12": {outcome: ended, why: ""}}
cancelled:
  description: IDs of jobs that were cancelled.
  type: list
  elements: str
  returned: always
"""

import os
import pwd

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.mlops.hpc_validation.plugins.module_utils._common import no_nul
from ansible_collections.mlops.hpc_validation.plugins.module_utils._slurm.arguments import (
    FEW,
    SPEC,
    BadArgumentsError,
    check_window,
    job_specs,
    journal_directory,
)
from ansible_collections.mlops.hpc_validation.plugins.module_utils._slurm.cancel import (
    cancel,
    journal_comments,
    live_targets,
)
from ansible_collections.mlops.hpc_validation.plugins.module_utils._slurm.cli import SlurmError, run
from ansible_collections.mlops.hpc_validation.plugins.module_utils._slurm.job_limits import Asked, Limit, tightest
from ansible_collections.mlops.hpc_validation.plugins.module_utils._slurm.journal import Journal
from ansible_collections.mlops.hpc_validation.plugins.module_utils._slurm.script import Submission, prepare
from ansible_collections.mlops.hpc_validation.plugins.module_utils._slurm.states import LIVE
from ansible_collections.mlops.hpc_validation.plugins.module_utils._slurm.submit import (
    Context,
    Queue,
    Room,
    last_script,
    submit_all,
    test_only,
)

# A call that submits many returns after this time, so that the jobs that have ended meanwhile are noticed.
_CALL_SECONDS = 8.0


def main() -> None:
    """Run the module: one submission or one cancellation, no waiting."""
    module = AnsibleModule(argument_spec=SPEC, supports_check_mode=True)
    nul = no_nul.refusal(module.params)
    if nul:
        module.fail_json(msg=nul)
    account = pwd.getpwuid(os.geteuid())
    journal = Journal(journal_directory(module.params, account.pw_dir))
    context = Context(run, journal, account.pw_name, module.params["token"] or "")
    try:
        check_window(module.params)
        specs = job_specs(module.params)
        if module.params["state"] == "absent":
            module.exit_json(**_absent(module, context, specs))
        if not specs:
            raise BadArgumentsError("Give path, script, job_id or jobs.")
        module.exit_json(**_present(module, context, specs))
    except (SlurmError, BadArgumentsError) as error:
        module.fail_json(msg=str(error), **getattr(error, "details", {}))


def _present(module: AnsibleModule, context: Context, specs: list) -> dict:
    submissions = [prepare(spec, context.user) for spec in specs if spec.get("job_id") is None]
    if not submissions:
        return {"changed": False, "submitted": []}
    diff = [_diff(context, each) for each in submissions] if module._diff else None
    if module.check_mode:
        queue = Queue(context)
        plans = [test_only(context, each, queue) for each in submissions]
        result = {"changed": not all(plan["attached"] for plan in plans), "submitted": plans}
    else:
        result = _submit(module.params, context, submissions)
    return {**result, "diff": diff} if diff is not None else result


def _submit(params: dict, context: Context, submissions: list) -> dict:
    """Submit as many as the window takes; the first call of a task also says how many that are."""
    context.journal.prepare()
    queue = Queue(context, params["looked"])
    limit = None
    if params["looked"] is None and params["wait"]:
        limit = _window(params["window"], context, submissions, queue)
    jobs = len(submissions) if limit is None else limit.jobs
    room = Room(jobs, _CALL_SECONDS) if params["wait"] else None
    done = submit_all(context, submissions, go_on=params["on_refusal"] == "go_on", queue=queue, room=room)
    return {
        "changed": any(each.job_id and not each.attached for each in done),
        "submitted": [each.as_dict() for each in done],
        "looked": queue.looked,
        **({} if limit is None else {"window": limit.jobs, "window_why": limit.why}),
    }


def _window(most: int, context: Context, submissions: list, queue: Queue) -> Limit:
    """Return how many of the task's jobs may be in the queue at once, and why if it is the site that limits them."""
    if len(submissions) <= FEW:
        return Limit(most, "")
    comments = {each.comment for each in submissions}
    others = [job for job in queue.jobs if job["comment"] not in comments]
    asked = {Asked.of(each.argv, each.script) for each in submissions}
    site = tightest(context.run, context.user, sorted(asked, key=str), others)
    return site if site is not None and site.jobs < most else Limit(most, "")


def _diff(context: Context, submission: Submission) -> dict:
    return {
        "before_header": f"last script submitted as {submission.name}",
        "after_header": f"script of {submission.name}",
        "before": last_script(context.journal, submission, context.user),
        "after": submission.script.decode("utf-8", "replace"),
    }


def _absent(module: AnsibleModule, context: Context, specs: list) -> dict:
    if any(spec.get("job_id") is None for spec in specs):
        raise BadArgumentsError("state=absent takes job_id (or only journal, for all live jobs in the journal).")
    job_ids = [spec["job_id"] for spec in specs]
    comments = set() if job_ids else journal_comments(context, context.token, change=not module.check_mode)
    if module.check_mode:
        jobs = live_targets(context, job_ids, comments)
        return {"changed": bool(jobs), "jobs": jobs, "cancelled": [job["job_id"] for job in jobs]}
    if not job_ids and not comments:
        return {"changed": False, "jobs": [], "cancelled": []}
    gone, left = cancel(context, job_ids, comments)
    if left:
        ids = " ".join(str(job["job_id"]) for job in left)
        raise SlurmError(
            f"These jobs have not ended half a minute after scancel: {ids}. "
            f"Check: squeue --jobs={ids.replace(' ', ',')}",
            jobs=[*gone, *left],
            cancelled=[job["job_id"] for job in gone],
        )
    return {
        "changed": bool(gone),
        "jobs": gone,
        "cancelled": [job["job_id"] for job in gone if job["state"] not in LIVE],
    }


if __name__ == "__main__":
    main()
