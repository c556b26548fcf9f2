# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The nodes of a cluster: network, containers, configuration, waiting until they work, removing them."""

from __future__ import annotations

import ipaddress
import json
import os
import secrets
import shutil
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from hpcval_cluster import beegfs, gpus, host, images, slurm_conf
from hpcval_cluster.state import (
    ADMIN,
    ADMIN_UID,
    BUILDER,
    CHECKOUT,
    CHECKOUT_LABEL,
    COMPUTE,
    EDGE,
    FLEET,
    HOSTS,
    KEPT,
    LOGIN,
    PREFIX,
    SHARE,
    Cluster,
    ClusterError,
    cache_root,
    write_atomically,
)

CGROUPS = Path("/sys/fs/cgroup")


def wait_until(what: str, seconds: float, condition: Callable[[], bool]) -> None:
    """Poll a condition; ClusterError when it does not hold in time."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise ClusterError(f"waited {seconds:.0f} s in vain: {what}")
        time.sleep(0.1)


def run_in(cluster: Cluster, machine: str, *argv: str, user: str = "root") -> subprocess.CompletedProcess[str]:
    """Run a command in a container, its output captured; never raises for a non-zero exit."""
    return host.podman("exec", *inside(cluster, machine, user), *argv, check=False)


def inside(cluster: Cluster, machine: str, user: str = "root") -> list[str]:
    """podman's words for a user's command in a host: a container, or a node of the fleet in its own."""
    container = cluster.container(machine)
    if machine not in cluster.fleet_nodes:
        return [f"--user={user}", container]
    ids = {"root": "0:0", ADMIN: f"{ADMIN_UID}:{ADMIN_UID}"}.get(user, user)
    return ["--user=root", container, "fleet-node.sh", "enter", machine, ids]


def running(cluster: Cluster) -> list[str]:
    """The machines whose containers run."""
    listed = host.podman("ps", "--format={{.Names}}", check=False).stdout.split()
    return [machine for machine in cluster.machines if cluster.container(machine) in listed]


def node_states(cluster: Cluster) -> dict[str, str]:
    """Each compute node's state in sinfo's words; empty where the controller does not answer."""
    # Slurm's clients try for a quarter of a minute to reach a controller that is not there.
    answer = run_in(cluster, LOGIN, "timeout", "6", "sinfo", "--noheader", "--Node", "--format=%N %T")
    if answer.returncode != 0:
        return {}
    return dict(line.split(None, 1) for line in answer.stdout.splitlines() if len(line.split(None, 1)) == 2)


def keygen(path: Path) -> None:
    """Make a key, unless it is there."""
    if not path.exists():
        command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", f"{PREFIX} local cluster", "-f", str(path)]
        subprocess.run(command, check=True, stdin=subprocess.DEVNULL)


def _write_configuration(cluster: Cluster) -> None:
    etc = cluster.folder / "etc"
    etc.mkdir(parents=True, exist_ok=True)
    cluster.folder.chmod(0o755)
    keygen(host_key(cluster, LOGIN))
    keygen(cluster.folder / "id_ed25519")
    write_atomically(etc / "authorized_keys", (cluster.folder / "id_ed25519.pub").read_text(encoding="utf-8"))
    write_atomically(etc / "munge.key", secrets.token_hex(512), 0o600)
    write_atomically(etc / "slurm.conf", slurm_conf.slurm_conf(cluster))
    write_atomically(etc / "gres.conf", slurm_conf.gres_conf())
    write_atomically(etc / "cgroup.conf", slurm_conf.cgroup_conf(cluster))
    (etc / "slurmdbd.conf").unlink(missing_ok=True)
    if cluster.accounting:
        write_atomically(etc / "slurmdbd.conf", slurm_conf.slurmdbd_conf(), 0o600)
    variables = host.session_environment()
    write_atomically(etc / "environment", "".join(f"{key}={value}\n" for key, value in variables.items()))
    write_atomically(etc / FLEET, "".join(f"{machine}\n" for machine in cluster.fleet_nodes))
    for machine in cluster.compute:
        folder = etc / "gpus" / machine
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in gpus.initial_states(cluster, machine).items():
            (folder / name).write_text(text, encoding="utf-8")
    for machine in cluster.machines:
        beegfs.apply(cluster, machine, [])


def host_key(cluster: Cluster, machine: str) -> Path:
    """The key by which a host is known; all nodes have one."""
    etc = cluster.folder / "etc"
    return (etc / EDGE if machine == EDGE else etc) / "ssh_host_ed25519_key"


def write_ssh_config(cluster: Cluster) -> None:
    """Write what `ssh -F` needs for every host that has an address."""
    known = []
    for machine, address in cluster.addresses.items():
        kind, key, *_comment = host_key(cluster, machine).with_suffix(".pub").read_text(encoding="utf-8").split()
        known.append(f"{machine},{address} {kind} {key}\n")
    write_atomically(cluster.folder / "known_hosts", "".join(known))
    blocks = []
    for machine, address in cluster.addresses.items():
        blocks.append(
            f"Host {machine}\n"
            f"    HostName {address}\n"
            f"    HostKeyAlias {machine}\n"
            f"    User {ADMIN}\n"
            f'    IdentityFile "{cluster.folder / "id_ed25519"}"\n'
            "    IdentitiesOnly yes\n"
            f'    UserKnownHostsFile "{cluster.folder / "known_hosts"}"\n'
            "    StrictHostKeyChecking yes\n"
            "    LogLevel ERROR\n"
        )
    write_atomically(cluster.ssh_config, "\n".join(blocks))


def _make_network(cluster: Cluster) -> None:
    if host.podman("network", "exists", cluster.network, check=False).returncode != 0:
        host.podman("network", "create", "--disable-dns", *cluster.labels, cluster.network)
    first = network_address(cluster)
    cluster.addresses = {machine: str(first + 10 + index) for index, machine in enumerate(cluster.machines)}


def network_address(cluster: Cluster) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    """The address of the cluster's network, from which those of its hosts are counted."""
    inspected = json.loads(host.podman("network", "inspect", cluster.network).stdout)[0]
    if "subnets" in inspected:
        subnet = inspected["subnets"][0]["subnet"]
    else:
        subnet = inspected["plugins"][0]["ipam"]["ranges"][0][0]["subnet"]
    return ipaddress.ip_network(subnet).network_address


