# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The command line."""

from __future__ import annotations

import argparse
import fcntl
import os
import shlex
import signal
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from hpcval_cluster import beegfs, edge, edge_words, faults, gpu_faults, host, images, nodes
from hpcval_cluster.state import (
    COMPUTE,
    DEFAULT_RELEASE,
    EDGE,
    GPUS_PER_NODE,
    LOGIN,
    MOST_FLEET,
    SHARE,
    SUITES,
    Cluster,
    ClusterError,
    cache_root,
    check_name,
)


@contextmanager
def _alone() -> Iterator[None]:
    """One `up`, `down` or `build` at a time: they share images, networks and the cache."""
    cache_root().mkdir(parents=True, exist_ok=True)
    with (cache_root() / "cluster.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            host.say("waiting for another cluster command to end")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _known(name: str) -> Cluster:
    cluster = Cluster.load(name)
    if cluster is None:
        raise ClusterError(f"there is no cluster {name}; bring it up with: cluster up --name {name}")
    return cluster


def _host(cluster: Cluster, name: str, hosts: Sequence[str]) -> str:
    if name in hosts:
        return name
    fleet = cluster.fleet_nodes
    more = f", {fleet[0]} to {fleet[-1]}" if fleet else ""
    raise ClusterError(f"{name!r}: expected {', '.join(host for host in hosts if host not in fleet)}{more}")


def _any_host(cluster: Cluster, name: str) -> str:
    return _host(cluster, name, (LOGIN, *cluster.compute))


def _fleet(cluster: Cluster, states: Mapping[str, str]) -> list[str]:
    if not cluster.fleet:
        return []
    counts = Counter(states.get(node, "unknown") for node in cluster.fleet_nodes)
    listed = ", ".join(f"{count} {state}" for state, count in counts.most_common())
    return [f"fleet:       {cluster.fleet_nodes[0]} to {cluster.fleet_nodes[-1]}: {listed}"]


def _report(cluster: Cluster) -> str:
    states = nodes.node_states(cluster)
    listed = ", ".join(f"{machine} {states.get(machine, 'unknown')}" for machine in COMPUTE)
    return "\n".join(
        (
            f"cluster:     {cluster.name}",
            f"slurm:       {cluster.release}",
            f"accounting:  {'slurmdbd' if cluster.accounting else 'none'}",
            f"confinement: {cluster.confinement}",
            f"nodes:       {listed}",
            *_fleet(cluster, states),
            f"edge:        {EDGE}: {cluster.edge or 'none yet'}",
            f"share:       {cluster.share} (on the nodes: {SHARE})",
            f"ssh:         ssh -F {shlex.quote(str(cluster.ssh_config))} login",
        )
    )


def _up(arguments: argparse.Namespace) -> int:
    started = time.monotonic()
    with _alone():
        words = {"release": "slurm", "accounting": "accounting", "share_size": "share_size", "fleet": "fleet"}
        wanted = {what: getattr(arguments, word) for what, word in words.items()}
        cluster = nodes.up(arguments.name, {what: value for what, value in wanted.items() if value is not None})
        edge.up(cluster)
    print(_report(cluster))
    host.say(f"cluster {cluster.name} is up after {time.monotonic() - started:.1f} s")
    return 0


def _down(arguments: argparse.Namespace) -> int:
    with _alone():
        if not host.has_podman():
            print("nothing to remove: there is no podman on this machine")
            return 0
        if arguments.all:
            removed = [what for name in nodes.names() for what in nodes.down(name)] + nodes.remove_builders()
            for name, whose in nodes.others().items():
                host.say(f"left: the cluster {name} of {whose}; to remove it: cluster down --name {name}, from there")
        else:
            removed = nodes.down(arguments.name, arguments.gone)
    print("\n".join(f"removed {what}" for what in removed) or "nothing to remove")
    return 0


def _status(arguments: argparse.Namespace) -> int:
    cluster = _known(arguments.name)
    alive = nodes.running(cluster)
    print(_report(cluster))
    missing = [machine for machine in cluster.machines if machine not in alive]
    missing += [] if edge.answers(cluster) else [EDGE]
    if missing:
        print(f"not up:      {', '.join(missing)}")
        return 1
    return 0 if nodes.ready(cluster) else 1


def _exec(arguments: argparse.Namespace) -> int:
    cluster = _known(arguments.name)
    home = {"root": "/root", "admin": "/home/admin"}.get(arguments.user, "/")  # another user has none
    options = ["--interactive", f"--env=HOME={home}"]
    if sys.stdin.isatty() and sys.stdout.isatty():
        options.append("--tty")
    machine = arguments.host
    if machine == EDGE:
        edge.require(cluster)
    else:
        _any_host(cluster, machine)
    inside = nodes.inside(cluster, machine, arguments.user)
    command = host.podman_command("exec", *options, f"--workdir={home}", *inside, *arguments.argv)
    os.execvpe(command[0], command, host.podman_environment())
    return 1


def _gpu(arguments: argparse.Namespace) -> int:
    cluster = _known(arguments.name)
    node = _host(cluster, arguments.node, cluster.compute)
    if arguments.index == "node":
        change = gpu_faults.parse_node(arguments.changes)
        print(faults.change_driver(cluster, node, change), end="")
    else:
        change = gpu_faults.parse(arguments.changes)
        print(faults.change_gpu(cluster, node, int(arguments.index), change), end="")
    return 0


def _beegfs(arguments: argparse.Namespace) -> int:
    cluster = _known(arguments.name)
    faults.change_beegfs(cluster, _any_host(cluster, arguments.host), arguments.scenarios)
    return 0


def _share(arguments: argparse.Namespace) -> int:
    cluster = _known(arguments.name)
    faults.change_share(cluster, _any_host(cluster, arguments.host), arguments.state)
    return 0


def _clock(arguments: argparse.Namespace) -> int:
    cluster = _known(arguments.name)
    faults.change_clock(cluster, _any_host(cluster, arguments.host), str(arguments.seconds))
    return 0


def _slurm(arguments: argparse.Namespace) -> int:
    faults.change_slurm(_known(arguments.name), arguments.changes)
    return 0


def _edge(arguments: argparse.Namespace) -> int:
    edge.change(_known(arguments.name), edge_words.parse(arguments.changes))
    return 0


def _build(arguments: argparse.Namespace) -> int:
    with _alone():
        host.require_tools()
        release = arguments.slurm or DEFAULT_RELEASE
        print(images.build(release))
        print(images.build_edge(release))
    return 0


def _fleet_size(word: str) -> int:
    if not word.isdecimal() or int(word) > MOST_FLEET:
        raise argparse.ArgumentTypeError(f"{word!r}: expected a number of nodes from 0 to {MOST_FLEET}")
    return int(word)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="cluster", description="A real multi-node Slurm cluster on this machine.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    named = argparse.ArgumentParser(add_help=False)
    default = os.environ.get("HPC_VALIDATION_CLUSTER") or "local"
    named.add_argument("--name", default=default, type=str, help="the cluster's name (default: %(default)s)")
    release = argparse.ArgumentParser(add_help=False)
    release.add_argument("--slurm", choices=sorted(SUITES), help=f"default: {DEFAULT_RELEASE}, or what is up already")

    command = commands.add_parser("up", parents=[named, release], help="bring a cluster up, or find it up")
    command.add_argument("--accounting", action=argparse.BooleanOptionalAction, help="slurmdbd and MariaDB (default)")
    command.add_argument("--share-size", metavar="SIZE", help="a share in memory of this size (64M), which can be full")
    command.add_argument(
        "--fleet", type=_fleet_size, metavar="N", help=f"so many more nodes, in one container (up to {MOST_FLEET})"
    )
    command.set_defaults(run=_up)

    command = commands.add_parser("down", parents=[named], help="remove containers, network and state; keep the cache")
    command.add_argument("--all", action="store_true", help="every cluster of this checkout")
    command.add_argument("--gone", default="", metavar="CHECKOUT", help="the deleted checkout that brought it up")
    command.set_defaults(run=_down)

    command = commands.add_parser("status", parents=[named], help="what is up; exits non-zero where it is not")
    command.set_defaults(run=_status)

    command = commands.add_parser("exec", parents=[named], help="run a command in a node: exec HOST -- COMMAND …")
    command.add_argument("--user", default="root", help="root, admin, or another user's uid:gid, such as 4711:4711")
    command.add_argument("host")
    command.set_defaults(run=_exec)

    command = commands.add_parser("gpu", parents=[named], help="show or change a simulated GPU's state")
    command.add_argument("node")
    command.add_argument("index", choices=(*map(str, range(GPUS_PER_NODE)), "node"), help="node: its driver")
    command.add_argument("changes", nargs="*", metavar="WORD", help="key=value, healthy, lost, … (README.md)")
    command.set_defaults(run=_gpu)

    command = commands.add_parser("beegfs", parents=[named], help="choose what the stand-ins for BeeGFS answer")
    command.add_argument("host")
    command.add_argument("scenarios", nargs="+", metavar="SCENARIO", help=", ".join(beegfs.WORDS))
    command.set_defaults(run=_beegfs)

    command = commands.add_parser("share", parents=[named], help="take the share away from a node, or put it back")
    command.add_argument("host")
    command.add_argument("state", choices=faults.SHARES)
    command.set_defaults(run=_share)

    command = commands.add_parser("clock", parents=[named], help="put a node's clock off, or right")
    command.add_argument("host")
    command.add_argument("seconds", type=lambda word: word if word == "right" else int(word), metavar="SECONDS|right")
    command.set_defaults(run=_clock)

    command = commands.add_parser("slurm", parents=[named], help="put faults into Slurm's configuration")
    command.add_argument("changes", nargs="+", metavar="WORD", help="healthy, gres=1, epilog=10, … (README.md)")
    command.set_defaults(run=_slurm)

    command = commands.add_parser("edge", parents=[named], help=f"put faults into {EDGE} and its board")
    command.add_argument("changes", nargs="+", metavar="WORD", help="healthy, hot=86000, busy=on, … (README.md)")
    command.set_defaults(run=_edge)

    command = commands.add_parser("build", parents=[release], help="only build the images")
    command.set_defaults(run=_build)
    return parser


def main() -> int:
    """Run the command line; returns the exit status."""
    words = sys.argv[1:]
    split = words.index("--") if "--" in words else len(words)
    arguments = _parser().parse_args(words[:split])
    arguments.argv = words[split + 1 :]
    # So that a killed command still removes what it half made.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        if bool(arguments.argv) != (arguments.run is _exec):
            raise ClusterError("exec, and only exec, takes a command after `--`: cluster exec HOST -- COMMAND …")
        if hasattr(arguments, "name"):
            check_name(arguments.name)
        host.require_root()
        return int(arguments.run(arguments))
    except ClusterError as error:
        host.say(f"error: {error}")
        return 1
    except KeyboardInterrupt:
        host.say("interrupted")
        return 130
