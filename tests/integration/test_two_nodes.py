# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ranks on two nodes: what they leave is put together, and a node that cannot take part is named."""

from __future__ import annotations

import json
import re
import subprocess

import pytest

from tests.integration import canaries
from tests.integration.conftest import ANY_SPEED, CACHE, CLUSTER, ROOT, cluster, jobs, running_play, wait_for

RESOURCES = {"ntasks_per_node": 1, "cpus_per_task": 1, "gres": "gpu:1", "mem": "2G", "time": "00:05:00"}
# A port that others think they may have, held on the node where the ranks meet.
HOLD = "import socket; s = socket.create_server(('', 29500)); s.accept()"
NOWHERE = "192.0.2.1"  # of TEST-NET-1: no host has it


@pytest.fixture
def two_nodes(tmp_path):
    """(behaviour) → the variables that select a rank on each of two nodes."""

    def make(behaviour="well"):
        variables = canaries.select(
            tmp_path / "workloads", "ranks_canary", behaviour, resources={"nodes": 2, **RESOURCES}
        )
        return {**variables, "hpc_validation_nodes": ["compute01", "compute02"], **ANY_SPEED}

    return make


@pytest.fixture
def port_29500_is_taken():
    command = [str(ROOT / "tests/cluster/cluster"), "exec", "--name", CLUSTER, "compute01", "--"]
    with subprocess.Popen([*command, "python3", "-c", HOLD]) as held:
        wait_for(lambda: ":29500 " in cluster("compute01", "ss", "-Hltn"), 30)
        yield
        cluster("compute01", "pkill", "-f", "create_server")
        held.wait(timeout=30)


@pytest.mark.usefixtures("port_29500_is_taken")
def test_a_rank_on_each_of_two_nodes_passes_whatever_port_is_taken(play, two_nodes):
    played = play(variables=two_nodes())
    assert played.code == 0, played.end
    evidence = json.loads((played.folder / "evidence/TEST-2.json").read_text())
    legs = {name: evidence["legs"][name] for name in ("before", "measured", "after")}
    assert {name: leg["nodes"] for name, leg in legs.items()} == {
        "before": ["compute01"],
        "measured": ["compute01", "compute02"],
        "after": ["compute01"],
    }
    assert sorted(gpu["node"] for gpu in evidence["provenance"]["gpus"]) == ["compute01", "compute02"]
    assert {gpu["uuid"] for gpu in evidence["provenance"]["gpus"]} == set(evidence["gpu"]["groups"])
    assert set(evidence["metrics"]["gpu_uuids"]) == set(evidence["gpu"]["groups"])
    for label, facts in evidence["metrics"]["all_reduce"]["ranks"].items():
        assert f"({facts['node']} " in label
        assert f" at {facts['interface']}" in label
    assert played.verdict["coverage"]["nodes"]["exercised"] == "compute[01-02]"


@pytest.fixture
def disturbed(tmp_path, two_nodes):
    """(what is done while the run on one GPU, before the measured one, trains) → the judged criteria by id."""

    def play(disturb, behaviour="well"):
        variables = {**two_nodes(behaviour), "hpc_validation_results": str(tmp_path / "results")}
        with running_play(variables, tmp_path, until=" ranks-canary: RUNNING for") as played:
            (job,) = jobs()
            before = CACHE / "clusters" / CLUSTER / f"share/models/ranks-canary/job-{job}/baseline-before/ranks"
            wait_for((before / "rank-0.json").exists, 120)
            disturb()
            assert played.wait(timeout=360) != 0, (tmp_path / "screen").read_text()
        (run,) = (tmp_path / "results").iterdir()
        (workload,) = json.loads((run / "verdict.json").read_text())["workloads"]
        return {criterion["id"]: criterion for criterion in workload["criteria"]}

    return play


def driver(*words):
    """Change what compute02's driver says of itself."""
    command = [str(ROOT / "tests/cluster/cluster"), "gpu", "--name", CLUSTER, "compute02", "node", *words]
    subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)


@pytest.mark.slow
def test_nodes_with_different_drivers_are_refused(disturbed):
    try:
        judged = disturbed(lambda: driver("driver_version=999.1"))
    finally:
        driver("healthy")
    why = judged["RANKS.first_failure"]["why"]
    assert "the GPUs' driver is 999.1 on rank 1 (compute02 GPU-" in why
    assert "on rank 0 (compute01 GPU-" in why
    assert judged["T-5"]["verdict"] == "undetermined"


@pytest.mark.slow
def test_nodes_that_do_not_meet_are_named_with_the_interface_between_them(disturbed):
    hosts = cluster("compute02", "cat", "/etc/hosts")

    def write(text):
        cluster("compute02", "sh", "-c", 'printf %s "$0" > /etc/hosts', text)

    try:
        judged = disturbed(lambda: write(re.sub(r"^\S+(\s+compute01)$", rf"{NOWHERE}\1", hosts, flags=re.MULTILINE)))
    finally:
        write(hosts)
    why = judged["RANKS.first_failure"]["why"]
    assert "compute02 (eth0 " in why
    assert ") did not reach compute01:" in why
    assert judged["T-5"]["verdict"] == "undetermined"
