# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The servers' part of beegfs_check's facts, whatever it holds: what was reported, what was not, and why."""

from __future__ import annotations

import typing as t

from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._share.facts import are_rows, at, flat, text

Json = dict[str, t.Any]
KINDS = ("meta", "storage")
# The parts that the management daemon answers by itself; without them nothing is known about the servers.
BASIC = ("targets", "nodes")
# The parts that are judged separately, with their missing values by target or group.
APART = ("states", "space", "mirrors", "quota")


class Told:
    """Reads the facts without assuming that anything has the right type."""

    def __init__(self, servers: t.Any) -> None:
        self.servers = servers
        self.tool = text(at(servers, "tool")) or "beegfs"
        self.targets = flat(at(servers, "targets"))
        self.problems = flat(at(servers, "problems"))

    def rows(self, part: str) -> list[Json]:
        """Return the rows of a part."""
        return flat(at(self.servers, part))

    def has(self, part: str) -> bool:
        """Return whether a part was reported, even if it is empty."""
        return are_rows(at(self.servers, part))

    @property
    def knows_nothing(self) -> bool:
        """Whether the management daemon answered but knows no target."""
        return self.has("targets") and not self.targets

    def problem(self, part: str, kind: t.Any) -> str | None:
        """Return why a part was not fully reported for a type, or None if it was."""
        found = [
            str(row.get("problem"))
            for row in self.problems
            if row.get("part") == part and (kind is None or row.get("type") in (kind, None))
        ]
        if at(self.servers, part) is not None and not self.has(part):
            found.append(f"{part} of no known form")
        return "; ".join(dict.fromkeys(found[:3])) or None

    def basic_problems(self) -> list[tuple[str, str | None]]:
        """Return the problems, with their causes, that leave open whether the servers answered."""
        found = [(_with_source(row), text(row.get("cause"))) for row in self.problems if row.get("part") not in APART]
        if not self.has("problems"):
            found.append(("what went wrong was not reported", None))
        return found + [
            (f"{part} of no known form", None) for part in BASIC if not are_rows(at(self.servers, part) or [])
        ]

    def unknown_to_management(self, what: str) -> str:
        """Return the message that the management daemon knows nothing of a kind."""
        return f"the management daemon knows no {what}"

    def was_just_started(self, kind: str) -> bool:
        """Return whether all targets are reported as probably offline although every server of that type answers."""
        states = {target.get("reachability") for target in self.targets if target.get("type") == kind}
        answers = [node.get("reachable") for node in self.rows("nodes") if node.get("type") == kind]
        return states == {"probably-offline"} and bool(answers) and all(answer is True for answer in answers)

    def answers(self, target: Json) -> bool:
        """Return whether the server of a target answers."""
        return any(
            node.get("reachable") is True
            for node in self.rows("nodes")
            if (node.get("type"), node.get("name")) == (target.get("type"), target.get("node"))
        )

    def name(self, target: Json) -> str:
        """Return a target's name, with its server if known."""
        named = f"{target.get('type')} target {target.get('id')}"
        return f"{named} on {target['node']}" if target.get("node") else named


def _with_source(problem: Json) -> str:
    """Return a problem; for text that is not the tool's own, with the command that printed it."""
    said = str(problem.get("problem"))
    return f"{problem.get('source')}: {said}" if problem.get("cause") == "foreign" else said
