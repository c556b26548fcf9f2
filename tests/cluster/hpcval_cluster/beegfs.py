# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a host's stand-ins for BeeGFS's tools and kernel client answer: recorded and edited outputs, by scenario.

The answers lie in the cluster's folder, which every node sees below /etc/hpcval; nothing in a node is changed.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Optional

from hpcval_cluster.state import Cluster, ClusterError, write_atomically

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures" / "beegfs"
STAND_IN = "/usr/local/lib/beegfs_stand_in.py"
CLIENT = "3F6-6B00FE9C-client"  # the kernel client's id below /proc/fs/beegfs
RECORDED, EDITED, VERSION_8 = "ctl_7.4.7", "ctl_7.4.7_edited", "cli_8_documented"
HANG = "hang"
Answers = dict[str, str]
Files = dict[str, Optional[bytes]]  # below a host's folder; None is a link to the stand-in


@dataclass(frozen=True)
class Scenario:
    """Answers by key (KEY → fixture without .rcN.txt) of the two tools, and a state of the kernel client."""

    ctl: Answers | None = None
    v8: Answers | None = None
    client: str | None = None


def _targets(ctl: str, v8: str | None = None, folder: str = EDITED) -> Scenario:
    return Scenario(
        ctl={"listtargets_storage": f"{folder}/listtargets_storage_{ctl}"},
        v8={"target_list": f"{VERSION_8}/target_list_{v8}"} if v8 else None,
    )


HEALTHY = Scenario(
    ctl={
        "listtargets_storage": f"{EDITED}/listtargets_storage_healthy",
        "listtargets_meta": f"{RECORDED}/listtargets_meta_state_healthy",
        "listtargets_mirrorgroups": f"{RECORDED}/listtargets_mirrorgroups_state_healthy",
        "listmirrorgroups_storage": f"{RECORDED}/listmirrorgroups_storage_none",
        "listmirrorgroups_meta": f"{RECORDED}/listmirrorgroups_storage_none",
        "listnodes_mgmt": f"{RECORDED}/listnodes_mgmt",
        "listnodes_meta": f"{EDITED}/listnodes_meta_reachable",
        "listnodes_storage": f"{RECORDED}/listnodes_storage_reachable",
        "liststoragepools": f"{RECORDED}/liststoragepools",
        "getquota": f"{EDITED}/getquota_csv_admin",
        "getentryinfo": f"{RECORDED}/getentryinfo_root_verbose",
    },
    v8={
        "target_list": f"{VERSION_8}/target_list_healthy",
        "node_list": f"{VERSION_8}/node_list_healthy",
        "mirror_list": f"{VERSION_8}/mirror_list_none",
        "entry_info": f"{VERSION_8}/entry_info_healthy",
        "quota_list-usage": f"{VERSION_8}/quota_list_usage_healthy",
    },
    client="healthy",
)
_MIRRORED = Scenario(
    ctl={"listmirrorgroups_storage": f"{RECORDED}/listmirrorgroups_storage"},
    v8={"mirror_list": f"{VERSION_8}/mirror_list_healthy"},
)
SCENARIOS: dict[str, Scenario] = {
    "offline": _targets("offline", "offline"),
    "probably-offline": _targets("probably_offline", "probably_offline"),
    "needs-resync": _targets("needs_resync", "needs_resync"),
    "resyncing": _targets("resyncing"),
    "bad": _targets("bad", "bad"),
    "low": _targets("low", "low"),
    "emergency": _targets("emergency", "emergency"),
    "few-inodes": _targets("few_inodes", "few_inodes"),
    "reordered": _targets("reordered"),
    "unknown-words": _targets("unknown_words"),
    "space-query-failed": _targets("space_query_failed"),
    "truncated": _targets("truncated", "truncated"),
    "empty": _targets("headings_only", "empty"),
    "meta-offline": Scenario(ctl={"listtargets_meta": f"{EDITED}/listtargets_meta_offline"}),
    "meta-few-inodes": Scenario(ctl={"listtargets_meta": f"{EDITED}/listtargets_meta_few_inodes"}),
    "unreachable": Scenario(
        ctl={"listnodes_storage": f"{EDITED}/listnodes_storage_unreachable"},
        v8={"node_list": f"{VERSION_8}/node_list_unreachable"},
    ),
    "mirrored": _MIRRORED,
    "mirror-needs-resync": Scenario(
        ctl={
            **(_MIRRORED.ctl or {}),
            "listtargets_storage": f"{EDITED}/listtargets_storage_needs_resync",
            "listtargets_mirrorgroups": f"{EDITED}/listtargets_mirrorgroups_needs_resync",
        },
        v8={**(_MIRRORED.v8 or {}), "target_list": f"{VERSION_8}/target_list_needs_resync"},
    ),
    "quota-exceeded": Scenario(
        ctl={"getquota": f"{EDITED}/getquota_csv_exceeded"},
        v8={"quota_list-usage": f"{VERSION_8}/quota_list_usage_exceeded"},
    ),
    "one-target": Scenario(ctl={"getentryinfo": f"{EDITED}/getentryinfo_directory_one_target"}),
    "mgmtd-dead": Scenario(ctl={"any": f"{RECORDED}/error_mgmtd_down"}, v8={"any": f"{VERSION_8}/error_mgmtd_down"}),
    "mgmtd-dead-rc0": Scenario(ctl={"any": f"{RECORDED}/df_mgmtd_down_lies"}),
    "wrong-secret": Scenario(ctl={"any": f"{RECORDED}/error_wrong_secret"}),
    "no-configuration": Scenario(ctl={"any": f"{RECORDED}/error_no_configuration"}),
    "permission": Scenario(
        ctl={"any": f"{RECORDED}/error_auth_file_permission"}, v8={"any": f"{VERSION_8}/error_auth_file_permission"}
    ),
    "garbage": Scenario(ctl={"any": f"{EDITED}/foreign_text"}, v8={"any": f"{EDITED}/foreign_text"}),
    "silent": Scenario(
        ctl={"any": f"{EDITED}/listtargets_storage_no_rows_no_headings"}, v8={"any": f"{VERSION_8}/target_list_empty"}
    ),
    "hang": Scenario(ctl={"any": HANG}, v8={"any": HANG}),
    "partial": Scenario(v8={"target_list": f"{VERSION_8}/target_list_partial"}),
    "unmapped": Scenario(v8={"target_list": f"{VERSION_8}/target_list_unmapped"}),
    "string-enums": Scenario(v8={"target_list": f"{VERSION_8}/target_list_string_enums"}),
    "client-tcp": Scenario(client="tcp"),
    "client-tcp-fallback": Scenario(client="tcp_fallback"),
    "client-no-connections": Scenario(client="no_connections"),
    "client-storage-unconnected": Scenario(client="storage_node_unconnected"),
    "client-target-offline": Scenario(client="target_offline"),
    "client-target-needs-resync": Scenario(client="target_needs_resync"),
    "client-meta-offline": Scenario(client="meta_offline"),
    "client-other-configuration": Scenario(client="other_configuration"),
    "client-local-locks": Scenario(client="local_locks"),
    "client-no-servers": Scenario(client="no_nodes"),
    "client-garbage": Scenario(client="garbage"),
}
# Words that choose what there is, not what it answers.
WORDS = ("healthy", "v8", "not-installed", "client-absent", *SCENARIOS)


