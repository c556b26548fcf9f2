# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a node sees of the share: its mount, its behaviour in use, and its speed. Facts only, as JSON."""

from __future__ import annotations

import argparse
import os
import socket
import time
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Callable

from kit.errors import KitError
from kit.share import folder as share_folder
from kit.share import mounts
from kit.share import speed as share_speed
from kit.share import stripe as share_stripe
from kit.share import use as share_use

Facts = dict[str, Any]
SECTIONS = ("mount", "use", "speed")
GIB = 1 << 30


@dataclass(frozen=True)
class Options:
    """What to examine and how; deadline in seconds for each check, size in bytes, reserve in bytes left free."""

    path: str
    type: str = "beegfs"
    checks: tuple[str, ...] = SECTIONS
    folder: str = "jobs"
    directories: tuple[str, ...] = ()
    size: int = 32 << 20
    reserve: int = GIB
    deadline: float = 30.0
    tool: str = "auto"
    node: str = field(default_factory=socket.gethostname)
    proc: str = "/proc"


def collect(options: Options) -> Facts:
    """Return the share facts (schema share.json). A share that does not answer is not touched again."""
    begin = time.monotonic()
    facts: Facts = {
        "schema": 1,
        "node": options.node,
        "time": time.time(),
        "path": options.path,
        "type": options.type,
        "checks": list(options.checks),
        "mount": mounts.facts(options.path, options.type, options.deadline, options.proc),
        "use": None,
        "speed": None,
        "striping": None,
    }
    if set(options.checks) & {"use", "speed"}:
        facts.update(_Session(options, facts["mount"]).run())
        _look_again(facts["mount"], options)
    facts["seconds"] = round(time.monotonic() - begin, 3)
    return facts


def _look_again(mount: Facts, options: Options) -> None:
    """Read the mount again: the client connects to storage servers only when it uses them."""
    if mount["client"]:
        try:
            mounts.put_client(mount, options.type, options.deadline, options.proc)
        except (mounts.ChildError, LookupError) as error:
            mount["problem"] = str(error)


