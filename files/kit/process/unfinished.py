# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Files and folders created next to their target and renamed when complete, and those left by killed processes."""

from __future__ import annotations

import glob
import os
import shutil
import socket
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

ABANDONED_AFTER = 6 * 3600  # seconds: after this, another host's unfinished file no longer has a process


def beside(target: Path) -> Path:
    """Return the path at which this process creates ``target``."""
    return target.with_name(f"{_own_prefix(target)}{os.getpid()}")


def _own_prefix(target: Path) -> str:
    return f".building-{target.name}-{socket.gethostname()}-"


def remove_beside(target: Path) -> None:
    """Remove what dead processes left next to ``target``: on this host all, since we hold the lock; others if old."""
    found = list(target.parent.glob(f".building-{glob.escape(target.name)}-*"))
    own = [path for path in found if path.name.startswith(_own_prefix(target))]
    for path in own:
        remove(path)
    remove_abandoned(set(found) - set(own))


def remove_abandoned(found: Iterable[Path]) -> None:
    """Remove those that are ours and old; a younger one may belong to a running process."""
    for path in found:
        with suppress(FileNotFoundError):  # its process has just ended
            status = path.lstat()
            if status.st_uid == os.getuid() and time.time() - status.st_mtime > ABANDONED_AFTER:
                remove(path)


def remove(path: Path) -> None:
    """Remove a folder, a file, or a link but not its target."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
