# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The memory that can be had on a device, by the kernel's and the control groups' words."""

from __future__ import annotations

import pytest
from edge import memory
from problem import Problem

MIB = 1 << 20
MEMINFO = "Odd\nVersion: two\nMemTotal: 2000000 kB\nMemFree: 10 kB\nMemAvailable:   1000000 kB\nHugePages_Total: 0"
PLENTY = 1000000 * 1024
V2 = "sys/fs/cgroup"
V1 = "sys/fs/cgroup/memory"


def v2(folder: str, most: object, used: int, files: int = 0) -> dict[str, object]:
    """A control group's files; as much of its files' pages is active as not."""
    stat = f"anon 5\ninactive_file {files // 2}\nactive_file {files // 2}"
    return {f"{folder}/memory.max": most, f"{folder}/memory.current": used, f"{folder}/memory.stat": stat}


def v1(folder: str, most: int, used: int, files: int = 0) -> dict[str, object]:
    stat = f"inactive_file 7\nactive_file 7\ntotal_inactive_file {files // 2}\ntotal_active_file {files // 2}"
    return {
        f"{folder}/memory.limit_in_bytes": most,
        f"{folder}/memory.usage_in_bytes": used,
        f"{folder}/memory.stat": stat,
    }


@pytest.mark.parametrize(
    ("group", "files", "left"),
    [
        ("0::/", {}, PLENTY),
        ("0::/a/b", v2(f"{V2}/a/b", 300 * MIB, 200 * MIB), 100 * MIB),
        ("0::/a/b", v2(f"{V2}/a/b", 300 * MIB, 200 * MIB, 50 * MIB), 150 * MIB),
        ("0::/a/b", {**v2(f"{V2}/a/b", "max", 200 * MIB), **v2(f"{V2}/a", 90 * MIB, 80 * MIB)}, 10 * MIB),
        ("0::/outside", v2(V2, 90 * MIB, 80 * MIB), 10 * MIB),
        ("0::/a:b", v2(f"{V2}/a:b", 90 * MIB, 80 * MIB), 10 * MIB),
        ("0::/a", {f"{V2}/a/memory.max": 90 * MIB, f"{V2}/a/memory.current": 80 * MIB}, 10 * MIB),
        ("0::/a", v2(f"{V2}/a", 80 * MIB, 90 * MIB), 0),
        ("5:memory:/a", v1(f"{V1}/a", 300 * MIB, 200 * MIB, 40 * MIB), 140 * MIB),
        ("5:memory:/a", v1(V1, 300 * MIB, 200 * MIB), 100 * MIB),
        ("5:memory:/a", v1(f"{V1}/a", 0x7FFFFFFFFFFFF000, 200 * MIB), PLENTY),
        ("4:cpu:/a\n0::/a", v1("sys/fs/cgroup/cpu/a", 1, 1), PLENTY),
    ],
)
def test_the_least_of_what_the_device_and_its_control_groups_leave_can_be_had(tree, group, files, left):
    assert memory.free(tree(**{"proc/meminfo": MEMINFO, "proc/self/cgroup": group, **files})) == left


@pytest.mark.parametrize(
    "files", [{}, {"proc/meminfo": "MemTotal: 5 kB"}, {"proc/self/cgroup": "0::/", f"{V2}/memory.max": "max"}]
)
def test_where_nobody_says_nothing_is_refused(tree, files):
    root = tree(**files)
    assert memory.free(root) is None
    memory.require(root)


def test_lines_that_name_no_group_are_left_out(tree):
    root = tree(**{"proc/meminfo": MEMINFO})
    (root / "proc/self").mkdir()
    (root / "proc/self/cgroup").write_bytes(b"garbage\n\xff\xfe\n0::/a\n")
    assert memory.free(root) == PLENTY
    assert memory.oom_kills(root) is None


def test_too_little_is_refused_with_the_numbers(tree):
    least = memory.NEEDED // 1024
    memory.require(tree(**{"proc/meminfo": f"MemAvailable: {least} kB"}))
    with pytest.raises(Problem) as refused:
        memory.require(tree(**{"proc/meminfo": f"MemAvailable: {least - 1} kB"}))
    assert refused.value.id == "memory"
    assert str(refused.value) == "101 MB of memory are free; measuring takes 101 MB: end what holds it"


@pytest.mark.parametrize(
    ("group", "file", "text", "count"),
    [
        ("0::/a/b", f"{V2}/a/b/memory.events", "low 0\noom 3\noom_kill 2", 2),
        ("0::/outside", f"{V2}/memory.events", "oom_kill 1", 1),
        ("5:memory:/a", f"{V1}/a/memory.oom_control", "oom_kill_disable 0\noom_kill 7", 7),
        ("0::/a", "other", "x", None),
    ],
)
def test_processes_that_were_ended_for_memory_are_counted(tree, group, file, text, count):
    assert memory.oom_kills(tree(**{"proc/self/cgroup": group, file: text})) == count
