# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Choose the nodes of a preflight and the job for each, pinned to it and requesting all its GPUs."""

from __future__ import annotations

import re
import typing as t

from ansible_collections.mlops.hpc_validation.plugins.module_utils._slurm.hostlist import expand_nodes, fold_nodes
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._common.cluster_facts import read, stated
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._judge import findings as judge_findings
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._preflight import checks
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._preflight.reach import (
    in_scope,
    in_words,
    may_become_usable,
    usable,
)

Json = dict[str, t.Any]
OUT_OF_REACH = "excluded by hpc_validation_slurm (partition, exclude, nodelist, constraint or GRES type)"
HOST = re.compile(r"[\w-]+(\.[\w-]+)*", re.ASCII)
NODE_SCRIPT, PAIR_SCRIPT = "node.sbatch", "coherence.sbatch"


def plan(info: Json, settings: Json, expected: t.Sequence[str] = ()) -> Json:
    """Return {scope, nodes, jobs, left_out, findings}: the nodes in scope, those that may take a job, a job for each.

    `info` is what slurm_cluster_info returned, `settings` the site's (settings.py), `expected` the inventory's
    compute nodes. A job has a `key` (the name of its node, or both names with a comma), the name of its `script`, its
    `options`, and the `nodes` it is about. Jobs for idle nodes come first. A node that does not respond gets a job as
    well, since it may respond again within the grace. If hpc_validation_nodes names a node that cannot be in scope,
    there are only findings.
    """
    info, wrong = read(info)
    if wrong:
        return {"scope": [], "nodes": [], "jobs": [], "left_out": [], "findings": [_no_nodes(info, settings)]}
    gpus = settings["accelerator"] != "cpu"
    refused = _refused(info, settings)
    if refused:
        return {"scope": [], "nodes": [], "jobs": [], "left_out": [], "findings": refused}
    scope, left_out, findings = _scope(info, settings, expected)
    ready = [node for node in scope if may_become_usable(node)]
    findings += [_out_of_service(node) for node in scope if not may_become_usable(node)]
    findings += [_version(node, info.get("version")) for node in ready]
    findings += [_gres_defined(node) for node in scope] if gpus else []
    responding = [node for node in ready if usable(node)]
    idle = [node for node in responding if str(node["state"]).lower() == "idle"]
    first = {node["name"] for node in idle}
    others = [node for node in ready if node["name"] not in first]
    pairs = _pair(idle) or _pair(responding)
    return {
        "scope": [_named(node, gpus) for node in scope],
        "nodes": [_named(node, gpus) for node in ready],
        "jobs": [
            *(_node_job(node, gpus) for node in idle),
            *([_pair_job(*pairs)] if pairs else []),
            *(_node_job(node, gpus) for node in others),  # last, since they may wait for long
        ],
        "left_out": left_out,
        "findings": findings if scope or findings else [_no_nodes(info, settings)],
    }


def _pair(ready: list[Json]) -> tuple[Json, Json] | None:
    """Return two nodes that one job can use: the first and the last of those with the same settings."""
    groups: dict[str, list[Json]] = {}
    for node in ready:
        groups.setdefault(repr(sorted(node["slurm"].items(), key=str)), []).append(node)
    largest = max(groups.values(), key=len, default=[])
    return (largest[0], largest[-1]) if len(largest) > 1 else None


def _named(node: Json, gpus: bool) -> Json:
    return {"name": node["name"], "gpus": _gpus(node) if gpus else 0}


def _gpus(node: Json) -> int:
    return int((node.get("gres") or {}).get("gpu", 0))


def names(value: t.Any) -> list[str]:
    """Return the nodes of a list, or of a Slurm expression such as compute[01-04],compute07."""
    text = value if isinstance(value, str) else ",".join(str(name) for name in value or [])
    text = "".join(text.split())
    return expand_nodes(text) or ([text] if text else [])  # unreadable: taken for an unknown name


def _short(name: str) -> str:
    return name.partition(".")[0]


def _scope(info: Json, settings: Json, expected: t.Sequence[str]) -> tuple[list[Json], list[Json], list[Json]]:
    """Return the nodes in scope, those left out with the reason, and findings about names that cannot be in scope.

    If the inventory uses Slurm's names, its nodes are expected to have GPUs.
    """
    known = {node["name"]: node for node in info.get("nodes") or []}
    listed = _as_slurm_has_them(expected, known)
    listed = listed if any(name in known for name in listed) else []
    wanted = set(_as_slurm_has_them(names(settings["nodes"]), known))
    reached = _in_scope_of_all(info, settings)
    findings = [_unknown(name, sorted(known)) for name in sorted({*listed, *settings["node_gpus"]} - set(known))]
    left_out = [{"name": name, "why": OUT_OF_REACH} for name in listed if name in known and name not in reached]
    named = reached if settings["accelerator"] == "cpu" else {*wanted, *listed}
    why = {name: _why_left_out(node, wanted, named) for name, node in reached.items()}
    left_out += [{"name": name, "why": reason} for name, reason in why.items() if reason]
    return [node for name, node in reached.items() if not why[name]], left_out, findings


