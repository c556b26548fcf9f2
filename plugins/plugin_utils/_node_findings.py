# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Judges what the jobs of a preflight found on each node, and what became of the jobs themselves."""

from __future__ import annotations

import typing as t

from ansible_collections.mlops.hpc_validation.plugins.plugin_utils import (
    _findings,
    _gpu_findings,
    _host_findings,
    _share_findings,
)
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._preflight_plan import PAIR

Json = dict[str, t.Any]
# How far a node's clock may be from slurmctld's; both are known to the second. munge refuses more than 300.
CLOCK_SECONDS = 5


def judge(planned: Json, waited: Json, reports: Json, settings: Json) -> list[Json]:
    """Return the findings about every node of `planned`, from what slurm_job returned and the gathered reports."""
    findings: list[Json] = []
    shares: dict[str, t.Any] = {}
    outcomes = waited.get("outcomes") or {}
    for wanted, job in zip(planned["jobs"], waited["jobs"]):
        found = reports.get(job["job_id"]) or {}
        outcome = outcomes.get(job["job_id"]) or {}
        if wanted["options"]["job-name"] == PAIR:
            findings += _pair(wanted, job, outcome, found, settings)
            continue
        node = wanted["options"]["nodelist"]
        given = next(each["gpus"] for each in planned["nodes"] if each["name"] == node)
        findings += _node(node, given, job, outcome, found, settings)
        shares[node] = found.get("share")
    if len(shares) > 1:
        findings += _share_findings.same_everywhere(shares, settings["share_expect"], share_type=settings["share_type"])
    return findings


def _ended_well(job: Json) -> bool:
    return job.get("state") == "COMPLETED" and job.get("exit_code") == 0


def _why(job: Json, outcome: Json, found: Json) -> str:
    words = [f"job {job['job_id']} is {job.get('state')}"]
    words += [str(job[key]) for key in ("reason_text",) if job.get(key)]
    words += [str(outcome["why"])] if outcome.get("why") else []
    words += [str(found["messages"]).strip()[-500:]] if found.get("messages") else []
    return "; ".join(words)


def _job_ran(node: str, job: Json, outcome: Json, found: Json) -> Json:
    code = job.get("exit_code")
    ran = code if job.get("state") in ("COMPLETED", "FAILED") and isinstance(code, int) else None
    symptom = "node.busy" if outcome.get("outcome") == "queue_timeout" else "node.job"
    return _findings.judged(
        "node.job",
        "A job on the node runs to its end",
        "eq",
        0,
        ran,
        source=f"job {job['job_id']}",
        where={"node": node},
        missing=_why(job, outcome, found),
        detail=_why(job, outcome, found) if ran else None,
        symptom=symptom,
    )


def _node(node: str, gpus: int, job: Json, outcome: Json, found: Json, settings: Json) -> list[Json]:
    if job.get("exit_code") in _share_findings.GUARD:
        # The share is what is wrong there; nothing was written, and the exit code says why.
        return [_share_findings.guard_finding(job["exit_code"], str(found.get("messages") or ""), {"node": node})]
    ran = _job_ran(node, job, outcome, found)
    if ran["verdict"] == "undetermined":
        return [ran]
    share = _share_findings.findings(
        found.get("share"), settings["share_expect"], node=node, share_type=settings["share_type"]
    )
    host = _host_findings.node_findings(found.get("host"), node, apptainer=settings["apptainer"], gpus=gpus)
    return [ran, _clock(node, job, found), *host, *_gpu(node, gpus, found, settings), *share]


def _mapping(value: t.Any) -> Json:
    return value if isinstance(value, dict) else {}


def _gpu(node: str, gpus: int, found: Json, settings: Json) -> list[Json]:
    if settings["accelerator"] == "cpu":
        return []
    facts = _mapping(found.get("gpus"))
    expect = {"count": gpus, **settings["gpu"], **(settings["node_gpus"].get(node) or {})}
    return [
        _gres_equals(node, gpus, facts),
        _confined(node, found),
        *_gpu_findings.findings(
            facts,
            expect,
            node=node,
            kernel_log=settings["kernel_log"],
            simulated=settings["accelerator"] == "simulated",
        ),
    ]


def _gres_equals(node: str, gpus: int, facts: Json) -> Json:
    counts = [len(facts[key]) for key in ("device_files", "pci_devices") if isinstance(facts.get(key), list)]
    return _findings.judged(
        "scheduler.gres_equals_gpus",
        "Slurm defines as many GPUs as the node has",
        "eq",
        max(counts, default=0),
        gpus if counts else None,
        source="scontrol show node; /dev/nvidia*; PCI",
        unit="GPUs",
        where={"node": node},
        missing="the node's GPUs could not be counted",
    )


def _confined(node: str, found: Json) -> Json:
    told = _mapping(found.get("confined"))
    openable, present = (told[key] if isinstance(told.get(key), list) else [] for key in ("openable", "present"))
    return _findings.judged(
        "scheduler.confinement",
        "A step that was given one GPU can open that one and no other",
        "eq",
        1,
        len(openable) if present else None,
        source="srun --gres=gpu:1",
        unit="GPUs",
        where={"node": node},
        missing=str(_mapping(found.get("problems")).get("confined") or "the node has no /dev/nvidia* at all"),
        detail=f"it can open {', '.join(map(str, openable)) or 'none'} of {', '.join(map(str, present))}",
    )


def _clock(node: str, job: Json, found: Json) -> Json:
    """How far the node's clock is off at least: its markers lie between slurmctld's start and end of the job."""
    begin, end = (_mapping(found.get(kind)).get("time") for kind in ("begin", "end"))
    told = (begin, end, job.get("started"), job.get("ended"))
    known = all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in told)
    skew = max(job["started"] - t.cast(float, begin), t.cast(float, end) - job["ended"], 0.0) if known else None
    return _findings.judged(
        "node.clock",
        "The node's clock agrees with slurmctld's",
        "le",
        CLOCK_SECONDS,
        None if skew is None else round(skew, 1),
        source="the job's markers; squeue",
        unit="s",
        where={"node": node},
        missing="the job's times are not known",
    )


def _pair(wanted: Json, job: Json, outcome: Json, found: Json, settings: Json) -> list[Json]:
    nodes = wanted["options"]["nodelist"].split(",")
    document = found.get("coherence")
    if not _ended_well(job) and document is None:
        document = {"error": _why(job, outcome, found)}
    return _share_findings.coherence_findings(
        document, settings["share_expect"], nodes=nodes, share_type=settings["share_type"]
    )


def probed(planned: Json, waited: Json, reports: Json) -> Json:
    """Return {nodes, gpus, left_out}: what the jobs really looked at, for the run's coverage."""
    nodes, gpus = [], []
    for wanted, job in zip(planned["jobs"], waited["jobs"]):
        facts = (reports.get(job["job_id"]) or {}).get("gpus")
        if wanted["options"]["job-name"] != PAIR and _ended_well(job):
            nodes.append(wanted["options"]["nodelist"])
            listed = facts.get("gpus") if isinstance(facts, dict) else None
            gpus += [str(gpu["uuid"]) for gpu in listed or [] if isinstance(gpu, dict) and gpu.get("uuid")]
    return {"nodes": sorted(set(nodes)), "gpus": sorted(set(gpus)), "left_out": planned["left_out"]}