def _prepare_share(cluster: Cluster) -> None:
    cluster.share.mkdir(parents=True, exist_ok=True)
    if cluster.share_size and not os.path.ismount(cluster.share):
        options = f"size={cluster.share_size},mode=0755"
        command = ["mount", "-t", "tmpfs", "-o", options, f"{PREFIX}-{cluster.name}", str(cluster.share)]
        result = subprocess.run(command, capture_output=True, text=True, check=False)
        if result.returncode != 0:
            raise ClusterError(f"no share of size {cluster.share_size!r}: {result.stderr.strip()}")
    os.chown(cluster.share, ADMIN_UID, ADMIN_UID)
    for name in KEPT:
        for folder in (cache_root() / name, cluster.share / name):
            folder.mkdir(parents=True, exist_ok=True)
            os.chown(folder, ADMIN_UID, ADMIN_UID)


def _start_containers(cluster: Cluster) -> None:
    shared = [
        "--privileged",
        "--pids-limit=-1",
        "--shm-size=2g",
        f"--network={cluster.network}",
        *cluster.labels,
        f"--volume={cluster.folder / 'etc'}:/etc/hpcval:ro",
        f"--volume={cluster.share}:{SHARE}",
        *(f"--volume={cache_root() / name}:{SHARE}/{name}" for name in KEPT),
    ]
    if cluster.cgroup != "none":
        shared.append("--cgroupns=private")
    shared += cgroup_parent(cluster)
    shared += [f"--add-host={machine}:{address}" for machine, address in cluster.addresses.items()]
    for machine in cluster.machines:
        own = [f"--name={cluster.container(machine)}", f"--hostname={machine}", f"--ip={cluster.addresses[machine]}"]
        host.podman("run", "--detach", *own, *shared, cluster.image, "tini", "-g", "--", "start-node.sh")


