# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tell which partitions and nodes jobs with the site's settings can reach, from slurm_cluster_info."""

from __future__ import annotations

import re
import typing as t

from ansible_collections.mlops.hpc_validation.plugins.module_utils._slurm.hostlist import expand_nodes

Json = dict[str, t.Any]
# Base states in which Slurm starts jobs, now or when the node is free again.
USABLE = {"idle", "allocated", "mixed"}
SILENT = "not_responding"  # what may end by itself within seconds, as when slurmd is restarted
UNUSABLE_FLAGS = {"drain", "fail", "maintenance", SILENT, "invalid_reg", "powered_down", "powering_down"}


def named(slurm: Json) -> list[str]:
    """Return the partitions that the settings name."""
    return [name.strip() for name in (slurm.get("partition") or "").split(",") if name.strip()]


def chosen(info: Json, slurm: Json) -> list[Json]:
    """Return the partitions for a job with these settings: those named, else the default one."""
    wanted = named(slurm)
    return [p for p in info.get("partitions") or [] if (p["name"] in wanted if wanted else p.get("default"))]


def usable(node: Json) -> bool:
    """Return whether Slurm would start a job on `node`, now or later, without anyone's help."""
    return _in_use(node) and not _flags(node) & UNUSABLE_FLAGS


def may_become_usable(node: Json) -> bool:
    """Return whether Slurm would start a job on `node` now or once it responds again; whether it does is not known."""
    return _in_use(node) and not _flags(node) & UNUSABLE_FLAGS - {SILENT}


def _in_use(node: Json) -> bool:
    return str(node.get("state")).lower() in USABLE


def _flags(node: Json) -> set[str]:
    return {str(flag).lower() for flag in node.get("flags") or []}


def in_words(node: Json) -> str:
    """Return the node's state in words, with its name."""
    return f"{node['name']} is {condition(node)}"


def condition(node: Json) -> str:
    """Return the node's state in words."""
    words = "+".join([str(node.get("state")), *[str(flag).lower() for flag in node.get("flags") or []]])
    return words + (f" ({node['reason']})" if node.get("reason") else "")


def in_scope(info: Json, slurm: Json) -> list[Json]:
    """Return the nodes that jobs with these settings may run on, in any state."""

    def listed(key: str) -> set[str]:
        """Return the names; an expression that cannot be read is left to Slurm and excludes nothing here."""
        return set(expand_nodes("".join((slurm.get(key) or "").split())))

    exclude, nodelist = listed("exclude"), listed("nodelist")
    partitions = {each["name"] for each in chosen(info, slurm)}
    kind = slurm.get("gres_type")
    nodes = [node for node in info.get("nodes") or [] if partitions & set(node.get("partitions") or [])]
    return [
        node
        for node in nodes
        if node["name"] not in exclude
        and (not nodelist or node["name"] in nodelist)
        and _has_features(node, slurm.get("constraint") or "")
        and (not kind or not node.get("gres_types") or kind in node["gres_types"])
    ]


def _has_features(node: Json, constraint: str) -> bool:
    """Return whether the node has the features of a plain constraint (a, a&b or a|b); others are left to Slurm."""
    for sign, decide in (("&", all), ("|", any)):
        wanted = constraint.split(sign)
        if all(re.fullmatch(r"[\w.-]+", name) for name in wanted):
            return decide(name in (node.get("features") or []) for name in wanted)
    return True