class _Session:
    """One private folder and the checks in it, each in a child with a deadline."""

    def __init__(self, options: Options, mount: Facts) -> None:
        self._options = options
        self._parent = Path(options.path) / options.folder
        self._folder = self._parent / share_folder.private_name()
        self._ours = True
        self._silent = False  # it did not answer: nothing touches it any more, not even to clean up
        # Why no more is done on the share.
        self._stopped: str | None = mount["problem"] or self._too_full(mount["statfs"])

    def _too_full(self, said: Facts | None) -> str | None:
        if said is None:
            return "the share did not report how full it is"
        needed = 2 * self._options.size + 64 * (1 << 20)
        left = said["free"] - needed
        if left < self._options.reserve:
            return (
                f"{said['free'] / GIB:.1f} GiB are free: {needed / GIB:.2f} GiB of checks would leave less than the "
                f"reserve of {self._options.reserve / GIB:g} GiB"
            )
        if said["inodes"] and said["inodes_free"] < 10 * share_speed.FILES:
            return f"only {said['inodes_free']} inodes are free"
        return None

    def run(self) -> Facts:
        found: Facts = {"use": None, "speed": None, "striping": None}
        asked = self._options.checks
        folder: Facts = {"path": str(self._folder), "made": False, "removed": None, "leftovers": [], "error": None}
        if "use" in asked:
            found["use"] = {"folder": folder, "checks": {}, "error": self._stopped}
        if "speed" in asked:
            found["speed"] = {"folder": folder, "error": self._stopped}
        if self._stopped:
            return found
        try:
            try:
                self._guarded(lambda: share_folder.make(self._folder))
                folder["made"] = True
            except mounts.ChildError as error:
                if not self._silent:
                    self._ours = False
                    self._stopped = f"{self._folder}: {error}"
            if "use" in asked:
                found["use"]["checks"] = {name: self._use(name) for name in share_use.CHECKS}
                found["striping"] = {name: self._striping(name) for name in self._options.directories}
            if "speed" in asked:
                found["speed"].update(self._speed())
        finally:
            folder.update(self._leave())
            for section in ("use", "speed"):
                if found[section]:
                    found[section]["error"] = self._stopped
        return found

    def _guarded(self, work: Callable[[], Any]) -> Any:
        """Do `work` in a child unless the session has stopped. Raise ChildError."""
        if self._stopped:
            raise mounts.ChildError(f"not done: {self._stopped}")
        return self._in_child(work)

    def _in_child(self, work: Callable[[], Any]) -> Any:
        """Do `work` in a child; after a child that did not answer, start none. Raise ChildError."""
        if self._silent:
            raise mounts.ChildError(str(self._stopped))
        try:
            return mounts.in_child(work, self._options.deadline)
        except mounts.NoAnswerError as error:
            self._silent, self._stopped = True, f"the share does not answer: {error}"
            raise

    def _use(self, name: str) -> Facts:
        """Return `seen`, what the check saw; `error`, what the file system refused; or `missing`, why it is unknown."""
        result: Facts = {"seen": None, "error": None, "missing": None, "seconds": None}
        folder = self._folder / name

        def check() -> Any:
            os.mkdir(folder)
            begin = time.monotonic()
            try:
                return {"seen": share_use.CHECKS[name](folder), "seconds": round(time.monotonic() - begin, 4)}
            except OSError as error:
                return {"error": f"{error.strerror or error}"}

        try:
            result.update(self._guarded(check))
        except mounts.ChildError as error:
            result["missing"] = str(error)
        return result

    def _striping(self, name: str) -> Facts:
        nothing: Facts = {"pattern": None, "chunk_kib": None, "targets": None, "source": "ioctl"}
        if self._options.type == "other":
            return {**nothing, "error": f"the share's type is {self._options.type}"}
        try:
            found: Facts = self._guarded(lambda: share_stripe.stripe_info(Path(self._options.path) / name))
        except mounts.ChildError as error:
            return {**nothing, "error": str(error)}
        return found

    def _speed(self) -> Facts:
        size = max(share_speed.BLOCK, self._options.size // share_speed.BLOCK * share_speed.BLOCK)
        result: Facts = {"tool": None, "size_mib": size >> 20, "problems": {}, "metadata": None}
        result.update({f"{figure}_mib_s": None for figure in share_speed.FIGURES})
        try:
            name, measure = share_speed.tool(self._options.tool)
        except (OSError, ValueError) as error:
            result["problems"]["tool"] = str(error)
            return result
        result["tool"] = name
        for figure in share_speed.FIGURES:
            try:
                rate = self._guarded(partial(measure, figure, self._folder, size))
                result[f"{figure}_mib_s"] = round(rate, 1)
            except mounts.ChildError as error:
                result["problems"][figure] = str(error)
        folder = self._folder / "metadata"

        def metadata() -> Any:
            os.mkdir(folder)
            return share_speed.metadata(folder)

        try:
            result["metadata"] = self._guarded(metadata)
        except mounts.ChildError as error:
            result["problems"]["metadata"] = str(error)
        return result

    def _leave(self) -> Facts:
        """Remove the folder and those of dead runs, unless the share does not answer: this would block too."""
        found: Facts = {"removed": False}
        try:
            if self._ours:
                self._in_child(lambda: share_folder.remove(self._folder))
            found["removed"] = True
            found["leftovers"] = self._in_child(lambda: share_folder.leftovers(self._parent))
        except mounts.ChildError as error:
            found["error"] = str(error)
        return found


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    parser.add_argument("--path", required=True, help="the share")
    parser.add_argument("--type", choices=mounts.TYPES, default="beegfs")
    parser.add_argument("--checks", default=",".join(SECTIONS), help="of mount, use, speed (default: all)")
    parser.add_argument(
        "--folder", default="jobs", help="folder below the path in which the private folder is created (default jobs)"
    )
    parser.add_argument(
        "--directories",
        default="",
        help="comma-separated folders below the path whose striping is read (default: that of --folder)",
    )
    parser.add_argument("--size", type=int, default=32, help="MiB for each throughput measurement (default 32)")
    parser.add_argument("--reserve", type=float, default=1.0, help="GiB that must stay free (default 1)")
    parser.add_argument("--deadline", type=float, default=30.0, help="seconds for each check (default 30)")
    parser.add_argument("--tool", choices=("auto", "fio", "own"), default="auto", help="tool that measures throughput")
    parser.add_argument("--node", help="this node's name (default: SLURMD_NODENAME, then the host's)")
    parser.add_argument("--proc", default="/proc", help=argparse.SUPPRESS)


def run(arguments: argparse.Namespace) -> Facts:
    """Return the share facts that the command line requests. Raise KitError for invalid options."""
    checks = tuple(name for name in arguments.checks.split(",") if name)
    directories = tuple(name for name in arguments.directories.split(",") if name)
    if not checks or set(checks) - set(SECTIONS):
        raise KitError(f"--checks {arguments.checks}: expected some of {', '.join(SECTIONS)}")
    for name in (arguments.folder, *directories):
        if name.startswith("/") or ".." in name.split("/"):
            raise KitError(f"{name}: expected a folder below {arguments.path}")
    if not 1 <= arguments.size <= 1 << 20 or arguments.reserve < 0 or arguments.deadline <= 0:
        raise KitError("expected --size of 1 MiB or more, --reserve of 0 or more, --deadline above 0")
    return collect(
        Options(
            path=arguments.path,
            type=arguments.type,
            checks=checks,
            folder=arguments.folder,
            directories=directories or (arguments.folder,),
            size=arguments.size << 20,
            reserve=int(arguments.reserve * GIB),
            deadline=arguments.deadline,
            tool=arguments.tool,
            node=arguments.node or os.environ.get("SLURMD_NODENAME") or socket.gethostname(),
            proc=arguments.proc,
        )
    )
