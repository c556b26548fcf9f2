# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Judge what the jobs of a preflight reported about each node, and how the jobs themselves ended."""

from __future__ import annotations

import typing as t

from ansible_collections.mlops.hpc_validation.plugins.module_utils._common import scalars
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._gpu import node as gpu_node
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._preflight import checks, host
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._preflight.machines import Machines
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._preflight.plan import PAIR_SCRIPT
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._share import findings as share_findings
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._share.coherence import coherence_findings
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._share.guard import GUARD, guard_finding
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._share.likeness import likeness, same_everywhere
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._share.speeds import Speeds

Json = dict[str, t.Any]
# How far a node's clock may be from slurmctld's; both are known to the second. munge rejects more than 300.
CLOCK_SECONDS = 5
OLD_PYTHON = 86  # the exit code of a job whose Python is too old for the kit, or missing


class Judging:
    """Judge every node of a plan from what slurm_job returned and a stream of reports, of which none is kept."""

    def __init__(self, planned: Json, waited: Json, settings: Json) -> None:
        self._planned, self._settings = planned, settings
        waited = _mapping(waited)
        self._jobs, self._outcomes = _mapping(waited.get("jobs_by_key")), _mapping(waited.get("outcomes"))
        self._gpus = {node["name"]: node["gpus"] for node in planned["nodes"]}
        self._mounts: dict[str, dict[str, str] | None] = {}
        self._machines, self._speeds = Machines(), Speeds()
        self._probed: Json = {"nodes": [], "gpus": [], "drivers": {}}
        self.unplanned: list[str] = []  # jobs with a report that are not in the plan

    def findings(self, reports: t.Iterable[tuple[str, t.Any]]) -> t.Iterator[Json]:
        """Yield the findings of all nodes; `reports` are pairs of a job's ID and what it reported.

        Jobs without a report come last. A report of a job that is not planned, or a second one, is not judged.
        """
        waiting = {
            each["key"]: (each, _job(self._jobs.get(each["key"]), each["key"])) for each in self._planned["jobs"]
        }
        keys = {job["job_id"]: key for key, (_wanted, job) in waiting.items()}
        for identity, found in reports:
            key = keys.get(identity)
            if key in waiting:
                yield from self._of_job(*waiting.pop(key), _mapping(found))
            else:
                self.unplanned.append(identity)
        for wanted, job in waiting.values():
            yield from self._of_job(wanted, job, {})
        expect, kind = self._settings["share_expect"], self._settings["share_type"]
        yield from self._machines.findings()
        yield from self._speeds.findings(expect, kind)
        if len(self._mounts) > 1:
            yield from same_everywhere(self._mounts, expect, share_type=kind)
        if not any(wanted["script"] == PAIR_SCRIPT for wanted in self._planned["jobs"]):
            yield _alone(self._mounts)

    def probed(self) -> Json:
        """Return {nodes, gpus, drivers}: what the jobs checked, once all findings were taken."""
        return {key: told if isinstance(told, dict) else sorted(set(told)) for key, told in self._probed.items()}

    def _of_job(self, wanted: Json, job: Json, found: Json) -> list[Json]:
        outcome = _mapping(self._outcomes.get(job["job_id"]))
        if wanted["script"] == PAIR_SCRIPT:
            return _coherence(wanted["nodes"], job, outcome, found, self._settings)
        node = wanted["key"]
        found = _own(found, node)
        self._mounts[node] = likeness(found.get("share"))
        if _ended_well(job):
            self._note(node, found)
        return _node(node, self._gpus[node], job, outcome, found, self._settings)

    def _note(self, node: str, found: Json) -> None:
        self._probed["nodes"].append(node)
        facts = _mapping(found.get("gpus"))
        listed = facts.get("gpus")
        told = listed if isinstance(listed, list) else []
        uuids = [str(gpu["uuid"]) for gpu in told if isinstance(gpu, dict) and gpu.get("uuid")]
        self._probed["gpus"] += uuids
        self._machines.add(node, found.get("host"), uuids)
        self._speeds.add(node, found.get("share"))
        driver = _mapping(facts.get("driver")).get("version")
        self._probed["drivers"][node] = driver if isinstance(driver, str) else ""