def plan(words: list[str]) -> Files:
    """The files that these scenarios make; the healthy state where none speaks of something."""
    for word in words:
        if word not in WORDS:
            raise ClusterError(f"{word!r}: expected some of {', '.join(WORDS)}")
    version_8 = "v8" in words
    answers = dict((HEALTHY.v8 if version_8 else HEALTHY.ctl) or {})
    client = "healthy"
    for word in words:
        scenario = SCENARIOS.get(word, Scenario())
        if scenario.client:
            client = scenario.client
            continue
        own = scenario.v8 if version_8 else scenario.ctl
        if word in SCENARIOS and own is None:
            raise ClusterError(f"{word}: there is no such output of {'8.x' if version_8 else '7.x'}")
        answers.update(own or {})
    made: Files = {}
    if "not-installed" not in words:
        tool = "beegfs" if version_8 else "beegfs-ctl"
        made[f"bin/{tool}"] = None
        for key, fixture in answers.items():
            made.update(_answer(tool, key, fixture))
    if "client-absent" not in words:
        for folder in ("healthy", client):
            for path in sorted((FIXTURES / "proc_fs" / folder).iterdir()):
                made[f"proc_fs/beegfs/{CLIENT}/{path.name}"] = path.read_bytes()
    return made


def _answer(tool: str, key: str, fixture: str) -> Files:
    if fixture == HANG:
        return {f"{tool}/{key}.hang": b""}
    found = list((FIXTURES / fixture).parent.glob(f"{Path(fixture).name}.rc*.txt"))
    if not found:
        raise ClusterError(f"there is no {FIXTURES / fixture}.rc*.txt")
    return {f"{tool}/{key}{path.name[len(Path(fixture).name) :]}": path.read_bytes() for path in found}


def apply(cluster: Cluster, machine: str, words: list[str]) -> None:
    """Make a host's stand-ins answer so. /proc/fs is bound to proc_fs, which therefore stays the same folder."""
    root = cluster.folder / "etc" / "beegfs" / machine
    wanted = plan(words)
    (root / "proc_fs").mkdir(parents=True, exist_ok=True)
    for name, content in wanted.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if content is not None:
            write_atomically(path, content)
        elif not path.is_symlink():
            path.symlink_to(STAND_IN)
    for path in sorted(root.rglob("*"), reverse=True):
        if path.is_dir() and not path.is_symlink():
            if path != root / "proc_fs" and not any(path.iterdir()):
                path.rmdir()
        elif str(path.relative_to(root)) not in wanted:
            path.unlink()
