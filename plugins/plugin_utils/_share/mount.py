# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Judge whether a mount of the share is sound, from what the kernel reports about it."""

from __future__ import annotations

import re
import typing as t

from ansible_collections.mlops.hpc_validation.plugins.module_utils._common import scalars
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._judge.checker import Item, Judge
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._share.facts import are_rows, at, rows, text
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._share.judging import beegfs_only

Json = dict[str, t.Any]
MAGIC = "0x19830326"  # BeeGFS's f_type of statfs(2)
GIB = 1 << 30
KINDS = {"management": "management server", "meta": "metadata server", "storage": "storage server"}
MOUNT_CHECKS = ("share.type", "share.magic", "share.config")
CLIENT_CHECKS = (
    "share.type",
    "share.magic",
    "share.client",
    "share.config",
    "share.connections",
    "share.rdma",
    "share.fallback_route",
    "share.global_locks_set",
)


def findings(judge: Judge, mount: t.Any, *, used: bool) -> list[Json]:
    """Judge the `mount` of share facts; `used` means that files were written, over connections to some servers."""
    problem = text(at(mount, "problem"))
    mounted = at(mount, "mounted")
    found = [
        judge.check(
            "share.mounted",
            "eq",
            True,
            mounted if isinstance(mounted, bool) else None,
            source="/proc/mounts",
            missing=problem,
            detail=problem if mounted is False else None,
            path=at(mount, "path"),
        )
    ]
    if found[0]["verdict"] not in ("pass", "not_applicable"):
        return found
    if judge.expect["share_type"] == "beegfs":
        mounted_right = _mounted_right(judge, mount)
        found += mounted_right if mounted_right[0]["verdict"] == "fail" else mounted_right + _client(judge, mount, used)
    elif judge.expect["share_type"] == "simulated":
        found += [*beegfs_only(judge, MOUNT_CHECKS, "/proc/mounts"), *_client(judge, mount, used)]
    else:
        found += [*_type(judge, mount), *beegfs_only(judge, _absent(judge), "/proc/fs")]
    return found + _space(judge, mount)


def _absent(judge: Judge) -> list[str]:
    told = {"share.type"} if judge.expect.get("fstype") else set()
    return [identity for identity in CLIENT_CHECKS if identity not in told]


def _type(judge: Judge, mount: Json) -> list[Json]:
    fstype, names = text(at(mount, "fstype")), judge.expect.get("fstype")
    if not names and judge.expect["share_type"] != "beegfs":
        return []
    if names:
        bound = fstype if fstype in names else names[0]
    else:  # the type is the module's name, which differs where several clients are installed
        bound = fstype if fstype and fstype.startswith("beegfs") else "beegfs"
    return [judge.check("share.type", "eq", bound, fstype, source="/proc/mounts", path=at(mount, "mount_point"))]


def _mounted_right(judge: Judge, mount: Json) -> list[Json]:
    """Judge what only a real client's mount has: the type and magic of BeeGFS, and its configuration."""
    magic = at(mount, "statfs", "magic")
    return [
        *_type(judge, mount),
        judge.check(
            "share.magic",
            "eq",
            MAGIC,
            f"{magic:#x}" if scalars.is_number(magic) and isinstance(magic, int) else None,
            source="statfs",
            missing=text(at(mount, "problem")),
        ),
        _config(judge, mount),
    ]


def _client(judge: Judge, mount: Json, used: bool) -> list[Json]:
    client = at(mount, "client")
    found = [
        judge.check(
            "share.client",
            "eq",
            1,
            1 if isinstance(client, dict) else None,
            source=f"/proc/fs/{'beegfs' if judge.expect['share_type'] == 'simulated' else at(mount, 'fstype')}",
            unit="clients",
            missing=text(at(mount, "problem")),
        )
    ]
    if not isinstance(client, dict):
        return found
    return [
        *found,
        *_connections(judge, client, used),
        *_targets(judge, client),
        *_global_locks(judge, client),
    ]


def _config(judge: Judge, mount: Json) -> Json:
    wanted, value = judge.expect.get("config_file"), text(at(mount, "config_file"))
    return judge.check(
        "share.config",
        "eq",
        wanted or "",
        value,
        source="/proc/mounts",
        missing="the mount names no cfgFile",
        record=wanted is None,
        path=value or "",
    )


def _links(server: Json) -> tuple[list[Json], int | None]:
    """Return a server's connections by protocol, and their number, or None if it was not reported."""
    links = server.get("connections")
    counts: list[t.Any] = [link.get("count") for link in rows(links)]
    known = are_rows(links) and all(map(scalars.is_number, counts))
    return (rows(links), sum(counts)) if known else ([], None)


def _said_online(client: Json, kind: str, server: Json) -> bool:
    """Return whether the client reports all targets of a server as online; False for a server without targets."""
    name, number = server.get("name"), server.get("id")
    states = [
        target.get("reachability")
        for target in rows(at(client, "targets", kind))
        if (kind == "meta" and str(target.get("target")) == number)
        or (isinstance(name, str) and re.fullmatch(rf"(\S+ )?{re.escape(name)}( \[ID: .*\])?", str(target.get("node"))))
    ]
    return set(map(str, states)) == {"online"}


