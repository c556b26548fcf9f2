# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Judge whether BeeGFS's servers are sound, from what its command-line tool reports (module beegfs_check)."""

from __future__ import annotations

import typing as t

from ansible_collections.mlops.hpc_validation.plugins.module_utils._common import scalars
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._judge.checker import Item, Judge
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._share import space
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._share.facts import at, flat, rows, text
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._share.judging import beegfs_only
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._share.told import KINDS, Told

Json = dict[str, t.Any]
CHECKS = (
    "share.servers",
    "share.node_count",
    "share.nodes_reachable",
    "share.target_count",
    "share.targets_reachable",
    "share.targets_consistent",
    "share.capacity_pool",
    "share.target_free_space",
    "share.target_free_inodes",
    "share.mirror_count",
    "share.mirrors",
    "share.quota",
)
# The causes that have a remedy of their own: share.servers.CAUSE.
CAUSES = (
    "tool",
    "secret",
    "permission",
    "configuration",
    "name",
    "network",
    "management",
    "silent",
    "foreign",
    "forgot",
)
STARTED = "share.targets_reachable.started"
UNMET = "parsed by its published source, never met"


def findings(judge: Judge, servers: t.Any, access: str, client: t.Any, missing: str | None = None) -> list[Json]:
    """Judge the `servers` of beegfs_check's facts; `access` is how the inventory says to ask them.

    `client` is the kernel client's own view, if any: what it knows must be listed. `missing` says why nothing was
    reported, if known.
    """
    if judge.expect["share_type"] == "other":
        return beegfs_only(judge, CHECKS, "beegfs")
    if access == "none":
        reason = "hpc_validation_beegfs_access is none"
        return [judge.not_applicable(identity, reason, "beegfs") for identity in CHECKS]
    told = Told(servers)
    found = [_asked(judge, told, missing), *_tool(judge, told)]
    if not told.targets:
        return found + (_counts(judge, told) if told.knows_nothing else [])
    return [
        *found,
        *_counts(judge, told),
        *_nodes(judge, told),
        *_targets(judge, told, client),
        *space.findings(judge, told),
        *_mirrors(judge, told),
        *_quota(judge, told, client),
    ]


def _asked(judge: Judge, told: Told, missing: str | None) -> Json:
    """Judge whether the servers could be asked, from the management daemon's own answers."""
    # Without any facts about the servers, only the reason can be reported.
    problems = [(problem, _symptom(cause)) for problem, cause in told.basic_problems()] if told.servers else []
    if told.knows_nothing and not problems:
        problems = [(told.unknown_to_management("storage target"), _symptom("forgot"))]
    reasons = list(dict.fromkeys(problem for problem, _symptom in problems))
    more = f" (and {len(reasons) - 1} more)" if len(reasons) > 1 else ""
    return judge.check(
        "share.servers",
        "eq",
        0,
        # What is reported next to an error may be incomplete.
        0 if told.targets and not problems else None,
        source=told.tool,
        unit="problems",
        missing=reasons[0] + more if reasons else missing or "nothing about them was reported",
        symptom=problems[0][1] if problems else None,
    )


def _symptom(cause: str | None) -> str | None:
    return f"share.servers.{cause}" if cause in CAUSES else None


def _tool(judge: Judge, told: Told) -> list[Json]:
    if at(told.servers, "tool") != "beegfs":
        return []
    value = f"BeeGFS 8: {UNMET}"
    return [judge.check("share.servers_tool", "eq", "beegfs-ctl", value, source=told.tool, record=True)]


def _counts(judge: Judge, told: Told) -> list[Json]:
    """Compare the numbers of servers, targets and mirror groups with what the inventory expects."""
    parts = (
        ("share.node_count", "nodes", "servers"),
        ("share.target_count", "targets", "targets"),
        ("share.mirror_count", "mirrors", "mirror groups"),
    )
    found = []
    for identity, part, what in parts:
        for kind, wanted in (judge.expect.get(part) or {}).items():
            problem = told.problem(part, kind)
            listed = sum(row.get("type") == kind for row in told.rows(part))
            value = None if problem or not told.has(part) else listed
            missing = problem or f"{kind} {what} were not reported"
            unit = f"{kind} {what}"
            found.append(judge.check(identity, "eq", wanted, value, source=told.tool, unit=unit, missing=missing))
    if judge.expect.get("quota") is True and told.knows_nothing:
        said = "the management daemon knows no limit and no target"
        found.append(
            judge.check("share.quota", "eq", "enforced", said, source=told.tool, symptom="share.servers.forgot")
        )
    return found


