# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Compute which nodes and GPUs a run covered, what it left out and why, and its GPU-hours. PRIVATE."""

from __future__ import annotations

import typing as t
from pathlib import Path

from ansible_collections.mlops.hpc_validation.plugins.module_utils._common import scalars
from ansible_collections.mlops.hpc_validation.plugins.module_utils._slurm.hostlist import fold_nodes
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._findings.columns import Table
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._run import readback

Json = dict[str, t.Any]


def of_run(folder: Path, workloads: list[Json], cluster: Json | None, probed: Json | None, table: Table) -> Json:
    """Return the nodes and GPUs in scope that were exercised, and everything that was left out, with the reason.

    The scope is preflight's, for the probes as for the workloads: what runs outside it does not count.
    """
    probed = probed or {}
    scope = {node["name"]: node["gpus"] for node in probed["scope"]} if probed.get("scope") is not None else None
    nodes, gpus = exercised(folder, workloads, probed)
    inside = nodes if scope is None else nodes & scope.keys()
    beyond = {left["name"]: left["why"] for left in probed.get("left_out") or []}
    beyond.update(dict.fromkeys(nodes - inside, "a job ran there all the same"))
    defined = None if scope is None else sum(scope.values())
    more = max(0, len(gpus) - defined) if defined is not None else 0
    passed_over = "no selected workload was placed there" if workloads else "no job of the preflight ended well there"
    known = (cluster or {}).get("nodes")
    states = {node["name"]: node for node in known} if isinstance(known, list) else {}
    left_out = {name: _why(states.get(name, {}), passed_over) for name in (scope or {}) if name not in nodes}
    return {
        "nodes": {
            "exercised": fold_nodes(inside),
            "count": len(inside),
            "in_scope": None if scope is None else len(scope),
        },
        "gpus": {"count": len(gpus) - more, "in_scope": defined},
        "left_out": [*_by_reason(left_out), *_workloads_left_out(workloads), *_checks_left_out(table)],
        "outside": [*_by_reason(beyond), *_gpus_beyond(more)],
    }


def gpu_hours(workloads: t.Iterable[dict[str, t.Any]]) -> float | None:
    """Return the GPU-hours of the workloads' jobs, or None if Slurm did not report them for a job."""
    total = 0.0
    for workload in workloads:
        job = workload["job"]
        if job is None:
            continue
        gpus, seconds = job.get("gpus"), job.get("run_seconds")
        if not scalars.is_number(gpus) or not scalars.is_number(seconds):
            return None
        total += gpus * seconds / 3600
    return total


def exercised(folder: Path, workloads: list[Json], probed: Json | None) -> tuple[set[str], set[str]]:
    """Return the nodes of all jobs and the GPUs that their evidence names; without workloads those of the probes."""
    if not workloads:
        return {*((probed or {}).get("nodes") or [])}, {*((probed or {}).get("gpus") or [])}
    nodes = {node for each in workloads if each["job"] for node in each["job"]["nodes"]}
    return nodes, {uuid for each in workloads for uuid in _gpus_seen(folder, each["id"])}


def _why(node: Json, passed_over: str) -> str:
    """Return why a node in scope was left out, with its state and its reason where Slurm has one."""
    state = node.get("state") or "unknown"
    return f"{state}: {node['reason']}" if node.get("reason") else f"{state}; {passed_over}"


def _by_reason(why: dict[str, str]) -> list[Json]:
    """Return the names folded, those of one reason together."""
    reasons: dict[str, list[str]] = {}
    for name, reason in why.items():
        reasons.setdefault(reason, []).append(name)
    return [{"name": fold_nodes(names), "count": len(names), "why": reason} for reason, names in reasons.items()]


def _gpus_beyond(count: int) -> list[Json]:
    """Return the GPUs that were seen beyond those that Slurm defines for the nodes in scope, if there are any."""
    name = f"{count} GPU{'s' * (count > 1)}"
    return [{"name": name, "count": count, "why": "more than Slurm defines for the nodes in scope"}] if count else []


def _workloads_left_out(workloads: list[Json]) -> list[Json]:
    """Return the workloads that the inventory leaves out, each with its reason."""
    left_out = [each for each in workloads if each["verdict"] == "not_applicable"]
    return [{"name": f"workload {each['id']}", "count": 1, "why": each["why"]} for each in left_out]


def _checks_left_out(table: Table) -> list[Json]:
    """Return the checks that the inventory says do not apply, grouped by reason."""
    checks: dict[str, set[str]] = {}
    for check in table.checks.values():
        verdicts, reasons = check.fields["verdict"], check.fields["why"]
        for number in range(len(check)):
            if verdicts.of(number) == "not_applicable":
                checks.setdefault(reasons.of(number), set()).add(check.id)
    return [
        {"name": f"checks {', '.join(sorted(names))}", "count": len(names), "why": why}
        for why, names in sorted(checks.items())
    ]


def _gpus_seen(folder: Path, identity: str) -> list[str]:
    groups = readback.evidence(folder, identity)
    for key in ("gpu", "groups"):
        groups = groups.get(key) if isinstance(groups, dict) else None
    return [str(uuid) for uuid in groups] if isinstance(groups, dict) else []
