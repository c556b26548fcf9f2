# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Judge whether each node of a preflight is a machine of its own: Slurm may have two names for one."""

from __future__ import annotations

import typing as t

from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._preflight import checks

Json = dict[str, t.Any]


class Machines:
    """The machine and the GPUs that each node reported."""

    def __init__(self) -> None:
        self._machines: dict[str, tuple[str, str]] = {}  # host name and boot ID, empty if unknown
        self._holders: dict[str, str] = {}  # UUID of a GPU → the node that reported it first
        self._shared: dict[str, tuple[str, str]] = {}  # node → UUID, and the node that reported it first

    def add(self, node: str, host: t.Any, gpus: t.Iterable[str]) -> None:
        """Note what a node's job reported about its host, and the UUIDs of its GPUs."""
        facts = host if isinstance(host, dict) else {}
        self._machines[node] = (_text(facts.get("hostname")), _text(facts.get("boot_id")))
        for uuid in gpus:
            first = self._holders.setdefault(uuid, node)
            if first != node:
                self._shared[node] = (uuid, first)

    def findings(self) -> t.Iterator[Json]:
        """Yield a finding for each node; one that is a machine of another name names that."""
        first: dict[tuple[str, str], str] = {}
        for node, machine in self._machines.items():
            twin = first.setdefault(machine, node) if all(machine) else node
            uuid, holder = self._shared.get(node, ("", node))
            words = [f"{twin} is the host {machine[0]} too"] if twin != node else []
            words += [f"{holder} has {uuid} too"] if holder != node else []
            others = {twin, holder} - {node}
            yield checks.judged(
                "node.unique",
                "eq",
                0,
                len(others) if all(machine) or others else None,
                unit="other names",
                source="kit host; kit probe",
                where={"node": node},
                missing="the host's name and boot ID were not reported",
                detail="; ".join(words),
            )


def _text(value: t.Any) -> str:
    return value if isinstance(value, str) else ""
