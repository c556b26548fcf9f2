# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""edge01: a container beside the cluster's that has ssh, Python, a core and a little memory, and no privileges."""

from __future__ import annotations

import ipaddress
import os
import shutil
import socket
import subprocess
from collections.abc import Collection
from pathlib import Path

from hpcval_cluster import edge_board, host, images, nodes
from hpcval_cluster.edge_words import MEMORY, OFF, Change
from hpcval_cluster.state import ADMIN, EDGE, Cluster, ClusterError, write_atomically

PORT = 22
NUMBER = 9  # of its address; the nodes' begin at 10
PATIENCE = 2.0  # seconds for a greeting
STAYS = "/usr/local/lib/edge_stays.py"
FOLDER = f"/home/{ADMIN}/.hpc_validation"
# The least that sshd wants besides podman's own; and who is killed first where memory runs out (edge/stays.py).
PRIVILEGES = ["--cap-add=SYS_CHROOT", "--cap-add=AUDIT_WRITE", "--oom-score-adj=1000"]
# cgroup v1 and v2; a number without meaning, or `max`, where there is no limit.
SEEN = """
sed -n 's/^Cpus_allowed_list:[[:space:]]*//p' /proc/self/status
cat /sys/fs/cgroup/memory/memory.limit_in_bytes 2> /dev/null || cat /sys/fs/cgroup/memory.max 2> /dev/null || echo max
"""


def up(cluster: Cluster) -> None:
    """Bring edge01 up, or find it up; the nodes stay as they are."""
    if cluster.edge_image == images.edge_name(cluster.release) and answers(cluster):
        return
    try:
        cluster.edge_image = images.build_edge(cluster.release)
        _prepare(cluster)
        _start(cluster)
        nodes.wait_until(f"{EDGE} does not answer by ssh", 20, lambda: nodes.ssh_answers(cluster, EDGE))
        cluster.edge = confinement(nodes.run_in(cluster, EDGE, "sh", "-euc", SEEN).stdout, _cores())
    except ClusterError as error:
        logs = host.podman("logs", "--tail=15", cluster.container(EDGE), check=False)
        told = f"{logs.stdout}{logs.stderr}".strip()
        raise ClusterError(f"the cluster {cluster.name} is up, but not {EDGE}: {error}\n{told}".strip()) from error
    cluster.save()


def require(cluster: Cluster) -> None:
    """Refuse a cluster that was brought up before there was an edge host."""
    if not cluster.edge:
        raise ClusterError(f"the cluster {cluster.name} has no {EDGE} yet: cluster up --name {cluster.name}")


def answers(cluster: Cluster) -> bool:
    """Whether its sshd greets."""
    if EDGE not in cluster.addresses:
        return False
    try:
        with socket.create_connection((cluster.addresses[EDGE], PORT), timeout=PATIENCE) as connection:
            return connection.recv(64).startswith(b"SSH-")
    except OSError:
        return False


def limits(cores: Collection[int]) -> list[str]:
    """podman's words for its memory, and for the last of several cores."""
    words = [f"--memory={MEMORY}m", f"--memory-swap={MEMORY}m"]
    return [*words, f"--cpuset-cpus={max(cores)}"] if len(cores) > 1 else words


def confinement(seen: str, cores: Collection[int]) -> str:
    """What it is confined to, by what it sees itself (SEEN)."""
    allowed, most = seen.split() if len(seen.split()) == 2 else ("nothing", "nothing")
    core = f"core {allowed}" if allowed == str(max(cores)) and len(cores) > 1 else "no core of its own"
    limited = most.isdecimal() and int(most) == MEMORY << 20
    return f"{core}, {MEMORY} MiB" if limited else f"{core}, no limit of memory"


def _cores() -> set[int]:
    return os.sched_getaffinity(0)


def _folder(cluster: Cluster) -> Path:
    return cluster.folder / "etc" / EDGE


def _board(cluster: Cluster) -> Path:
    return cluster.folder / "edge"


