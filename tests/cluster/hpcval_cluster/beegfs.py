# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a host's stand-ins for BeeGFS's tools and kernel client answer: recorded and edited outputs, by scenario.

The answers lie in the cluster's folder, which every node sees below /etc/hpcval; nothing in a node is changed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Optional

from hpcval_cluster.beegfs_states import LIMITED, Answer, answers, edited, recorded
from hpcval_cluster.state import Cluster, ClusterError, write_atomically

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures" / "beegfs"
STAND_IN = "/usr/local/lib/beegfs_stand_in.py"
CLIENT = "3F6-6B00FE9C-client"  # the kernel client's id below /proc/fs/beegfs
RECORDED, EDITED, VERSION_8 = "ctl_7.4.7", "ctl_7.4.7_edited", "cli_8_documented"
REST = "..."
Answers = list[Answer]
Files = dict[str, Optional[bytes]]  # below a host's folder; None is a link to the stand-in


@dataclass(frozen=True)
class Scenario:
    """What makes the answers of 7.x, what of 8.x differs from the healthy answers, and a state of the kernel client."""

    ctl: Callable[[], Answers] | None = None
    v8: Answers | None = None
    client: str | None = None


def _fixture(name: str, *words: str) -> Answer:
    """An answer NAME.rcN.txt, or NAME.rcN.stderr.txt, to what these words ask."""
    (path,) = (FIXTURES / name).parent.glob(f"{Path(name).name}.rc*.txt")
    code = re.search(r"\.rc(\d+)\.", path.name)
    out, err = ("", path.read_text()) if ".stderr." in path.name else (path.read_text(), "")
    return {"words": [*words, REST], "out": out, "err": err, "rc": int(code[1]) if code else 0}


HANGS: Answers = [{"words": [REST], "seconds": 3600, "out": "", "err": "", "rc": 1, "held": True}]
HEALTHY_STATE = "healthy-no-mirrors"


def _state(name: str, *first: Answer) -> Callable[[], Answers]:
    """The answers of a recorded state, but these first."""
    return lambda: [*first, *answers(name)]


def _edited(kind: str, number: int, changes: dict[str, str], base: str = HEALTHY_STATE) -> Callable[[], Answers]:
    return lambda: edited(answers(base), kind, number, changes)


def _any(name: str) -> Callable[[], Answers]:
    return lambda: [_fixture(name)]


def _v8(**fixtures: str) -> Answers:
    """Answers of 8.x by the first two words of what is asked: target_list, entry_info."""
    return [_fixture(f"{VERSION_8}/{name}", *words.split("_")) for words, name in fixtures.items()]


def _resync_behind_a_frozen_server() -> Answers:
    """Target 201 needs a resync and the server of its primary, stor1, is frozen: states are kept waiting too.

    Never recorded in this form; by what was seen of both (the states stor2-frozen-at-once and secondaries-resyncing).
    """
    base = edited(answers("both-mirrored-healthy"), "storage", 201, {"Good": "Needs-resync"})
    table = ["--listtargets", "--nodetype=storage", "--longnodes", "--pools", "--state"]
    states = next(each["out"] for each in base if sorted(each["words"]) == sorted(table))
    space = next(each["out"] for each in base if sorted(each["words"]) == sorted([*table, "--spaceinfo"]))
    before = states[: states.index(" 201 ")]
    heading = "".join(space.splitlines(keepends=True)[:2])
    zeros = re.sub(r"7\.8GiB +7\.8GiB 100% +0\.5M +0\.5M 100%(?=.* stor1 )", "0.0GiB 0.0GiB 0% 0.0M 0.0M 0%", space)
    failed = " [ERROR from beegfs-storage stor1 [ID: 1]: Communication error]\n"
    nodes = "stor1 [ID: 1]\n   Reachable: <no>\nstor2 [ID: 2]\n   Reachable: <yes>\n"
    forever = {"seconds": 3600, "out": "", "err": "", "rc": 1, "held": True}
    limited = [*table, "--spaceinfo", LIMITED]
    return [
        {**forever, "words": table, "at_once": before[: before.rindex("\n") + 1]},
        {**forever, "words": [*table, "--spaceinfo"], "at_once": heading},
        {"words": limited, "at_once": heading, "seconds": 21, "out": zeros[len(heading) :], "err": failed * 2, "rc": 3},
        {
            "words": ["--listnodes", "--nodetype=storage", "--reachable", "--errorcodes"],
            "seconds": 3,
            "out": nodes,
            "err": "",
            "rc": 5,
        },
        *base,
    ]