def _connections(judge: Judge, client: Json, used: bool) -> list[Json]:
    """Judge the connections. A client drops idle connections and need not use every server.

    So a server without a connection fails unless a connected management server reports its targets as online.
    After use, at least one server of its kind must be connected, since the files were written through it.
    """
    source = "/proc/fs/beegfs"
    connected, routes, protocols = [], [], []
    totals = {kind: [_links(server)[1] for server in rows(at(client, "nodes", kind))] for kind in KINDS}
    for kind, name in KINDS.items():
        servers = rows(at(client, "nodes", kind))
        if not servers:
            connected.append(Item(f"any {name}", "gt", 0, None, f"no {name} is listed"))
        may_be_idle = kind != "management" and any(totals["management"]) and (not used or any(totals[kind]))
        for server in servers:
            named = f"{name} {server.get('name')}"
            known, total = _links(server)
            idle = total == 0 and may_be_idle and _said_online(client, kind, server)
            why = "idle, and reported online" if idle else None
            connected.append(Item(named, "gt", 0, total, "its connections were not reported", why, record=idle))
            if not total:
                continue
            fallback = [link for link in known if link.get("fallback") is not False]
            peers = ", ".join(str(link.get("peer")) for link in fallback)
            routes.append(Item(named, "eq", 0, len(fallback), detail=f"by {peers}"))
            if kind != "management":  # the management server speaks TCP only
                used_ones = "+".join(sorted({str(link.get("protocol")) for link in known}))
                protocols.append(Item(named, "eq", "RDMA", used_ones, record=judge.expect.get("rdma") is not True))
    return [
        *judge.each("share.connections", connected, source=source, unit="connections", what="servers"),
        *judge.each("share.fallback_route", routes, source=source, unit="fallback routes", what="connected servers"),
        *(
            judge.each("share.rdma", protocols, source=source, what="connected servers")
            if protocols
            else [_no_link(judge)]
        ),
    ]


def _no_link(judge: Judge) -> Json:
    """Return the finding on the protocol where no server is connected."""
    return judge.check(
        "share.rdma",
        "eq",
        "RDMA",
        None,
        source="/proc/fs/beegfs",
        missing="no metadata or storage server is connected",
        record=judge.expect.get("rdma") is not True,
    )


def _targets(judge: Judge, client: Json) -> list[Json]:
    """Judge the targets as this client sees them."""
    reach, state = [], []
    for kind in ("meta", "storage"):
        known = rows(at(client, "targets", kind))
        if not known:
            reach.append(Item(f"any {kind} target", "eq", "online", None, f"no {kind} target is listed"))
        for target in known:
            name = f"{kind} target {target.get('target')} on {target.get('node')}"
            reach.append(Item(name, "eq", "online", text(target.get("reachability"))))
            state.append(Item(name, "eq", "good", text(target.get("consistency"))))
    return [
        *judge.each("share.targets_reachable", reach, source="/proc/fs/beegfs", what="targets"),
        *judge.each("share.targets_consistent", state, source="/proc/fs/beegfs", what="targets"),
    ]


def _global_locks(judge: Judge, client: Json) -> list[Json]:
    value = text(at(client, "config", "tuneUseGlobalFileLocks"))
    on = None if value is None else value.lower() in ("1", "true")
    return [judge.check("share.global_locks_set", "eq", True, on, source="/proc/fs/beegfs", record=True)]


def _space(judge: Judge, mount: Json) -> list[Json]:
    said = at(mount, "statfs")
    path = at(mount, "path")
    problem = text(at(mount, "problem"))

    def number(key: str, scale: int = 1) -> float | None:
        value = at(said, key)
        return value / scale if scalars.is_number(value) else None

    def flag(key: str) -> bool | None:
        value = at(said, key)
        return value if isinstance(value, bool) else None

    check = judge.check
    answered = True if isinstance(said, dict) else None
    found = [check("share.answers", "eq", True, answered, source="statfs", missing=problem, path=path)]
    if not answered:
        return found
    found.append(check("share.directory", "eq", True, flag("directory"), source="stat", path=path))
    if judge.expect.get("read_only") is not True:
        found.append(check("share.read_only", "eq", False, flag("read_only"), source="statfs", path=path))
    free = number("free", GIB)
    found.append(
        check(
            "share.free_space",
            "ge",
            judge.expect["free_gib"],
            None if free is None else round(free, 2),
            source="statfs",
            unit="GiB",
            path=path,
        )
    )
    # A file system without a fixed number of inodes reports 0.
    unlimited = number("inodes") == 0
    found.append(
        check(
            "share.free_inodes",
            "ge",
            judge.expect["free_inodes"],
            number("inodes_free"),
            source="statfs",
            unit="inodes",
            path=path,
            record=unlimited,
            detail="the file system has no fixed number of inodes" if unlimited else None,
        )
    )
    return found
