# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Open files written by a job; their content is untrusted. PRIVATE to the collection."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from typing import BinaryIO

from ansible_collections.mlops.hpc_validation.plugins.module_utils._common import scalars

# How many names of a folder a message lists, the most that are read, and the longest each may be.
MAX_LISTED = 10
MAX_NAMES = 1000
MAX_NAME = 60


class EvidenceError(Exception):
    """A file cannot be used as evidence; `problem` is the schema's word for it, `detail` is what was found."""

    def __init__(self, problem: str, detail: str) -> None:
        super().__init__(f"{problem}: {detail}")
        self.problem = problem
        self.detail = detail


@dataclass
class OpenFile:
    """A regular file opened for reading; sizes in bytes, `mtime` in seconds since the epoch."""

    path: str
    stream: BinaryIO
    size: int
    mtime: float


@contextmanager
def open_regular(path: str, root: str | None) -> Iterator[OpenFile]:
    """Open `path` if it is a regular file that lies below `root` (None: anywhere), else raise EvidenceError.

    On leaving, check that the file was not written to meanwhile.
    """
    if root is not None and os.path.islink(root):
        raise EvidenceError("not_regular", f"{root} is a symbolic link")
    target = os.path.realpath(path) if root is not None else path
    if root is not None and not _below(target, os.path.realpath(root)):
        raise EvidenceError("not_regular", f"it leads out of {root}, to {target}")
    try:
        _require_regular(os.lstat(target))
        # O_NONBLOCK: if a FIFO takes the file's place between the two calls, opening it must not wait for a writer.
        descriptor = os.open(target, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    except FileNotFoundError as exc:
        raise EvidenceError("missing", "there is no such file") from exc
    except OSError as exc:
        raise EvidenceError("unreadable", exc.strerror or str(exc)) from exc
    with os.fdopen(descriptor, "rb", buffering=0) as stream:
        before = os.fstat(descriptor)
        _require_regular(before)
        if root is not None:
            _require_still_below(descriptor, root)
        try:
            yield OpenFile(path, stream, before.st_size, before.st_mtime)
            after = os.fstat(descriptor)
        except OSError as exc:
            raise EvidenceError("unreadable", exc.strerror or str(exc)) from exc
        if (before.st_size, before.st_mtime_ns) != (after.st_size, after.st_mtime_ns):
            raise EvidenceError("changed", f"it was modified while it was read ({before.st_size} bytes at first)")


def whereabouts(path: str, root: str) -> str:
    """Return the folder in which the missing `path` was looked for, and its content, bounded and printable.

    If that folder is missing as well, list the nearest existing parent, but none above `root`.
    """
    folder, missing = os.path.dirname(os.path.normpath(path)), []
    top = os.path.normpath(root)
    while not os.path.isdir(folder) and folder != top:
        missing.append(folder)
        folder = os.path.dirname(folder)
    said = [f"folder {missing[-1]} does not exist"] if missing else []
    return scalars.printable("; ".join([*said, _contents(folder, top)]))


def _contents(folder: str, root: str) -> str:
    if not _below(os.path.realpath(folder), os.path.realpath(root)):
        return f"{folder} leads out of {root}"
    try:
        with os.scandir(folder) as entries:
            found = sorted(
                entry.name + ("/" if entry.is_dir(follow_symlinks=False) else "")
                for entry in islice(entries, MAX_NAMES)
            )
    except FileNotFoundError:
        return f"folder {folder} does not exist"
    except OSError as exc:
        return f"{folder} cannot be listed: {exc.strerror or exc}"
    if not found:
        return f"{folder} is empty"
    names = [name if len(name) <= MAX_NAME else name[: MAX_NAME - 1] + "…" for name in found[:MAX_LISTED]]
    count = len(found) - len(names)
    least = "at least " if len(found) == MAX_NAMES else ""
    return f"{folder} holds {', '.join(names)}{f' and {least}{count} more' if count else ''}"


def _below(path: str, root: str) -> bool:
    return os.path.commonpath([path, root]) == root


def _require_regular(found: os.stat_result) -> None:
    mode = found.st_mode
    if not stat.S_ISREG(mode):
        kinds = {
            stat.S_IFLNK: "a symbolic link",
            stat.S_IFDIR: "a directory",
            stat.S_IFIFO: "a FIFO",
            stat.S_IFCHR: "a device",
            stat.S_IFBLK: "a device",
            stat.S_IFSOCK: "a socket",
        }
        raise EvidenceError("not_regular", f"it is {kinds.get(stat.S_IFMT(mode), 'not a regular file')}")


def _require_still_below(descriptor: int, root: str) -> None:
    """Check where the opened file is: a parent may have been replaced by a link since the path was resolved."""
    try:
        opened = os.readlink(f"/proc/self/fd/{descriptor}")
    except OSError as exc:
        raise EvidenceError("unreadable", f"the kernel did not report what was opened: {exc.strerror or exc}") from exc
    if not _below(opened, os.path.realpath(root)):
        raise EvidenceError("not_regular", f"it leads out of {root}, to {opened}")
