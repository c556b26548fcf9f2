# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Judge whether a partition can hold the job of a workload, from slurm_cluster_info: its nodes, and their GRES."""

from __future__ import annotations

import re
import typing as t
from functools import partial

from ansible_collections.mlops.hpc_validation.plugins.module_utils._common import scalars
from ansible_collections.mlops.hpc_validation.plugins.module_utils._slurm.hostlist import expand_nodes, fold_nodes
from ansible_collections.mlops.hpc_validation.plugins.module_utils._slurm.text import gres_counts, gres_types
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._common.cluster_facts import stated
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._judge import remedies
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._preflight import checks, reach

Json = dict[str, t.Any]
MAX_STATES = 10  # listed in one finding
NARROWING = ("nodelist", "exclude", "constraint")

_judged = partial(checks.finding, source="slurm_cluster_info")


class Asked(t.NamedTuple):
    """What a job asks for: nodes, and on each of them GRES, as sbatch is told, by name, and the types of its GPUs."""

    nodes: int
    text: str
    gres: dict[str, int]
    types: list[str]


class Room(t.NamedTuple):
    """A partition with those of its nodes that the job can reach: all, the large enough, and of these the usable."""

    name: str
    nodes: list[Json]
    fitting: list[Json]
    ready: list[Json]


def finding(info: Json, workload: str, directives: Json) -> Json:
    """Return the finding whether enough nodes of a partition are large enough for the workload, and can start it.

    `directives` are sbatch's long options for its job, which choose a partition that exists.
    """
    asked, slurm = asked_for(directives), stated(directives)
    if len(expand_nodes(slurm.get("nodelist", ""))) < asked.nodes:
        slurm.pop("nodelist", None)  # Slurm adds nodes to a list that is too short
    rooms = _rooms(info, slurm, asked)
    return _judge(workload, asked, max(rooms, key=lambda room: _roominess(room, asked.nodes)), rooms, slurm)


def asked_for(directives: Json) -> Asked:
    """Return what sbatch's long options ask for; a number of nodes that cannot be read is left to Slurm, as 1."""
    nodes = re.match(r"[0-9]{1,9}", str(directives.get("nodes", "")))
    text = stated(directives).get("gres", "").strip()
    text = "" if text == "none" else text
    return Asked(int(nodes[0]) if nodes else 1, text, gres_counts(text), gres_types(text))


def _rooms(info: Json, slurm: Json, asked: Asked) -> list[Room]:
    """Return the partitions that are up, or all chosen ones if none is; a job runs within one of them."""
    chosen = reach.chosen(info, slurm)
    names = [each["name"] for each in chosen if str(each.get("state")).lower() == "up"]
    nodes = reach.in_scope(info, slurm)
    return [_room(name, nodes, asked) for name in names or [each["name"] for each in chosen]]


def _room(name: str, nodes: list[Json], asked: Asked) -> Room:
    own = [node for node in nodes if name in node["partitions"]]
    fitting = [node for node in own if _holds(node, asked)]
    return Room(name, own, fitting, [node for node in fitting if reach.usable(node)])


def _holds(node: Json, asked: Asked) -> bool:
    """Return whether the node defines the GRES; one whose GPUs have no type is left to Slurm."""
    types = node.get("gres_types") or asked.types
    enough = all(node["gres"].get(name, 0) >= count for name, count in asked.gres.items())
    return enough and set(asked.types) <= set(types)


def _roominess(room: Room, nodes: int) -> tuple[bool, int]:
    """Return the order of partitions: those that can start the job, then those with more large enough nodes."""
    return len(room.ready) >= nodes, len(room.fitting)


def _judge(workload: str, asked: Asked, room: Room, rooms: list[Room], slurm: Json) -> Json:
    words = in_words(asked)
    judged = partial(_judged, bound=f"at least {words}", where={"workload": workload})
    partition = f"partition {room.name}" + (f" (of {', '.join(each.name for each in rooms)})" if len(rooms) > 1 else "")
    if len(room.fitting) < asked.nodes:
        return judged(
            "scheduler.gres",
            verdict="undetermined",
            value=len(room.fitting),
            why=f"it asks for {words}; {_there(asked, room, partition)}{_narrowed(slurm)}",
            remedy=remedies.remedy("scheduler.gres"),
        )
    count = f"{len(room.ready)} of {_nodes(len(room.fitting))} of {partition} can start it"
    if len(room.ready) < asked.nodes:
        return judged(
            "scheduler.nodes",
            verdict="undetermined",
            value=len(room.ready),
            why=f"it asks for {words}; {count}: {_states(room)}",
            remedy=remedies.remedy("scheduler.nodes"),
        )
    return judged("scheduler.nodes", verdict="pass", value=len(room.ready), why=count)


def in_words(asked: Asked) -> str:
    """Return what is asked for in words, such as 2 nodes with gpu:h200:8 each."""
    each = " each" if asked.nodes > 1 else ""
    return _nodes(asked.nodes) + (f" with {asked.text}{each}" if asked.text else "")


def _there(asked: Asked, room: Room, partition: str) -> str:
    """Return what the partition has, in words."""
    if not room.nodes or not asked.gres:
        return f"{partition} has {_nodes(len(room.nodes))}"
    most = [f"{name}:{max(node['gres'].get(name, 0) for node in room.nodes)}" for name in asked.gres]
    types = sorted({kind for node in room.nodes for kind in node.get("gres_types") or []}) if asked.types else []
    return (
        f"{len(room.fitting)} of {_nodes(len(room.nodes))} of {partition} define{'s' * (len(room.fitting) == 1)} it, "
        f"none more than {' and '.join(most)}" + (f" (types: {', '.join(types)})" if types else "")
    )


def _narrowed(slurm: Json) -> str:
    narrowing = [f"{key} {scalars.bounded(slurm[key])}" for key in NARROWING if slurm.get(key)]
    return f", narrowed by {', '.join(narrowing)}" if narrowing else ""


def _states(room: Room) -> str:
    """Return the states of the nodes that cannot start it, those of one state together."""
    states: dict[str, list[str]] = {}
    for node in room.fitting:
        if not reach.usable(node):
            states.setdefault(reach.condition(node), []).append(node["name"])
    told = [
        f"{scalars.bounded(fold_nodes(names))} {'is' if len(names) == 1 else 'are'} {state}"
        for state, names in list(states.items())[:MAX_STATES]
    ]
    more = [f"and {len(states) - MAX_STATES} more"] if len(states) > MAX_STATES else []
    return "; ".join([*told, *more])


def _nodes(count: int) -> str:
    return f"{count} node{'s' * (count != 1)}"
