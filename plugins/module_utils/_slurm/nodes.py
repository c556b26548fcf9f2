# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Nodes and partitions as scontrol shows them, and whether a pending job still has nodes that could run it. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ansible_collections.mlops.hpc_validation.plugins.module_utils._slurm.hostlist import expand_nodes, fold_nodes
from ansible_collections.mlops.hpc_validation.plugins.module_utils._slurm.text import (
    after_the_name,
    clean,
    duration,
    gres_counts,
    gres_types,
    key_values,
    number,
)

NODE_ARGV = ["scontrol", "--oneliner", "show", "node"]
PARTITION_ARGV = ["scontrol", "--oneliner", "show", "partition"]
# Nodes in these states return by themselves, whatever other flags they have.
_RETURNING = frozenset({"powered_down", "powering_down", "powering_up", "power_up", "power_down", "reboot_issued"})
_SIGNED = re.compile(r"\[[^\[\]]*@[^\[\]]*\]$")  # who gave a reason, and when

Node = dict[str, Any]


def parse_nodes(text: str) -> list[Node]:
    """Return nodes; lines without a name and a state are left out."""
    nodes: list[Node] = []
    for line in text.split("\n"):
        pairs = key_values(line)
        if not pairs.get("NodeName") or not pairs.get("State"):
            continue
        state, flags = node_state(pairs["State"])
        nodes.append(
            {
                "name": pairs["NodeName"],
                "state": state,
                "flags": flags,
                "reason": _SIGNED.sub("", clean(pairs.get("Reason", ""))).rstrip(),
                "gres": gres_counts(pairs.get("Gres", "")),
                "gres_types": gres_types(pairs.get("Gres", "")),
                "gres_allocated": _allocated(pairs.get("AllocTRES", "")),
                "cpus": number(pairs.get("CPUTot", "")),
                "memory_mb": number(pairs.get("RealMemory", "")),
                "features": _words(pairs.get("AvailableFeatures", "")),
                "partitions": _words(pairs.get("Partitions", "")),
                "version": pairs.get("Version"),
            }
        )
    return nodes


def node_state(word: str) -> tuple[str, list[str]]:
    """Return (base state, flags) of 'IDLE*+DRAIN+MAINTENANCE': lower case; a trailing * means it does not respond."""
    base, *flags = word.strip().lower().split("+")
    marks = {"*": "not_responding", "~": "powered_down", "#": "powering_up", "%": "powering_down", "$": "maintenance"}
    found = [flag.rstrip("*~#%$@^!-") for flag in flags]
    for sign, flag in marks.items():
        if any(sign in part for part in (base, *flags)) and flag not in found:
            found.append(flag)
    return base.rstrip("*~#%$@^!-"), found


def _words(text: str) -> list[str]:
    return [word for word in text.split(",") if word not in ("", "(null)")]


def _allocated(tres: str) -> dict[str, int]:
    counts: dict[str, int] = {}
    for part in tres.split(","):
        key, _sep, value = part.partition("=")
        name = key.removeprefix("gres/")
        count = number(value)
        if key.startswith("gres/") and ":" not in name and count is not None:
            counts[name] = count
    return counts


def parse_partitions(text: str) -> list[dict[str, object]]:
    """Return partitions; max_time_seconds is None if it is unlimited."""
    partitions: list[dict[str, object]] = []
    for line in text.split("\n"):
        pairs = key_values(line)
        if pairs.get("PartitionName") and pairs.get("State"):
            partitions.append(
                {
                    "name": pairs["PartitionName"],
                    "state": pairs["State"].lower(),
                    "default": pairs.get("Default") == "YES",
                    "max_time_seconds": duration(pairs.get("MaxTime", "")),
                    "nodes": expand_nodes(pairs.get("Nodes", "")),
                }
            )
    return partitions


@dataclass(frozen=True)
class Needs:
    """What a pending job asks of its nodes."""

    partitions: tuple[str, ...]
    nodes: int
    required: tuple[str, ...]
    excluded: tuple[str, ...]
    gres: dict[str, int]


