# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Unpack a payload, block by block: its files as they are, its wheels into a folder that Python imports from.

No pip and no venv: a wheel is a zip of what is imported. The SHA-256 of every file is compared before it is used.
"""

from __future__ import annotations

import hashlib
import re
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import IO, Any

import strict_json
from problem import Problem

BLOCK = 1 << 20
DAMAGED = (zipfile.BadZipFile, zlib.error, EOFError)
REQUEST = "request.json"
BUNDLE, WHEELS = "bundle/", "wheels/"
CODE = ("disturbance.py", "runner.py", "sensors.py", "summary.py", "tegrastats.py")
# What lies beside runner.py is what it could import: nothing of a bundle is written there by a name of its own.
BUNDLED = ("answers.npy", "bundle.json", "float.onnx", "inputs.npy", "int8.onnx", "pruned.onnx")
NEEDLESS = BUNDLE + "answers.npy"  # the controller compares
IMPORTED = ("purelib", "platlib")  # the parts of a wheel's .data folder that belong beside the rest


def request(payload: Path) -> dict[str, Any]:
    """Return what a payload asks for. Raise Problem if it cannot be read."""
    try:
        with zipfile.ZipFile(payload) as outer:
            found = strict_json.parse(outer.read(REQUEST))
        if found["schema"] != 1:
            raise ValueError("schema {}; expected 1".format(found["schema"]))
        return found
    except (OSError, ValueError, LookupError, TypeError, zipfile.BadZipFile) as error:
        raise Problem("files", f"{payload} has no {REQUEST} that can be read: {error!r}") from error


def sizes(payload: Path) -> list[int]:
    """Return the sizes of all files that `unpacked` writes, in bytes. Raise Problem, or OSError."""
    found = []
    with zipfile.ZipFile(payload) as outer:
        for each in outer.infolist():
            found.append(each.file_size)  # of a wheel too: it lies there while it is unpacked
            if each.filename.startswith(WHEELS):
                with _whole(each.filename), outer.open(each) as stream, zipfile.ZipFile(stream) as inner:
                    found += [part.file_size for part in inner.infolist()]
    return found


def unpacked(payload: Path, run: Path, site: Path, files: dict[str, str]) -> None:
    """Write the request, code, models and inputs of a payload into ``run``, what its wheels hold into ``site``.

    ``files``: the SHA-256 of each by its name in the payload. Raise Problem, or OSError.
    """
    with zipfile.ZipFile(payload) as outer:
        (run / REQUEST).write_bytes(outer.read(REQUEST))
        there = outer.namelist()
        missing = sorted(set(files) - set(there)) + [name for name in CODE if name not in files]
        unknown = sorted(name for name in there if name.startswith((BUNDLE, WHEELS)) and name not in files)
        if missing or unknown:
            raise Problem("files", f"{(missing or unknown)[0]} is not among the files that were to be sent")
        strange = sorted(name for name in files if name.startswith(BUNDLE) and name[len(BUNDLE) :] not in BUNDLED)
        if strange:
            raise Problem("files", f"{strange[0]} is no file of a bundle; expected {', '.join(BUNDLED)}")
        site.mkdir()
        for name in sorted(files):
            target = run / PurePosixPath(name).name
            with _whole(name):
                if name in CODE or (name.startswith(BUNDLE) and name != NEEDLESS):
                    _checked(outer, name, target, files[name])
                elif name.startswith(WHEELS):
                    _checked(outer, name, target, files[name])
                    with zipfile.ZipFile(target) as inner:
                        _install(inner, name, site)
                    target.unlink()


@contextmanager
def _whole(name: str) -> Iterator[None]:
    try:
        yield
    except DAMAGED as error:
        raise Problem("files", f"{name} is not what was sent: {error}") from error


def _checked(outer: zipfile.ZipFile, name: str, target: Path, expected: str) -> None:
    """Write a file of the payload. Raise Problem if it is another one than was to be sent."""
    with outer.open(name) as source:
        found = _written(source, target)
    if found != expected:
        raise Problem("files", f"{name} is not what was sent: SHA-256 {found}, expected {expected}")


def _written(source: IO[bytes], target: Path) -> str:
    """Write a new file, whole or not at all: part of one would pass for one that was changed. Return its SHA-256."""
    digest = hashlib.sha256()
    try:
        with target.open("xb") as stream:
            for block in _blocks(source):
                digest.update(block)
                stream.write(block)
    except FileExistsError:
        raise
    except BaseException:
        target.unlink(missing_ok=True)
        raise
    return digest.hexdigest()


def _blocks(stream: IO[bytes]) -> Iterator[bytes]:
    return iter(lambda: stream.read(BLOCK), b"")


def _install(inner: zipfile.ZipFile, name: str, site: Path) -> None:
    for each in inner.infolist():
        path = PurePosixPath(each.filename)
        if each.filename.startswith("/") or ".." in path.parts or "\\" in each.filename:
            raise Problem("files", f"{name} holds {each.filename!r}, which leads out of it")
        parts = path.parts
        if parts[0].endswith(".data"):
            if len(parts) < 3 or parts[1] not in IMPORTED:
                continue
            parts = parts[2:]
        target = site.joinpath(*parts)
        if each.is_dir():
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        with inner.open(each) as source, target.open("wb") as stream:
            for block in _blocks(source):
                stream.write(block)


def installed(site: Path) -> dict[str, str]:
    """Return the versions of the packages in a folder, by name."""
    found = {}
    for each in site.glob("*.dist-info"):
        name, _dash, version = each.name[: -len(".dist-info")].partition("-")
        found[re.sub(r"[-_.]+", "-", name).lower()] = version
    return found


def sha256(path: Path) -> str:
    """Return the SHA-256 of a file, in hexadecimal."""
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        for block in _blocks(stream):
            digest.update(block)
    return digest.hexdigest()
