# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""`make down` removes what this checkout brought up, and nothing of anybody else's on the same machine."""

from __future__ import annotations

import argparse
import json
import subprocess

import pytest
from hpcval_cluster import cli, images, nodes
from hpcval_cluster.state import BUILDER, CHECKOUT, CHECKOUT_LABEL, PREFIX, Cluster, ClusterError, cache_root

OTHER = "/home/somebody/checkout"


def labels(cluster=None, checkout=None, **more):
    told = {PREFIX: cluster, CHECKOUT_LABEL: checkout, **more}
    return {key: value for key, value in told.items() if value is not None}


@pytest.fixture
def podman(monkeypatch, tmp_path):
    """A podman with what `containers` and `networks` say; what is removed is gone."""

    class Podman:
        containers: dict[str, dict[str, str]]
        networks: dict[str, dict[str, str]]

        def __call__(self, *argv, **_more):
            text = ""
            if argv[:2] == ("ps", "--all"):
                text = json.dumps([{"Names": [name], "Labels": told} for name, told in self.containers.items()])
            elif argv[:2] == ("network", "ls"):
                text = json.dumps([{"name": name, "labels": told} for name, told in self.networks.items()])
            elif argv[0] == "rm":
                for name in [word for word in argv[1:] if not word.startswith("--")]:
                    del self.containers[name]
            elif argv[:2] == ("network", "exists"):
                return subprocess.CompletedProcess(argv, 0 if argv[2] in self.networks else 1, "", "")
            elif argv[:2] == ("network", "rm"):
                del self.networks[argv[-1]]
            else:
                raise AssertionError(argv)
            return subprocess.CompletedProcess(argv, 0, text, "")

    fake = Podman()
    own = {"local": CHECKOUT, "theirs": OTHER, "old": None}
    fake.containers = {f"{PREFIX}-{name}-login": labels(name, whose) for name, whose in own.items()}
    fake.networks = {f"{PREFIX}-{name}": labels(name, whose) for name, whose in own.items()}
    # Made by hand of this project's image, which once handed down its builder's label; and two builds that were killed.
    fake.containers["mine-by-hand"] = {f"{PREFIX}-build": ""}
    fake.containers[f"{BUILDER}24.11"] = {}
    fake.containers[f"{PREFIX}-build-00000000-24.11"] = {f"{PREFIX}-build": ""}
    fake.containers["database"] = None
    fake.networks["podman"] = None
    monkeypatch.setenv("HPC_VALIDATION_CACHE", str(tmp_path))
    monkeypatch.setattr(nodes, "CGROUPS", tmp_path / "no cgroups")
    monkeypatch.setattr(nodes.host, "podman", fake)
    monkeypatch.setattr(nodes.host, "has_podman", lambda: True)
    monkeypatch.setattr(nodes.host, "require_tools", lambda: None)
    return fake


def test_down_all_removes_this_checkouts_clusters_and_builders_and_no_others(podman, capsys):
    before = set(podman.containers) | set(podman.networks)
    assert cli._down(argparse.Namespace(all=True, name="local")) == 0
    removed = before - set(podman.containers) - set(podman.networks)
    assert removed == {f"{PREFIX}-local-login", f"{PREFIX}-local", f"{BUILDER}24.11"}
    told = capsys.readouterr()
    assert OTHER in told.out + told.err
    assert "old" in told.out + told.err


def test_another_checkouts_cluster_is_taken_down_from_there(podman):
    before = dict(podman.containers)
    with pytest.raises(ClusterError, match=OTHER):
        nodes.down("theirs")
    with pytest.raises(ClusterError, match=OTHER):
        nodes.up("theirs", {})
    assert podman.containers == before


def test_a_cluster_of_a_deleted_checkout_is_taken_down_by_naming_that(podman, tmp_path):
    with pytest.raises(ClusterError, match=f"down --name theirs --gone {OTHER}"):
        nodes.up("theirs", {})
    with pytest.raises(ClusterError, match=OTHER):
        nodes.down("theirs", str(tmp_path / "another"))
    nodes.down("theirs", OTHER)
    assert f"{PREFIX}-theirs-login" not in podman.containers
    assert f"{PREFIX}-theirs" not in podman.networks


def test_a_checkout_that_is_there_takes_its_clusters_down_itself(podman, tmp_path):
    podman.containers[f"{PREFIX}-near-login"] = labels("near", str(tmp_path))
    for attempt in (lambda: nodes.down("near", str(tmp_path)), lambda: nodes.down("near")):
        with pytest.raises(ClusterError, match=str(tmp_path)) as refused:
            attempt()
        assert "--gone" not in str(refused.value)
    assert f"{PREFIX}-near-login" in podman.containers


@pytest.mark.usefixtures("podman")
def test_a_cluster_that_is_only_recorded_has_an_owner_too():
    for name, whose in (("mine", CHECKOUT), ("recorded", OTHER), ("unsaid", "")):
        Cluster(name, checkout=whose).save()
    (cache_root() / "clusters/torn").mkdir()
    (cache_root() / "clusters/torn/cluster.json").write_text("{")
    assert nodes.names() == ["local", "mine"]
    assert set(nodes.others()) == {"old", "recorded", "theirs", "torn", "unsaid"}
    with pytest.raises(ClusterError, match=OTHER):
        nodes.down("recorded")
    assert (cache_root() / "clusters/recorded/cluster.json").exists()


def test_what_a_killed_start_left_is_this_checkouts(podman):
    podman.networks[f"{PREFIX}-half"] = labels("half", CHECKOUT)
    (cache_root() / "clusters/half").mkdir(parents=True)
    assert "half" in nodes.names()
    nodes.down("half")
    assert not (cache_root() / "clusters/half").exists()


def test_a_cluster_of_a_version_that_did_not_say_goes_by_its_name(podman):
    nodes.down("old")
    assert f"{PREFIX}-old-login" not in podman.containers


def test_containers_and_networks_say_whose_they_are_and_builders_hand_nothing_down(monkeypatch):
    calls = []
    monkeypatch.setattr(images.host, "podman", lambda *argv, **_more: calls.append(argv))
    images._derive("base", "localhost/image:tag", ["true"], {})
    assert [word for argv in calls for word in argv if word.startswith("--label")] == []
    assert f"--name={BUILDER}tag" in next(argv for argv in calls if argv[0] == "run")
    assert Cluster("local").labels == [f"--label={PREFIX}=local", f"--label={CHECKOUT_LABEL}={CHECKOUT}"]
