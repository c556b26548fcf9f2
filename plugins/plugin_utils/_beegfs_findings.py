# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether BeeGFS's servers are sound, from what its command-line tool says of them (module beegfs_check)."""

from __future__ import annotations

import typing as t

from ansible_collections.mlops.hpc_validation.plugins.module_utils import _numbers
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._share_judge import (
    Item,
    Judge,
    are_rows,
    at,
    flat,
    rows,
    text,
)

Json = dict[str, t.Any]
KINDS = ("meta", "storage")
GIB = 1 << 30
PARTS = ("targets", "nodes", "mirrors", "quota", "problems", "quota_problems")
POOLS = {"normal": 0, "low": 1, "emergency": 2}
CHECKS = (
    "share.servers",
    "share.nodes_reachable",
    "share.target_count",
    "share.targets_reachable",
    "share.targets_consistent",
    "share.capacity_pool",
    "share.target_free_space",
    "share.target_free_inodes",
    "share.mirrors",
    "share.quota",
)


def findings(judge: Judge, servers: t.Any, access: str, client: t.Any) -> list[Json]:
    """Judge the `servers` of beegfs_check's facts; `access` is the inventory's way to ask.

    `client` is the kernel client's own view, where there is one: what it knows must be listed.
    """
    if judge.share_type == "other":
        return judge.beegfs_only(CHECKS, "beegfs")
    if access == "none":
        reason = "hpc_validation_beegfs_access is none"
        return [judge.leave_out(identity, reason, "beegfs") for identity in CHECKS]
    tool = text(at(servers, "tool")) or "beegfs"
    problems = [f"{row.get('source')}: {row.get('problem')}" for row in flat(at(servers, "problems"))]
    problems += [f"{part} of no known form" for part in PARTS if not are_rows(at(servers, part) or [])]
    targets = flat(at(servers, "targets"))
    known = are_rows(at(servers, "problems")) and bool(targets)
    answered = judge.check(
        "share.servers",
        "eq",
        0,
        # What is told beside an error may be all that there is, or not.
        0 if known and not problems else None,
        source=tool,
        unit="problems",
        missing="; ".join(problems[:5])
        or ("no target is listed" if at(servers, "targets") == [] else "nothing was told of them"),
    )
    if not targets:
        return [answered]
    return [
        answered,
        *_nodes(judge, servers, tool),
        *_targets(judge, targets, [*_unlisted(servers, targets), *_unknown(client, targets)], tool),
        *_space(judge, targets, tool),
        *_mirrors(judge, servers, targets, tool),
        *_quota(judge, servers, tool),
    ]


def _name(target: Json) -> str:
    named = f"{target.get('type')} target {target.get('id')}"
    return f"{named} on {target['node']}" if target.get("node") else named  # an offline row may end before its node


def _nodes(judge: Judge, servers: Json, tool: str) -> list[Json]:
    """A server answers if it does so by one of its network cards; those by which it does not are told."""
    items = []
    for node in flat(at(servers, "nodes")):
        name, silent = f"{node.get('type')} server {node.get('name')}", text(node.get("unreachable_by"))
        items.append(Item(name, "eq", True, node.get("reachable")))
        if silent and node.get("reachable") is True:
            items.append(Item(name, "eq", True, False, detail=f"not by {silent}", record=True))
    return judge.each("share.nodes_reachable", items, source=tool, what="servers")


def _unlisted(servers: Json, targets: list[Json]) -> list[Item]:
    """Servers of which no target is listed: the list was cut short, or they have lost theirs."""
    found = []
    for kind in KINDS:
        owners = {target.get("node") for target in targets if target.get("type") == kind}
        names = [node.get("name") for node in flat(at(servers, "nodes")) if node.get("type") == kind]
        # An offline target's row does not name its server, and 8.x may name servers otherwise.
        if None not in owners and owners & set(names):
            found += [
                Item(f"any target of {kind} server {name}", "eq", "online", None, "none is listed")
                for name in names
                if name not in owners
            ]
    return found


def _unknown(client: t.Any, targets: list[Json]) -> list[Item]:
    """Targets that the client knows and the tool does not list."""
    listed = {(target.get("type"), target.get("id")) for target in targets}
    return [
        Item(f"{kind} target {target.get('target')}", "eq", "online", None, "the client knows it and it is not listed")
        for kind in KINDS
        for target in flat(at(client, "targets", kind))
        if (kind, target.get("target")) not in listed
    ]


