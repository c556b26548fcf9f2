# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A model is made on the real cluster and measured on the real edge host, which nothing else touches."""

from __future__ import annotations

import json
import subprocess

import pytest

from tests.integration import canaries
from tests.integration.conftest import ANY_SPEED, CLUSTER, ROOT, cluster

PLAYBOOK = ROOT / "playbooks/validate_embedded.yml"
FOLDER = "/home/admin/.hpc_validation"


def edge(*words: str) -> None:
    """Put something wrong with the edge host, or right."""
    command = [str(ROOT / "tests/cluster/cluster"), "edge", "--name", CLUSTER, *words]
    subprocess.run(command, check=True, timeout=60)


@pytest.fixture
def gone():
    """An edge host that takes no connections."""
    edge("gone=on")
    yield
    edge("healthy")


def processes() -> list[str]:
    """What of ours runs on the edge host."""
    return cluster("edge01", "pgrep", "-f", "payload|runner", check=False).split()


@pytest.mark.usefixtures("gone")
def test_a_play_of_other_workloads_does_not_touch_the_devices(play, canary):
    played = play(variables=canary())
    assert played.code == 0, played.screen
    assert "edge01" not in played.screen


def test_a_model_is_measured_on_the_device(play, tmp_path):
    selected = canaries.select(tmp_path / "workloads", "edge_job")
    played = play(variables={**selected, **ANY_SPEED})
    (workload,) = played.verdict["workloads"]
    found = {each["id"]: each for each in workload["criteria"] if each["id"].startswith(("S4-5", "S4-6"))}
    timed = found.pop("S4-6.p99")  # other tests run beside this one
    assert timed["verdict"] == "pass" or "disturbed" in timed["why"], timed
    assert {each["verdict"] for each in found.values()} == {"pass", "recorded"}, played.screen
    told = json.loads((played.folder / "edge/TEST-5/edge01.json").read_text(encoding="utf-8"))
    assert told["deployed"]["model"] == "int8"
    assert told["measured"]["latency"]["inferences"] >= 1000
    assert processes() == []
    left = cluster("edge01", "ls", "-A", FOLDER).split()
    assert played.folder.name in " ".join(left)
    assert "site" not in cluster("edge01", "find", FOLDER, "-name", "site").split("/")


@pytest.mark.slow
def test_the_whole_profile_passes(play):
    played = play(PLAYBOOK)
    assert played.code == 0, played.screen
    (workload,) = played.verdict["workloads"]
    own = {each["id"]: each["verdict"] for each in workload["criteria"] if each["id"].startswith("S4-")}
    assert set(own.values()) == {"pass", "recorded"}
    assert (played.folder / "card-PROFILE-EMBEDDED.md").is_file()
    assert (played.folder / "latency-edge01.svg").is_file()


@pytest.mark.slow
def test_ten_plays_in_a_row_pass(play, tmp_path):
    selected = canaries.select(tmp_path / "workloads", "edge_job")
    ended = [play(variables={**selected, **ANY_SPEED}) for _each in range(10)]
    assert [each.end for each in ended if each.code] == []