def cgroup_parent(cluster: Cluster) -> list[str]:
    """podman's words for the cgroup that all of a cluster's containers are below."""
    manager = host.podman("info", "--format={{.Host.CgroupManager}}").stdout.strip()
    return [f"--cgroup-parent=/{PREFIX}-{cluster.name}"] if manager == "cgroupfs" else []


def ssh_answers(cluster: Cluster, machine: str) -> bool:
    """Whether a user can log in."""
    command = ["ssh", "-F", str(cluster.ssh_config), "-o", "BatchMode=yes", "-o", "ConnectTimeout=2", machine, "true"]
    result = subprocess.run(command, capture_output=True, check=False, stdin=subprocess.DEVNULL)
    return result.returncode == 0


def ready(cluster: Cluster) -> bool:
    """Whether every node is up, in Slurm's eyes; a busy or drained node is up."""
    states = node_states(cluster)
    down = ("down", "unk", "inval", "*")
    return set(states) == set(cluster.compute) and not any(word in state for state in states.values() for word in down)


def _wait_ready(cluster: Cluster) -> None:
    def alive_and_ready() -> bool:
        gone = set(cluster.machines) - set(running(cluster))
        if gone:
            raise ClusterError(f"the container of {', '.join(sorted(gone))} ended")
        if ready(cluster):
            return True
        for machine in COMPUTE:
            # slurmd reads its configuration, goes into the background, and only then finds what it cannot do.
            started = "started" in host.podman("logs", cluster.container(machine)).stdout
            if started and run_in(cluster, machine, "node-service.sh", "status", "slurmd").returncode != 0:
                raise ClusterError(f"slurmd ended on {machine}")
        return False

    wait_until("the compute nodes are not up in sinfo", 60 + cluster.fleet / 2, alive_and_ready)
    for machine in HOSTS:
        wait_until(f"{machine} does not answer by ssh", 20, partial(ssh_answers, cluster, machine))


def logs(cluster: Cluster) -> str:
    """The ends of the logs that explain why a cluster does not come up."""
    parts = []
    for machine in cluster.machines:
        container = host.podman("logs", "--tail=15", cluster.container(machine), check=False)
        parts.append(f"--- {machine}: container\n{container.stdout}{container.stderr}")
        script = 'for log in /var/log/slurm/*.log; do echo "--- $(hostname): $log"; tail -n 15 "$log"; done'
        parts.append(run_in(cluster, machine, "sh", "-c", script).stdout)
    return "\n".join(parts)


def probe_confinement(cluster: Cluster) -> str:
    """What a job that asked for one GPU may open, tried, not assumed: `cgroup/v1`, `cgroup/v2` or `none`."""
    script = (
        "import errno, os\n"
        "for index in range(2):\n"
        "    try:\n"
        "        os.close(os.open(f'/dev/nvidia{index}', os.O_RDWR)); print('open')\n"
        "    except OSError as error:\n"
        "        print('refused' if error.errno == errno.EPERM else 'open')\n"
    )
    command = ["srun", "--immediate=20", "--job-name=hpcval-confinement", "--gres=gpu:1", "--mem=64", "--time=1"]
    answer = run_in(cluster, LOGIN, *command, "--chdir=/", "python3", "-c", script, user=ADMIN)
    if answer.returncode != 0:
        raise ClusterError(f"a first job failed:\n{answer.stderr.strip()}")
    seen = sorted(answer.stdout.split())
    return f"cgroup/{cluster.cgroup}" if seen == ["open", "refused"] else "none"