def _targets(judge: Judge, targets: list[Json], absent: list[Item], tool: str) -> list[Json]:
    found = []
    for kind, wanted in (judge.expect.get("targets") or {}).items():
        listed = sum(target.get("type") == kind for target in targets)
        found.append(judge.check("share.target_count", "eq", wanted, listed, source=tool, unit=f"{kind} targets"))
    reach = [Item(_name(target), "eq", "online", text(target.get("reachability"))) for target in targets]
    missing = [kind for kind in KINDS if kind not in {target.get("type") for target in targets}]
    reach += [Item(f"any {kind} target", "eq", "online", None, f"no {kind} target is listed") for kind in missing]
    reach += absent
    state = [
        Item(
            _name(target),
            "eq",
            "good",
            text(target.get("consistency")),
            detail=f"resync: {target['sync_state']}" if target.get("sync_state") not in (None, "healthy") else None,
        )
        for target in targets
    ]
    found += judge.each("share.targets_reachable", reach, source=tool, what="targets")
    found += judge.each("share.targets_consistent", state, source=tool, what="targets")
    return found


def _space(judge: Judge, targets: list[Json], tool: str) -> list[Json]:
    # A target that is not online is reported as that; how full it is cannot be told.
    told = [target for target in targets if target.get("reachability") == "online"]
    # Servers put a target into pool low by bounds of their own, above what a full disk is: low is reported.
    strict = judge.expect.get("capacity_pool") == "normal"
    pools, space, inodes = [], [], []
    for target in told:
        name, pool = _name(target), text(target.get("pool"))
        free: t.Any = target.get("free")
        pools.append(
            Item(
                name,
                "eq",
                "normal",
                pool if pool in POOLS else None,
                f"it is {pool}",
                None,
                pool == "low" and not strict,
            )
        )
        gib = round(free / GIB, 2) if _numbers.is_number(free) else None
        space.append(Item(name, "ge", judge.expect["target_free_gib"], gib))
        total = target.get("inodes")
        if not (_numbers.is_number(total) and total == 0):  # some file systems have no fixed number of them
            inodes.append(Item(name, "ge", judge.expect["target_free_inodes"], target.get("inodes_free")))
    found = judge.each("share.capacity_pool", pools, source=tool, what="targets")
    found += judge.each("share.target_free_space", space, source=tool, unit="GiB", what="targets")
    if inodes or not told:
        found += judge.each("share.target_free_inodes", inodes, source=tool, unit="inodes", what="targets")
    return found


def _mirrors(judge: Judge, servers: Json, targets: list[Json], tool: str) -> list[Json]:
    told = at(servers, "mirrors")
    if isinstance(told, list) and not told:
        return [
            judge.check(
                "share.mirrors", "eq", 0, 0, source=tool, unit="mirror groups", detail="none is defined", record=True
            )
        ]
    states = {
        (target.get("type"), target.get("id")): f"{target.get('reachability')}, {target.get('consistency')}"
        for target in targets
    }
    items = [
        Item(
            f"{group.get('type')} mirror group {group.get('group')}, {member} target {group.get(member)}",
            "eq",
            "online, good",
            states.get((group.get("type"), group.get(member))) if _numbers.is_number(group.get(member)) else None,
            "the target is not listed",
        )
        for group in flat(told)
        for member in ("primary", "secondary")
    ]
    return judge.each("share.mirrors", items, source=tool, what="members")


def _quota(judge: Judge, servers: Json, tool: str) -> list[Json]:
    doubts = "; ".join(str(row.get("problem")) for row in flat(at(servers, "quota_problems"))[:3])
    record = judge.expect.get("quota") is False
    items = []
    for row in rows(at(servers, "quota")):
        for key, unit in (("size", "bytes"), ("files", "files")):
            used, limit = row.get(key), row.get(f"{key}_limit", "not told")
            name = f"storage pool {row.get('pool')}, {unit}"
            if limit is None and _numbers.is_number(used):
                items.append(Item(name, "ge", 0, used, detail="no limit", record=record))
            else:
                known = _numbers.is_number(limit) and _numbers.is_number(used)
                bound = limit if _numbers.is_number(limit) else 0
                items.append(Item(name, "lt", bound, used if known else None, record=record))
    if doubts or not items:
        missing = doubts or "no quota was told"
        return [judge.check("share.quota", "lt", 0, None, source=tool, missing=missing, record=record)]
    return judge.each("share.quota", items, source=tool, what="quotas")
