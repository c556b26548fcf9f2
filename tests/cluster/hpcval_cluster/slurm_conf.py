# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The texts of Slurm's configuration files. Pure functions."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from hpcval_cluster.state import COMPUTE, FLEET, GPUS_PER_NODE, LOGIN, Cluster

CPUS = 16
MEMORY_MIB = 128 * 1024
DATABASE_PASSWORD = "local-only"
FIRST_PORT = 17001  # of a fleet's slurmd


def _release(cluster: Cluster) -> tuple[int, int]:
    year, month = cluster.release.split(".")
    return int(year), int(month)


def slurm_conf(
    cluster: Cluster,
    gpus: int = GPUS_PER_NODE,
    changes: Mapping[str, str] = MappingProxyType({}),
    preempt: str = "",
) -> str:
    """slurm.conf, the same on every host, with so many GPUs a node. `cluster.cgroup` is v1, v2 or none.

    With `preempt`, a PreemptMode, jobs of a second partition, urgent, preempt those of the first.
    """
    confined = cluster.cgroup != "none"
    nodes = ",".join(COMPUTE)
    settings = {
        "ClusterName": cluster.name,
        "SlurmctldHost": LOGIN,
        "SlurmUser": "slurm",
        "AuthType": "auth/munge",
        "CredType": "cred/munge",
        "StateSaveLocation": "/var/spool/slurmctld",
        "SlurmdSpoolDir": "/var/spool/slurmd",
        "SlurmctldPidFile": "/run/slurm/slurmctld.pid",
        "SlurmdPidFile": "/run/slurm/slurmd.pid",
        "SlurmctldLogFile": "/var/log/slurm/slurmctld.log",
        "SlurmdLogFile": "/var/log/slurm/slurmd.log",
        "MailProg": "/bin/true",
        "MpiDefault": "none",
        "ProctrackType": "proctrack/cgroup" if confined else "proctrack/linuxproc",
        "TaskPlugin": "task/cgroup" if confined else "task/none",
        "JobAcctGatherType": "jobacct_gather/linux",
        "JobAcctGatherFrequency": "5",
        "SelectType": "select/cons_tres",
        "SelectTypeParameters": "CR_Core_Memory",
        "GresTypes": "gpu" if gpus else "",
        # The nodes pretend to be larger than this machine, so that job scripts keep the sizes they have at a real site.
        "SlurmdParameters": "config_overrides",
        "ReturnToService": "2",
        "SlurmdTimeout": "60",
        "KillWait": "5",
        "MinJobAge": "300",
        "SchedulerType": "sched/backfill",
        "SchedulerParameters": "batch_sched_delay=0,sched_interval=5,sched_min_interval=10000,bf_interval=5",
        "AccountingStorageType": "accounting_storage/slurmdbd" if cluster.accounting else "accounting_storage/none",
    }
    if cluster.accounting:
        settings["AccountingStorageHost"] = LOGIN
        settings["AccountingStorageTRES"] = "gres/gpu" if gpus else ""
    if preempt:
        settings |= {"PreemptType": "preempt/partition_prio", "PreemptMode": preempt}
    settings.update(changes)
    lines = [f"{key}={value}" for key, value in settings.items() if value]
    gres = f" Gres=gpu:{gpus}" if gpus else ""
    lines.append(f"NodeName={nodes} CPUs={CPUS} RealMemory={MEMORY_MIB}{gres} State=UNKNOWN")
    limits = "State=UP DefaultTime=00:30:00 MaxTime=2-00:00:00 DefMemPerCPU=2048"
    lines.append(f"PartitionName=gpu Nodes={nodes} Default=YES {limits}")
    if cluster.fleet:
        first, last = cluster.fleet_nodes[0], cluster.fleet_nodes[-1]
        names, ports = f"n[{first[1:]}-{last[1:]}]", f"[{FIRST_PORT}-{FIRST_PORT + cluster.fleet - 1}]"
        lines.append(
            f"NodeName={names} NodeAddr={FLEET} Port={ports} CPUs={CPUS} RealMemory={MEMORY_MIB}{gres} State=UNKNOWN"
        )
        lines.append(f"PartitionName={FLEET} Nodes={names} {limits}")
    if preempt:
        lines.append(f"PartitionName=urgent Nodes={nodes} PriorityTier=2 DefaultTime=00:30:00 DefMemPerCPU=2048")
    return "\n".join(lines) + "\n"


def gres_conf(gpus: int = GPUS_PER_NODE) -> str:
    """gres.conf: the simulated GPUs' device files."""
    return f"Name=gpu File=/dev/nvidia[0-{gpus - 1}]\n" if gpus else ""


def cgroup_conf(cluster: Cluster, devices: bool = True) -> str:
    """cgroup.conf for the confinement this machine allows, with or without that of devices."""
    if cluster.cgroup == "none":
        # 22.05 does not know the word, and needs none: nothing it loads then touches cgroups.
        return "CgroupPlugin=disabled\n" if _release(cluster) >= (23, 11) else "CgroupAutomount=no\n"
    lines = [
        f"CgroupPlugin=cgroup/{cluster.cgroup}",
        f"ConstrainDevices={'yes' if devices else 'no'}",
        "ConstrainRAMSpace=yes",
        # Sixteen advertised cores do not exist here, so none can be assigned.
        "ConstrainCores=no",
    ]
    if cluster.cgroup == "v2":
        lines.append("IgnoreSystemd=yes")
    return "\n".join(lines) + "\n"


def slurmdbd_conf() -> str:
    """slurmdbd.conf: MariaDB beside it on the login node."""
    return (
        f"DbdHost={LOGIN}\n"
        "SlurmUser=slurm\n"
        "AuthType=auth/munge\n"
        "StorageType=accounting_storage/mysql\n"
        "StorageHost=localhost\n"
        "StorageLoc=slurm_acct_db\n"
        "StorageUser=slurm\n"
        f"StoragePass={DATABASE_PASSWORD}\n"
        "LogFile=/var/log/slurm/slurmdbd.log\n"
        "PidFile=/run/slurm/slurmdbd.pid\n"
    )
