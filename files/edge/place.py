# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The folder of ours on a device: whose it is, who measures there now, what room it has, what stays of older runs."""

from __future__ import annotations

import fcntl
import os
import shutil
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import strict_json
from problem import Problem

MARK, LOCK, REQUEST, RESULT = ".mlops-hpc-validation", "lock", "request.json", "result.json"
ASK_EVERY = 0.5  # seconds, for the lock
BLOCK = 4096  # bytes that a small file takes
MARGIN = 32 << 20  # bytes for what Python compiles, and for the result


def ours(name: str) -> Path:
    """Return the folder, made and marked as ours if it was not there or was empty. Raise Problem, or OSError."""
    folder = Path(os.path.expanduser(name))
    if not folder.is_absolute():
        raise Problem("files", f"{name} is no place: expected an absolute path, or one that begins with ~/")
    if folder.is_symlink():
        raise Problem(
            "files",
            f"{folder} is no folder but a link to {os.readlink(folder)}; name the folder itself in "
            "hpc_validation_edge_folder",
        )
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = folder.stat()
    if found.st_uid != os.geteuid() or _is_written_by_others(found):
        raise Problem(
            "files",
            f"{folder} belongs to user {found.st_uid}, group {found.st_gid} (mode {stat.S_IMODE(found.st_mode):o}), "
            f"and this is user {os.geteuid()}, group {os.getgid()}: expected a folder of its own that others cannot "
            "write to; name another in hpc_validation_edge_folder",
        )
    if not _is_marked(folder):
        others = sorted(set(os.listdir(folder)) - {MARK})
        if others and not _is_marked(folder):  # somebody may have begun here between the two looks
            raise Problem(
                "files",
                f"{folder} is not ours: it has no {MARK}, and in it is {others[0]}; empty it, or name another folder "
                "in hpc_validation_edge_folder",
            )
        (folder / MARK).touch(mode=0o600)
    return folder


def _is_written_by_others(found: os.stat_result) -> bool:
    """Return whether others may write there; the user's own group is taken for one that has no other members."""
    return bool(found.st_mode & stat.S_IWOTH or (found.st_mode & stat.S_IWGRP and found.st_gid != os.getgid()))


def _is_marked(folder: Path) -> bool:
    try:
        return stat.S_ISREG((folder / MARK).lstat().st_mode)
    except OSError:
        return False


@contextmanager
def sole(folder: Path, run: str, patience: float) -> Iterator[None]:
    """Be the only one that measures here; raise Problem after waiting ``patience`` seconds for another."""
    with open(os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600), "r+") as stream:
        deadline = time.monotonic() + patience
        while True:
            try:
                fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() >= deadline:
                    raise Problem("busy", _held(folder, patience)) from None
                time.sleep(ASK_EVERY)
        stream.truncate()
        stream.write(f"{run} {os.getpid()}\n")
        stream.flush()
        yield


def _held(folder: Path, patience: float) -> str:
    run, _space, pid = (folder / LOCK).read_text(errors="replace")[:300].strip().rpartition(" ")
    return (
        f"run {run or '(not said)'}, process {pid or '(not said)'}, has measured in {folder} for the {patience:g} s "
        "that this one waited; start again when it has ended"
    )


def tidy(folder: Path, run: str, keep: int) -> None:
    """Remove what runs that were ended at once have left, and all older runs but ``keep``; only what is a run's."""
    older = []
    for each in folder.iterdir():
        if each.name != run and _is_run(each):
            clean(each)
            older.append(((each / REQUEST).stat().st_mtime, each))
    for _time, each in sorted(older, reverse=True)[max(0, keep) :]:
        shutil.rmtree(each)


def _is_run(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink() and (path / REQUEST).is_file()


def fresh(folder: Path, run: str) -> Path:
    """Return an empty folder for a run; what an attempt of the same run left there is replaced."""
    path = folder / run
    if run in ("", MARK, LOCK) or run.startswith(".") or path.parent != folder or "/" in run:
        raise Problem("files", f"{run!r} is no name of a run's folder")
    if _is_run(path):
        shutil.rmtree(path)
    try:
        path.mkdir(mode=0o700)
    except FileExistsError:
        if path.is_symlink() or not path.is_dir() or any(path.iterdir()):
            raise Problem("files", f"{path} is there and is no run's folder (no {REQUEST}); move it away") from None
    return path


def room(folder: Path, sizes: list[int]) -> None:
    """Raise Problem if files of these sizes (bytes), and some more, do not fit."""
    needed = sum(sizes) + BLOCK * len(sizes) + MARGIN
    found = os.statvfs(folder)
    free = found.f_bavail * found.f_frsize
    if free < needed:
        raise Problem(
            "space", f"{folder} needs {needed / 1e6:.0f} MB while it measures, and {free / 1e6:.0f} MB are free there"
        )


def clean(run: Path, model: str | None = None) -> None:
    """Remove a run's packages, inputs and all models but one, as far as that goes; what tells of it stays.

    ``model``: the name of the file; None for any.
    """
    for each in list(run.iterdir()) if run.is_dir() else []:
        is_kept = each.name in (REQUEST, RESULT) or each.suffix == ".py"
        if is_kept or (each.suffix == ".onnx" and model in (None, each.name)):
            continue
        if each.is_dir() and not each.is_symlink():
            shutil.rmtree(each, ignore_errors=True)
        else:
            with suppress(OSError):
                each.unlink()


def read(path: Path, limit: int) -> dict[str, Any]:
    """Return the JSON object in a file. Raise OSError or ValueError."""
    with path.open("rb") as stream:
        content = stream.read(limit + 1)
    if len(content) > limit:
        raise ValueError(f"more than {limit} bytes")
    return strict_json.parse(content)
