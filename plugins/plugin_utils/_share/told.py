# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The servers' part of beegfs_check's facts, whatever it holds: what was told, what was not, and why not."""

from __future__ import annotations

import typing as t

from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._share.facts import are_rows, at, flat, text

Json = dict[str, t.Any]
KINDS = ("meta", "storage")
# What the management daemon alone answers; without these nothing is known of the servers.
BASIC = ("targets", "nodes")
# What is judged by itself, and what was not told of it by target or group.
APART = ("states", "space", "mirrors", "quota")


class Told:
    """Reads the facts; nothing in them is taken to be of the right kind."""

    def __init__(self, servers: t.Any) -> None:
        self.servers = servers
        self.tool = text(at(servers, "tool")) or "beegfs"
        self.targets = flat(at(servers, "targets"))
        self.problems = flat(at(servers, "problems"))

    def rows(self, part: str) -> list[Json]:
        """Return the rows of a part."""
        return flat(at(self.servers, part))

    def has(self, part: str) -> bool:
        """Say whether a part was told, be it that there are none."""
        return are_rows(at(self.servers, part))

    @property
    def knows_nothing(self) -> bool:
        """Say whether the management daemon answered, and knows no target."""
        return self.has("targets") and not self.targets

    def problem(self, part: str, kind: t.Any) -> str | None:
        """Return why a part was not told, or not whole, of a type; None where it was."""
        found = [
            str(row.get("problem"))
            for row in self.problems
            if row.get("part") == part and (kind is None or row.get("type") in (kind, None))
        ]
        if at(self.servers, part) is not None and not self.has(part):
            found.append(f"{part} of no known form")
        return "; ".join(dict.fromkeys(found[:3])) or None

    def basic_problems(self) -> list[tuple[str, str | None]]:
        """Return the problems, with their causes, for which the servers cannot be said to have been asked."""
        found = [(_with_source(row), text(row.get("cause"))) for row in self.problems if row.get("part") not in APART]
        if not self.has("problems"):
            found.append(("it was not told what went wrong", None))
        return found + [
            (f"{part} of no known form", None) for part in BASIC if not are_rows(at(self.servers, part) or [])
        ]

    def unknown_to_management(self, what: str) -> str:
        """Say that nothing of a kind is known to the management daemon."""
        return f"the management daemon knows no {what}"

    def was_just_started(self, kind: str) -> bool:
        """Say whether all targets are said to be probably offline, though every server of that type answers."""
        states = {target.get("reachability") for target in self.targets if target.get("type") == kind}
        answers = [node.get("reachable") for node in self.rows("nodes") if node.get("type") == kind]
        return states == {"probably-offline"} and bool(answers) and all(answer is True for answer in answers)

    def answers(self, target: Json) -> bool:
        """Say whether the server of a target answers."""
        return any(
            node.get("reachable") is True
            for node in self.rows("nodes")
            if (node.get("type"), node.get("name")) == (target.get("type"), target.get("node"))
        )

    def name(self, target: Json) -> str:
        """Name a target, with its server where that is known."""
        named = f"{target.get('type')} target {target.get('id')}"
        return f"{named} on {target['node']}" if target.get("node") else named


def _with_source(problem: Json) -> str:
    """Return a problem; of text that is not the tool's own, with the command that printed it."""
    said = str(problem.get("problem"))
    return f"{problem.get('source')}: {said}" if problem.get("cause") == "foreign" else said
