# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Compare how the nodes mount the share. PRIVATE to the collection."""

from __future__ import annotations

import json
import typing as t
from collections import Counter

from ansible_collections.mlops.hpc_validation.plugins.module_utils._slurm.hostlist import fold_nodes
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._judge.checker import Judge
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._share.facts import at, text
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._share.judging import judge

Json = dict[str, t.Any]
CHECK, SOURCE = "share.same_on_every_node", "/proc/mounts, /proc/fs, statfs"
# Mount options that may differ between nodes with the same mount: addresses and ports of the client and of the server
# that it chose; negotiated sizes; logs; what the client's kernel adds. cfgFile is compared separately.
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
# The client settings that must be equal. Its own paths and intervals may differ.
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


def same_everywhere(
    likenesses: t.Mapping[str, dict[str, str] | None], expect: t.Any = None, *, share_type: str = "beegfs"
) -> list[Json]:
    """Compare the likeness of each node's mount, and name each node that differs from most. Raise ExpectError."""
    told = {node: alike for node, alike in likenesses.items() if alike}
    judging = judge(expect, share_type, {})
    if len(told) < 2:
        missing = f"{len(told)} of {len(likenesses)} nodes reported their mount"
        return [judging.check(CHECK, "eq", len(likenesses), None, SOURCE, missing=missing)]
    found = []
    for facet in sorted({facet for each in told.values() for facet in each}):
        found += _unlike(judging, facet, {node: each.get(facet, "nothing") for node, each in told.items()})
    return found or [judging.check(CHECK, "eq", len(told), len(told), SOURCE, unit="nodes alike")]


def _unlike(judging: Judge, facet: str, values: dict[str, str]) -> list[Json]:
    """Return a finding for each node whose value differs from that of most nodes."""
    most = Counter(values.values()).most_common()[0][0]
    alike = fold_nodes(node for node, value in values.items() if value == most)[:200]
    return [
        judging.check(CHECK, "eq", most, value, SOURCE, detail=f"{facet}; {alike} have {most}", node=node)
        for node, value in values.items()
        if value != most
    ]


def likeness(facts: t.Any) -> dict[str, str] | None:
    """Return what share facts say that must be the same on all nodes; None if nothing was mounted or reported."""
    mount = at(facts, "mount")
    point, fstype, options = at(mount, "mount_point"), at(mount, "fstype"), at(mount, "options")
    if at(mount, "mounted") is not True or not text(point) or not text(fstype) or not isinstance(options, list):
        return None
    facets = {
        "mount point": point,
        "file system type": fstype,
        "mount options": sorted(name for name in map(str, options) if name.partition("=")[0] not in OWN_OPTIONS),
        "client configuration": at(mount, "config_file"),
        "file system UUID": at(mount, "client", "fs_uuid"),
        "file system id": at(mount, "statfs", "id"),
        "management servers": _names(at(mount, "client", "nodes", "management")),
        **_settings(at(mount, "client", "config")),
    }
    return {name: value if isinstance(value, str) else json.dumps(value, default=str) for name, value in facets.items()}


def _names(servers: t.Any) -> list[str] | None:
    return sorted(str(at(server, "name")) for server in servers) if isinstance(servers, list) else None


def _settings(config: t.Any) -> Json:
    known = CONFIG if isinstance(config, dict) else ()
    return {f"client setting {key}": config[key] for key in known if key in config}
