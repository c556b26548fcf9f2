# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Nodes and partitions as recorded, and the question whether a job can ever start."""

from __future__ import annotations

from pathlib import Path

import pytest
from ansible_collections.mlops.hpc_validation.plugins.module_utils import _slurm_cluster, _slurm_nodes
from ansible_collections.mlops.hpc_validation.plugins.module_utils._slurm_cli import Result
from ansible_collections.mlops.hpc_validation.plugins.module_utils._slurm_nodes import Needs, why_blocked

FIXTURES = Path(__file__).resolve().parents[3] / "fixtures"
RELEASES = sorted(path.name for path in FIXTURES.glob("slurm-*") if (path / "node.txt").exists())


def node(name: str = "n1", state: str = "IDLE", gres: str = "gpu:2", partitions: str = "gpu") -> dict:
    (parsed,) = _slurm_nodes.parse_nodes(f"NodeName={name} Gres={gres} State={state} Partitions={partitions}")
    return parsed


def needs(nodes: int = 1, required: tuple = (), excluded: tuple = (), gres: dict | None = None) -> Needs:
    return Needs(("gpu",), nodes, required, excluded, gres or {})


@pytest.mark.parametrize("release", RELEASES)
def test_recorded_nodes(release: str) -> None:
    nodes = _slurm_nodes.parse_nodes((FIXTURES / release / "node.txt").read_text())
    assert [each["name"] for each in nodes] == ["compute01", "compute02"]
    assert all(each["gres"] == {"gpu": 2} and each["cpus"] == 16 and each["memory_mb"] == 131072 for each in nodes)
    assert all(each["state"] in ("idle", "mixed") and each["partitions"] == ["gpu"] for each in nodes)


@pytest.mark.parametrize("release", RELEASES)
def test_recorded_partitions(release: str) -> None:
    (gpu,) = _slurm_nodes.parse_partitions((FIXTURES / release / "partition.txt").read_text())
    assert gpu == {
        "name": "gpu",
        "state": "up",
        "default": True,
        "max_time_seconds": 172800,
        "nodes": ["compute01", "compute02"],
    }


@pytest.mark.parametrize("release", RELEASES)
def test_recorded_needs(release: str) -> None:
    lines = (FIXTURES / release / "job.txt").read_text().splitlines()
    running = next(line for line in lines if "JobName=running" in line)
    assert _slurm_nodes.parse_needs(running) == Needs(("gpu",), 2, (), (), {})


def test_a_name_cannot_change_what_a_job_needs() -> None:
    line = (
        "JobId=1 JobName=x UserId=z Partition=evil NumNodes=9 UserId=admin(1) Partition=gpu NumNodes=1 ReqNodeList=n1"
    )
    assert _slurm_nodes.parse_needs(line) == Needs(("gpu",), 1, ("n1",), (), {})
    assert _slurm_nodes.parse_needs("slurm_load_jobs error: Invalid job id specified") is None


@pytest.mark.parametrize(
    ("state", "out"),
    [
        ("IDLE", False),
        ("ALLOCATED", False),
        ("MIXED+PLANNED", False),
        ("IDLE+DRAIN", True),
        ("MIXED+DRAIN", True),
        ("DOWN", True),
        ("DOWN*", True),
        ("DOWN*+DRAIN", True),
        ("IDLE+FAIL", True),
        ("IDLE*", False),
        ("IDLE+MAINTENANCE", False),
        ("IDLE+CLOUD+POWERED_DOWN", False),
        ("DOWN+CLOUD+POWERED_DOWN", False),
        ("DOWN+REBOOT_ISSUED", False),
        ("IDLE~", False),
    ],
)
def test_which_nodes_are_out(state: str, out: bool) -> None:
    assert _slurm_nodes.is_out(node(state=state)) is out


@pytest.mark.parametrize(
    ("job", "nodes", "blocked"),
    [
        (needs(), [node(state="DOWN")], True),
        (needs(), [node(state="DOWN"), node("n2", "ALLOCATED")], False),
        (needs(), [node(state="ALLOCATED")], False),
        (needs(2), [node(state="DOWN"), node("n2")], True),
        (needs(required=("n1",)), [node(state="IDLE+DRAIN"), node("n2")], True),
        (needs(required=("n2",)), [node(state="IDLE+DRAIN"), node("n2")], False),
        (needs(excluded=("n2",)), [node(state="DOWN"), node("n2")], True),
        (needs(gres={"gpu": 2}), [node(state="DOWN"), node("n2", gres="gpu:1")], True),
        (needs(gres={"gpu": 1}), [node(state="DOWN"), node("n2", gres="gpu:1")], False),
        (needs(), [node(state="DOWN"), node("n2", partitions="other")], True),
        (needs(), [], False),
        (needs(), [node(partitions="other")], False),
    ],
)
def test_when_a_job_can_never_start(job: Needs, nodes: list[dict], blocked: bool) -> None:
    assert (why_blocked(job, nodes) is not None) is blocked


# -- the whole cluster


def recorded(release: str, **changes: Result) -> dict:
    folder = FIXTURES / release
    texts = {
        "--version": "version",
        "ping": "ping",
        "config": "config",
        "node": "node",
        "partition": "partition",
    }

    def run(argv: list[str], **_options: object) -> Result:
        if argv[-1] in changes:
            return changes[argv[-1]]
        return Result(0, (folder / f"{texts[argv[-1]]}.txt").read_bytes()) if argv[-1] in texts else Result(0)

    return _slurm_cluster.cluster_info(run, "admin")


@pytest.mark.parametrize("release", RELEASES)
def test_a_recorded_cluster(release: str) -> None:
    info = recorded(release)
    assert info["version"] == release.removeprefix("slurm-")
    assert info["controllers"] == [{"host": "login", "role": "primary", "up": True}]
    assert info["accounting"] is True
    assert info["min_job_age_seconds"] == 300
    assert info["problems"] == []


def test_what_does_not_answer_is_a_problem_and_not_a_value() -> None:
    down = Result(1, b"Slurmctld(primary) at login is DOWN\n", "")
    dead = Result(1, b"", "Unable to contact slurm controller (connect failure)")
    info = recorded("slurm-24.11.5", ping=down, config=dead, node=dead, partition=dead)
    assert info["controllers"][0]["up"] is False
    assert (info["nodes"], info["partitions"], info["cluster_name"]) == ([], [], None)
    assert len(info["problems"]) == 4


def test_accounting_that_is_off_is_not_accounting_that_is_silent() -> None:
    last = _slurm_cluster.ACCOUNTING_ARGV[-1]
    off = Result(1, b"", "Slurm accounting storage is disabled")
    silent = Result(1, b"", "Problem talking to the database: Connection refused")
    assert recorded("slurm-24.11.5", **{last: off})["accounting"] is False
    assert recorded("slurm-24.11.5", **{last: silent})["accounting"] is None


def test_empty_answers_are_problems() -> None:
    info = recorded("slurm-24.11.5", node=Result(0, b"\n"), partition=Result(0, b""), ping=Result(0, b"hm"))
    assert {each["source"] for each in info["problems"]} == {
        "scontrol show node",
        "scontrol show partition",
        "scontrol ping",
    }
