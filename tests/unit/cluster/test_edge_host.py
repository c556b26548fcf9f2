# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""edge01 comes up beside a cluster that is up, alone, with limits and without privileges, and only where it must."""

from __future__ import annotations

import argparse
import socket
import subprocess
import threading
from contextlib import closing

import pytest
from hpcval_cluster import cli, edge, edge_board, edge_words, nodes
from hpcval_cluster.state import CHECKOUT_LABEL, Cluster, ClusterError

IMAGE = "localhost/hpcval-edge:test"


class Podman:
    """Records what it is called for; answers as told, by the first words."""

    def __init__(self):
        self.calls = []
        self.fails = lambda _argv: False

    def __call__(self, *argv, **_more):
        self.calls.append(argv)
        code = 1 if self.fails(argv) else 0
        return subprocess.CompletedProcess(
            argv, code, "cgroupfs\n" if argv[0] == "info" else "", "no cpuset" if code else ""
        )

    def named(self, verb):
        return [argv for argv in self.calls if argv[0] == verb]


@pytest.fixture
def podman(monkeypatch, tmp_path):
    """A podman for which edge01 answers as soon as it is started."""
    fake = Podman()
    monkeypatch.setenv("HPC_VALIDATION_CACHE", str(tmp_path))
    monkeypatch.setattr(edge.host, "podman", fake)
    monkeypatch.setattr(edge.images, "edge_name", lambda _release: IMAGE)
    monkeypatch.setattr(edge.images, "build_edge", lambda _release: IMAGE)
    monkeypatch.setattr(edge, "_cores", lambda: {0, 1, 2})
    monkeypatch.setattr(edge, "answers", lambda _cluster: bool(fake.named("run")))
    monkeypatch.setattr(nodes, "ssh_answers", lambda _cluster, _machine: True)
    monkeypatch.setattr(nodes, "network_address", lambda _cluster: nodes.ipaddress.ip_address("10.0.0.0"))
    seen = subprocess.CompletedProcess([], 0, "2\n536870912\n", "")
    monkeypatch.setattr(nodes, "run_in", lambda *_words, **_more: seen)
    return fake


@pytest.fixture
def cluster(podman):  # noqa: ARG001 - its cache
    """A cluster that came up before there was an edge host."""
    old = Cluster("old", addresses={"login": "10.0.0.10"})
    for key in (old.folder / "id_ed25519", nodes.host_key(old, "login")):
        key.parent.mkdir(parents=True, exist_ok=True)
        nodes.keygen(key)
    return old


def test_it_is_added_to_a_cluster_that_has_none_and_touches_no_other(podman, cluster):
    edge.up(cluster)
    (run,) = podman.named("run")
    assert "--privileged" not in run
    assert {
        "--memory=512m",
        "--memory-swap=512m",
        "--cpuset-cpus=2",
        "--ip=10.0.0.9",
        "--mac-address=02:42:0a:00:00:09",
    } < set(run)
    assert any(word.startswith(f"--label={CHECKOUT_LABEL}=") for word in run)
    folder = cluster.folder
    mounted = {word for word in run if word.startswith("--volume=")}
    assert mounted == {f"--volume={folder}/etc/edge01:/etc/hpcval:ro", f"--volume={folder}/edge:{edge_board.ROOT}"}
    assert {path.name for path in (folder / "etc/edge01").iterdir()} == {
        "ssh_host_ed25519_key",
        "ssh_host_ed25519_key.pub",
        "authorized_keys",
    }
    assert [argv[-1] for argv in podman.named("rm")] == ["hpcval-old-edge01"]
    assert Cluster.load("old").edge == "core 2, 512 MiB"


def test_people_reach_it_by_ssh_as_the_others_by_a_key_of_its_own(cluster):
    edge.up(cluster)
    config = cluster.ssh_config.read_text()
    assert "Host edge01\n    HostName 10.0.0.9\n" in config
    assert "Host login\n" in config
    known = dict(line.split(",", 1) for line in (cluster.folder / "known_hosts").read_text().splitlines())
    assert known["edge01"].split()[2] != known["login"].split()[2]


def test_where_it_is_up_nothing_is_done(podman, cluster):
    edge.up(cluster)
    podman_calls = len(podman.calls)
    edge.up(Cluster.load("old"))
    assert len(podman.calls) == podman_calls


