# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Name the places of findings: one in full, many as Slurm folds node names."""

from __future__ import annotations

import typing as t

from ansible_collections.mlops.hpc_validation.plugins.module_utils._slurm.hostlist import fold_nodes

Json = dict[str, t.Any]
_KEYS = ("workload", "node", "host", "gpu", "target", "path")
# What a place is a part of: all GPUs of a node are folded into the node.
_WHOLE = ("node", "host", "workload", "step", "target", "path")


def name(where: Json) -> str:
    """Return the parts of one place, from the whole to the part."""
    return ", ".join(str(where[key]) for key in _KEYS if where.get(key))


def whole(where: Json) -> str:
    """Return the node that a place is on, or else what it is a part of; empty if it has no place."""
    return next((str(where[key]) for key in _WHOLE if where.get(key)), "")


def fold(at: t.Iterable[Json]) -> str:
    """Return the nodes, or else the hosts and workloads, of many places, such as n[001-097,099]."""
    return fold_nodes(filter(None, dict.fromkeys(map(whole, at))))


def parts(at: t.Collection[Json]) -> str:
    """Return where a fault is: the place in full if it is one, else the nodes and how many GPUs or targets."""
    different = {tuple(where.items()): where for where in at}
    if len(different) < 2:
        return "".join(map(name, different.values()))
    counts = []
    for key, noun in (("gpu", "GPUs"), ("target", "targets"), ("path", "paths")):
        told = {(whole(where), where[key]) for where in at if where.get(key)}
        if len(told) > 1:
            counts.append(f"{len(told)} {noun}")
    return ", ".join(filter(None, [fold(at), *counts]))
