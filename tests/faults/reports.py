# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Damage what one node of a preflight has reported, on the share, before it is gathered."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

PART = "share.json"  # what a job writes last
HUGE = 500_000_000  # bytes; the file has a hole


def whole(folder: Path) -> dict[str, Path]:
    """The folders of the newest run in which a job has written its whole report, by node."""
    found = {}
    run = max(folder.glob("*"), default=folder)
    for path in run.glob(f"[0-9]*/{PART}"):
        try:
            found[json.loads(path.read_text(encoding="utf-8"))["node"]] = path.parent
        except (OSError, ValueError, KeyError):
            continue
    return found


def truncated(report: Path, _others: Path) -> None:
    """Cut the part off in its middle."""
    os.truncate(report / PART, (report / PART).stat().st_size // 2)


def foreign(report: Path, other: Path) -> None:
    """Put the part of another node in its place."""
    shutil.copy(other / PART, report / PART)


def old(report: Path, _other: Path) -> None:
    """Make it a day old."""
    content = json.loads((report / PART).read_text(encoding="utf-8"))
    (report / PART).write_text(json.dumps({**content, "time": content["time"] - 86400}), encoding="utf-8")


def huge(report: Path, _other: Path) -> None:
    """Make it larger than anybody wants to read."""
    os.truncate(report / PART, HUGE)


def absent(report: Path, _other: Path) -> None:
    """Remove all of it."""
    shutil.rmtree(report)


DAMAGES: dict[str, Callable[[Path, Path], None]] = {
    damage.__name__: damage for damage in (truncated, foreign, old, huge, absent)
}
