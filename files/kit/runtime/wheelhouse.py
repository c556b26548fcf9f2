# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Fetch the wheels of a lock for another machine, without pip: by the lock's hashes, for a Python and a processor."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from kit.errors import KitError
from kit.files import only_ours, sha256, write_atomic
from kit.runtime import lock_file, wheels
from kit.runtime.lock_file import Requirement

# The glibc that platform tags of the older form need; the newer ones say it.
GLIBC = {"manylinux1": (2, 5), "manylinux2010": (2, 12), "manylinux2014": (2, 17)}
ANY_GLIBC = (0, 0)
SHOWN = 8  # names of wheels in a message


class Target(NamedTuple):
    """The machine that the wheels are for: Linux, CPython."""

    python: tuple[int, ...]
    machine: str
    glibc: tuple[int, int] | None = None  # the newest that it has; None: unknown

    def __str__(self) -> str:
        """Return its name in messages."""
        glibc = " with glibc {}.{}".format(*self.glibc) if self.glibc else ""
        return f"Python {'.'.join(map(str, self.python))} on {self.machine}{glibc}"


class Wheel(NamedTuple):
    """A wheel that fits; of several, the best is the least."""

    pure: bool  # a compiled one does more
    glibc: tuple[int, int]  # that it needs: an older one is on more machines
    age: int  # releases of Python since the one that it was made for
    name: str


def target(python: str, machine: str, glibc: str | None = None) -> Target:
    """Return the machine with these names. Raise KitError if they name none."""
    if not re.fullmatch(r"3\.\d{1,3}(\.\d{1,3})?", python, re.ASCII):
        raise KitError(f"--python {python}: expected a version such as 3.11 or 3.8.10")
    if not re.fullmatch(r"\w+", machine, re.ASCII):
        raise KitError(f"--machine {machine}: expected a name such as x86_64 or aarch64")
    matched = re.fullmatch(r"(\d+)\.(\d+)", glibc, re.ASCII) if glibc else None
    if glibc and not matched:
        raise KitError(f"--libc {glibc}: expected a version of glibc such as 2.31")
    return Target(tuple(map(int, python.split("."))), machine, (int(matched[1]), int(matched[2])) if matched else None)


def fetch(
    lock: Path, wanted: Target, folder: Path, *, indexes: Sequence[str] = (), wheelhouse: Path | None = None
) -> tuple[dict[Path, Requirement], bool]:
    """Put the wheels of a lock for a machine into a folder; return them, and whether anything changed.

    From the folder ``wheelhouse`` if it is given, else from the first of ``indexes`` that has one. What is there and
    right stays. Raise KitError if a wheel is not found, or is none of the lock's.
    """
    found, changed = {}, False
    for requirement in lock_file.requirements(lock, wanted.python, wanted.machine):
        path = _in_folder(folder, requirement, wanted)
        if path is None or not only_ours(path):
            path, changed = _placed(path, folder, requirement, wanted, indexes, wheelhouse), True
        found[path] = requirement
    return found, changed


def _placed(
    present: Path | None,
    folder: Path,
    requirement: Requirement,
    wanted: Target,
    indexes: Sequence[str],
    wheelhouse: Path | None,
) -> Path:
    """Write a wheel into a folder: one that lies there, but that others could change, or that of a source."""
    given = present or (_in_folder(wheelhouse, requirement, wanted) if wheelhouse else None)
    if given:
        name, content = given.name, given.read_bytes()
    elif wheelhouse:
        names = [each.name for each in wheelhouse.iterdir()] if wheelhouse.is_dir() else []
        raise _none(requirement, wanted, [f"{wheelhouse} has {_listed(names, requirement, wanted)}"])
    else:
        name, content = _from_indexes(requirement, wanted, indexes)
    found = hashlib.sha256(content).hexdigest()
    if found not in requirement.hashes:
        raise KitError(
            f"{name} has SHA-256 {found}, which is none of the lock's for {requirement.name} {requirement.version}: "
            "the file is not the published one; check what the package index or wheel folder serves"
        )
    write_atomic(folder / name, lambda stream: stream.write(content))
    return folder / name