def node_argv(names: Iterable[str]) -> list[str]:
    """Return the command that shows these nodes."""
    return [*NODE_ARGV, fold_nodes(names)]


def job_argv(job_id: str) -> list[str]:
    """Return the command that shows what one job asks for."""
    return ["scontrol", "--local", "--oneliner", "show", "job", job_id]


def parse_needs(line: str) -> Needs | None:
    """Return what a job asks for, from one line of scontrol; None if the line cannot be read."""
    pairs = key_values(after_the_name(line))
    if not pairs.get("Partition"):
        return None
    count = number(pairs.get("NumNodes", "").split("-")[0])
    return Needs(
        partitions=tuple(_words(pairs["Partition"])),
        nodes=count or 1,
        required=tuple(expand_nodes(pairs.get("ReqNodeList", ""))),
        excluded=tuple(expand_nodes(pairs.get("ExcNodeList", ""))),
        gres=gres_counts(pairs.get("TresPerNode", "")),
    )


def is_out(node: Node) -> bool:
    """Return whether a node gets no jobs until somebody acts: down, drained or draining, or failing."""
    if _RETURNING.intersection(node["flags"]):
        return False
    return node["state"] in ("down", "error", "fail") or bool({"drain", "fail"}.intersection(node["flags"]))


def why_blocked(needs: Needs, nodes: list[Node]) -> str | None:
    """Return why the job cannot start however long it waits, or None if some nodes could still take it.

    A busy node is not blocked.
    """
    fitting = [node for node in nodes if _fits(needs, node)]
    missing = [node for node in fitting if node["name"] in needs.required and is_out(node)]
    usable = [node for node in fitting if not is_out(node)]
    if not fitting or (len(usable) >= needs.nodes and not missing):
        return None
    out = missing or [node for node in fitting if is_out(node)]
    shown = "; ".join(_shown(node) for node in out[:8]) + (f"; and {len(out) - 8} more" if len(out) > 8 else "")
    return f"it needs {needs.nodes} node(s), {len(usable)} of the {len(fitting)} that fit can be used: {shown}"


def _fits(needs: Needs, node: Node) -> bool:
    if node["name"] in needs.excluded:
        return False
    if needs.nodes <= len(needs.required) and node["name"] not in needs.required:
        return False
    return bool(set(needs.partitions).intersection(node["partitions"])) and all(
        node["gres"].get(kind, 0) >= count for kind, count in needs.gres.items()
    )


def why_stuck(job: Mapping[str, object], needed: Sequence[str], nodes: Sequence[Node]) -> str | None:
    """Return why a job that needs exactly these nodes has not begun, or None if it may just have to wait.

    To be asked about a job that Slurm has put back into the queue, or that has not begun for longer than it should.
    """
    own = [node for node in nodes if node["name"] in needed]
    if any(_RETURNING.intersection(node["flags"]) for node in own):
        return None
    bad = [node for node in own if is_out(node) or "not_responding" in node["flags"]]
    if bad:
        return "; ".join(_condition(node) for node in bad[:4]) + (f"; and {len(bad) - 4} more" if len(bad) > 4 else "")
    where = fold_nodes(needed)
    if job["attempt"]:
        return f"{where} could not start the job, and Slurm has put it back into the queue"
    return None if job["state"] == "PENDING" else f"{where} was given the job and has not begun it"


def _condition(node: Node) -> str:
    reason = f" ({node['reason']})" if node["reason"] else ""
    if "not_responding" in node["flags"]:
        return f"{node['name']} is not responding" + ("" if node["reason"] == "Not responding" else reason)
    words = "drained" if "drain" in node["flags"] else node["state"]
    return f"{node['name']} is {words}{reason}"


def _shown(node: Node) -> str:
    state = "+".join([node["state"], *node["flags"]])
    return f"{node['name']} is {state}" + (f" ({node['reason']})" if node["reason"] else "")


BLOCKED_REMEDY = (
    "see why: sinfo -R; repair the node, then: scontrol update NodeName=<node> State=RESUME (as Slurm's administrator)"
)