def up(name: str, choices: dict[str, Any]) -> Cluster:
    """Bring a cluster up, or find it up; returns it ready. `choices`: release, accounting, share_size, fleet."""
    host.require_tools()
    _require_own(name)
    existing = Cluster.load(name)
    if existing:
        for what, value in choices.items():
            if getattr(existing, what) != value:
                raise ClusterError(
                    f"cluster {name} exists with {what} {getattr(existing, what)!r}, not {value!r};"
                    f" first: cluster down --name {name}, or choose another --name"
                )
        if len(running(existing)) == len(existing.machines) and _becomes_ready(existing):
            if existing.image != images.names(existing.release)[1]:
                host.say(f"the recipe has changed since {name} came up; to follow it: cluster down --name {name}")
            return existing
        host.say(f"cluster {name} is not whole; starting it anew, its share is kept")
        _remove_containers(existing)
        wanted = Cluster(name, existing.release, existing.accounting, existing.share_size, existing.fleet)
    else:
        wanted = Cluster(name, **choices)
        if _containers(wanted):
            raise ClusterError(
                f"there are containers of a cluster {name} that {wanted.folder} knows nothing of (another"
                f" HPC_VALIDATION_CACHE?); choose another --name, or remove them: cluster down --name {name}"
            )
    wanted.checkout = CHECKOUT
    wanted.image = images.build(wanted.release)
    wanted.cgroup = host.cgroup_version()
    try:
        _bring_up(wanted)
    except ClusterError as error:
        if wanted.cgroup == "none":
            raise ClusterError(f"{error}\n{logs(wanted)}") from error
        host.say(f"not with cgroup/{wanted.cgroup}: {error}\n{logs(wanted)}\ntrying without confinement")
        _remove_containers(wanted)
        wanted.cgroup = "none"
        try:
            _bring_up(wanted)
        except ClusterError as second:
            raise ClusterError(f"{second}\n{logs(wanted)}") from second
    return wanted


def _becomes_ready(cluster: Cluster) -> bool:
    try:
        wait_until("ready", 5, lambda: ready(cluster))
    except ClusterError:
        return False
    return True


def _bring_up(cluster: Cluster) -> None:
    _make_network(cluster)
    _write_configuration(cluster)
    write_ssh_config(cluster)
    _prepare_share(cluster)
    cluster.save()
    _start_containers(cluster)
    _wait_ready(cluster)
    cluster.confinement = probe_confinement(cluster)
    cluster.save()


@dataclass(frozen=True)
class Trace:
    """A container or a network that podman has of a cluster, or a container that builds."""

    kind: str
    name: str
    cluster: str
    checkout: str


def traces() -> list[Trace]:
    """All that podman has with this project's names, of whatever checkout."""
    found = []
    for kind, listing in (("container", ["ps", "--all"]), ("network", ["network", "ls"])):
        for entry in json.loads(host.podman(*listing, "--format=json").stdout or "[]"):
            given = {key.lower(): value for key, value in entry.items()}
            labels = given.get("labels") or {}
            name = given["names"][0] if kind == "container" else given["name"]
            found.append(Trace(kind, name, labels.get(PREFIX, ""), labels.get(CHECKOUT_LABEL, "")))
    return found


def _containers(cluster: Cluster) -> list[str]:
    return [each.name for each in traces() if each.kind == "container" and each.cluster == cluster.name]


def owners() -> dict[str, set[str]]:
    """The checkouts that each cluster belongs to; "" is one that did not say so, as older versions did not."""
    found: dict[str, set[str]] = {}
    for each in traces():
        if each.cluster:
            found.setdefault(each.cluster, set()).add(each.checkout)
    for path in (cache_root() / "clusters").glob("*"):
        recorded = _recorded_owner(path.name) if path.is_dir() else None
        if recorded or (recorded is not None and path.name not in found):
            found.setdefault(path.name, set()).add(recorded)
    return found


