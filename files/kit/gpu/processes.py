# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The processes on one GPU, and which of them belong to this job."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from kit.gpu.reader import Reader

KINDS = {"compute": "Compute", "graphics": "Graphics", "mps": "MPSCompute"}
NO_MEMORY_SHOWN = 2**64 - 1
JOB = re.compile(r"/job_(\d+)(?:/|$)", re.MULTILINE)


def running(gpu: Reader) -> dict[str, Any]:
    """Return the processes that NVML shows; one that ended meanwhile is not among them."""
    found = _listed(gpu)
    if found and not all((gpu.root / f"proc/{process['pid']}").exists() for process in found):
        found = _listed(gpu)
    if found is None:
        return {"processes": None}
    mine = Mine(gpu.root / "proc")
    return {"processes": [{**process, "ours": mine.has(process["pid"])} for process in found]}


def _listed(gpu: Reader) -> list[dict[str, Any]] | None:
    found = []
    for kind, word in KINDS.items():
        calls = [(f"nvmlDeviceGet{word}RunningProcesses{version}", ()) for version in ("", "_v2")]
        listed = gpu.read_first(f"processes.{kind}", *calls)
        for process in listed or []:
            memory = process.usedGpuMemory
            found.append({"pid": process.pid, "memory": None if memory == NO_MEMORY_SHOWN else memory, "kind": kind})
    why = gpu.unsupported.get("processes.compute")
    if why is None:
        return found
    for kind in KINDS:
        gpu.unsupported.pop(f"processes.{kind}", None)
    gpu.unsupported["processes"] = why
    return None


class Mine:
    """Distinguishes this job's processes from others: by Slurm's cgroup, by session, by ancestry."""

    def __init__(self, proc: Path = Path("/proc"), pid: int | None = None) -> None:
        """Take the process ``pid`` (default: this one) as the job's."""
        self._proc = proc
        own = os.getpid() if pid is None else pid
        self._jobs = self._jobs_of(own)
        _other, self._session = self._parent_and_session(own)
        self._ancestors: set[int] = set()
        while own > 1 and own not in self._ancestors:
            self._ancestors.add(own)
            own, _other = self._parent_and_session(own)

    def has(self, pid: int) -> bool:
        """Return whether ``pid`` belongs to this job; one that cannot be seen does not."""
        if self._jobs and self._jobs & self._jobs_of(pid):
            return True
        _other, session = self._parent_and_session(pid)
        return pid in self._ancestors or (session > 0 and session == self._session)

    def _jobs_of(self, pid: int) -> set[str]:
        try:
            return set(JOB.findall((self._proc / f"{pid}/cgroup").read_text(errors="replace")))
        except OSError:
            return set()

    def _parent_and_session(self, pid: int) -> tuple[int, int]:
        try:
            after_name = (self._proc / f"{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
            return int(after_name[1]), int(after_name[3])
        except (OSError, ValueError, IndexError):
            return 0, 0
