# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Find runs whose controller was killed, or lost its power: jobs of their preflight may still be in the queue."""

from __future__ import annotations

import os
import platform
import typing as t
from pathlib import Path

from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._common.json_files import read_json
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._run import runs

Json = dict[str, t.Any]
PROC = Path("/proc")
# By then the jobs have ended: each has a deadline of its own.
HOURS = 3


def process(pid: int | None = None, proc: Path = PROC) -> Json | None:
    """Return {host, boot, pid, began} of the play, by which another run can tell that it is over; None if unknown.

    By default it is this process's parent: actions run in children of ansible-playbook.
    """
    pid = os.getppid() if pid is None else pid
    boot, began = _boot(proc), _began(pid, proc)
    return {"host": platform.node(), "boot": boot, "pid": pid, "began": began} if boot and began else None


def interrupted(results: Path, now: float, proc: Path = PROC) -> list[str]:
    """Return the runs of the last hours that have not finished and whose play is over. Raise nothing."""
    try:
        folders = sorted(runs.runs(results), key=lambda folder: folder.name)
    except OSError:
        return []
    return [folder.name for folder in folders if _is_interrupted(folder, now, proc)]


def _is_interrupted(folder: Path, now: float, proc: Path) -> bool:
    try:
        plan, verdict = read_json(folder / "plan.json"), read_json(folder / "verdict.json")
        is_recent = 0 <= now - plan["started"] < HOURS * 3600
        return is_recent and verdict["finished"] is None and _is_over(plan["process"], proc)
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return False


def _is_over(told: t.Any, proc: Path) -> bool:
    """Return whether that process has ended; of another host's nothing is known."""
    if told["host"] != platform.node():
        return False
    return bool(told["boot"] != _boot(proc) or told["began"] != _began(told["pid"], proc))


def _boot(proc: Path) -> str:
    try:
        return (proc / "sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return ""


def _began(pid: int, proc: Path) -> str:
    """Return when a process began, in clock ticks since the boot; empty if there is none."""
    try:
        # Its name, in brackets, may hold anything.
        fields = (proc / str(pid) / "stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    except OSError:
        return ""
    return "".join(fields[19:20])  # the 22nd of all