def _nodes(judge: Judge, told: Told) -> list[Json]:
    """Judge the servers: one that answers on any of its network cards passes; the silent cards are recorded."""
    items = []
    for node in told.rows("nodes"):
        name, silent = f"{node.get('type')} server {node.get('name')}", text(node.get("unreachable_by"))
        items.append(Item(name, "eq", True, node.get("reachable")))
        if silent and node.get("reachable") is True:
            items.append(Item(name, "eq", True, False, detail=f"not on {silent}", record=True))
    for kind in KINDS:
        if not any(node.get("type") == kind for node in told.rows("nodes")):
            missing, symptom = told.problem("nodes", kind), None
            if missing is None:
                missing, symptom = told.unknown_to_management(f"{kind} server"), _symptom("forgot")
            items.append(Item(f"any {kind} server", "eq", True, None, missing, symptom=symptom))
    return judge.each("share.nodes_reachable", items, source=told.tool, what="servers")


def _unlisted(told: Told) -> list[Item]:
    """Return the servers without a listed target: the list was cut short, or they lost their targets."""
    found = []
    for kind in KINDS:
        owners = {target.get("node") for target in told.targets if target.get("type") == kind}
        names = [node.get("name") for node in told.rows("nodes") if node.get("type") == kind]
        # 8.x may name servers differently than their targets' rows do.
        if None not in owners and owners & set(names):
            found += [
                Item(f"any target of {kind} server {name}", "eq", "online", None, "none is listed")
                for name in names
                if name not in owners
            ]
    return found


def _unknown(told: Told, client: t.Any) -> list[Item]:
    """Return the targets that the client knows but the tool does not list."""
    listed = {(target.get("type"), target.get("id")) for target in told.targets}
    return [
        Item(f"{kind} target {target.get('target')}", "eq", "online", None, "the client knows it, but it is not listed")
        for kind in KINDS
        for target in flat(at(client, "targets", kind))
        if (kind, target.get("target")) not in listed
    ]


def _targets(judge: Judge, told: Told, client: t.Any) -> list[Json]:
    reach: list[Item] = []
    state: list[Item] = []
    for kind in KINDS:
        mine = [target for target in told.targets if target.get("type") == kind]
        if not mine:
            missing, symptom = told.problem("targets", kind), None
            if missing is None:
                missing, symptom = told.unknown_to_management(f"{kind} target"), _symptom("forgot")
            reach.append(Item(f"any {kind} target", "eq", "online", None, missing, symptom=symptom))
        elif told.was_just_started(kind):
            missing = f"all {len(mine)} are reported probably-offline, though every server answers"
            reach.append(Item(f"every {kind} target", "eq", "online", None, missing, symptom=STARTED))
        else:
            reach += [_reached(told, target) for target in mine]
        state += [_consistent(told, target) for target in mine]
    reach += [*_unlisted(told), *_unknown(told, client)]
    return [
        *judge.each("share.targets_reachable", reach, source=told.tool, what="targets"),
        *judge.each("share.targets_consistent", state, source=told.tool, what="targets"),
    ]


def _reached(told: Told, target: Json) -> Item:
    missing = told.problem("states", target.get("type"))
    returned = "share.targets_reachable.returned" if told.answers(target) else None
    return Item(told.name(target), "eq", "online", text(target.get("reachability")), missing, symptom=returned)


def _consistent(told: Told, target: Json) -> Item:
    kind, value, number = target.get("type"), text(target.get("consistency")), target.get("id")
    sync = target.get("sync_state")
    return Item(
        told.name(target),
        "eq",
        "good",
        value,
        told.problem("states", kind),
        detail=f"resync: {sync}" if sync not in (None, "healthy") else None,
        symptom=f"share.targets_consistent.{'bad' if value == 'bad' else 'resync'}.{kind}",
        number=number if isinstance(number, int) else None,
    )


