# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Install a locked Python environment on the share: built aside, verified, then renamed into place.

An environment's folder name contains the lock's hash, the Python version and the architecture, so a changed lock gives
a new environment and a finished one never changes.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

from kit import strict_json
from kit.errors import KitError
from kit.files import sha256, write_atomic, write_json
from kit.process import unfinished
from kit.process.locks import sole
from kit.runtime.installers import Source, Tools, install_packages, run

LOCK_PATIENCE = 1800  # seconds to wait for another installer of the same environment
MEGABYTE = 1_000_000


@dataclass(frozen=True)
class Lock:
    """A requirements file with hashes, and the installer settings in its comment lines."""

    path: Path
    sha256: str
    verify: tuple[str, ...]
    sources: tuple[str, ...]  # packages that are published only as source
    lowest: tuple[int, int] | None
    highest: tuple[int, int] | None
    needs_mb: int


@dataclass(frozen=True)
class Interpreter:
    """The Python that an environment is created from."""

    path: str
    version: str  # such as 3.13.5
    machine: str

    @property
    def minor(self) -> tuple[int, int]:
        """The version's first two numbers."""
        return _minor(self.version)


def _minor(version: str) -> tuple[int, int]:
    major, minor = version.split(".")[:2]
    return int(major), int(minor)


def read_lock(path: str | os.PathLike[str]) -> Lock:
    """Read a lock file; raise KitError if it does not exist or has no hashes."""
    try:
        text = Path(path).read_text()
    except OSError as error:
        raise KitError(f"lock file {path}: {error.strerror}") from error
    if "--hash=" not in text:
        raise KitError(f"lock file {path} has no hashes; create it with `uv pip compile --generate-hashes`")
    said = dict(re.findall(r"^# (verify|python|needs-mb|source-only): (.+)$", text, re.MULTILINE))
    bounds = [_minor(word) for word in said.get("python", "").split()]
    return Lock(
        path=Path(path).resolve(),
        sha256=sha256(path),
        verify=tuple(said.get("verify", "").split()),
        sources=tuple(said.get("source-only", "").split()),
        lowest=bounds[0] if bounds else None,
        highest=bounds[1] if len(bounds) > 1 else None,
        needs_mb=int(said.get("needs-mb", "0")),
    )


def read_interpreter(python: str) -> Interpreter:
    """Ask an interpreter for its version and architecture; raise KitError if it does not answer."""
    question = "import json, platform; print(json.dumps([platform.python_version(), platform.machine()]))"
    try:
        answer = subprocess.run([python, "-I", "-c", question], capture_output=True, timeout=60, check=True)
        version, machine = strict_json.parse(answer.stdout)
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        raise KitError(f"{python} is not a working Python: {error}") from error
    return Interpreter(shutil.which(python) or python, version, machine)


def environment_path(root: Path, name: str, lock: Lock, interpreter: Interpreter) -> Path:
    """Return the path of the environment, whether or not it exists."""
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]*", name):
        raise KitError(f"runtime name {name!r}: use letters, digits, - and _")
    major, minor = interpreter.minor
    return root / f"{name}-{lock.sha256[:12]}-py{major}.{minor}-{interpreter.machine}"


def check_python(lock: Lock, interpreter: Interpreter) -> None:
    """Raise KitError if the lock does not cover this Python."""
    too_old = lock.lowest and interpreter.minor < lock.lowest
    too_new = lock.highest and interpreter.minor > lock.highest
    if too_old or too_new:
        lowest, highest = (".".join(map(str, bound)) if bound else "any" for bound in (lock.lowest, lock.highest))
        raise KitError(
            f"{interpreter.path} is Python {interpreter.version}, {lock.path.name} covers {lowest} to {highest}: "
            "name another interpreter with --python (it must exist at the same path on the compute nodes)"
        )


def check_space(root: Path, lock: Lock) -> None:
    """Raise KitError if the share has less space than the lock requires."""
    free = shutil.disk_usage(root).free // MEGABYTE
    if free < lock.needs_mb:
        raise KitError(
            f"{root} has {free} MB free, {lock.path.name} needs about {lock.needs_mb} MB: "
            "free some space, or put the environments elsewhere with --root"
        )


