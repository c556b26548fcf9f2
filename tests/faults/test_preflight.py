# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Each fault of preflight.yml, one by one, on the live cluster: found and named, and after the repair all is well."""

from __future__ import annotations

import shlex
import subprocess
import typing as t
from pathlib import Path

import pytest
import yaml
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._common import schema

from tests.integration.conftest import CLUSTER, ROOT, Played, cluster, jobs, wait_for

FAULTS = yaml.safe_load(Path(__file__).with_name("preflight.yml").read_text())
SECONDS = 240  # a play that a fault slows down most


def row(fault: dict[str, t.Any]) -> t.Any:
    return pytest.param(fault, id=fault["id"], marks=[] if fault.get("quick") else [pytest.mark.slow])


def on_cluster(commands: list[str]) -> None:
    """Runs commands of tests/cluster/cluster."""
    for command in commands:
        verb, *rest = shlex.split(command)
        argv = [str(ROOT / "tests/cluster/cluster"), verb, "--name", CLUSTER, *rest]
        done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=120)
        assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"


def matching(played: Played, finds: dict[str, t.Any]) -> list[dict[str, t.Any]]:
    """The findings of the verdict that the fault must lead to."""
    return [
        finding
        for finding in played.findings
        if finding["id"] == finds["id"]
        and finding["verdict"] == finds["verdict"]
        and all(
            str(finds[key]) in str(finding["where"].get(key))
            for key in ("node", "host", "gpu", "target")
            if key in finds
        )
    ]


def test_the_table_has_what_it_should() -> None:
    identities = [fault["id"] for fault in FAULTS]
    assert len(identities) == len(set(identities))
    counts = {group: sum(fault["group"] == group for fault in FAULTS) for group in ("gpu", "share", "scheduler")}
    assert counts["gpu"] >= 25, counts
    assert counts["share"] >= 20, counts
    assert counts["scheduler"] >= 10, counts


@pytest.mark.parametrize("fault", [row(fault) for fault in FAULTS])
def test_the_fault_is_named_and_the_repair_passes(play: t.Callable[..., Played], fault: dict[str, t.Any]) -> None:
    settings = {"hpc_validation_preflight_queue_timeout": 10, **fault.get("settings", {})}
    try:
        on_cluster(fault.get("do", []))
        played = play(ROOT / "playbooks/preflight.yml", variables=settings, timeout=SECONDS)
    finally:
        on_cluster(fault.get("undo", []))
    assert played.code != 0, played.end
    assert played.verdict["verdict"] == fault.get("overall", fault["finds"]["verdict"]), played.end
    assert schema.problems("verdict", played.verdict) == []
    found = matching(played, fault["finds"])
    assert found, played.end
    for finding in found:
        assert finding["remedy"], finding
        assert finding["bound"], finding
        assert finding["id"] in played.screen
        for words in fault.get("says", []):
            assert words in finding["why"], finding
        if finding["verdict"] == "fail":
            assert finding["value"] is not None, finding
    wait_for(lambda: not jobs(), 30)
    wait_for(nodes_are_idle, 60)
    assert play(ROOT / "playbooks/preflight.yml", timeout=SECONDS).code == 0


def nodes_are_idle() -> bool:
    states = cluster("login", "sinfo", "--noheader", "--Node", "--format=%T", user="admin", check=False).split()
    return bool(states) and set(states) == {"idle"}
