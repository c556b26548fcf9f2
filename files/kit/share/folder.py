# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A temporary private folder on the share, and the removal of folders left by earlier runs."""

from __future__ import annotations

import os
import re
import secrets
import shutil
import socket
import time
from pathlib import Path

DAY = 86400.0


def private_name() -> str:
    """Return a name for a folder of this process, which shows its owner; two hosts may have the same name."""
    return f".check-{socket.gethostname()}-{os.getpid()}.{secrets.token_hex(4)}"


def make(folder: Path) -> None:
    """Make the private folder. Raise OSError."""
    os.mkdir(folder, 0o700)
    try:
        os.chmod(folder, 0o700)  # whatever the umask or a default ACL made it
    except OSError:
        os.rmdir(folder)
        raise


def remove(folder: Path) -> None:
    """Remove the private folder and all in it. Raise OSError."""
    if folder.exists():
        shutil.rmtree(folder)


def leftovers(parent: Path) -> list[str]:
    """Remove folders left by this user's runs more than a day ago; return their names."""
    removed = []
    for entry in os.scandir(parent):
        match = re.fullmatch(r"\.check-(.+)-(\d+)(?:\.[0-9a-f]{8})?", entry.name)  # older ones end with the process
        if not match or not entry.is_dir(follow_symlinks=False):
            continue
        said = entry.stat(follow_symlinks=False)
        alive = match[1] == socket.gethostname() and os.path.exists(f"/proc/{match[2]}")
        if said.st_uid == os.geteuid() and time.time() - said.st_mtime > DAY and not alive:
            shutil.rmtree(entry.path)
            removed.append(entry.name)
    return removed
