# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Judge the job's own outcome as a criterion. Pure. PRIVATE to the collection."""

from __future__ import annotations

from typing import Any

from ansible_collections.mlops.hpc_validation.plugins.module_utils._common import scalars
from ansible_collections.mlops.hpc_validation.plugins.module_utils._slurm.states import describe_state
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._judge.criterion import JOB_ID

TITLE = "The Slurm job ended COMPLETED with exit code 0 and no failed step"

_PREEMPTED = "Slurm gave its resources to a job of higher priority"


def came_to_an_end(job: dict[str, Any]) -> bool:
    """Return whether the job itself completed or failed, so that it will write no more files."""
    return describe_state(job.get("state")).verdict != "undetermined"


def never_began(job: dict[str, Any]) -> bool:
    """Return whether Slurm never gave the job a node: files in its folder come from an older job with the same ID."""
    unknown = job.get("state") in (None, "UNKNOWN")
    return not unknown and not came_to_an_end(job) and "started" in job and job["started"] is None


def says_its_id(job: dict[str, Any]) -> bool:
    """Return whether the job says which one it is."""
    job_id = job.get("job_id")
    return isinstance(job_id, str) and bool(job_id.strip())


def judge_job(job: Any) -> dict[str, Any]:
    """Return the judged criterion JOB; anything but a clear success or a clear failure is undetermined."""
    verdict, why, remedy = _verdict(job)
    known = isinstance(job, dict)
    state = str(job.get("state")) if known else None
    code = job.get("exit_code") if known else None
    value = f"{state}, exit code {scalars.show(code)}" if known else None
    return {
        "id": JOB_ID,
        "title": TITLE,
        "verdict": verdict,
        "value": value,
        "bound": "COMPLETED, exit code 0",
        "unit": None,
        "source": f"job {scalars.printable(str(job.get('job_id')))} as reported by {job.get('source')}"
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
    if describe_state(state).verdict == "fail":
        return "fail", f"{where}{_how(job)}", _advice(job, state)
    if state != "COMPLETED":
        reason = _PREEMPTED if state == "PREEMPTED" else job.get("reason_text") or job.get("reason")
        why = f"the job is {scalars.printable(str(state))}, neither done nor failed" + (
            f": {reason}" if reason not in (None, "", "None") else ""
        )
        return "undetermined", scalars.printable(why), _look_up(job, state)
    flags = job.get("flags")
    if flags != []:
        shown = ", ".join(map(str, flags)) if isinstance(flags, list) else f"its flags are {scalars.describe(flags)}"
        return "undetermined", f"the job has not ended: {scalars.printable(shown)}", "Judge again when it has ended."
    return _completed(job, where)


def _completed(job: dict[str, Any], where: str) -> tuple[str, str, str | None]:
    if not says_its_id(job):
        return "undetermined", f"which job it is, is unknown: its job_id is {scalars.describe(job.get('job_id'))}", None
    for key in ("exit_code", "signal", "derived_exit_code"):
        value = job.get(key)
        if not _is_code(value):
            return (
                "undetermined",
                f"the job's {key} is {scalars.describe(value)}",
                "Ask Slurm: sacct -j, scontrol show job",
            )
        if value != 0:
            return "fail", f"{where}its {key.replace('_', ' ')} is {value}", _advice(job, "FAILED")
    steps, again = job.get("steps"), _again(job)
    if steps is None or steps == []:  # Slurm may be set up to record none: AccountingStorageEnforce=nosteps
        return "pass", f"{where}exit code 0{again} (its steps are unknown: accounting has not reported any)", None
    if not isinstance(steps, list) or not all(isinstance(step, dict) for step in steps):
        return "undetermined", "the job's steps are not a list of steps", None
    doubtful = None
    for step in steps:
        name = f"step {scalars.printable(str(step.get('id')))}"
        state = str(step.get("state"))
        code, signal = step.get("exit_code"), step.get("signal")
        failed = describe_state(state).verdict == "fail"
        if failed or (_is_code(code) and code != 0):
            return "fail", f"{where}{name} ended {_how(step)}", _advice(job, state if failed else "FAILED")
        if state == "UNKNOWN":
            doubtful = f"what accounting says of {name} cannot be read"
        elif state != "COMPLETED":
            doubtful = f"{name} is {scalars.printable(state)}"
        elif not _is_code(code) or not _is_code(signal) or signal != 0:
            told = f"exit code {scalars.show(code)} and signal {scalars.show(signal)}"
            doubtful = f"{name} is COMPLETED with {told}"
    if doubtful is not None:
        return "undetermined", doubtful, "See the steps with: sacct -j"
    return "pass", f"{where}exit code 0, no failed step{again}", None


def _is_code(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _again(job: dict[str, Any]) -> str:
    attempt = job.get("attempt")
    return f", in attempt {attempt + 1}: it was requeued" if isinstance(attempt, int) and attempt > 0 else ""


def _advice(job: dict[str, Any], state: str) -> str:
    """Return what to do about a state as a sentence, or an empty text if there is no advice."""
    nodes = job.get("nodes")
    node = str(nodes[0]) if isinstance(nodes, list) and nodes else "<node>"
    words = describe_state(state).advice.format(job_id=job.get("job_id"), node=node)
    return scalars.printable(f"{words[0].upper()}{words[1:]}.") if words else ""


def _look_up(job: dict[str, Any], state: str) -> str:
    job_id = scalars.printable(str(job.get("job_id")))
    told = f"See what happened to it with: scontrol show job {job_id}; sacct -j {job_id}"
    if state == "UNKNOWN":
        return f"{told}. If it still runs, cancel it: scancel {job_id}"
    return f"{_advice(job, state)} {told}".strip()


def _where(job: dict[str, Any]) -> str:
    nodes = job.get("nodes")
    if not isinstance(nodes, list) or not nodes:
        return ""
    listed = ", ".join(map(str, nodes[:4])) + (f" and {len(nodes) - 4} more" if len(nodes) > 4 else "")
    return scalars.printable(f"on {listed}: ")


def _how(job: dict[str, Any]) -> str:
    text = f"{job.get('state')}, exit code {scalars.show(job.get('exit_code'))}"
    if job.get("signal"):
        text += f", signal {scalars.show(job['signal'])}"
    return scalars.printable(text)
