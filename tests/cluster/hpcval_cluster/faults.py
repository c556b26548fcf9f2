# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Faults put into running nodes, and taken out again, while jobs run."""

from __future__ import annotations

from pathlib import Path

from hpcval_cluster import beegfs, gpu_faults, gpus, host, nodes, slurm_conf
from hpcval_cluster.gpu_faults import Change
from hpcval_cluster.state import GPUS_PER_NODE, LOGIN, SHARE, Cluster, ClusterError

STATES = "/run/hpcval"
LIBRARY = "/usr/local/lib/libnvidia-ml.so.1"


def shell(cluster: Cluster, machine: str, script: str, *arguments: str, text_in: str | None = None) -> str:
    """Run a fixed script in a node; what it printed."""
    command = ["exec", "--interactive", *nodes.inside(cluster, machine), "sh", "-euc", script, "sh", *arguments]
    return host.podman(*command, text_in=text_in).stdout


def _read(cluster: Cluster, machine: str, name: str) -> str:
    return shell(cluster, machine, 'cat "$1"', f"{STATES}/{name}")


def _write(cluster: Cluster, machine: str, name: str, text: str) -> None:
    shell(cluster, machine, 'cat > "$1.new" && mv "$1.new" "$1"', f"{STATES}/{name}", text_in=text)


def change_gpu(cluster: Cluster, machine: str, index: int, change: Change) -> str:
    """Change a simulated GPU's state and its lines in the kernel log; returns the state."""
    name = f"gpu{index}.state"
    before = _read(cluster, machine, name)
    values = gpus.as_values(gpus.initial_states(cluster, machine)[name] if change.reset else before)
    values |= change.values
    if change.xids is not None:
        values |= gpu_faults.reported(values["xids"], change.xids)
    text = gpus.as_text(values)
    if text != before:
        _write(cluster, machine, name, text)
    if change.xids is not None:
        # The nodes' kernel is this machine's.
        uptime = float(Path("/proc/uptime").read_text(encoding="ascii").split()[0])
        log = _read(cluster, machine, "kernel.log")
        changed = gpu_faults.kernel_log(log, gpus.bus_id(index), change.xids, uptime)
        if changed != log:
            _write(cluster, machine, "kernel.log", changed)
    return text


def change_driver(cluster: Cluster, machine: str, change: Change) -> str:
    """Change what a node's driver says of itself, and whether there is one; returns that state."""
    before = _read(cluster, machine, "system.state")
    text = gpus.initial_states(cluster, machine)["system.state"] if change.reset else before
    text = gpus.as_text({**gpus.as_values(text), **change.values})
    if text != before:
        _write(cluster, machine, "system.state", text)
    if machine in cluster.fleet_nodes:
        if change.library is False:
            raise ClusterError(f"{machine} shares NVML's library with the others of the fleet: it cannot be missing")
    elif change.library is not None:
        there, away = (LIBRARY, f"{LIBRARY}.away") if change.library else (f"{LIBRARY}.away", LIBRARY)
        shell(cluster, machine, 'if [ -e "$1" ]; then mv "$1" "$2"; fi', away, there)
    return text


# What a node of the fleet has of its own instead of what all of them have. "$1": its folder.
BEEGFS = """
if [ "$(readlink /run/hpcval/beegfs)" != "$1" ]; then
    mount --bind "$1/proc_fs" /proc/fs
    ln -sfn "$1" /run/hpcval/beegfs
fi
"""


def change_beegfs(cluster: Cluster, machine: str, words: list[str]) -> None:
    """Choose what the stand-ins for BeeGFS answer on a host."""
    beegfs.apply(cluster, machine, words)
    if machine in cluster.fleet_nodes:
        shell(cluster, machine, BEEGFS, f"/etc/hpcval/beegfs/{machine}")


# A shim that every program loads which starts on the node. "$1": the shim, whose source is on standard input.
SHIM_ON = """
if [ ! -e "$1" ]; then gcc -std=gnu11 -O2 -Wall -Wextra -shared -fPIC -o "$1" -x c -; fi
grep -qxF "$1" /etc/ld.so.preload || echo "$1" >> /etc/ld.so.preload
"""
# In place: on a node of the fleet the file is a mount.
SHIM_OFF = """
others=$(grep -vxF "$1" /etc/ld.so.preload)
printf '%s\\n' "$others" > /etc/ld.so.preload
"""


