# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The speed of the share: throughput with fio or our own code, with the same figures, and the metadata rate."""

from __future__ import annotations

import json
import mmap
import os
import subprocess
import time
from pathlib import Path
from typing import Any, Callable

from kit.share import mounts

BLOCK = 1 << 20
FIGURES = ("write_direct", "write_buffered", "read_direct", "read_buffered")
FILES = 500
METADATA_SECONDS = 2.0
VERSION_SECONDS = 10.0  # for fio to print its version
MILLION = 1_000_000

Measure = Callable[[str, Path, int], float]


def own(figure: str, folder: Path, size: int) -> float:
    """Return MiB/s of one figure, `size` bytes in blocks of 1 MiB; reads need a preceding write. Raise OSError."""
    direction, _sep, how = figure.partition("_")
    path = folder / f"{how}.data"
    flags = os.O_DIRECT if how == "direct" else 0
    with mmap.mmap(-1, BLOCK) as block:  # aligned as O_DIRECT requires
        block.write(os.urandom(BLOCK) if direction == "write" else bytes(BLOCK))  # no page is missing from here on
        view = memoryview(block)
        try:
            seconds = (_write if direction == "write" else _read)(path, flags, view, size)
        finally:
            view.release()
    return size / BLOCK / seconds


def _write(path: Path, flags: int, view: memoryview, size: int) -> float:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | flags, 0o600)
    try:
        os.ftruncate(descriptor, size)  # as fio lays a file out
        begin = time.perf_counter()
        for offset in range(0, size, BLOCK):
            if os.pwrite(descriptor, view, offset) != BLOCK:
                raise OSError(f"a write to {path} was cut short")
        os.fsync(descriptor)  # otherwise memory would be measured
        return time.perf_counter() - begin
    finally:
        os.close(descriptor)


def _read(path: Path, flags: int, view: memoryview, size: int) -> float:
    descriptor = os.open(path, os.O_RDONLY | flags)
    try:
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_SEQUENTIAL)  # as fio does
        begin = time.perf_counter()
        for offset in range(0, size, BLOCK):
            if os.preadv(descriptor, [view], offset) != BLOCK:
                raise OSError(f"a read of {path} was cut short")
        return time.perf_counter() - begin
    finally:
        os.close(descriptor)


def fio_arguments(figure: str, folder: Path, size: int) -> list[str]:
    """Return the fio command that does the same."""
    direction, _sep, how = figure.partition("_")
    return [
        "fio",
        f"--name={figure}",
        f"--filename={folder / f'{how}.data'}",
        f"--rw={direction}",
        f"--size={size}",
        f"--bs={BLOCK}",
        "--ioengine=psync",
        f"--direct={int(how == 'direct')}",
        "--end_fsync=1",
        "--fallocate=none",
        "--invalidate=1",
        "--iomem=mmap",
        "--thread",
        "--output-format=json",
    ]


def fio(figure: str, folder: Path, size: int) -> float:
    """Return MiB/s of one figure as fio measures it. Raise OSError."""
    done = subprocess.run(
        fio_arguments(figure, folder, size),
        capture_output=True,
        stdin=subprocess.DEVNULL,
        check=False,
        cwd=folder,
        preexec_fn=mounts.die_with_parent,
    )
    direction = figure.partition("_")[0]
    try:
        # Messages may precede the document.
        rate = json.loads(done.stdout[done.stdout.index(b"{") :])["jobs"][0][direction]["bw_bytes"]
        if done.returncode != 0 or not isinstance(rate, int) or rate <= 0:
            raise ValueError
    except (ValueError, KeyError, IndexError, TypeError):
        words = " ".join((done.stderr or done.stdout).decode("utf-8", "replace").split())[:300]
        raise OSError(f"fio ended with {done.returncode}: {words}") from None
    return rate / (1 << 20)


def tool(wanted: str) -> tuple[str, Measure]:
    """Return the name of the tool (fio or own) and its function. Raise OSError if fio is missing."""
    if wanted == "own":
        return "own", own
    try:
        said = subprocess.run(
            ["fio", "--version"], capture_output=True, stdin=subprocess.DEVNULL, timeout=VERSION_SECONDS, check=False
        )
        return said.stdout.decode("ascii", "replace").strip() or "fio", fio
    except (OSError, subprocess.SubprocessError) as error:
        if wanted == "auto":
            return "own", own
        missing = isinstance(error, FileNotFoundError)
        raise OSError("fio is not on PATH" if missing else f"fio does not work: {error}") from None


def metadata(folder: Path) -> dict[str, Any]:
    """Return how many files per second one process creates, looks up and removes in one folder."""
    names = [str(folder / f"{number:04d}") for number in range(FILES)]

    def make(name: str) -> None:
        os.close(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))

    made, creates = _rate(make, names)
    seen, stats = _rate(os.stat, made)
    unlinks = _rate(os.unlink, made)[1]
    per_file = 1 / creates + 1 / stats + 1 / unlinks
    return {
        "files": len(made),
        "stats_of": len(seen),
        "creates_per_s": creates,
        "stats_per_s": stats,
        "unlinks_per_s": unlinks,
        "operations_per_s": 3 / per_file,
        # A preflight does not create a million files: the time is extrapolated from these rates.
        "million_files": {"extrapolated": True, "from_files": len(made), "seconds": MILLION * per_file},
    }


def _rate(work: Callable[[str], object], names: list[str]) -> tuple[list[str], float]:
    begin = time.perf_counter()
    done = 0
    while done < len(names) and (done == 0 or time.perf_counter() - begin < METADATA_SECONDS):
        work(names[done])
        done += 1
    return names[:done], done / (time.perf_counter() - begin)
