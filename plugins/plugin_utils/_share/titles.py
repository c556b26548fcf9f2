# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Puts one fact about the share to one test: what the inventory excuses, what only BeeGFS has, and all others."""

from __future__ import annotations

import typing as t
from dataclasses import dataclass, field

from ansible_collections.mlops.hpc_validation.plugins.module_utils import _numbers
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils import _findings
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._share_expect import SHARE

Json = dict[str, t.Any]

TITLES = {
    "share.mounted": "The share is mounted",
    "share.type": "The mount is of the type expected",
    "share.magic": "The kernel says that the file system is BeeGFS",
    "share.client": "One BeeGFS client serves the mount",
    "share.config": "The mount uses the client configuration expected",
    "share.connections": "The client is connected to every server",
    "share.rdma": "Every connection to a server is by RDMA",
    "share.fallback_route": "No connection is by a fallback route",
    "share.answers": "The share answers",
    "share.directory": "The share is a folder",
    "share.read_only": "The share is mounted for writing",
    "share.free_space": "The share has enough free space",
    "share.free_inodes": "The share has enough free inodes",
    "share.global_locks_set": "The client is set to lock across nodes (tuneUseGlobalFileLocks)",
    "share.same_files": "The node sees the same files as the login node",
    "share.writable": "The share can be written to",
    "share.guard": "The share can be used from the node",
    "share.same_on_every_node": "The share is mounted alike on every node",
    "share.servers": "BeeGFS's servers can be asked",
    "share.nodes_reachable": "Every server answers",
    "share.servers_tool": "The tool by which BeeGFS's servers are asked",
    "share.node_count": "Every server is listed",
    "share.target_count": "Every target is listed",
    "share.mirror_count": "Every mirror group is listed",
    "share.targets_reachable": "Every target is online",
    "share.targets_consistent": "Every target is consistent",
    "share.capacity_pool": "Every target is in capacity pool normal",
    "share.target_free_space": "Every target has enough free space",
    "share.target_free_inodes": "Every target has enough free inodes",
    "share.mirrors": "Both members of every mirror group are online and consistent",
    "share.quota": "The user is within the quota",
    "share.striping": "Files are striped as expected",
    "share.use": "The checks by use were carried out",
    "share.private_folder": "The checks' own folder was removed",
    "share.fsync_read_back": "What was written and synced is read back the same",
    "share.rename": "A rename over a file replaces it",
    "share.append": "Appending keeps what was there",
    "share.hard_link": "A file can have two names",
    "share.symbolic_link": "Symbolic links work",
    "share.flock": "A file locked with flock is refused to a second process",
    "share.fcntl_lock": "A file locked with fcntl is refused to a second process",
    "share.permissions": "Permissions are kept",
    "share.sparse": "A hole in a file reads as zeros",
    "share.large_file": "A file can be larger than 4 GiB",
    "share.many_files": "Many small files are made, listed, read and removed",
    "share.unlink_open": "A file that is open outlives its name",
    "share.mmap_read": "A file can be read through a memory map",
    "share.mmap_write": "A file can be written through a memory map",
    "share.directory_fsync": "A folder can be synced",
    "share.utime": "A file's time can be set",
    "share.execute": "Programs on the share can be run",
    "share.speed": "The speed of the share was measured",
    "share.write_throughput": "Buffered writing, synced at the end, is fast enough",
    "share.write_throughput_direct": "Writing past the cache is fast enough",
    "share.read_throughput": "Buffered reading is fast enough",
    "share.read_throughput_direct": "Reading past the cache is fast enough",
    "share.metadata_rate": "Small files are made, looked at and removed fast enough",
    "share.million_files": "A million small files, extrapolated",
    "share.coherence": "A file written on one node is seen whole on another",
    "share.coherence_overwrite": "A file overwritten on one node is not seen stale on another",
    "share.coherence_rename": "A file replaced by a rename on one node is seen on another",
    "share.coherence_unlink": "A file removed on one node is gone on another",
    "share.locks_across_nodes": "A lock held on one node is refused on another",
}


class Item(t.NamedTuple):
    """One of several alike: a server, a target, a mirror group."""

    name: str
    test: str
    bound: t.Any
    value: t.Any
    missing: str = "it was not told"
    detail: str | None = None
    record: bool = False
    symptom: str | None = None  # what to do about it, where that is not what the check's own remedy says
    number: int | None = None  # of the target or server, for the commands of its remedy


