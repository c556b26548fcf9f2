# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The two ways to fill an environment: uv (found, or fetched by its pin) and pip. Both require the lock's hashes."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from kit.errors import KitError
from kit.files import write_atomic
from kit.process.bounded import die_with_parent
from kit.runtime import wheels


@dataclass(frozen=True)
class Source:
    """The source of packages: indexes, or exactly one folder of wheels."""

    indexes: tuple[str, ...] = ()  # empty: the installer's own configuration decides
    wheelhouse: Path | None = None


@dataclass(frozen=True)
class Tools:
    """The installer to use, and the folder of uv's cache (default: next to the environments)."""

    installer: str = "auto"  # auto: uv named or on PATH, else uv by its pin, else pip
    uv: str | None = None
    cache: Path | None = None


def install_packages(
    building: Path, lock: Path, python: str, source: Source, tools: Tools, *, built: Sequence[str] = ()
) -> str:
    """Create the environment ``building`` from ``python`` and fill it; return the installer's name and version.

    Packages are installed from wheels; those in ``built`` have none and are built from source, also pinned by the lock.
    """
    form = ["--only-binary", ":all:", *(word for name in built for word in ("--no-binary", name))]
    uv = None if tools.installer == "pip" else _find_uv(building.parent, source, tools)
    if uv:
        cache = tools.cache or building.parent / ".cache" / "uv"
        return _install_with_uv(uv, cache, building, lock, python, source=source, form=form)
    return _install_with_pip(building, lock, python, source, form)


def _find_uv(root: Path, source: Source, tools: Tools) -> str | None:
    """Return a uv to run: the named one, the one on PATH, or the pinned one; None if pip has to be used."""
    if tools.uv:
        if not shutil.which(tools.uv):
            raise KitError(f"--uv: expected an executable file, found {tools.uv}")
        return tools.uv
    found = shutil.which("uv")
    if found:
        return found
    try:
        return str(_fetch_uv(root / ".tools", source))
    except KitError as error:
        if tools.installer == "uv":
            raise
        print(f"kit runtime: no uv ({error}); using pip", file=sys.stderr)
        return None


def _fetch_uv(folder: Path, source: Source) -> Path:
    wheel, _other = wheels.fetch("uv", folder, indexes=source.indexes, wheelhouse=source.wheelhouse)
    binary = folder / "-".join(wheel.name.split("-")[:2])
    if not binary.is_file():
        with zipfile.ZipFile(wheel) as archive:
            member = next(name for name in archive.namelist() if name.endswith(".data/scripts/uv"))
            content = archive.read(member)
        write_atomic(binary, lambda stream: stream.write(content), mode=0o755)
    return binary


def _install_with_uv(
    uv: str, cache: Path, building: Path, lock: Path, python: str, *, source: Source, form: list[str]
) -> str:
    environment = {
        "UV_HTTP_TIMEOUT": "180",
        **{name: value for name, value in os.environ.items() if name != "VIRTUAL_ENV"},
        "UV_CACHE_DIR": str(cache),
        "UV_PYTHON_DOWNLOADS": "never",
        "UV_NO_PROGRESS": "1",
    }
    where = _index_options(source, "--default-index", "--index")
    if source.wheelhouse:
        where = ["--offline", *where]
    run([uv, "venv", "--no-project", "--relocatable", "--python", python, str(building)], environment)
    install = [uv, "pip", "install", "--python", str(building / "bin" / "python")]
    run([*install, "--require-hashes", *form, *where, "--requirement", str(lock)], environment)
    return run([uv, "--version"], environment).split("(")[0].strip()


def _install_with_pip(building: Path, lock: Path, python: str, source: Source, form: list[str]) -> str:
    environment = {**os.environ, "PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_NO_INPUT": "1"}
    try:
        run([python, "-m", "venv", str(building)], environment)
    except KitError as error:
        raise KitError(
            f"{python} cannot create virtual environments and uv is not available: put uv on PATH, name it with --uv, "
            f"or install the distribution's python3-venv package. {error}"
        ) from error
    pip = [str(building / "bin" / "python"), "-m", "pip"]
    where = _index_options(source, "--index-url", "--extra-index-url")
    install = [*pip, "install", "--quiet", "--require-hashes", *form]
    run([*install, *where, "--requirement", str(lock)], environment)
    return " ".join(run([*pip, "--version"], environment).split()[:2])


def _index_options(source: Source, first: str, further: str) -> list[str]:
    """Return the source as options of an installer."""
    if source.wheelhouse:
        return ["--no-index", "--find-links", str(source.wheelhouse)]
    options = []
    for position, url in enumerate(source.indexes):
        options += [further if position else first, url]
    return options


def run(command: Sequence[str], environment: dict[str, str], folder: Path | None = None) -> str:
    """Run a command (in ``folder``) and return its output; raise KitError with its last lines if it fails."""
    # A child that is starting when this process is ended would live on. No other thread is there.
    ours = partial(die_with_parent, signal.SIGKILL)
    try:
        done = subprocess.run(
            command, env=environment, cwd=folder, capture_output=True, text=True, check=False, preexec_fn=ours
        )
    except OSError as error:
        raise KitError(f"cannot run {command[0]}: {error.strerror}") from error
    if done.returncode != 0:
        said = "\n".join((done.stderr.strip() or done.stdout.strip()).splitlines()[-15:])
        said = re.sub(r"(://)[^/\s@]+@", r"\1***@", said)  # an index's URL may hold a password
        raise KitError(f"`{' '.join(command[:3])} …` ended with exit code {done.returncode}:\n{said}")
    return done.stdout