def _refused(info: Json, settings: Json) -> list[Json]:
    """Return a finding for each name in hpc_validation_nodes that is no node's, or that of one out of reach."""
    known = {node["name"] for node in info.get("nodes") or []}
    wanted = sorted(set(_as_slurm_has_them(names(settings["nodes"]), known)))
    reached = _in_scope_of_all(info, settings) if wanted else {}
    unknown = [_unknown(name, sorted(known)) for name in wanted if name not in known]
    return unknown + [_out_of_reach(name) for name in wanted if name in known and name not in reached]


def _as_slurm_has_them(wanted: t.Iterable[str], known: t.Collection[str]) -> list[str]:
    """Names of nodes, each as Slurm has it where only one of the two has a domain and a single node can be meant."""
    alike: dict[str, list[str]] = {}
    for name in known:
        alike.setdefault(_short(name), []).append(name)
    found = []
    for name in wanted:
        nodes = alike.get(_short(name), [])
        found.append(nodes[0] if len(nodes) == 1 and _differ_in_domain(name, nodes[0]) else name)
    return found


def _differ_in_domain(name: str, other: str) -> bool:
    """Return whether the names are equal but for a domain that only one of them has."""
    return bool(HOST.fullmatch(name)) and (_short(name) == other or name == _short(other))


def _why_left_out(node: Json, wanted: t.Collection[str], named: t.Collection[str]) -> str | None:
    """Why a node that can be reached is not in scope; a node that is `named` need not define GPUs."""
    if wanted and node["name"] not in wanted:
        return "not among hpc_validation_nodes"
    return None if _gpus(node) or node["name"] in named else "it defines no GPUs"


def _unknown(name: str, known: list[str]) -> Json:
    return checks.judged(
        "scheduler.node_known",
        "eq",
        True,
        False if known else None,
        source="scontrol show node",
        where={"node": name},
        missing="the scheduler reported no nodes",
        detail=f"unknown node {name!r}; available: {fold_nodes(known)}" if known else None,
    )


def _out_of_reach(name: str) -> Json:
    return checks.judged(
        "scheduler.node_in_reach",
        "eq",
        True,
        False,
        source="scontrol show node",
        where={"node": name},
        detail=OUT_OF_REACH,
    )


def _in_scope_of_all(info: Json, settings: Json) -> dict[str, Json]:
    """Return the nodes for the settings of the site and of the selected workloads, each with the first that fit."""
    found: dict[str, Json] = {}
    for slurm in map(stated, (settings["slurm"], *settings["workload_slurm"])):
        for node in in_scope(info, slurm):
            found.setdefault(node["name"], {**node, "slurm": slurm})
    return found


def _out_of_service(node: Json) -> Json:
    return checks.judged(
        "scheduler.node",
        "eq",
        "idle, mixed or allocated",
        None,
        source="scontrol show node",
        where={"node": node["name"]},
        missing=in_words(node),
    )


def _version(node: Json, login: t.Any) -> Json:
    """slurmd may be older than slurmctld and its commands, never newer."""
    version = node.get("version")
    known = judge_findings.is_version(version)
    return checks.version_at_least(
        "scheduler.version",
        str(version) if known else "0.0",
        login if known else None,
        source="sinfo --version; scontrol show node",
        where={"node": node["name"]},
        missing="the node's version was not reported" if not known else "the login node's version was not reported",
        record=not known,
    )


def _gres_defined(node: Json) -> Json:
    return checks.judged(
        "scheduler.gres_defined",
        "ge",
        1,
        _gpus(node),
        source="scontrol show node",
        unit="GPUs",
        where={"node": node["name"]},
    )


def _no_nodes(info: Json, settings: Json) -> Json:
    told = bool(info.get("nodes")) and not info.get("problems")
    return checks.judged(
        "scheduler.scope",
        "ge",
        1,
        0 if told else None,
        source="scontrol show node",
        unit="nodes",
        missing="the scheduler reported no nodes",
        detail=f"hpc_validation_nodes is {settings['nodes']!r}, hpc_validation_slurm {settings['slurm']!r}",
    )


def _site_options(slurm: Json) -> Json:
    kept = {key: value for key, value in slurm.items() if key in ("account", "partition", "qos", "reservation")}
    return {**kept, **(slurm.get("extra") or {})}


def _node_job(node: Json, gpus: bool) -> Json:
    kind = node["slurm"].get("gres_type")
    gres = f"gpu:{kind}:{_gpus(node)}" if kind else f"gpu:{_gpus(node)}"
    return {
        "key": node["name"],
        "script": NODE_SCRIPT,
        "nodes": [node["name"]],
        "options": {
            **_site_options(node["slurm"]),
            "job-name": f"preflight-{node['name']}",
            "nodelist": node["name"],
            **({"gres": gres} if gpus and _gpus(node) else {}),
            "export": "NONE",
        },
    }


def _pair_job(first: Json, last: Json) -> Json:
    nodes = [first["name"], last["name"]]
    return {
        "key": ",".join(nodes),  # no node has this name
        "script": PAIR_SCRIPT,
        "nodes": nodes,
        "options": {
            **_site_options(first["slurm"]),
            "job-name": "preflight-coherence",
            "nodelist": ",".join(nodes),
            "nodes": 2,
            "export": "NONE",
        },
    }
