# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Write a verdict as versions before 0.4.0 did, with every finding and every name: schema verdict-1.json."""

from __future__ import annotations

import typing as t
from pathlib import Path

from ansible_collections.mlops.hpc_validation.plugins.module_utils._slurm.hostlist import expand_nodes
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._common.presentable import presentable
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._findings.columns import Table
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._run import coverage, readback

Json = dict[str, t.Any]
_NEW = ("checks", "sidecar")


def unfolded(folder: Path, verdict: Json, table: Table) -> Json:
    """Return the verdict of the run in `folder`, whose findings are `table`, in the form of schema 1."""
    cluster, probed = readback.cluster(folder)[0], readback.probed(folder)[0]
    # That form knows no workload without a verdict of its own; those left out are under coverage.
    workloads = [_workload(each) for each in verdict["workloads"] if each["verdict"] != "not_applicable"]
    covered = verdict["coverage"]
    exercised = coverage.exercised(folder, workloads, probed)[1]
    document = {
        **{key: value for key, value in verdict.items() if key not in _NEW},
        "schema": 1,
        "coverage": {
            "nodes": {
                "exercised": expand_nodes(covered["nodes"]["exercised"]),
                "in_scope": covered["nodes"]["in_scope"],
            },
            "gpus": {"exercised": sorted(exercised), "in_scope": covered["gpus"]["in_scope"]},
            "left_out": [each for left in (*covered["left_out"], *covered["outside"]) for each in _each(left)],
        },
        "cluster": cluster,
        "workloads": workloads,
        "findings": list(table),
    }
    return t.cast(Json, presentable(document))


def _workload(told: Json) -> Json:
    if not told["job"]:
        return told
    return {**told, "job": {**told["job"], "nodes": expand_nodes(told["job"]["nodes"])}}


def _each(left: Json) -> list[Json]:
    """Return an entry for each node that was left out; checks are no nodes, so that they stay together."""
    names = expand_nodes(left["name"]) or [left["name"]]
    return [{"name": name, "why": left["why"]} for name in names]
