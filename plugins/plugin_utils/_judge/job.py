# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The job's own outcome as a criterion. Pure. PRIVATE to the collection."""

from __future__ import annotations

from typing import Any

from ansible_collections.mlops.hpc_validation.plugins.module_utils import _numbers
from ansible_collections.mlops.hpc_validation.plugins.module_utils._criteria_spec import JOB_ID

TITLE = "The Slurm job ended COMPLETED with exit code 0 and no failed step"

_FAILED = {
    "FAILED": "Read the end of the job's stderr; the program itself stopped with an error.",
    "TIMEOUT": "The job ran into its time limit; see in its log how far it came before raising the limit.",
    "OUT_OF_MEMORY": "Raise the job's memory (--mem) or lower the batch size.",
    "NODE_FAIL": "Look at the node with: scontrol show node NODE; and in its slurmd log.",
    "BOOT_FAIL": "The node did not boot; look at it with: scontrol show node NODE",
}

_PREEMPTED = "Slurm gave its place to a job that goes before it"


def came_to_an_end(job: dict[str, Any]) -> bool:
    """True where the job itself completed or failed, so that what it did not leave it never will."""
    return job.get("state") == "COMPLETED" or job.get("state") in _FAILED


def judge_job(job: Any) -> dict[str, Any]:
    """Return the judged criterion JOB; anything but a clean end or a clean failure is undetermined."""
    verdict, why, remedy = _verdict(job)
    known = isinstance(job, dict)
    state = str(job.get("state")) if known else None
    code = job.get("exit_code") if known else None
    value = f"{state}, exit code {_numbers.show(code)}" if known else None
    return {
        "id": JOB_ID,
        "title": TITLE,
        "verdict": verdict,
        "value": value,
        "bound": "COMPLETED, exit code 0",
        "unit": None,
        "source": f"job {_numbers.printable(str(job.get('job_id')))} as told by {job.get('source')}"
        if known
        else "no job",
        "why": why,
        "remedy": remedy,
        "bound_from": "manifest",
        "severity": "gate",
        "against_baseline": False,
    }


def _verdict(job: Any) -> tuple[str, str, str | None]:
    if not isinstance(job, dict):
        return "undetermined", "there is no job", "Submit the workload's job first."
    state = str(job.get("state"))
    where = _where(job)
    if state in _FAILED:
        return "fail", f"{where}{_how(job)}", _FAILED[state]
    if state != "COMPLETED":
        reason = _PREEMPTED if state == "PREEMPTED" else job.get("reason_text") or job.get("reason")
        why = f"the job is {_numbers.printable(str(state))}, neither done nor failed" + (
            f": {reason}" if reason not in (None, "", "None") else ""
        )
        return "undetermined", _numbers.printable(why), _look_up(job, state)
    if job.get("flags"):
        shown = ", ".join(map(str, job["flags"])) if isinstance(job["flags"], list) else str(job["flags"])
        return "undetermined", f"the job is not at rest: {_numbers.printable(shown)}", "Judge again when it has ended."
    return _completed(job, where)


def _completed(job: dict[str, Any], where: str) -> tuple[str, str, str | None]:
    for key in ("exit_code", "signal", "derived_exit_code"):
        value = job.get(key)
        if not _is_code(value):
            return (
                "undetermined",
                f"the job's {key} is {_numbers.describe(value)}",
                "Ask Slurm: sacct -j, scontrol show job",
            )
        if value != 0:
            return "fail", f"{where}its {key.replace('_', ' ')} is {value}", _FAILED["FAILED"]
    steps, again = job.get("steps"), _again(job)
    if steps is None:
        return "pass", f"{where}exit code 0{again} (its steps are not known: accounting does not answer)", None
    if not isinstance(steps, list) or not all(isinstance(step, dict) for step in steps):
        return "undetermined", "the job's steps are not a list of steps", None
    doubtful = None
    for step in steps:
        name = f"step {_numbers.printable(str(step.get('id')))}"
        state = str(step.get("state"))
        code, signal = step.get("exit_code"), step.get("signal")
        if state in _FAILED or (_is_code(code) and code != 0):
            return "fail", f"{where}{name} ended {_how(step)}", _FAILED.get(state, _FAILED["FAILED"])
        if state == "UNKNOWN":
            doubtful = f"what accounting says of {name} cannot be read"
        elif state != "COMPLETED":
            doubtful = f"{name} is {_numbers.printable(state)}"
        elif not _is_code(code) or not _is_code(signal) or signal != 0:
            told = f"exit code {_numbers.show(code)} and signal {_numbers.show(signal)}"
            doubtful = f"{name} is COMPLETED with {told}"
    if doubtful is not None:
        return "undetermined", doubtful, "See the steps with: sacct -j"
    return "pass", f"{where}exit code 0, no failed step{again}", None


def _is_code(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _again(job: dict[str, Any]) -> str:
    attempt = job.get("attempt")
    return f", in attempt {attempt + 1}: it was requeued" if isinstance(attempt, int) and attempt > 0 else ""


def _look_up(job: dict[str, Any], state: str) -> str:
    job_id = _numbers.printable(str(job.get("job_id")))
    told = f"See what became of it with: scontrol show job {job_id}; sacct -j {job_id}"
    if state == "PREEMPTED":
        return f"Run it again, or in a partition or QOS that is not preempted (hpc_validation_slurm). {told}"
    return f"{told}. If it still runs, cancel it: scancel {job_id}" if state == "UNKNOWN" else told


def _where(job: dict[str, Any]) -> str:
    nodes = job.get("nodes")
    if not isinstance(nodes, list) or not nodes:
        return ""
    listed = ", ".join(map(str, nodes[:4])) + (f" and {len(nodes) - 4} more" if len(nodes) > 4 else "")
    return _numbers.printable(f"on {listed}: ")


def _how(job: dict[str, Any]) -> str:
    text = f"{job.get('state')}, exit code {_numbers.show(job.get('exit_code'))}"
    if job.get("signal"):
        text += f", signal {_numbers.show(job['signal'])}"
    return _numbers.printable(text)