def is_usable(path: Path, lock: Lock) -> bool:
    """Return whether a finished environment of this lock is at ``path`` and its Python still starts."""
    try:
        if strict_json.read(path / "runtime.json")["lock_sha256"] != lock.sha256:
            return False
        command = [str(path / "bin" / "python"), "-I", "-c", ""]
        return subprocess.run(command, stderr=subprocess.DEVNULL, timeout=60, check=False).returncode == 0
    except (OSError, subprocess.SubprocessError, ValueError, KeyError, TypeError):
        return False


def install(
    name: str,
    lock_path: str | os.PathLike[str],
    root: str | os.PathLike[str],
    *,
    python: str = sys.executable,
    source: Source | None = None,
    tools: Tools | None = None,
    check: bool = False,
) -> dict[str, Any]:
    """Make sure that the environment exists; return its description and path.

    ``check``: report what would happen, do nothing. Two processes may run this at the same time. Raise KitError if it
    cannot be installed; an unfinished environment is never used.
    """
    started = time.monotonic()
    lock, interpreter, folder = read_lock(lock_path), read_interpreter(python), Path(root).absolute()
    check_python(lock, interpreter)
    target = environment_path(folder, name, lock, interpreter)
    changed, used = not is_usable(target, lock), None
    if changed and not check:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with sole(folder / f".{target.name}.lock", f"installing {target}", LOCK_PATIENCE):
                changed = not is_usable(target, lock)  # another installer may have finished while this one waited
                if changed:
                    unfinished.remove_beside(target)
                    check_space(folder, lock)
                    used = _build(target, lock, interpreter, source or Source(), tools or Tools())
        except OSError as error:
            raise KitError(
                f"cannot write to {folder}: {error}; is the share mounted, writable and not full?"
            ) from error
    return {
        "path": str(target),
        "python": str(target / "bin" / "python"),
        "key": target.name,
        "lock_sha256": lock.sha256,
        "changed": changed,
        "installer": used,
        "seconds": round(time.monotonic() - started, 1),
    }


def _build(target: Path, lock: Lock, interpreter: Interpreter, source: Source, tools: Tools) -> str:
    """Build next to ``target``, verify, rename; return the installer's name and version."""
    building = unfinished.beside(target)
    try:
        used = install_packages(building, lock.path, interpreter.path, source, tools, built=lock.sources)
        versions = _verify(building, lock)
        _relocate_scripts(building, target)
        document = {
            "key": target.name,
            "lock": lock.path.name,
            "lock_sha256": lock.sha256,
            "python": interpreter.version,
            "machine": interpreter.machine,
            "installer": used,
            "installed": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            "packages": versions,
        }
        write_json(building / "runtime.json", document)
        _put_in_place(building, target, lock)
        return used
    finally:
        shutil.rmtree(building, ignore_errors=True)  # no longer there if it was renamed


def _verify(building: Path, lock: Lock) -> dict[str, str]:
    """Import the lock's modules; return the versions of all installed packages. Raise KitError if an import fails."""
    script = (
        "import importlib, importlib.metadata, json, sys\n"
        "for name in sys.argv[1:]: importlib.import_module(name)\n"
        "print(json.dumps({d.metadata['Name']: d.version for d in importlib.metadata.distributions()}))\n"
    )
    try:
        answer = run([str(building / "bin" / "python"), "-I", "-c", script, *lock.verify], dict(os.environ))
    except KitError as error:
        raise KitError(f"the environment of {lock.path.name} was installed but does not work: {error}") from error
    return dict(sorted(strict_json.parse(answer.splitlines()[-1]).items()))


def _relocate_scripts(building: Path, target: Path) -> None:
    """Write the path after the rename into the console scripts."""
    for script in (building / "bin").iterdir():
        if script.is_symlink() or not script.is_file():
            continue
        content = script.read_bytes()
        moved = content.replace(os.fsencode(building), os.fsencode(target))
        if moved != content:
            mode = script.stat().st_mode & 0o777
            write_atomic(script, partial(_write, moved), mode=mode)


def _write(content: bytes, stream: BinaryIO) -> None:
    stream.write(content)


def _put_in_place(building: Path, target: Path, lock: Lock) -> None:
    """Rename; if another node's installer was first, keep its environment."""
    if target.exists() and not is_usable(target, lock):
        broken = target.with_name(f"{building.name}-broken")
        target.rename(broken)
        shutil.rmtree(broken, ignore_errors=True)
    try:
        building.rename(target)
    except OSError as error:
        if not is_usable(target, lock):
            raise KitError(f"cannot put {building} in place as {target}: {error.strerror}") from error
