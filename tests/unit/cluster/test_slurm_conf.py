# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Slurm's configuration with and without its faults."""

from __future__ import annotations

import pytest
from hpcval_cluster import slurm_conf
from hpcval_cluster.state import Cluster


@pytest.mark.parametrize(
    ("count", "node", "gres"), [(2, "Gres=gpu:2", "nvidia[0-1]"), (1, "Gres=gpu:1", "nvidia[0-0]")]
)
def test_a_node_advertises_so_many_gpus(count, node, gres):
    assert node in slurm_conf.slurm_conf(Cluster("x"), count)
    assert gres in slurm_conf.gres_conf(count)


def test_a_node_without_gpus_knows_no_gres():
    assert "Gres" not in slurm_conf.slurm_conf(Cluster("x"), 0)
    assert slurm_conf.gres_conf(0) == ""


def test_confinement_of_devices_can_be_off_alone():
    confined = Cluster("x", cgroup="v2")
    assert "ConstrainDevices=yes" in slurm_conf.cgroup_conf(confined)
    text = slurm_conf.cgroup_conf(confined, devices=False)
    assert "ConstrainDevices=no" in text
    assert "ConstrainRAMSpace=yes" in text


def test_without_cgroups_nothing_of_slurm_touches_them():
    text = slurm_conf.slurm_conf(Cluster("x", cgroup="none"))
    assert "proctrack/linuxproc" in text
    assert "task/none" in text
    assert "CgroupPlugin=disabled" in slurm_conf.cgroup_conf(Cluster("x", cgroup="none"))


def test_a_fault_changes_one_setting() -> None:
    text = slurm_conf.slurm_conf(Cluster("x"), changes={"MinJobAge": "2", "Epilog": "/etc/slurm/epilog.sh"})
    assert "MinJobAge=2\n" in text
    assert "MinJobAge=300" not in text
    assert "Epilog=/etc/slurm/epilog.sh\n" in text


@pytest.mark.parametrize("mode", ["CANCEL", "REQUEUE"])
def test_an_urgent_partition_is_there_only_where_it_preempts(mode: str) -> None:
    text = slurm_conf.slurm_conf(Cluster("x"), preempt=mode)
    assert "PreemptType=preempt/partition_prio\n" in text
    assert f"PreemptMode={mode}\n" in text
    assert "PartitionName=urgent" in text
    healthy = slurm_conf.slurm_conf(Cluster("x"))
    assert "Preempt" not in healthy
    assert "urgent" not in healthy
