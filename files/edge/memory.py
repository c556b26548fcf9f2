# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The memory that a process of this device can have, and what the kernel has ended for lack of it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from problem import Problem

# The runner takes up to 80 MB. With less than this a device reads its libraries from the disk again and again, for
# minutes, before the kernel ends anything.
NEEDED = 96 << 20  # bytes
FILES = (("memory.max", "memory.current", ""), ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_"))


def require(root: Path = Path("/")) -> None:
    """Raise Problem if what the runner takes is not there. A device that does not tell is taken to have it."""
    left = free(root)
    if left is not None and left < NEEDED:
        needed = f"{NEEDED / 1e6:.0f} MB"
        raise Problem("memory", f"{left / 1e6:.0f} MB of memory are free; measuring takes {needed}: end what holds it")


def free(root: Path = Path("/")) -> int | None:
    """Return how many bytes can be had, files' pages that can be read again included; None if nobody says."""
    found = [left for folder in _groups(root) for left in _of_group(folder)]
    for name, value in _pairs(root / "proc/meminfo").items():
        if name == "MemAvailable:":
            found.append(value * 1024)
    return max(0, min(found)) if found else None


def _of_group(folder: Path) -> Iterator[int]:
    """Yield what a control group leaves of its limit, if it has one."""
    for most, used, prefix in FILES:
        with suppress(OSError, ValueError):  # no such file, or "max"
            limit = int((folder / most).read_text())
            of = _pairs(folder / "memory.stat")
            files = sum(of.get(f"{prefix}{kind}_file", 0) for kind in ("active", "inactive"))
            yield limit - int((folder / used).read_text()) + files


def oom_kills(root: Path = Path("/")) -> int | None:
    """Return how many processes of this one's control group the kernel has ended for memory; None if nobody says."""
    for folder in _groups(root):
        for name in ("memory.events", "memory.oom_control"):
            found = _pairs(folder / name)
            if "oom_kill" in found:
                return found["oom_kill"]
    return None


def _groups(root: Path) -> Iterator[Path]:
    """Yield this process's control group for memory and those around it; in a container the last is its own."""
    try:
        lines = (root / "proc/self/cgroup").read_text(errors="replace").splitlines()
    except OSError:
        return
    for line in lines:
        if line.count(":") < 2:
            continue
        _number, controllers, path = line.split(":", 2)
        if controllers in ("", "memory"):
            base = root / "sys/fs/cgroup" / controllers
            group = Path(path.lstrip("/"))
            for each in (group, *group.parents):
                yield base / each


def _pairs(path: Path) -> dict[str, int]:
    """Return the names and whole numbers of a file's lines; what is neither is left out."""
    found = {}
    with suppress(OSError, ValueError):
        for line in path.read_text().splitlines():
            words = line.split()
            if len(words) > 1 and words[1].isdecimal():
                found[words[0]] = int(words[1])
    return found