def _mirrors(judge: Judge, told: Told) -> list[Json]:
    states = {
        (target.get("type"), target.get("id")): ", ".join(
            str(target.get(key)) for key in ("reachability", "consistency")
        )
        for target in told.targets
        if target.get("reachability") and target.get("consistency")
        if not (target.get("consistency") == "good" and told.was_just_started(str(target.get("type"))))
    }
    listed = {(target.get("type"), target.get("id")) for target in told.targets}
    items = []
    for kind in KINDS:
        problem = told.problem("mirrors", kind)
        if problem or not told.has("mirrors"):
            missing = problem or "the mirror groups were not reported"
            items.append(Item(f"any {kind} mirror group", "eq", "online, good", None, missing))
    for group in told.rows("mirrors"):
        of_type = group.get("type")
        for member in ("primary", "secondary"):
            number = group.get(member)
            known = scalars.is_number(number) and (of_type, number) in listed
            unread = "the target is not listed"
            if known:
                unread = told.problem("states", of_type) or "its state was not reported"
            items.append(
                Item(
                    f"{of_type} mirror group {group.get('group')}, {member} target {number}",
                    "eq",
                    "online, good",
                    states.get((of_type, number)) if known else None,
                    unread,
                    symptom=_mirror_symptom(told, of_type),
                    number=number if isinstance(number, int) else None,
                )
            )
    if not items:
        said = "none is defined"
        return [
            judge.check("share.mirrors", "eq", 0, 0, source=told.tool, unit="mirror groups", detail=said, record=True)
        ]
    return judge.each("share.mirrors", items, source=told.tool, what="members")


def _mirror_symptom(told: Told, kind: t.Any) -> str | None:
    if kind not in KINDS:
        return None
    return STARTED if told.was_just_started(kind) else f"share.mirrors.{kind}"


def _quota(judge: Judge, told: Told, client: t.Any) -> list[Json]:
    """Judge the quota limits. A missing limit does not show whether quota is enforced."""
    record = judge.expect.get("quota") is False
    doubts = told.problem("quota", None)
    if doubts or not told.rows("quota"):
        missing = doubts or "quota was not reported"
        symptom = "share.quota.unanswered"
        return [
            judge.check("share.quota", "lt", 0, None, source=told.tool, missing=missing, record=record, symptom=symptom)
        ]
    items, limited = [], False
    for row in rows(at(told.servers, "quota")):
        for key, unit in (("size", "bytes"), ("files", "files")):
            used, limit = row.get(key), row.get(f"{key}_limit", "not told")
            name = f"storage pool {row.get('pool')}, {unit}"
            if limit is None:
                shown = used if scalars.is_number(used) else 0
                items.append(Item(name, "ge", 0, shown, detail="no limit is reported", record=True))
                continue
            limited = True
            bound = limit if scalars.is_number(limit) else 0
            least = row.get(f"{key}_at_least")
            if used is None and scalars.is_number(least) and scalars.number(least) >= scalars.number(bound):
                used = least
            known = scalars.is_number(limit) and scalars.is_number(used)
            missing = "it was not reported" if limit == "not told" else "not every disk counts them"
            items.append(Item(name, "lt", bound, used if known else None, missing, record=record))
    found = judge.each("share.quota", items, source=told.tool, what="quotas")
    if judge.expect.get("quota") is True and not limited:
        found.append(_enforced(judge, told, client))
    return found


def _enforced(judge: Judge, told: Told, client: t.Any) -> Json:
    """Judge from the configuration of client and servers whether quota is enforced, if no limit proves it."""
    mounted = text(at(client, "config", "quotaEnabled"))
    tracks = mounted.lower() in ("1", "true") if mounted else at(told.servers, "quota_enforcement", "client")
    manages = at(told.servers, "quota_enforcement", "management")
    missing = "no limit is reported, as when quota is not enabled"
    value = None
    if tracks is False or manages is False:
        value = f"{'quotaEnabled' if tracks is False else 'quotaEnableEnforcement'} is false"
    elif tracks is True and manages is True:
        value = "enforced"
    return judge.check("share.quota", "eq", "enforced", value, source=told.tool, missing=missing)
