#!/usr/bin/python
# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
---
module: metrics_assert
short_description: Judge a job by the files it left behind
version_added: 0.1.0
description:
  - Reads a job's output where it is, reduces it to a bounded evidence document, and judges that document on the
    controller against a list of criteria, each with its bound.
  - The verdict is V(pass), V(fail) or V(undetermined). What is missing, unreadable, incomplete, not a number or from
    another job is V(undetermined), never a pass.
  - All criteria are judged; none is skipped after a failure. The job's own outcome is always judged too, as C(JOB).
  - The task fails unless the verdict is V(pass).
  - A ratio of C(ratio_ge) or C(ratio_le) is relative to the mean over the runs of a baseline, O(legs) or O(baseline).
    It is V(undetermined) if these differ by more than C(spread), a fraction of their mean that is 0.1 by default, or
    if one of them failed, had a different node, GPU, driver, container, lock or data, was of a different workload or
    amount of work, did not have fewer ranks, or was measured for too short a time.
author:
  - the mlops.hpc_validation authors (@mlops)
notes:
  - Criteria are data. Values read from files are never templated or evaluated.
  - A child process with a deadline does the reading, so that even a hanging file system leads to a verdict.
requirements:
  - On the controller, the Python package jmespath.
extends_documentation_fragment:
  - mlops.hpc_validation.attributes
attributes:
  check_mode:
    support: full
    details: Reads and judges as usual, since this changes nothing on the target; the evidence is not saved.
  diff_mode:
    support: none
  idempotent:
    support: full
    details: The same evidence always gets the same verdict.
  async:
    support: none
  action:
    support: full
options:
  workload:
    description: The workload's name in messages, such as V(MLOPS-1.1).
    type: str
    default: workload
  job:
    description:
      - The job dictionary that M(mlops.hpc_validation.slurm_job) returns.
      - Files of another job or attempt are not evidence.
      - Without a job nothing can be determined, and the verdict is V(undetermined).
    type: dict
  output:
    description: Directory on the target that holds O(files) and O(artifacts).
    type: str
  files:
    description:
      - Documents to read, by the name that queries use. Each has C(path), below O(output), and C(format).
        A path that leads elsewhere is rejected.
      - The format V(json) is read whole; V(jsonl) and V(csv) are reduced to C(count), C(first), C(last), C(min),
        C(max), C(mean), C(slope) and so on for each field. C(first) and C(last) are those of the first and last row.
      - A reduction of a field that is not a finite number in every row decides nothing. With the criterion's
        C(missing_at_most), C(rows) and a C(reason), up to that many rows may have null or no value; they are counted.
      - C(group_by) names a field; rows are reduced separately for each of its values.
      - C(x) names the field that slopes are over; without it, they are over the row number.
      - Each must have the job's C(job_id) and C(attempt), in JSON Lines and CSV in every row.
    type: dict
    default: {}
  logs:
    description: The job's logs.
    type: dict
    default: {}
    suboptions:
      stdout:
        description: Path of the standard output.
        type: str
      stderr:
        description: Path of the standard error.
        type: str
  end_marker:
    description:
      - The path of the end marker that C(kit end) wrote when the job's script had ended.
      - A log is complete if it ends with a line that holds this marker's nonce. Only blank lines and Slurm's own lines
        may follow it. Without the marker every criterion on O(logs) is V(undetermined), unless it found what must be
        absent.
    type: str
    default: ''
    version_added: 0.2.0
  artifacts:
    description: Files below O(output) whose size and SHA-256 are evidence.
    type: list
    elements: str
    default: []
  context:
    description:
      - What the inventory states about the cluster, such as C(accelerator), C(gpu_model), C(gpu_count) and C(fabric).
      - A criterion's C(applies_when) and O(references) refer to it.
    type: dict
    default: {}
  criteria:
    description:
      - The criteria, as in a workload's manifest. Malformed ones are rejected before anything is judged.
      - C(each) needs exactly C(count) elements, or at least C(at_least). C(tolerance) of C(within) is a fraction
        below 1 of a reference above 0.
      - C(decreasing) needs three numbers whose fitted line falls by more than rounding, and by C(min_drop); if the
        slope is less than 1.5 times its standard error it is V(undetermined).
      - Required, but may be an empty list, whose verdict is V(undetermined).
    type: list
    elements: dict
  overrides:
    description:
      - The inventory's changes to the criteria, by ID. They are merged recursively.
      - A bound can be changed; it cannot be dropped (null), and the test stays the same, so C(gt) cannot become C(lt).
        C(waive) with C(reason) and C(expires) lets a criterion fail until that day.
    type: dict
    default: {}
  references:
    description:
      - The expected value of a metric on this hardware, by name.
      - Each is a number, or a list of entries with C(when), conditions on O(context), and C(value).
    type: dict
    default: {}
  patterns:
    description:
      - Sets of log patterns in addition to the collection's own, by name. A name of the collection's is rejected.
      - Each has C(patterns), a list of C(id), C(regex), C(texts) and C(remedy), and may have C(except), a list of
        C(regex). What C(except) matches in a line is hidden, and nothing else.
      - The log is searched for C(texts) first, so each match must hold one of them, spelled as in C(regex). Otherwise
        the pattern is rejected, as are a set without patterns and a regex that matches an empty line.
      - A pattern that finds no line, such as one for what C(except) hides, is rejected too. It may have C(matches), a
        list of lines that it must find; it needs them only if no such line can be made from its C(regex).
    type: dict
    default: {}
  legs:
    description:
      - The metrics of the job's other legs, which ratios are relative to. A job with legs runs the workload on fewer
        GPUs before and after it runs it on all of them.
      - Each is the path of a JSON file below O(output) with the job's C(job_id) and C(attempt).
      - O(files) must have the document C(legs), which states each leg's C(exit_code) and C(nodes), and should have
        C(metrics) and C(provenance), by which the legs are compared with the run on all GPUs.
      - C(legs) must also have C(work), which states what stays equal, and C(steady_seconds), above 0, which
        C(steady.seconds) of each leg's metrics must reach. With C(work) V(weak) that is C(batch_per_rank) of the
        metrics, with V(strong) their C(batch); C(world_size) of each leg must be less than the run's.
      - A file that is missing or from another job leaves only the criteria that need the baseline undetermined.
    type: dict
    suboptions:
      before:
        description: Metrics of the leg that ran before.
        type: str
        required: true
      after:
        description: Metrics of the leg that ran after.
        type: str
        required: true
  baseline:
    description:
      - Saved evidence, on the controller, of the earlier run that ratios are relative to, instead of O(legs).
      - If that run had legs itself, ratios are relative to those.
      - Its job must have ended before this one began, by less than 90 days, and must have the same name.
      - O(files) must have the document C(legs) here too, with C(work) and C(steady_seconds) as for O(legs).
    type: str
  evidence:
    description: Saved evidence, on the controller, to judge instead of a job. Nothing is done on the target.
    type: str
  save:
    description: Where to save the evidence on the controller, atomically.
    type: str
  fail:
    description:
      - Whether the task fails unless the verdict is V(pass).
      - With V(false) the caller must act on the verdict.
    type: bool
    default: true
  timeout:
    description: Seconds that all reading may take.
    type: float
    default: 120.0
  settle:
    description:
      - Seconds to wait for a file that is missing or incomplete, or for a log without the job's end marker.
      - A parallel file system may show another host's writes late.
    type: float
    default: 5.0
  max_json_bytes:
    description: Size of the largest JSON document that is read.
    type: int
    default: 1048576