def test_it_is_started_anew_where_its_recipe_has_changed(podman, cluster):
    edge.up(cluster)
    cluster.edge_image = "localhost/hpcval-edge:older"
    edge.up(cluster)
    assert len(podman.named("run")) == 2


def test_without_limits_where_there_can_be_none_and_it_says_so(podman, cluster, capsys, monkeypatch):
    podman.fails = lambda argv: argv[0] == "run" and any(word.startswith("--memory") for word in argv)
    seen = subprocess.CompletedProcess([], 0, "0-2\nmax\n", "")
    monkeypatch.setattr(nodes, "run_in", lambda *_words, **_more: seen)
    edge.up(cluster)
    assert cluster.edge == "no core of its own, no limit of memory"
    assert "no cpuset" in capsys.readouterr().err


def test_a_failure_says_that_the_cluster_is_up(podman, cluster, monkeypatch):
    podman.fails = lambda argv: argv[0] == "run"

    def podman_checks(*argv, check=True, **_more):
        done = podman(*argv)
        if check and done.returncode:
            raise ClusterError("podman run")
        return done

    monkeypatch.setattr(edge.host, "podman", podman_checks)
    with pytest.raises(ClusterError, match="the cluster old is up, but not edge01"):
        edge.up(cluster)
    assert Cluster.load("old") is None


@pytest.mark.parametrize(
    ("seen", "cores", "told"),
    [
        ("1\n536870912\n", {0, 1}, "core 1, 512 MiB"),
        ("0\n536870912\n", {0}, "no core of its own, 512 MiB"),
        ("0-1\n536870912\n", {0, 1}, "no core of its own, 512 MiB"),
        ("1\n9223372036854771712\n", {0, 1}, "core 1, no limit of memory"),
        ("1\nmax\n", {0, 1}, "core 1, no limit of memory"),
        ("", {0, 1}, "no core of its own, no limit of memory"),
    ],
)
def test_it_is_told_what_it_is_confined_to(seen, cores, told):
    assert edge.confinement(seen, cores) == told


def test_a_machine_of_one_core_gives_none_away():
    assert not any("cpuset" in word for word in edge.limits({0}))


@pytest.fixture
def port(monkeypatch):
    """A port of this machine, where something listens."""
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        monkeypatch.setattr(edge, "PORT", server.getsockname()[1])
        monkeypatch.setattr(edge, "PATIENCE", 0.2)
        yield server


HERE = Cluster("here", addresses={"edge01": "127.0.0.1"})


def test_an_sshd_greets(port):
    def greet():
        connection, _peer = port.accept()
        connection.sendall(b"SSH-2.0-OpenSSH\r\n")
        connection.close()

    greeter = threading.Thread(target=greet)
    greeter.start()
    assert edge.answers(HERE)
    greeter.join()


@pytest.mark.usefixtures("port")
def test_a_frozen_host_takes_the_connection_and_does_not_answer():
    assert not edge.answers(HERE)


def test_no_sshd_and_no_address_are_no_answer(port):
    port.close()
    assert not edge.answers(HERE)
    assert not edge.answers(Cluster("here"))


def test_faults_of_a_cluster_without_it_are_refused(cluster):
    with pytest.raises(ClusterError, match="cluster up --name old"):
        edge.change(cluster, edge_words.parse(["busy=on"]))


def test_a_frozen_host_is_thawed_before_anything_is_undone(podman, cluster):
    edge.up(cluster)
    podman.calls.clear()
    edge.change(cluster, edge_words.parse(["gone=silent", "busy=on"]))
    assert [argv[0] for argv in podman.calls] == ["unpause", "exec", "pause"]
    assert podman.calls[1][-4:] == ("busy", "on", "gone", "off")
    podman.calls.clear()
    edge.change(cluster, edge_words.parse(["gone=off"]))
    assert [argv[0] for argv in podman.calls] == ["unpause", "exec"]


def test_status_tells_of_a_host_that_does_not_answer(monkeypatch, cluster, capsys):
    cluster.save()
    monkeypatch.setattr(nodes, "running", lambda each: list(each.machines))
    monkeypatch.setattr(nodes, "node_states", lambda _cluster: {})
    monkeypatch.setattr(nodes, "ready", lambda _cluster: True)
    assert cli._status(argparse.Namespace(name="old")) == 1
    assert "not up:      edge01" in capsys.readouterr().out
    monkeypatch.setattr(edge, "answers", lambda _cluster: True)
    assert cli._status(argparse.Namespace(name="old")) == 0
