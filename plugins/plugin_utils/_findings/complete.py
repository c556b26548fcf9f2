# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Require that no node of the scope was lost, whatever was folded.

A node is lost if nothing says how its job ended, or if it lacks a check that its equals have, or has it of fewer GPUs;
not if something about it is amiss already. Nor may a node have its result twice.
"""

from __future__ import annotations

import typing as t
from collections import Counter

from ansible_collections.mlops.hpc_validation.plugins.module_utils._slurm.hostlist import fold_nodes
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._findings.columns import Check, Table
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._judge import findings as judge_findings
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._judge import remedies
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._share import coherence

Json = dict[str, t.Any]
ID = "coverage.node"
TITLE = "Nodes in scope without exactly one result"
JOB = "node.job"
MODEL = "gpu.model"  # every GPU that a node lists has it
# Nodes have the same checks if they have as many GPUs, of the same models, in the same mode.
_KIND = ("gpu.count", MODEL, "gpu.mig")
# These are made on two nodes only.
_OF_TWO = {*coherence.STEPS.values(), coherence.LOCKS}
_AMISS = ("fail", "undetermined")  # with these no run passes; with a waiver it does


def lost(table: Table, scope: t.Iterable[Json]) -> list[Json]:
    """Return a finding for each way in which nodes were lost; `scope` has the `name` and the `gpus` of each node."""
    gpus = {node["name"]: node["gpus"] for node in scope}
    listed = set(table.checks[MODEL].at) if MODEL in table.checks else set()
    having = {name: _gpus_of(check, table, listed) for name, check in table.checks.items() if name not in _OF_TWO}
    amiss = _amiss(table)
    silent = gpus.keys() - having.get(JOB, Counter()).keys() - amiss
    found = [_finding(silent, "no result of a job on them")] if silent else []
    twice = gpus.keys() & _twice(table)
    found += [_finding(twice, "more than one result of a job on them")] if twice else []
    for number, identity in enumerate(_KIND):  # a node without it would be of a kind of its own
        for alike in _kinds(table, gpus, _KIND[:number]):
            sound = alike - amiss - silent
            missing = sound - having.get(identity, Counter()).keys()
            found += [_missing(missing, identity)] if missing and missing != sound else []
    for alike in _kinds(table, gpus, _KIND):
        sound = alike - amiss - silent
        for identity, nodes in having.items():
            most = max((nodes[name] for name in sound), default=0)
            missing = {name for name in sound if nodes[name] < most}
            if missing and _decides(table.checks[identity]):
                found.append(_missing(missing, identity))
    return found


def _missing(nodes: t.Collection[str], identity: str) -> Json:
    return _finding(nodes, f"no result of {identity}, or of fewer GPUs, unlike other nodes of their kind")


def _finding(nodes: t.Collection[str], why: str) -> Json:
    folded = fold_nodes(nodes)
    return judge_findings.finding(
        ID,
        TITLE,
        "undetermined",
        value=len(nodes),
        bound="= 0",
        source="records of the run",
        why=why,
        remedy=remedies.remedy(ID, {"node": folded}),
        where={"node": folded},
    )


def _gpus_of(check: Check, table: Table, listed: set[int]) -> Counter[str]:
    """Return the nodes that have the check, each with the number of its `listed` GPUs that have it, at least 1."""
    gpus: dict[str, set[int]] = {}
    for position in set(check.at):
        node = table.places[position].get("node", "")
        gpus.setdefault(node, set()).update({position} & listed)
    return Counter({node: max(1, len(told)) for node, told in gpus.items()})


def _twice(table: Table) -> set[str]:
    """Return the nodes with more than one result of a job."""
    check = table.checks.get(JOB)
    told = Counter(table.places[position].get("node", "") for position in (check.at if check else ()))
    return {node for node, count in told.items() if count > 1}


def _amiss(table: Table) -> set[str]:
    """Return the nodes with a finding for which the run cannot pass."""
    nodes = set()
    for check in table.checks.values():
        verdicts = check.fields["verdict"]
        amiss = {position for position, verdict in enumerate(verdicts.values) if verdict in _AMISS}
        at = {place for place, position in zip(check.at, verdicts.which) if position in amiss}
        nodes |= {table.places[place]["node"] for place in at if "node" in table.places[place]}
    return nodes


def _decides(check: Check) -> bool:
    """Return whether the check can fail; what is only recorded is not the same on all nodes."""
    return "pass" in check.fields["verdict"].values


def _kinds(table: Table, gpus: dict[str, int], identities: t.Sequence[str]) -> list[set[str]]:
    """Return the nodes by kind: by their number of GPUs, and what these checks say of them."""
    told: dict[str, set[t.Any]] = {name: set() for name in gpus}
    for identity in identities:
        check = table.checks.get(identity)
        for place, position in zip(check.at, check.fields["value"].which) if check else ():
            node = table.places[place].get("node")
            if node in told:
                told[node].add((identity, position))
    kinds: dict[tuple[int, frozenset[t.Any]], set[str]] = {}
    for name, count in gpus.items():
        kinds.setdefault((count, frozenset(told[name])), set()).add(name)
    return list(kinds.values())