# A limit for the user, and the striping of a folder: the recorded states have neither for a mounted file system.
OWN = [
    _fixture(f"{EDITED}/getquota_csv_admin", "--getquota"),
    _fixture(f"{RECORDED}/getentryinfo_root_verbose", "--getentryinfo"),
]
HEALTHY = Scenario(
    ctl=_state(HEALTHY_STATE, *OWN),
    v8=[
        *_v8(target_list="target_list_healthy", node_list="node_list_healthy", mirror_list="mirror_list_none"),
        *_v8(entry_info="entry_info_healthy"),
        _fixture(f"{VERSION_8}/quota_list_usage_healthy", "quota", "list-usage"),
    ],
    client="healthy",
)
SCENARIOS: dict[str, Scenario] = {
    **{name: Scenario(ctl=_state(name)) for name in recorded()},
    "offline": Scenario(_state("stor2-killed-offline"), _v8(target_list="target_list_offline")),
    "probably-offline": Scenario(
        _state("stor2-killed-probably-offline"), _v8(target_list="target_list_probably_offline")
    ),
    "needs-resync": Scenario(
        _edited("storage", 201, {"Good": "Needs-resync"}), _v8(target_list="target_list_needs_resync")
    ),
    "resyncing": Scenario(_edited("storage", 201, {"Good": "resyncing"})),
    "bad": Scenario(_edited("storage", 201, {"Good": "Bad"}), _v8(target_list="target_list_bad")),
    "low": Scenario(_edited("storage", 201, {"normal": "low"}), _v8(target_list="target_list_low")),
    "emergency": Scenario(_edited("storage", 201, {"normal": "emergency"}), _v8(target_list="target_list_emergency")),
    "resync-behind-a-frozen-server": Scenario(_resync_behind_a_frozen_server),
    "few-inodes": Scenario(_state("inodes-0"), _v8(target_list="target_list_few_inodes")),
    "truncated": Scenario(v8=_v8(target_list="target_list_truncated")),
    "meta-offline": Scenario(_state("meta2-killed-offline")),
    "unreachable": Scenario(_state("stor2-killed-at-once"), _v8(node_list="node_list_unreachable")),
    "mirrored": Scenario(_state("both-mirrored-healthy"), _v8(mirror_list="mirror_list_healthy")),
    "mirror-needs-resync": Scenario(
        _edited("storage", 201, {"Good": "Needs-resync"}, "both-mirrored-healthy"),
        _v8(mirror_list="mirror_list_healthy", target_list="target_list_needs_resync"),
    ),
    "quota-exceeded": Scenario(
        _state(HEALTHY_STATE, _fixture(f"{EDITED}/getquota_csv_exceeded", "--getquota")),
        [_fixture(f"{VERSION_8}/quota_list_usage_exceeded", "quota", "list-usage")],
    ),
    "one-target": Scenario(
        _state(HEALTHY_STATE, _fixture(f"{EDITED}/getentryinfo_directory_one_target", "--getentryinfo"))
    ),
    "mgmtd-dead": Scenario(_state("mgmtd-killed"), [_fixture(f"{VERSION_8}/error_mgmtd_down")]),
    "mgmtd-dead-rc0": Scenario(_any(f"{RECORDED}/df_mgmtd_down_lies")),
    "permission": Scenario(_state("auth-file-unreadable"), [_fixture(f"{VERSION_8}/error_auth_file_permission")]),
    "garbage": Scenario(_any(f"{EDITED}/foreign_text"), [_fixture(f"{EDITED}/foreign_text")]),
    "silent": Scenario(
        _any(f"{EDITED}/listtargets_storage_no_rows_no_headings"), [_fixture(f"{VERSION_8}/target_list_empty")]
    ),
    "hang": Scenario(lambda: HANGS, HANGS),
    "partial": Scenario(v8=_v8(target_list="target_list_partial")),
    "unmapped": Scenario(v8=_v8(target_list="target_list_unmapped")),
    "string-enums": Scenario(v8=_v8(target_list="target_list_string_enums")),
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


def plan(words: list[str], factor: float = 1.0) -> Files:
    """The files that these scenarios make; the healthy state where none speaks of something. Waits are by `factor`."""
    for word in words:
        if word not in WORDS:
            raise ClusterError(f"{word!r}: expected some of {', '.join(WORDS)}")
    version_8 = "v8" in words
    told = list((HEALTHY.v8 or []) if version_8 else HEALTHY.ctl() if HEALTHY.ctl else [])
    client = "healthy"
    for word in words:
        scenario = SCENARIOS.get(word, Scenario())
        if scenario.client:
            client = scenario.client
            continue
        own = scenario.v8 if version_8 else scenario.ctl() if scenario.ctl else None
        if word in SCENARIOS and own is None:
            raise ClusterError(f"{word}: there is no such output of {'8.x' if version_8 else '7.x'}")
        told = [*(own or []), *told]
    made: Files = {}
    if "not-installed" not in words:
        tool = "beegfs" if version_8 else "beegfs-ctl"
        made[f"bin/{tool}"] = None
        made[f"{tool}/answers.json"] = json.dumps({"factor": factor, "answers": told}).encode()
    if "client-absent" not in words:
        for folder in ("healthy", client):
            for path in sorted((FIXTURES / "proc_fs" / folder).iterdir()):
                made[f"proc_fs/beegfs/{CLIENT}/{path.name}"] = path.read_bytes()
    return made


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
