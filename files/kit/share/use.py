# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks of the share in use: each does one thing in a private folder and returns what it saw. Nothing is judged."""

from __future__ import annotations

import errno
import fcntl
import hashlib
import mmap
import os
import stat
import struct
import subprocess
from pathlib import Path
from typing import Any, Callable

Seen = dict[str, Any]
BYTES = 4 << 20  # size of the file that is read back
SPARSE_BYTES = 64 << 20
LARGE_OFFSET = 5 << 30  # does not fit into 32 bits
MANY = 200


def write_file(path: Path | str, content: bytes, *, flags: int = os.O_CREAT | os.O_EXCL, sync: bool = True) -> None:
    """Write `content` to `path`, to the servers' disks if `sync`. Raise OSError."""
    descriptor = os.open(path, os.O_WRONLY | flags, 0o600)
    try:
        view = memoryview(content)
        while view:
            view = view[os.write(descriptor, view) :]
        if sync:
            os.fsync(descriptor)
    finally:
        os.close(descriptor)


def forget(path: Path) -> str:
    """Drop the cached pages of `path`, so that it is read from the servers; return how."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    finally:
        os.close(descriptor)
    return "POSIX_FADV_DONTNEED"


def read_direct(path: Path, size: int) -> bytes:
    """Read past the client's cache with O_DIRECT. Raise OSError if the file system does not support it."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECT)
    try:
        with mmap.mmap(-1, size) as buffer:
            done = 0
            while done < size:
                count = os.preadv(descriptor, [memoryview(buffer)[done:]], done)
                if count == 0:
                    break
                done += count
            return bytes(buffer[:done])
    finally:
        os.close(descriptor)


def fsync_read_back(folder: Path) -> Seen:
    """Write, fsync, forget, read."""
    content = _unlike(BYTES)
    path = folder / "file"
    write_file(path, content)
    how = forget(path)
    try:
        found = read_direct(path, BYTES)
        how = "O_DIRECT"
    except OSError:
        found = path.read_bytes()
    written = hashlib.sha256(content).hexdigest()
    return {
        "written": written,
        "read": written if found == content else hashlib.sha256(found).hexdigest(),
        "bytes": len(found),
        "past_cache_by": how,
    }


