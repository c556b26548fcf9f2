# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The share, judged: facts of a node, of BeeGFS's servers, of two nodes at once and of all of them, as findings.

Whatever the facts hold, a finding comes out; what is missing or malformed is undetermined.
"""

from __future__ import annotations

import json
import typing as t
from collections import Counter

from ansible_collections.mlops.hpc_validation.plugins.module_utils import _numbers
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils import (
    _beegfs_findings,
    _share_mount_findings,
    _share_use_findings,
)
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._share_judge import TITLES, Judge, at, judge, text

Json = dict[str, t.Any]
SECTIONS = ("mount", "use", "speed")
# What files/kit/share/mounts.py says by its exit code alone: the check, and its outcome where it is an answer.
GUARD: dict[int, tuple[str, bool | None, str]] = {
    80: ("share.mounted", False, "it is not mounted, is of another type, or is not there"),
    81: (
        "share.connections",
        False,
        "the mount has no connection to its servers, or they are offline; it was not touched",
    ),
    82: ("share.same_files", False, "the token that the login node wrote is not there: another file system, or stale"),
    83: ("share.writable", False, "the write test was refused"),
    84: ("share.answers", None, "it did not answer in time and was left alone"),
    85: ("share.guard", None, "what the kernel says of it could not be read"),
}
STEPS = {
    "create": "share.coherence",
    "overwrite": "share.coherence_overwrite",
    "rename": "share.coherence_rename",
    "unlink": "share.coherence_unlink",
}
# Options of a mount that differ between nodes that mount alike: addresses and ports of the client, and those of the
# server that it chose; sizes that both agreed on; logs; what the client's kernel adds. cfgFile is compared by itself.
OWN_OPTIONS = (
    "clientaddr",
    "addr",
    "mountaddr",
    "mountport",
    "port",
    "rsize",
    "wsize",
    "seclabel",
    "logLevel",
    "logErrFile",
    "logStdFile",
    "logType",
    "connInterfacesFile",
    "connClientPort",
    "connClientPortUDP",
    "cfgFile",
)
# What makes two mounts alike. Paths and intervals of the client's own do not.
CONFIG = (
    "sysMgmtdHost",
    "connMgmtdPort",
    "connUseRDMA",
    "tuneFileCacheType",
    "tuneUseGlobalFileLocks",
    "tuneUseGlobalAppendLocks",
    "tuneRemoteFSync",
    "sysXAttrsEnabled",
    "sysACLsEnabled",
    "quotaEnabled",
)


def findings(
    facts: t.Any,
    expect: t.Any,
    *,
    node: str,
    share_type: str,
    checks: t.Collection[str] = SECTIONS,
    part: str = "node",
    gate_speed: bool = True,
) -> list[Json]:
    """Judge share facts (share.json). `part` is node or host, as `node` is named in where. Raise ExpectError.

    Without `gate_speed` rates are recorded: of nodes that are measured at once each gets but a part of the share.
    """
    judging = judge(expect, share_type, {part: node})
    if at(facts, "schema") != 1 or at(facts, "type") != share_type:
        known = "they are no share facts" if not isinstance(facts, dict) else "they are of another kind of share"
        missing = text(at(facts, "error")) or ("nothing was told of it" if facts is None else known)
        return [judging.check("share.mounted", "eq", True, None, source="python -m kit share", missing=missing)]
    use, speed = at(facts, "use"), at(facts, "speed")
    used = "use" in checks and at(use, "error") is None and bool(at(use, "checks"))
    found = _share_mount_findings.findings(judging, at(facts, "mount"), used=used)
    if found[0]["verdict"] not in ("pass", "not_applicable"):
        return found
    if "use" in checks:
        found += _share_use_findings.use_findings(judging, use)
    if "use" in checks or at(facts, "striping"):
        found += _share_use_findings.striping_findings(judging, at(facts, "striping"))
    if "speed" in checks:
        found += _share_use_findings.speed_findings(judging, speed, gate=gate_speed)
    return found


def servers_findings(
    servers: t.Any,
    expect: t.Any,
    *,
    host: str,
    share_type: str,
    access: str = "user",
    client: t.Any = None,
    missing: str | None = None,
) -> list[Json]:
    """Judge what BeeGFS's tool said on `host`; `client` is its mount's client, if it has one. Raise ExpectError.

    `missing` says why there is nothing to judge, where that is known.
    """
    return _beegfs_findings.findings(judge(expect, share_type, {"host": host}), servers, access, client, missing)


def guard_finding(code: t.Any, messages: str, where: Json) -> Json:
    """Return the finding for the guard's exit code, all that comes from a node whose share cannot be used."""
    known = GUARD.get(code) if isinstance(code, int) and not isinstance(code, bool) else None
    identity, value, meaning = known or ("share.guard", None, f"the guard ended with {code}")
    why = "; ".join(part for part in (meaning, messages.strip()[-500:]) if part)
    return Judge({"not_applicable": {}}, "beegfs", where).check(
        identity, "eq", True, value, source="guard", missing=why, detail=why if value is False else None
    )


