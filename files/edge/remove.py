# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Remove our folder from a device: python3 remove.py FOLDER

Only a folder that has our mark, belongs to this user and in which nothing measures; what somebody else has put into it
stays, and it too. Standard library, Python 3.8.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import stat
import sys
from typing import Any

MARK, LOCK, REQUEST = ".mlops-hpc-validation", "lock", "request.json"


def main() -> int:
    """Print the line; return the exit code."""
    path = os.path.expanduser(sys.argv[1])
    said: dict[str, Any] = {"schema": 1, "folder": path, "removed": False, "kept": None, "problem": None}
    try:
        said.update(remove(path))
    except OSError as error:
        said["problem"] = {"id": "files", "text": str(error)}
    print("HPC_VALIDATION_EDGE " + json.dumps(said, sort_keys=True))
    return 1 if said["problem"] else 0


def remove(path: str) -> dict[str, Any]:
    """Remove the folder; return what is to be said of it."""
    if not os.path.isabs(path):
        return refused("files", f"{path} is no place: expected an absolute path, or one that begins with ~/")
    path = path.rstrip("/") or "/"  # with a slash behind it a link is what it leads to
    if not os.path.lexists(path):
        return {"removed": False}
    if os.path.islink(path):
        return refused("files", f"{path} is no folder but a link to {os.readlink(path)}; it stays")
    if not os.path.isdir(path):
        return refused("files", f"{path} is no folder; it stays")
    if not marked(path):
        if os.listdir(path):
            return refused("files", f"{path} has no {MARK}: it is not ours, and stays")
        return {"removed": False}
    if os.stat(path).st_uid != os.geteuid():
        return refused("files", f"{path} belongs to user {os.stat(path).st_uid}; it stays")
    lock = os.open(os.path.join(path, LOCK), os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return refused("busy", f"something measures in {path} now; it stays")
    else:
        return cleared(path)
    finally:
        os.close(lock)


def cleared(path: str) -> dict[str, Any]:
    """Remove the runs in our folder, and itself if nothing else is there; return what is to be said of it."""
    runs = [each.path for each in os.scandir(path) if is_run(each)]
    for each in runs:
        shutil.rmtree(each)
    others = sorted(set(os.listdir(path)) - {MARK, LOCK})
    if others:
        return {"removed": bool(runs), "kept": others[0]}
    shutil.rmtree(path)
    return {"removed": True}


def is_run(entry: os.DirEntry[str]) -> bool:
    """Return whether a run of ours has made it, or has just begun to."""
    if not entry.is_dir(follow_symlinks=False):
        return False
    return os.path.isfile(os.path.join(entry.path, REQUEST)) or not os.listdir(entry.path)


def marked(path: str) -> bool:
    """Return whether the folder has our mark, a regular file."""
    try:
        return stat.S_ISREG(os.lstat(os.path.join(path, MARK)).st_mode)
    except OSError:
        return False


def refused(problem: str, text: str) -> dict[str, Any]:
    """Return why it stays."""
    return {"problem": {"id": problem, "text": text}}


if __name__ == "__main__":
    sys.exit(main())