def _prepare(cluster: Cluster) -> None:
    _folder(cluster).mkdir(parents=True, exist_ok=True)
    nodes.keygen(nodes.host_key(cluster, EDGE))
    public = (cluster.folder / "id_ed25519.pub").read_text(encoding="utf-8")
    write_atomically(_folder(cluster) / "authorized_keys", public)
    cluster.addresses[EDGE] = str(nodes.network_address(cluster) + NUMBER)
    nodes.write_ssh_config(cluster)
    shutil.rmtree(_board(cluster), ignore_errors=True)
    edge_board.create(_board(cluster))


def _start(cluster: Cluster) -> None:
    address = cluster.addresses[EDGE]
    host.say(f"starting {EDGE}")
    host.podman("rm", "--force", "--ignore", "--time=0", cluster.container(EDGE))
    words = [
        "--detach",
        f"--name={cluster.container(EDGE)}",
        f"--hostname={EDGE}",
        f"--network={cluster.network}",
        f"--ip={address}",
        # Always the same, or this machine sends to the last container's for half a minute.
        f"--mac-address=02:42:{ipaddress.ip_address(address).packed[-4:].hex(':')}",
        *cluster.labels,
        *nodes.cgroup_parent(cluster),
        *PRIVILEGES,
        f"--volume={_folder(cluster)}:/etc/hpcval:ro",
        f"--volume={_board(cluster)}:{edge_board.ROOT}",
    ]
    command = [cluster.edge_image, "tini", "-g", "--", "edge-start.sh"]
    limited = host.podman("run", *words, *limits(_cores()), *command, check=False)
    if limited.returncode != 0:
        host.say(f"{EDGE} cannot have a core and memory of its own: {limited.stderr.strip()[-500:]}")
        host.podman("rm", "--force", "--ignore", "--time=0", cluster.container(EDGE))
        host.podman("run", *words, *command)


# "$1" and so on: pairs of a word of edge/stays.py and its value.
ACTS = f"""
while [ $# -gt 0 ]; do
    case $1=$2 in
        gone=on) for _ in $(seq 100); do pkill -x 'sshd|sshd-session|sshd-auth' || break; sleep 0.1; done ;;
        gone=off) pgrep -x sshd > /dev/null || /usr/sbin/sshd ;;
        *) python3 {STAYS} "$1" "$2" {edge_board.ROOT}/{edge_board.EVENTS} ;;
    esac
    shift 2
done
"""
# "$1": the folder that validations use. Root of this machine mounts there: the host itself may not.
FULL = {
    "on": """
install -d -o admin -g admin "$1"
mountpoint -q "$1" || mount -t tmpfs -o size=1m,mode=0755,uid=1000,gid=1000 full "$1"
""",
    "off": 'while mountpoint -q "$1"; do umount -l "$1"; done',
}


def change(cluster: Cluster, wanted: Change) -> None:
    """Put faults into edge01 and its board, and take them out again."""
    require(cluster)
    acts = {word: wanted.acts[word] for word in OFF if word in wanted.acts}
    container, full, gone = cluster.container(EDGE), acts.pop("full", ""), acts.get("gone", "")
    if gone:
        host.podman("unpause", container, check=False)
    if gone == "silent":
        acts["gone"] = "off"
    if acts:
        pairs = [each for pair in acts.items() for each in pair]
        # With privileges, so that a process may be the last one that is killed.
        host.podman("exec", "--privileged", container, "sh", "-euc", ACTS, "sh", *pairs)
    if full:
        _in_mounts(container, FULL[full], FOLDER)
    edge_board.write(_board(cluster), wanted.texts, wanted.modes)
    if gone == "silent":
        host.podman("pause", container)


def _in_mounts(container: str, script: str, *arguments: str) -> None:
    process = host.podman("inspect", "--format={{.State.Pid}}", container).stdout.strip()
    command = ["nsenter", f"--target={process}", "--mount", "--pid", "--", "sh", "-euc", script, "sh", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    if done.returncode != 0:
        raise ClusterError(f"{EDGE}: {done.stderr.strip()}")
