# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whose a process on a GPU is."""

from __future__ import annotations

import types
import typing as t

from kit.gpu import nvml, processes
from kit.gpu.reader import Reader

from tests.unit.kit.conftest import FakeNode
from tests.unit.kit.fake_nvml import NVMLError_NotSupported, fake_pynvml, gpu


def process(node: FakeNode, pid: int, parent: int, session: int, cgroup: str = "/user.slice") -> None:
    node.write(f"proc/{pid}/stat", f"{pid} (a b) c) S {parent} {pid} {session} 0 -1\n")
    node.write(f"proc/{pid}/cgroup", f"0::{cgroup}\n")


def test_a_job_has_its_cgroup_its_session_and_its_ancestors(fake_node: FakeNode) -> None:
    job = "/system.slice/slurmstepd.scope/job_7/step_0/user/task_0"
    process(fake_node, 10, 1, 5)
    process(fake_node, 20, 10, 20, job)
    process(fake_node, 30, 1, 30, "/slurm/uid_0/job_7/step_batch")
    process(fake_node, 40, 1, 40, job.replace("job_7", "job_71"))
    process(fake_node, 50, 1, 20)
    mine = processes.Mine(fake_node.root / "proc", 20)
    assert [pid for pid in (10, 20, 30, 40, 50, 60) if mine.has(pid)] == [10, 20, 30, 50]


def test_without_slurm_others_are_others(fake_node: FakeNode) -> None:
    process(fake_node, 20, 1, 20)
    process(fake_node, 30, 1, 30)
    mine = processes.Mine(fake_node.root / "proc", 20)
    assert (mine.has(20), mine.has(30), mine.has(99)) == (True, False, False)


def test_an_unreadable_proc_makes_nobody_ones_own(fake_node: FakeNode) -> None:
    fake_node.write("proc/20/stat", "nonsense")
    mine = processes.Mine(fake_node.root / "proc", 20)
    assert (mine.has(30), mine.has(0)) == (False, False)


def read(node: FakeNode, **calls: t.Any) -> tuple[t.Any, dict[str, str]]:
    device = gpu(0, calls={f"nvmlDeviceGet{kind}RunningProcesses": answer for kind, answer in calls.items()})
    module = fake_pynvml(device)
    reader = Reader(module, nvml.describe(module, 0), node.root)
    return processes.running(reader)["processes"], reader.unsupported


def test_a_process_that_has_ended_meanwhile_is_not_among_them(fake_node: FakeNode) -> None:
    process(fake_node, 11, 1, 11)
    answers = iter([[11, 12], [11]])

    def listed(_handle: t.Any) -> list[t.Any]:
        return [types.SimpleNamespace(pid=pid, usedGpuMemory=2**64 - 1) for pid in next(answers)]

    assert read(fake_node, Compute=listed) == ([{"pid": 11, "memory": None, "kind": "compute", "ours": False}], {})


def test_kinds_may_be_missing_but_compute_may_not(fake_node: FakeNode) -> None:
    no = NVMLError_NotSupported()
    assert read(fake_node, Graphics=no) == ([], {"processes.graphics": "NotSupported"})
    assert read(fake_node, Compute=no, Graphics=no) == (None, {"processes": "NotSupported"})
