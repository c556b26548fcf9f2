# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether anything else ran on this core while something was measured."""

from __future__ import annotations

import resource
import time
from pathlib import Path
from typing import Any

import sensors

CPU_SHARE, RUN_DELAY = 0.95, 0.01  # of the wall time: less, or more, is a disturbance


def usage() -> dict[str, Any]:
    """Return this process's CPU time, its time in the run queue (s), and throttled periods of its control group."""
    return {
        "cpu": time.process_time(),
        "delay": run_delay(Path("/")),
        "throttled": throttled_periods(Path("/")),
        "switches": resource.getrusage(resource.RUSAGE_SELF).ru_nivcsw,
    }


def run_delay(root: Path) -> float | None:
    """Return for how many seconds this process has waited for the CPU; None: it is not known.

    A kernel that does not count says 0 0 0: a process that had no CPU would not read this.
    """
    fields = (sensors.text(root / "proc/self/schedstat") or "").split()
    ran, waited = fields[:2] if len(fields) > 1 else ("", "")
    return int(waited) / 1e9 if ran.isdigit() and waited.isdigit() and int(ran) else None


def throttled_periods(root: Path) -> int | None:
    """Return how many periods this process's control group, and those around it, were throttled in; None: unknown."""
    for line in (sensors.text(root / "proc/self/cgroup") or "").splitlines():
        if line.count(":") < 2:
            continue
        _number, controllers, path = line.split(":", 2)
        if controllers and "cpu" not in controllers.split(","):
            continue
        for base in (root / "sys/fs/cgroup" / each for each in ([controllers, "cpu"] if controllers else [""])):
            inner = Path(path.lstrip("/"))
            counts = [_throttled(base / each / "cpu.stat") for each in (inner, *inner.parents)]
            known = [count for count in counts if count is not None]
            if known:
                return sum(known)
    return None


def _throttled(stat: Path) -> int | None:
    found = dict(each.split() for each in (sensors.text(stat) or "").splitlines() if len(each.split()) == 2)
    count = found.get("nr_throttled", "")
    return int(count) if count.isdigit() else None


def found(before: dict[str, Any], after: dict[str, Any], wall: float) -> dict[str, Any]:
    """Return what shows whether something else ran on this core.

    Nobody waits for the CPU for longer than without it: where the kernel does not say for how long it waited, the CPU
    was its for so much of the time that it cannot have waited for too long, or that cannot be told.
    """
    share = (after["cpu"] - before["cpu"]) / wall
    delay = None if after["delay"] is None or before["delay"] is None else (after["delay"] - before["delay"]) / wall
    periods = (after["throttled"], before["throttled"])
    throttled = None if None in periods else periods[0] - periods[1]
    why = []
    if share < CPU_SHARE:
        why.append(f"the CPU was this process's for {share:.0%} of the time, expected {CPU_SHARE:.0%}")
    elif delay is None and share < 1 - RUN_DELAY:
        why.append(
            f"it cannot be told for how long it waited for the CPU: the kernel does not say, and the CPU was this "
            f"process's for {share:.1%} of the time, expected {1 - RUN_DELAY:.0%}"
        )
    if delay is not None and delay > RUN_DELAY:
        why.append(f"it waited for the CPU for {delay:.1%} of the time, expected at most {RUN_DELAY:.0%}")
    if throttled:
        why.append(f"its control group was throttled in {throttled} periods")
    return {
        "cpu_share": share,
        "run_delay": delay,
        "throttled_periods": throttled,
        "switches": after["switches"] - before["switches"],
        "undisturbed": not why,
        "disturbed_by": "; ".join(why) or "nothing",
    }