seealso:
  - module: mlops.hpc_validation.slurm_job
"""

EXAMPLES = r"""
---
- name: Judge the training run
  mlops.hpc_validation.metrics_assert:
    workload: MLOPS-1.1
    job: "{{ training.job }}"
    output: "/mnt/beegfs/models/mnist/job-{{ training.job.job_id }}"
    files:
      metrics: {path: metrics.json, format: json}
      progress: {path: progress.jsonl, format: jsonl}
    logs:
      stdout: "{{ training.job.stdout }}"
      stderr: "{{ training.job.stderr }}"
    end_marker: "/mnt/beegfs/jobs/.markers/{{ training.job.job_id }}.end.json"
    artifacts: [mnist_cnn_single_gpu.pt]
    context: {accelerator: cuda}
    save: "results/{{ run }}/evidence/MLOPS-1.1.json"
    criteria:
      - {id: S0-13, title: Test accuracy, query: metrics.test_accuracy, gt: 0.95}
      - {id: S0-16, title: No CUDA errors, log: [stdout, stderr], absent: cuda_errors}
      - {id: S0-14, title: The model is saved, artifact: mnist_cnn_single_gpu.pt, exists: {min_bytes: 1000000}}
      - {id: LOSS, title: The loss falls, query: progress.fields.loss, decreasing: {min_drop: 0.2}}
      - id: UTIL
        title: Each GPU is used
        each: {over: gpu.groups, query: fields.utilization.mean, count: job.gpus, gt: 70}

