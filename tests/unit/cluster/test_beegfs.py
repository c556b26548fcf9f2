# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The stand-ins for BeeGFS: every scenario has its outputs, and the command replays them."""

from __future__ import annotations

import os
import socket
import subprocess

import pytest
from hpcval_cluster import beegfs
from hpcval_cluster.state import Cluster, ClusterError

STAND_IN = beegfs.FIXTURES.parents[1] / "cluster/image/beegfs_stand_in.py"
TABLE = "beegfs-ctl --listtargets --longnodes --pools"
TOOLS = [(name, tool) for name in sorted(beegfs.SCENARIOS) for tool in ("ctl", "v8")]


def has(name: str, tool: str) -> bool:
    scenario = beegfs.SCENARIOS[name]
    return scenario.client is not None or getattr(scenario, tool) is not None


@pytest.mark.parametrize(("name", "tool"), [pair for pair in TOOLS if has(*pair)])
def test_every_scenario_differs_from_the_healthy_state_in_something(name, tool):
    words = ["v8"] if tool == "v8" else []
    made = beegfs.plan([*words, name])
    assert made != beegfs.plan(["healthy", *words])
    assert ("bin/beegfs" in made, "bin/beegfs-ctl" in made) == ((True, False) if words else (False, True))


@pytest.mark.parametrize(("name", "tool"), [pair for pair in TOOLS if not has(*pair)])
def test_an_output_that_there_is_none_of_is_refused(name, tool):
    with pytest.raises(ClusterError, match="no such output"):
        beegfs.plan([*(["v8"] if tool == "v8" else []), name])


def test_unknown_words_are_refused():
    with pytest.raises(ClusterError, match="expected some of"):
        beegfs.plan(["ofline"])


def test_tools_and_client_can_be_absent():
    assert not [name for name in beegfs.plan(["not-installed"]) if not name.startswith("proc_fs/")]
    assert not [name for name in beegfs.plan(["client-absent"]) if name.startswith("proc_fs/")]


@pytest.fixture
def answered(tmp_path, monkeypatch):
    """Apply scenarios for this host; the result asks the stand-in as that tool."""
    monkeypatch.setenv("HPC_VALIDATION_CACHE", str(tmp_path))
    monkeypatch.setattr(beegfs, "STAND_IN", str(STAND_IN))
    cluster = Cluster("x")
    folder = cluster.folder / "etc/beegfs" / socket.gethostname()

    def ask(scenarios: str, command: str, timeout: float = 10) -> subprocess.CompletedProcess[str]:
        beegfs.apply(cluster, socket.gethostname(), scenarios.split())
        tool, *words = command.split()
        argv = ["python3", str(folder / "bin" / tool), *words]
        return subprocess.run(argv, capture_output=True, text=True, check=False, timeout=timeout)

    ask.folder = folder
    return ask


@pytest.mark.parametrize(
    ("scenarios", "command", "code", "said"),
    [
        ("healthy", f"{TABLE} --nodetype=storage --state", 0, "beegfs-storage stor2 [ID: 2]"),
        ("healthy", f"{TABLE} --nodetype=meta", 0, "beegfs-meta meta1 [ID: 1]"),
        ("healthy", f"{TABLE} --nodetype=meta --cfgFile=/x", 0, "beegfs-meta meta1 [ID: 1]"),
        ("healthy", "beegfs-ctl --listmirrorgroups --nodetype=meta", 0, "No mirror buddy groups defined."),
        ("mirrored", "beegfs-ctl --listmirrorgroups --nodetype=storage", 0, "BuddyGroupID"),
        ("mirrored", f"{TABLE} --mirrorgroups --nodetype=storage", 0, "secondary"),
        ("healthy", "beegfs-ctl --getquota --uid 1000 --csv", 0, "admin,1000,"),
        ("healthy", "beegfs-ctl --getentryinfo /mnt/beegfs", 0, "Chunksize: 512K"),
        ("healthy", "beegfs-ctl --listnodes --nodetype=storage --reachable", 0, "Reachable: <yes>"),
        ("offline", f"{TABLE} --nodetype=storage --state", 0, " Offline "),
        ("offline", f"{TABLE} --nodetype=meta --state", 0, "Online"),
        ("bad", f"{TABLE} --nodetype=storage --state", 0, "Bad"),
        ("mgmtd-dead", "beegfs-ctl --getquota --uid 0 --csv", 3, "Management node communication failed"),
        ("mgmtd-dead-rc0", "beegfs-ctl --listtargets", 0, "Management node communication failed"),
        ("permission", f"{TABLE} --nodetype=meta", 1, "Permission denied"),
        ("v8", "beegfs target list --state --output ndjson", 0, '"num_id": 201'),
        ("v8", "beegfs quota list-usage --uids current", 0, '"name": "admin"'),
        ("v8 partial", "beegfs target list", 2, '"num_id": 102'),
        ("v8 mgmtd-dead", "beegfs node list", 1, "management node"),
        ("healthy", "beegfs-ctl --frobnicate", 1, "no answer to --frobnicate"),
    ],
)
def test_the_stand_in_replays_an_output_with_its_exit_code(answered, scenarios, command, code, said):
    done = answered(scenarios, command)
    assert done.returncode == code
    assert said in done.stdout + done.stderr


def test_a_tool_that_hangs_never_answers(answered):
    with pytest.raises(subprocess.TimeoutExpired):
        answered("hang", "beegfs-ctl --listtargets", timeout=0.5)


def test_the_folder_that_is_bound_to_proc_fs_stays_the_same(answered):
    answered("client-tcp", "beegfs-ctl --x")
    folder = answered.folder / "proc_fs"
    nodes = folder / "beegfs" / beegfs.CLIENT / "storage_nodes"
    before = os.stat(folder).st_ino
    assert "RDMA" not in nodes.read_text()
    answered("client-absent not-installed", "beegfs-ctl --x")
    assert list(folder.iterdir()) == []
    assert not (answered.folder / "bin").exists()
    answered("healthy", "beegfs-ctl --x")
    assert os.stat(folder).st_ino == before
    assert "RDMA: 8" in nodes.read_text()
