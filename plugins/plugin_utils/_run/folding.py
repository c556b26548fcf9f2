# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Fold what a verdict says of jobs and of the cluster: nodes as Slurm names them, equal nodes told once."""

from __future__ import annotations

import json
import typing as t

from ansible_collections.mlops.hpc_validation.plugins.module_utils._slurm.hostlist import fold_nodes

Json = dict[str, t.Any]


def workload(told: Json) -> Json:
    """Return a workload whose job names its nodes as one expression."""
    return {**told, "job": {**told["job"], "nodes": fold_nodes(told["job"]["nodes"])}} if told["job"] else told


def cluster(told: Json | None) -> Json | None:
    """Return the facts of the cluster with equal nodes told once; cluster.json has each."""
    if not told:
        return told
    alike: dict[str, list[Json]] = {}
    for node in told.get("nodes") or []:
        facts = {key: value for key, value in node.items() if key != "name"}
        alike.setdefault(json.dumps(facts, sort_keys=True), []).append(node)
    nodes = [
        {**equal[0], "name": fold_nodes(node["name"] for node in equal), "count": len(equal)}
        for equal in alike.values()
    ]
    partitions = told.get("partitions")
    if isinstance(partitions, list):
        partitions = [_partition(partition) for partition in partitions]
    return {**told, "nodes": nodes, "partitions": partitions}


def _partition(partition: t.Any) -> t.Any:
    nodes = partition.get("nodes") if isinstance(partition, dict) else None
    listed = isinstance(nodes, list) and all(isinstance(name, str) for name in nodes)
    return {**partition, "nodes": fold_nodes(t.cast("list[str]", nodes))} if listed else partition