def coherence_findings(document: t.Any, expect: t.Any, *, nodes: list[str], share_type: str = "beegfs") -> list[Json]:
    """Judge what two nodes saw of each other's files; `nodes` are the two that were asked. Raise ExpectError."""
    judging = judge(expect, share_type, {})
    told = at(document, "nodes")
    directions = at(document, "directions")
    problem = text(at(document, "error"))
    if not problem and (not isinstance(told, list) or sorted(map(str, told)) != sorted(nodes) or len(set(nodes)) != 2):
        problem = f"it was to run on {' and '.join(nodes)}, and ran on {told}"
    if problem:  # nothing was compared, which one finding says
        source = "python -m kit coherence"
        return [judging.check("share.coherence", "eq", True, None, source=source, missing=problem)]
    found = []
    for writer, reader in (nodes[:2], nodes[1::-1]):
        told_of = next(
            (
                entry
                for entry in (directions if isinstance(directions, list) else [])
                if at(entry, "writer") == writer and at(entry, "reader") == reader
            ),
            None,
        )
        found += _direction(judging, told_of, (writer, reader), at(document, "wait"))
    return found


def _direction(judging: Judge, told: t.Any, nodes: tuple[str, str], wait: t.Any) -> list[Json]:
    """Judge what was written on the first node and looked for on the second, for `wait` seconds."""
    writer, reader = nodes
    missing = "it was not told"
    found = []
    bound = judging.expect["coherence_seconds"]
    gave_up_early = _numbers.is_number(wait) and wait < bound
    test: str
    limit: t.Any
    value: t.Any
    unit: str | None
    for step, identity in STEPS.items():
        seen, seconds = at(told, "steps", step, "seen"), at(told, "steps", step, "seconds")
        if seen is False and gave_up_early:
            test, limit, value, unit = "le", bound, None, "s"
        elif seen is False:  # it was looked for until the reader gave up
            test, limit, value, unit = "eq", f"seen within {bound} s", "not seen", None
        else:
            test, limit, value, unit = "le", bound, seconds if seen is True else None, "s"
        found.append(
            judging.check(
                identity,
                test,
                limit,
                value,
                source="python -m kit coherence",
                unit=unit,
                missing=f"it was looked for {wait} s only" if seen is False else missing,
                detail=f"written on {writer}, looked for on {reader}",
                node=reader,
            )
        )
    for kind in ("flock", "fcntl"):
        held, again = (text(at(told, "locks", kind, key)) for key in ("while_held", "after_release"))
        found.append(
            judging.check(
                "share.locks_across_nodes",
                "eq",
                "refused while held, granted after",
                f"{held} while held, {again} after" if held and again else None,
                source=f"python -m kit coherence: {kind}",
                missing=missing,
                detail=f"held on {writer}, tried on {reader}",
                record=judging.expect["global_locks"] is False,
                node=reader,
            )
        )
    return found


def same_everywhere(
    facts_by_node: t.Mapping[str, t.Any], expect: t.Any = None, *, share_type: str = "beegfs"
) -> list[Json]:
    """Compare the mounts of all nodes that told of theirs; one that differs from most is named. Raise ExpectError."""
    likenesses = [(node, _likeness(at(facts, "mount"))) for node, facts in facts_by_node.items()]
    told = {node: likeness for node, likeness in likenesses if likeness}
    judging = judge(expect, share_type, {})
    identity, source = "share.same_on_every_node", "/proc/mounts, /proc/fs, statfs"
    if len(told) < 2:
        missing = f"{len(told)} of {len(facts_by_node)} nodes told of their mount"
        return [judging.check(identity, "eq", len(facts_by_node), None, source=source, missing=missing)]
    found = []
    for facet in sorted({facet for likeness in told.values() for facet in likeness}):
        values = {node: likeness.get(facet, "nothing") for node, likeness in told.items()}
        most = Counter(values.values()).most_common(1)[0][0]
        found += [
            judging.check(
                identity,
                "eq",
                most,
                value,
                source=source,
                detail=f"{facet}; {', '.join(other for other in values if values[other] == most)[:200]} have {most}",
                node=node,
            )
            for node, value in values.items()
            if value != most
        ]
    alike = len(told)
    return found or [judging.check(identity, "eq", alike, alike, source=source, unit="nodes alike")]


def _likeness(mount: t.Any) -> dict[str, str] | None:
    """What has to be the same everywhere, as text by its name; None where nothing is mounted or told."""
    if at(mount, "mounted") is not True:
        return None
    options = at(mount, "options")
    config = at(mount, "client", "config")
    managers = at(mount, "client", "nodes", "management")
    facets = {
        "mount point": at(mount, "mount_point"),
        "file system type": at(mount, "fstype"),
        "mount options": sorted(name for name in map(str, options) if name.partition("=")[0] not in OWN_OPTIONS)
        if isinstance(options, list)
        else None,
        "client configuration": at(mount, "config_file"),
        "file system UUID": at(mount, "client", "fs_uuid"),
        "file system id": at(mount, "statfs", "id"),
        "management servers": sorted(str(at(node, "name")) for node in managers)
        if isinstance(managers, list)
        else None,
    }
    if isinstance(config, dict):
        facets.update({f"client setting {key}": config.get(key) for key in CONFIG if key in config})
    return {name: value if isinstance(value, str) else json.dumps(value, default=str) for name, value in facets.items()}


__all__ = [
    "GUARD",
    "TITLES",
    "coherence_findings",
    "findings",
    "guard_finding",
    "same_everywhere",
    "servers_findings",
]