def _shim(cluster: Cluster, machine: str, name: str, script: str, *arguments: str) -> None:
    source = (Path(__file__).resolve().parent.parent / f"shims/{name}.c").read_text(encoding="utf-8")
    shell(cluster, machine, script, f"/usr/local/lib/libhpcval-{name}.so", *arguments, text_in=source)


# What each word makes of a share that is as `cluster up` mounted it. "$1": the share, "$2": where it is kept meanwhile.
SHARES = {
    "mounted": "",
    "unmounted": 'mkdir -p "$2"; mount --move "$1" "$2"',
    "other": 'mount -t tmpfs -o size=64m,mode=1777 other "$1"',
    "read_only": 'mount -o remount,bind,ro "$1"',
    "full": 'mount -t tmpfs -o size=64k,mode=1777 other "$1"',
    "slow": "",
}
AS_MOUNTED = """
while [ "$(findmnt -nr -o SOURCE --mountpoint "$1" | tail -n 1)" = other ]; do umount -l "$1"; done
if mountpoint -q "$2"; then mount --move "$2" "$1"; fi
mount -o remount,bind,rw "$1"
"""


def change_share(cluster: Cluster, machine: str, word: str) -> None:
    """Take the share away from one node, put another, a read-only or a slow one there, or put it back."""
    shell(cluster, machine, AS_MOUNTED + SHARES[word], SHARE, "/run/hpcval-share")
    _shim(cluster, machine, "slow", SHIM_ON if word == "slow" else SHIM_OFF)


# "$2": the seconds, written in place: processes that run look at this very file.
CLOCK_OFF = f"""
{SHIM_ON}
printf '%-15s\\n' "$2" 1<> /run/hpcval/clock
"""
# The right time comes first: processes that run on keep the shim.
CLOCK_RIGHT = f"""
if [ -e /run/hpcval/clock ]; then printf '%-15s\\n' 0 1<> /run/hpcval/clock; fi
rm -f /run/hpcval/clock
{SHIM_OFF}
"""


def change_clock(cluster: Cluster, machine: str, word: str) -> None:
    """Put a node's clock so many seconds ahead (or, below 0, behind) for the Python that starts there, or `right`."""
    _shim(cluster, machine, "clock", CLOCK_RIGHT if word == "right" else CLOCK_OFF, word)


EPILOG = "/etc/slurm/epilog.sh"
# Words that are one setting of slurm.conf: seconds.
SECONDS = {"timeout": "SlurmdTimeout", "min_age": "MinJobAge"}
PREEMPT_MODES = ("cancel", "requeue")


def change_slurm(cluster: Cluster, words: list[str]) -> None:
    """Write Slurm's configuration with these faults, `healthy` with none, restart its daemons, wait for the nodes."""
    devices, count = True, GPUS_PER_NODE
    settings: dict[str, str] = {}
    preempt = ""
    epilog = "#!/bin/sh\n"
    for word in words:
        key, _sep, value = word.partition("=")
        if key == "confinement" and value in ("on", "off"):
            devices = value == "on"
        elif key == "gres" and value in map(str, range(GPUS_PER_NODE + 1)):
            count = int(value)
        elif key in SECONDS and value.isdecimal():
            settings[SECONDS[key]] = value
        elif key == "preempt" and value in PREEMPT_MODES:
            preempt = value.upper()
        elif key == "epilog" and value.isdecimal():
            settings["Epilog"] = EPILOG
            epilog += f"sleep {value}\n"
        elif word != "healthy":
            raise ClusterError(
                f"{word!r}: expected healthy, confinement=on|off, gres=0..{GPUS_PER_NODE}, "
                f"preempt={'|'.join(PREEMPT_MODES)}, or seconds for timeout=, min_age=, epilog="
            )
    files = {
        "slurm.conf": slurm_conf.slurm_conf(cluster, count, settings, preempt),
        "gres.conf": slurm_conf.gres_conf(count),
        "cgroup.conf": slurm_conf.cgroup_conf(cluster, devices),
    }
    for machine in cluster.machines:
        for name, text in files.items():
            shell(cluster, machine, 'cat > "$1"', f"/etc/slurm/{name}", text_in=text)
        shell(cluster, machine, 'cat > "$1" && chmod 755 "$1"', EPILOG, text_in=epilog)
    for action in ("stop", "start"):
        nodes.run_in(cluster, LOGIN, "node-service.sh", action, "slurmctld")
        for machine in cluster.compute:
            nodes.run_in(cluster, machine, "node-service.sh", action, "slurmd")
    nodes.wait_until("the nodes are up with the new configuration", 60, lambda: nodes.ready(cluster))