- name: Judge the run on two GPUs against the legs of the same job on one
  mlops.hpc_validation.metrics_assert:
    workload: MLOPS-2.1
    job: "{{ training.job }}"
    output: "/mnt/beegfs/models/cifar10/job-{{ training.job.job_id }}"
    files:
      metrics: {path: metrics.json, format: json}
      provenance: {path: provenance.json, format: json}
      legs: {path: legs.json, format: json}
    legs:
      before: baseline-before/metrics.json
      after: baseline-after/metrics.json
    context: {accelerator: cuda}
    criteria:
      - id: SPEEDUP
        title: Speed-up of two GPUs over one
        query: metrics.samples_per_second
        ratio_ge: {bound: 1.7, to: metrics.samples_per_second, spread: 0.05}

- name: Judge the run on two GPUs against the saved evidence of an earlier job with legs on one
  mlops.hpc_validation.metrics_assert:
    workload: MLOPS-2.1
    job: "{{ training.job }}"
    output: "/mnt/beegfs/models/cifar10/job-{{ training.job.job_id }}"
    files:
      metrics: {path: metrics.json, format: json}
      provenance: {path: provenance.json, format: json}
      legs: {path: legs.json, format: json}
    baseline: results/accepted/evidence/MLOPS-2.1.json
    context: {accelerator: cuda}
    criteria:
      - id: SPEEDUP
        title: Speed-up of two GPUs over one
        query: metrics.samples_per_second
        ratio_ge: {bound: 1.7, to: metrics.samples_per_second}

- name: Judge saved evidence again, with a stricter bound and no cluster
  mlops.hpc_validation.metrics_assert:
    workload: MLOPS-1.1
    evidence: results/latest/evidence/MLOPS-1.1.json
    criteria:
      - {id: S0-13, title: Test accuracy, query: metrics.test_accuracy, gt: 0.95}
    overrides: {S0-13: {gt: 0.98}}
"""

RETURN = r"""
---
verdict:
  description: V(pass), V(fail) or V(undetermined).
  returned: always
  type: str
  sample: pass
criteria:
  description: All judged criteria, C(JOB) first.
  returned: always
  type: list
  elements: dict
  contains:
    id: {description: The criterion's ID., type: str, returned: always}
    title: {description: What it measures., type: str, returned: always}
    verdict:
      description: V(pass), V(fail), V(undetermined), V(not_applicable), V(recorded) or V(waived).
      type: str
      returned: always
    value: {description: What was found., type: raw, returned: always}
    bound: {description: What it was compared with., type: str, returned: always}
    unit: {description: The unit of both., type: str, returned: always}
    source: {description: Where the value comes from., type: str, returned: always}
    why:
      description:
        - The reason for the verdict.
        - For a ratio to several runs it gives the range, and for one to a stored baseline that run's job and age.
      type: str
      returned: always
    remedy: {description: What to do about it., type: str, returned: always}
    bound_from: {description: 'V(manifest), V(reference) or V(override).', type: str, returned: always}
    severity: {description: 'V(gate) or V(record).', type: str, returned: always}
    against_baseline: {description: Whether the value is a ratio to a baseline., type: bool, returned: always}
    missing:
      description: Number of rows without a value in the reduced columns.
      returned: for a criterion with C(missing_at_most)
      type: int
evidence:
  description: Where the evidence was saved or read, on the controller.
  returned: when it is on the controller
  type: str
table:
  description: The judged criteria as a printed table.
  returned: always
  type: str
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.mlops.hpc_validation.plugins.module_utils._common import no_nul
from ansible_collections.mlops.hpc_validation.plugins.module_utils._evidence.collector import Request, check, collect
from ansible_collections.mlops.hpc_validation.plugins.module_utils._evidence.log import PatternsError
from ansible_collections.mlops.hpc_validation.plugins.module_utils._evidence.options import argument_spec


def main() -> None:
    """Collect the evidence; the action plugin judges it."""
    module = AnsibleModule(argument_spec=argument_spec(), supports_check_mode=True)
    nul = no_nul.refusal(module.params)
    if nul:
        module.fail_json(msg=nul)
    options = module.params
    job = options["job"] or {}
    if not isinstance(job.get("job_id"), str) or not isinstance(job.get("attempt"), int):
        module.fail_json(msg="job: expected a job dictionary with a text job_id and a number attempt")
    request = Request(
        job_id=job["job_id"],
        attempt=job["attempt"],
        output=options["output"] or "/nonexistent",
        files=options["files"],
        logs={name: path for name, path in options["logs"].items() if path},
        end_marker=options["end_marker"],
        artifacts=options["artifacts"],
        patterns=options["patterns"],
        max_json=options["max_json_bytes"],
        settle=options["settle"],
    )
    errors = check(request)
    if errors:
        module.fail_json(msg="; ".join(errors))
    try:
        document = collect(request, options["timeout"])
    except PatternsError as exc:
        module.fail_json(msg=str(exc))
    module.exit_json(changed=False, document=document)


if __name__ == "__main__":
    main()