def _unlike(size: int) -> bytes:
    """Return so many bytes of which no two blocks of 64 KiB are alike, or like those of another call."""
    block = os.urandom((64 << 10) - 8)
    return b"".join(number.to_bytes(8, "big") + block for number in range(size // (64 << 10)))


def rename(folder: Path) -> Seen:
    """Rename over a file that exists."""
    write_file(folder / "old", b"old")
    write_file(folder / "new", b"new")
    os.replace(folder / "new", folder / "old")
    return {"content": (folder / "old").read_text(), "source_left": (folder / "new").exists()}


def append(folder: Path) -> Seen:
    """Append to a file twice."""
    write_file(folder / "log", b"first ")
    write_file(folder / "log", b"second ", flags=os.O_APPEND)
    write_file(folder / "log", b"third", flags=os.O_APPEND)
    return {"content": (folder / "log").read_text()}


def hard_link(folder: Path) -> Seen:
    """Give a file a second name."""
    write_file(folder / "one", b"linked")
    os.link(folder / "one", folder / "two")
    links = os.stat(folder / "two").st_nlink
    os.unlink(folder / "one")
    return {"links": links, "content": (folder / "two").read_text()}


def symbolic_link(folder: Path) -> Seen:
    """Create a symbolic link and read through it; environments use them."""
    write_file(folder / "target", b"pointed at")
    os.symlink("target", folder / "link")
    return {"target": os.readlink(folder / "link"), "content": (folder / "link").read_text()}


def _by_another(path: Path, lock: Callable[[int], None]) -> str:
    """Have a second process try to take the lock; return granted, refused or the error's name."""
    process = os.fork()
    if process == 0:
        code = 255
        try:
            lock(os.open(path, os.O_RDWR))
            code = 0
        except OSError as error:
            code = error.errno or 255
        finally:
            os._exit(code)
    code = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
    if code in (errno.EWOULDBLOCK, errno.EACCES):
        return "refused"
    return "granted" if code == 0 else errno.errorcode.get(code, f"ended with {code}")


def _locked(folder: Path, lock: Callable[[int, int], None]) -> Seen:
    path = folder / "lock"
    write_file(path, b"lock")
    descriptor = os.open(path, os.O_RDWR)
    try:
        lock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        held = _by_another(path, lambda other: lock(other, fcntl.LOCK_EX | fcntl.LOCK_NB))
        lock(descriptor, fcntl.LOCK_UN)
        released = _by_another(path, lambda other: lock(other, fcntl.LOCK_EX | fcntl.LOCK_NB))
    finally:
        os.close(descriptor)
    return {"while_held": held, "after_release": released}


def flock(folder: Path) -> Seen:
    """Lock a whole file; a second process must be refused."""
    return _locked(folder, fcntl.flock)


def fcntl_lock(folder: Path) -> Seen:
    """Lock a file's bytes; a second process must be refused."""
    return _locked(folder, fcntl.lockf)


def permissions(folder: Path) -> Seen:
    """Set modes and read them back."""

    def mode(path: Path) -> str:
        return f"{stat.S_IMODE(os.stat(path).st_mode):04o}"

    write_file(folder / "file", b"")
    os.mkdir(folder / "folder")
    os.chmod(folder / "file", 0o640)
    seen = {"file": mode(folder / "file")}
    os.chmod(folder / "folder", 0o755)  # noqa: S103 in a folder of mode 0700
    seen["folder"] = mode(folder / "folder")
    os.chmod(folder / "folder", 0o2755)  # noqa: S103
    return {**seen, "setgid_folder": mode(folder / "folder")}


def sparse(folder: Path) -> Seen:
    """Write only the end of a file; the hole must read as zeros."""
    path = folder / "sparse"
    with open(path, "wb") as stream:
        stream.seek(SPARSE_BYTES)
        stream.write(b"end")
    said = os.stat(path)
    with open(path, "rb") as stream:
        stream.seek(SPARSE_BYTES // 2)
        hole = stream.read(4096)
        stream.seek(SPARSE_BYTES)
        end = stream.read().decode("ascii", "replace")
    return {"size": said.st_size, "hole_is_zeros": hole == bytes(4096), "end": end, "allocated": said.st_blocks * 512}


def large_file(folder: Path) -> Seen:
    """Write and read beyond 4 GiB, in a file with a hole."""
    path, content = folder / "large", struct.pack("<Q", LARGE_OFFSET) * 512
    with open(path, "wb") as stream:
        stream.seek(LARGE_OFFSET)
        stream.write(content)
        stream.flush()
        os.fsync(stream.fileno())
    with open(path, "rb") as stream:
        start = stream.read(4096)
        stream.seek(LARGE_OFFSET)
        found = stream.read()
    size = os.stat(path).st_size
    return {"size": size, "read_back": found == content, "start_is_zeros": start == bytes(4096)}


def many_files(folder: Path) -> Seen:
    """Create, list, look up and remove many small files."""
    names = [f"file-{number:04d}" for number in range(MANY)]
    paths = [os.path.join(folder, name) for name in names]
    for number, path in enumerate(paths):
        write_file(path, b"%d" % number, sync=False)
    listed = os.listdir(folder)
    right = sum(_content(path) == b"%d" % number for number, path in enumerate(paths))
    found = sum(os.stat(path).st_size > 0 for path in paths)
    for path in paths:
        os.unlink(path)
    return {"listed": len(set(names) & set(listed)), "stat": found, "right": right, "left": len(os.listdir(folder))}


def _content(path: str) -> bytes:
    with open(path, "rb", buffering=0) as stream:
        return stream.read()


def unlink_open(folder: Path) -> Seen:
    """Read and write an open file after its name was removed."""
    path = folder / "gone"
    with open(path, "w+b") as stream:
        stream.write(b"before ")
        stream.flush()
        os.unlink(path)
        stream.write(b"after")
        stream.flush()
        stream.seek(0)
        return {"name_left": path.exists(), "content": stream.read().decode()}


def mmap_read(folder: Path) -> Seen:
    """Read through a memory map, as loaders of datasets and models do."""
    content = _unlike(1 << 20)
    write_file(folder / "mapped", content)
    forget(folder / "mapped")
    with open(folder / "mapped", "rb") as stream, mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
        return {"same": mapped[:] == content}


def mmap_write(folder: Path) -> Seen:
    """Write through a shared memory map."""
    write_file(folder / "mapped", bytes(8192))
    with open(folder / "mapped", "r+b") as stream, mmap.mmap(stream.fileno(), 0) as mapped:
        mapped[4096:4104] = b"by a map"
        mapped.flush()
    return {"content": (folder / "mapped").read_bytes()[4096:4104].decode("ascii", "replace")}


def directory_fsync(folder: Path) -> Seen:
    """Make a new name durable."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    return {"fsync": "done"}


def utime(folder: Path) -> Seen:
    """Set a file's time; copies and build tools rely on it."""
    write_file(folder / "dated", b"")
    os.utime(folder / "dated", (1_000_000_000, 1_000_000_000))
    return {"mtime": int(os.stat(folder / "dated").st_mtime)}


def execute(folder: Path) -> Seen:
    """Run a program from the share, as environments on it require."""
    write_file(folder / "program", b"#!/bin/sh\nexit 7\n")
    os.chmod(folder / "program", 0o700)
    return {"exit_code": subprocess.run([str(folder / "program")], timeout=10, check=False).returncode}


CHECKS: dict[str, Callable[[Path], Seen]] = {
    check.__name__: check
    for check in (
        fsync_read_back,
        rename,
        append,
        hard_link,
        symbolic_link,
        flock,
        fcntl_lock,
        permissions,
        sparse,
        large_file,
        many_files,
        unlink_open,
        mmap_read,
        mmap_write,
        directory_fsync,
        utime,
        execute,
    )
}