def _in_folder(folder: Path, requirement: Requirement, wanted: Target) -> Path | None:
    """Return the best wheel of a package that lies in a folder and is one of the lock's."""
    names = [each.name for each in folder.iterdir() if each.is_file()] if folder.is_dir() else []
    paths = (folder / wheel.name for wheel in _fitting(names, requirement, wanted))
    return next((path for path in paths if sha256(path) in requirement.hashes), None)


def _from_indexes(requirement: Requirement, wanted: Target, indexes: Sequence[str]) -> tuple[str, bytes]:
    """Return name and content of a package's best wheel, from the first index that lists one."""
    problems = []
    for index in indexes:
        shown = wheels.shown(index)
        try:
            listed = {link.name: link for link in wheels.links(index, requirement.name)}
            for wheel in _fitting(listed, requirement, wanted):
                link = listed[wheel.name]
                if link.sha256 is None or link.sha256 in requirement.hashes:
                    return wheel.name, wheels.download(link.url)
            problems.append(f"{shown} has {_listed(listed, requirement, wanted)}")
        except wheels.UNANSWERED as error:
            problems.append(f"{shown}: {error}")
    raise _none(requirement, wanted, problems)


def _none(requirement: Requirement, wanted: Target, problems: Sequence[str]) -> KitError:
    return KitError(
        f"no wheel of {requirement.name} {requirement.version} for {wanted}: {'; '.join(problems)}. "
        "Check the lock and the machine; another source is given by --index-url or --wheelhouse"
    )


def _listed(names: Iterable[str], requirement: Requirement, wanted: Target) -> str:
    """Say which wheels of a package there are."""
    fitting = _fitting(names, requirement, wanted)
    if fitting:
        return f"{fitting[0].name}, whose SHA-256 is none of the lock's"
    tags = sorted("-".join(name[: -len(".whl")].split("-")[-3:]) for name in names if _is_of(name, requirement))
    tags = [tag for tag in tags if "linux" in tag or tag.endswith("-any")] or tags
    more = f" and {len(tags) - SHOWN} more" if len(tags) > SHOWN else ""
    return f"it for {', '.join(tags[:SHOWN])}{more}" if tags else "none of this version"


def _is_of(name: str, requirement: Requirement) -> bool:
    parts = name.split("-")
    return (
        len(parts) in (5, 6)
        and name.endswith(".whl")
        and "/" not in name
        and re.sub(r"[-_.]+", "-", parts[0]).lower() == requirement.name
        and parts[1] == requirement.version
    )


def _fitting(names: Iterable[str], requirement: Requirement, wanted: Target) -> list[Wheel]:
    """Return the wheels of a package that run on a machine, the best first."""
    found = (fit(name, wanted) for name in names if _is_of(name, requirement))
    return sorted(each for each in found if each)


def fit(name: str, wanted: Target) -> Wheel | None:
    """Return how a wheel with this name suits a machine; None if it does not."""
    pythons, abis, platforms = (part.split(".") for part in name[: -len(".whl")].split("-")[-3:])
    ages = [_age(python, abi, wanted.python[1]) for python in pythons for abi in abis]
    age = min((each for each in ages if each is not None), default=None)
    glibc = min((each for platform in platforms if (each := _glibc(platform, wanted))), default=None)
    return None if age is None or glibc is None else Wheel(glibc == ANY_GLIBC, glibc, age, name)


def _age(python: str, abi: str, minor: int) -> int | None:
    """Return how many releases before Python 3.``minor`` a wheel was made for; None if it does not run on it."""
    matched = re.fullmatch(r"(cp|py)3(\d*)", python, re.ASCII)
    if not matched:
        return None
    made = int(matched[2] or 0)
    if matched[1] == "cp" and abi != "abi3":
        return 0 if made == minor and abi in (python, "none") else None
    return minor - made if made <= minor and abi == ("abi3" if matched[1] == "cp" else "none") else None


def _glibc(platform: str, wanted: Target) -> tuple[int, int] | None:
    """Return the glibc that a platform tag needs; None if the machine cannot have it."""
    if platform == "any":
        return ANY_GLIBC
    matched = re.fullmatch(rf"(?:manylinux_(\d+)_(\d+)|({'|'.join(GLIBC)}))_{wanted.machine}", platform, re.ASCII)
    if not matched:
        return None
    needed = GLIBC[matched[3]] if matched[3] else (int(matched[1]), int(matched[2]))
    return needed if wanted.glibc is None or needed <= wanted.glibc else None