@dataclass(frozen=True)
class Judge:
    """Judges facts from one place; `where` names it, `share_type` and `expect` are the inventory's."""

    expect: Json
    share_type: str
    where: Json = field(default_factory=dict)

    def check(
        self,
        identity: str,
        test: str,
        bound: t.Any,
        value: t.Any,
        *,
        source: str,
        unit: str | None = None,
        missing: str | None = None,
        detail: str | None = None,
        record: bool = False,
        symptom: str | None = None,
        number: int | None = None,
        **where: t.Any,
    ) -> Json:
        """Return the finding; `where` adds to the place, such as target or path."""
        place = {**self.where, **{key: _numbers.printable(str(name)) for key, name in where.items()}}
        if identity in self.expect["not_applicable"]:
            reason = f"the inventory says: {self.expect['not_applicable'][identity]}"
            return _findings.not_applicable(
                identity, TITLES[identity], _numbers.printable(reason), source=source, where=place
            )
        details = [detail] if detail else []
        if self.share_type == "simulated":
            details.append("simulated share")
        return _findings.judged(
            identity,
            TITLES[identity],
            test,
            bound,
            value,
            source=source,
            unit=unit,
            where=place,
            missing=missing,
            detail="; ".join(details) or None,
            record=record,
            symptom=symptom,
            fill={} if number is None else {"number": number},
        )

    def each(self, identity: str, items: list[Item], *, source: str, what: str, unit: str | None = None) -> list[Json]:
        """Return one finding if all `items` pass, else one for each that does not, named as target."""
        judged = [
            self.check(
                identity,
                item.test,
                item.bound,
                item.value,
                source=source,
                unit=unit,
                missing=item.missing,
                detail=item.detail,
                record=item.record,
                symptom=item.symptom,
                number=item.number,
                target=item.name,
            )
            for item in items
        ]
        if identity in self.expect["not_applicable"] and judged:
            return [{**judged[0], "where": dict(self.where)}]
        wanting = [finding for finding in judged if finding["verdict"] != "pass"]
        if any(finding["verdict"] != "recorded" for finding in wanting) or (judged and len(wanting) == len(judged)):
            return wanting
        good = len(judged) - len(wanting)
        whole = self.check(
            identity,
            "eq",
            good,
            good or None,
            source=source,
            unit=what,
            missing=f"it was not told which {what} there are",
        )
        return [whole, *wanting]

    def beegfs_only(self, identities: t.Iterable[str], source: str) -> list[Json]:
        """Return that these do not apply, because of the share's type as the inventory states it."""
        reason = f"hpc_validation_share_type is {self.share_type}"
        return [self.leave_out(identity, reason, source) for identity in identities]

    def leave_out(self, identity: str, reason: str, source: str) -> Json:
        """Return the finding for what does not apply."""
        return _findings.not_applicable(identity, TITLES[identity], reason, source=source, where=dict(self.where))


def judge(expect: t.Any, share_type: str, where: Json) -> Judge:
    """Return the judge of one place. Raise ExpectError where the inventory's expectations are malformed."""
    return Judge(SHARE.read(expect, TITLES), share_type, where)


def at(document: t.Any, *keys: str) -> t.Any:
    """Return what lies at `keys`, or None where a key is absent or something on the way is no object."""
    for key in keys:
        document = document.get(key) if isinstance(document, dict) else None
    return document


def rows(value: t.Any) -> list[Json]:
    """Return a list of objects; nothing for anything else, be it one row that is none."""
    return list(value) if are_rows(value) else []


def are_rows(value: t.Any) -> bool:
    """Say whether that is a list of objects and of nothing else."""
    return isinstance(value, list) and all(isinstance(item, dict) for item in value)


def flat(value: t.Any) -> list[Json]:
    """Return the objects of a list without what in them is neither text, number nor boolean."""
    return [
        {key: item if isinstance(item, (str, int, float)) else None for key, item in row.items()} for row in rows(value)
    ]


def text(value: t.Any) -> str | None:
    """Return a text that says something; None for anything else."""
    return value if isinstance(value, str) and value else None


def words(seen: t.Any, keys: t.Iterable[str]) -> str | None:
    """Return chosen values of an object as one line, so that it can be compared and shown; None if one is absent."""
    if not isinstance(seen, dict) or not set(keys) <= set(seen):
        return None
    return ", ".join(f"{key} {_numbers.show(seen[key])}" for key in keys)
