# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Compute which nodes and GPUs a run covered, which it left out and why, and its GPU-hours. PRIVATE."""

from __future__ import annotations

import typing as t
from pathlib import Path

from ansible_collections.mlops.hpc_validation.plugins.module_utils._common import scalars
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._run import readback

Json = dict[str, t.Any]


def of_run(
    folder: Path, workloads: list[Json], cluster: Json | None, probed: Json | None, findings: list[Json]
) -> Json:
    """Return the nodes and GPUs in scope that were exercised, and everything that was left out, with the reason."""
    probed = probed or {}
    nodes, gpus = _ran_on(folder, workloads) if workloads else _looked_at(probed)
    in_scope = _nodes_with_gpus(cluster)
    narrowed = {left["name"]: left["why"] for left in probed.get("left_out") or []}
    passed_over = "no selected workload was placed there" if workloads else "no job of the preflight ended well there"
    left_out = _nodes_left_out(in_scope or [], nodes, narrowed, passed_over)
    return {
        "nodes": {"exercised": nodes, "in_scope": None if in_scope is None else len(in_scope)},
        "gpus": {
            "exercised": gpus,
            "in_scope": None if in_scope is None else sum(node["gres"]["gpu"] for node in in_scope),
        },
        "left_out": [*left_out, *_also(narrowed, left_out, nodes), *_checks_left_out(findings)],
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


def _ran_on(folder: Path, workloads: list[Json]) -> tuple[list[str], list[str]]:
    """Return the nodes of all jobs, and the GPUs that their evidence names."""
    nodes = {node for each in workloads if each["job"] for node in each["job"]["nodes"]}
    return sorted(nodes), sorted({uuid for each in workloads for uuid in _gpus_seen(folder, each["id"])})


def _looked_at(probed: Json) -> tuple[list[str], list[str]]:
    return sorted(probed.get("nodes") or []), sorted(probed.get("gpus") or [])


def _nodes_with_gpus(cluster: Json | None) -> list[Json] | None:
    """Return the nodes with GPUs, or None if the nodes of the cluster are unknown."""
    known = (cluster or {}).get("nodes")
    return [node for node in known if node.get("gres", {}).get("gpu")] if isinstance(known, list) else None


def _nodes_left_out(
    in_scope: list[Json], exercised: list[str], narrowed: dict[str, str], passed_over: str
) -> list[Json]:
    left_out = []
    for node in in_scope:
        if node["name"] not in exercised:
            state = node.get("state") or "unknown"
            reason = node.get("reason") or narrowed.get(node["name"])
            left_out.append(
                {"name": node["name"], "why": f"{state}: {reason}" if reason else f"{state}; {passed_over}"}
            )
    return left_out


def _also(narrowed: dict[str, str], left_out: list[Json], exercised: list[str]) -> list[Json]:
    """Return what preflight left out besides the nodes with GPUs."""
    told = {*(left["name"] for left in left_out), *exercised}
    return [{"name": name, "why": why} for name, why in sorted(narrowed.items()) if name not in told]


def _checks_left_out(findings: list[Json]) -> list[Json]:
    """Return the checks that the inventory says do not apply, grouped by reason."""
    checks: dict[str, set[str]] = {}
    for finding in findings:
        if finding["verdict"] == "not_applicable":
            checks.setdefault(finding["why"], set()).add(finding["id"])
    return [{"name": f"checks {', '.join(sorted(names))}", "why": why} for why, names in sorted(checks.items())]


def _gpus_seen(folder: Path, identity: str) -> list[str]:
    groups = readback.evidence(folder, identity)
    for key in ("gpu", "groups"):
        groups = groups.get(key) if isinstance(groups, dict) else None
    return [str(uuid) for uuid in groups] if isinstance(groups, dict) else []