def _job(told: t.Any, key: str) -> Json:
    """Return the job of this key, with nothing in it that is not of the right type; without an ID it has no report."""
    job = _mapping(told)
    if job.get("key") != key:
        return {"job_id": None, "exit_code": None, "reason_text": f"slurm_job returned no job with the key {key!r}"}
    identity, code = job.get("job_id"), job.get("exit_code")
    return {
        **job,
        "job_id": identity if isinstance(identity, str) else None,
        "exit_code": code if isinstance(code, int) and not isinstance(code, bool) else None,
    }


def _alone(nodes: t.Iterable[str]) -> Json:
    """Record that coherence was not checked: it takes two nodes that one job can use."""
    return checks.finding(
        "share.coherence",
        "recorded",
        value=None,
        bound="two nodes",
        source="srun",
        why=f"fewer than two nodes in scope can be compared ({', '.join(nodes) or 'none'})",
    )


def _name(job: Json) -> str:
    return f"job {job['job_id']}" if job["job_id"] else "slurm_job"


def _ended_well(job: Json) -> bool:
    return job.get("state") == "COMPLETED" and job.get("exit_code") == 0


def _why(job: Json, outcome: Json, found: Json) -> str:
    state = f"{_name(job)} is {job['state']}" if job.get("state") else "the job's state was not reported"
    words = [state, job.get("reason_text"), outcome.get("why")]
    words.append(str(found.get("messages") or "").strip()[-500:])
    return "; ".join(dict.fromkeys(str(word) for word in words if word))


def _job_ran(node: str, job: Json, outcome: Json, found: Json) -> Json:
    code = job.get("exit_code")
    ran = code if job.get("state") in ("COMPLETED", "FAILED") and isinstance(code, int) else None
    symptom = "node.busy" if outcome.get("outcome") == "queue_timeout" else "node.job"
    return checks.judged(
        "node.job",
        "eq",
        0,
        ran,
        source=_name(job),
        where={"node": node},
        missing=_why(job, outcome, found),
        detail=_why(job, outcome, found) if ran else None,
        symptom=symptom,
    )


# The parts of a node's report, and the field in which each names the node.
_PARTS = {"host": "host", "gpus": "node", "share": "node"}
_SECONDS = 1.0  # by which a part may seem to be older than its job's begin marker: clocks are read in tenths


def _own(found: Json, node: str) -> Json:
    """Return a report without the parts that were made on another node, or not while the job ran."""
    begin, end = (_mapping(found.get(kind)).get("time") for kind in ("begin", "end"))
    problems = dict(_mapping(found.get("problems")))
    own = dict(found)
    for part, name in _PARTS.items():
        told = found.get(part)
        if not isinstance(told, dict):
            continue
        maker, made = told.get(name), told.get("time")
        if maker != node:
            own[part], problems[part] = None, f"{part}.json is of {scalars.show(maker)}"
        elif not _within(begin, made, end):
            own[part], problems[part] = None, f"{part}.json was not made while the job ran"
    return {**own, "problems": problems}


def _within(begin: t.Any, made: t.Any, end: t.Any) -> bool:
    """Return whether a time lies between those of the markers; one that is not known excludes nothing."""
    late = scalars.is_number(end) and scalars.is_number(made) and made > end + _SECONDS
    early = scalars.is_number(begin) and scalars.is_number(made) and made < begin - _SECONDS
    return scalars.is_number(made) and not late and not early


def _complete(node: str, gpus: bool, job: Json, found: Json) -> Json:
    """Judge whether a job that ended well reported all that it should have."""
    wanted = ("host", "share", *(("gpus",) if gpus else ()))
    problems = _mapping(found.get("problems"))
    missing = [str(problems.get(part) or f"{part}.json is missing") for part in wanted if found.get(part) is None]
    return checks.judged(
        "node.report",
        "eq",
        0,
        None if missing else 0,
        unit="missing parts",
        source=_name(job),
        where={"node": node},
        missing="; ".join(missing),
    )