def _recorded_owner(name: str) -> str:
    try:
        cluster = Cluster.load(name)
    except ClusterError:
        return ""
    return cluster.checkout if cluster else ""


def _require_own(name: str, gone: str = "") -> None:
    """Refuse a cluster of another checkout, but for that of the checkout `gone`, which must not be there any more."""
    if gone and Path(gone).exists():
        raise ClusterError(f"{gone} is there: take its clusters down from there, with its own tests/cluster/cluster")
    others = owners().get(name, set()) - {"", CHECKOUT, gone}
    if others:
        whose = min(others)
        from_there = f"from there: {whose}/tests/cluster/cluster down --name {name}"
        instead = from_there if Path(whose).exists() else f"as that is gone: cluster down --name {name} --gone {whose}"
        raise ClusterError(
            f"the cluster {name} belongs to the checkout {', '.join(sorted(others))}: choose another --name, or take it"
            f" down {instead}"
        )


def _remove_containers(cluster: Cluster) -> list[str]:
    found = _containers(cluster)
    if found:
        host.podman("rm", "--force", "--time=0", "--volumes", *found)
    return [f"container {name}" for name in found]


def remove_builders() -> list[str]:
    """Remove the containers of this checkout's builds that were killed."""
    found = [each.name for each in traces() if each.name.startswith(BUILDER) and not each.cluster]
    if found:
        host.podman("rm", "--force", "--time=0", *found)
    return [f"container {name}" for name in found]


def _remove_cgroups(cluster: Cluster) -> list[str]:
    name = f"{PREFIX}-{cluster.name}"
    parents = [parent for parent in (CGROUPS / name, *CGROUPS.glob(f"*/{name}")) if parent.is_dir()]
    for parent in parents:
        for folder, _other, _other in os.walk(parent, topdown=False):
            try:
                os.rmdir(folder)
            except OSError as error:
                host.say(f"could not remove the cgroup {folder}: {error.strerror}")
    return [f"cgroups {name}"] if parents else []


def down(name: str, gone: str = "") -> list[str]:
    """Remove everything of a cluster; returns what was removed. What all clusters share stays in the cache.

    `gone` is the checkout that brought it up, if it was another one that has been deleted since.
    """
    _require_own(name, gone)
    cluster = Cluster(name=name)
    removed = _end_connections(cluster)
    removed += _remove_containers(cluster)
    if host.podman("network", "exists", cluster.network, check=False).returncode == 0:
        host.podman("network", "rm", "--force", cluster.network)
        removed.append(f"network {cluster.network}")
    removed += _remove_cgroups(cluster)
    if os.path.ismount(cluster.share):
        subprocess.run(["umount", str(cluster.share)], check=True)
        removed.append(f"mount {cluster.share}")
    if cluster.folder.exists():
        shutil.rmtree(cluster.folder)
        removed.append(f"folder {cluster.folder}")
    return removed


def _end_connections(cluster: Cluster) -> list[str]:
    """Ansible keeps ssh connections open for a while; inventories/local puts their sockets into this folder."""
    ended = []
    for socket in sorted(cluster.folder.glob("*.ssh")):
        command = ["ssh", "-o", f"ControlPath={socket}", "-O", "exit", "-q", "cluster"]
        if subprocess.run(command, capture_output=True, check=False, timeout=30).returncode == 0:
            ended.append(f"ssh connection {socket.name}")
    return ended


def names() -> list[str]:
    """Every cluster of this checkout that left a trace: a recorded state, a container or a network."""
    return sorted(name for name, checkouts in owners().items() if checkouts == {CHECKOUT})


def others() -> dict[str, str]:
    """Every other cluster, and whose it is."""
    found = {name: checkouts - {CHECKOUT} for name, checkouts in owners().items() if checkouts != {CHECKOUT}}
    return {
        name: ", ".join(sorted(each or "no checkout, as its version did not say" for each in whose))
        for name, whose in sorted(found.items())
    }
