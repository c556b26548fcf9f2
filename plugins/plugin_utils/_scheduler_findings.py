# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether the scheduler can start what was selected, judged from slurm_cluster_info before anything is submitted."""

from __future__ import annotations

import typing as t

Json = dict[str, t.Any]
# Base states in which Slurm starts jobs, now or when the node is free again.
USABLE = {"idle", "allocated", "mixed", "completing"}
UNUSABLE_FLAGS = {"drain", "draining", "drained", "fail", "failing", "maintenance", "maint", "not_responding", "invalid_reg", "powered_down"}


def _finding(identity: str, title: str, verdict: str, value: t.Any, bound: str, why: str, remedy: str | None, where: Json) -> Json:
    return {
        "id": identity,
        "title": title,
        "verdict": verdict,
        "value": value,
        "bound": bound,
        "unit": None,
        "source": "slurm_cluster_info",
        "why": why,
        "remedy": remedy,
        "where": where,
    }


def usable(node: Json) -> bool:
    """Whether Slurm would start a job on `node`, now or later, without somebody's help."""
    flags = {str(flag).lower() for flag in node.get("flags") or []}
    return str(node.get("state")).lower() in USABLE and not flags & UNUSABLE_FLAGS


def _in_words(node: Json) -> str:
    words = "+".join([str(node.get("state")), *[str(flag).lower() for flag in node.get("flags") or []]])
    return f"{node['name']} is {words}" + (f" ({node['reason']})" if node.get("reason") else "")


def _listed(names: str) -> list[str] | None:
    """Plain comma-separated names; None for a bracket expression, which only Slurm expands."""
    return None if "[" in names else [name.strip() for name in names.split(",") if name.strip()]


def findings(info: Json, workloads: list[Json], slurm: Json, accelerator: str) -> list[Json]:
    """The findings for `info` (slurm_cluster_info), selected manifests and `hpc_validation_slurm`."""
    found = [_answers(info)]
    name = slurm.get("partition")
    partitions = info.get("partitions") or []
    chosen = [p for p in partitions if (p["name"] == name if name else p.get("default"))]
    found.append(_partition(name, chosen, partitions))
    if not chosen:
        return found
    partition = chosen[0]
    exclude, nodelist = _listed(slurm.get("exclude") or ""), _listed(slurm.get("nodelist") or "")
    nodes = [n for n in info.get("nodes") or [] if partition["name"] in (n.get("partitions") or [])]
    nodes = [n for n in nodes if n["name"] not in (exclude or []) and (not nodelist or n["name"] in nodelist)]
    for node in nodes:
        if not usable(node):
            found.append(
                _finding(
                    "scheduler.node", "The node can start jobs", "recorded", node.get("state"), "idle, mixed or allocated",
                    f"{_in_words(node)}: it was left out", f"scontrol show node {node['name']}", {"node": node["name"]},
                )
            )
    return found + [_eligible(workload, nodes, partition, accelerator) for workload in workloads]


def _answers(info: Json) -> Json:
    up = [c["host"] for c in info.get("controllers") or [] if c.get("up") is True]
    problems = "; ".join(str(problem) for problem in info.get("problems") or [])
    return _finding(
        "scheduler.answers", "slurmctld answers", "pass" if up and not problems else "undetermined", up, "one controller is up",
        f"{', '.join(up) or 'no controller'} answered" + (f"; {problems}" if problems else ""),
        None if up and not problems else "On the login node: scontrol ping; on the controller: systemctl status slurmctld", {},
    )


def _partition(name: str | None, chosen: list[Json], partitions: list[Json]) -> Json:
    known = ", ".join(p["name"] for p in partitions) or "none"
    wanted = f"partition {name}" if name else "a default partition"
    if not chosen:
        return _finding(
            "scheduler.partition", "The partition exists and is up", "fail", None, wanted, f"{wanted} does not exist; known are {known}",
            "Set hpc_validation_slurm.partition to one of them (sinfo)", {},
        )
    up = str(chosen[0].get("state")).upper() == "UP"
    return _finding(
        "scheduler.partition", "The partition exists and is up", "pass" if up else "undetermined", chosen[0].get("state"), "UP",
        f"partition {chosen[0]['name']} is {chosen[0].get('state')}",
        None if up else f"scontrol update PartitionName={chosen[0]['name']} State=UP, or choose another partition", {},
    )


def _eligible(workload: Json, nodes: list[Json], partition: Json, accelerator: str) -> Json:
    resources = workload["resources"]
    gpus = 0 if accelerator == "cpu" else int(resources.get("gres", "gpu:0").split(":")[1])
    title = f"{resources['nodes']} node(s) with {gpus} GPU(s) each can start {workload['id']}"
    fitting = [node for node in nodes if (node.get("gres") or {}).get("gpu", 0) >= gpus]
    ready = [node for node in fitting if usable(node)]
    where = {"workload": workload["id"]}
    bound = f"at least {resources['nodes']} node(s)"
    value = [node["name"] for node in ready]
    if len(fitting) < resources["nodes"]:
        most = max([(node.get("gres") or {}).get("gpu", 0) for node in nodes], default=0)
        return _finding(
            "scheduler.gres", title, "fail", value, bound,
            f"{len(fitting)} of {len(nodes)} nodes of partition {partition['name']} define gpu:{gpus}; the most a node has is gpu:{most}",
            "Compare Gres= in slurm.conf and gres.conf with the GPUs of the nodes (scontrol show node; nvidia-smi -L)", where,
        )
    if len(ready) < resources["nodes"]:
        return _finding(
            "scheduler.nodes", title, "undetermined", value, bound,
            f"{len(ready)} of {len(fitting)} nodes can start jobs: " + "; ".join(_in_words(n) for n in fitting if not usable(n)),
            "Repair and resume them: scontrol update NodeName=… State=RESUME", where,
        )
    return _finding(
        "scheduler.nodes", title, "pass", value, bound, f"{len(ready)} of {len(fitting)} nodes can start jobs", None, where
    )