def _node(node: str, gpus: int, job: Json, outcome: Json, found: Json, settings: Json) -> list[Json]:
    code = job.get("exit_code")
    if code in GUARD:
        # The share is at fault; nothing was written, and the exit code says why.
        return [guard_finding(code, str(found.get("messages") or ""), {"node": node})]
    if code == OLD_PYTHON:
        return [host.old_python(node)]
    ran = _job_ran(node, job, outcome, found)
    if ran["verdict"] == "undetermined":  # what it did report still counts
        missing = {part for part in ("host", "gpus", "share") if found.get(part) is None}
    else:
        missing = set()
    findings = [ran]
    if _ended_well(job):
        findings.append(_complete(node, settings["accelerator"] != "cpu", job, found))
    if "host" not in missing:
        findings += [_clock(node, job, found)] if ran["verdict"] != "undetermined" else []
        findings += host.node_findings(found.get("host"), node, apptainer=settings["apptainer"], gpus=gpus)
    if "gpus" not in missing:
        findings += _gpu(node, gpus, found, settings)
    if "share" not in missing:
        findings += share_findings.findings(
            found.get("share"),
            settings["share_expect"],
            node=node,
            share_type=settings["share_type"],
            gate_speed=False,  # measured on all nodes at once; the login node's is judged
        )
    return findings


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
        *gpu_node.findings(
            facts,
            expect,
            node=node,
            kernel_log=settings["kernel_log"],
            simulated=settings["accelerator"] == "simulated",
        ),
    ]


def _gres_equals(node: str, gpus: int, facts: Json) -> Json:
    """Compare Slurm's GPUs with the node's. With MIG, Slurm counts instances, which the devices do not show."""
    count = gpu_node.device_count(facts)
    return checks.judged(
        "scheduler.gres_equals_gpus",
        "eq",
        count or 0,
        gpus if count is not None else None,
        source="scontrol show node; /dev/nvidia*; PCI",
        unit="GPUs",
        where={"node": node},
        missing="the node's GPUs could not be counted",
        record=gpu_node.mig_enabled(facts),
    )


def _confined(node: str, found: Json) -> Json:
    """Check that a step can open only its own GPUs. On a node with one GPU, a step without any must open none."""
    with_one, with_none = (_devices(found.get(part)) for part in ("confined", "without"))
    one_gpu = len(with_one["present"]) == 1
    part, told, what = ("without", with_none, "none") if one_gpu else ("confined", with_one, "one GPU")
    known = bool(told["present"]) and set(told["openable"]) <= set(told["present"])
    problem = _mapping(found.get(part)).get("problem")
    why = problem if isinstance(problem, str) else _mapping(found.get("problems")).get(part)
    return checks.judged(
        "scheduler.confinement",
        "eq",
        0 if one_gpu else 1,
        len(told["openable"]) if known else None,
        source="srun --gres=none" if one_gpu else "srun --gres=gpu:1",
        unit="GPUs",
        where={"node": node},
        missing=str(why or "the node has no /dev/nvidia*"),
        detail=f"given {what}, it can open {', '.join(told['openable']) or 'none'} of {', '.join(told['present'])}"
        if told["present"]
        else None,
        symptom="scheduler.confinement.unknown" if why else None,
    )


def _devices(told: t.Any) -> dict[str, list[str]]:
    lists = {key: _mapping(told).get(key) for key in ("present", "openable")}
    return {
        key: paths if isinstance(paths, list) and all(isinstance(path, str) for path in paths) else []
        for key, paths in lists.items()
    }


def _clock(node: str, job: Json, found: Json) -> Json:
    """Judge the least possible clock difference: the markers lie between slurmctld's start and end of the job."""
    begin, end = (_mapping(found.get(kind)).get("time") for kind in ("begin", "end"))
    told = (begin, end, job.get("started"), job.get("ended"))
    known = all(map(scalars.is_number, told))
    skew = max(job["started"] - t.cast(float, begin), t.cast(float, end) - job["ended"], 0.0) if known else None
    return checks.judged(
        "node.clock",
        "le",
        CLOCK_SECONDS,
        None if skew is None else round(skew, 1),
        source="the job's markers; squeue",
        unit="s",
        where={"node": node},
        missing="the job's times were not reported",
    )


def _coherence(nodes: list[str], job: Json, outcome: Json, found: Json, settings: Json) -> list[Json]:
    if job.get("exit_code") in GUARD:
        where = {"node": nodes[0]}
        return [guard_finding(job["exit_code"], f"checked on {' and '.join(nodes)}", where)]
    document = found.get("coherence")
    if not _ended_well(job) and document is None:
        document = {"error": _why(job, outcome, found)}
    return coherence_findings(document, settings["share_expect"], nodes=nodes, share_type=settings["share_type"])
