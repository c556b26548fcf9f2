# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a node sees of the share: its mount, its behaviour in use, and its speed. Facts only, as JSON."""

from __future__ import annotations

import argparse
import os
import socket
import time
from functools import partial
from pathlib import Path
from typing import Any, Callable, NamedTuple

from kit.errors import KitError
from kit.share import folder as share_folder
from kit.share import mounts
from kit.share import speed as share_speed
from kit.share import stripe as share_stripe
from kit.share import use as share_use

Facts = dict[str, Any]
SECTIONS = ("mount", "use", "speed")
GIB = 1 << 30


class Options(NamedTuple):
    """What to examine and how; deadline in seconds for each check, size in bytes, reserve in bytes left free."""

    path: str
    node: str
    type: str = "beegfs"
    checks: tuple[str, ...] = SECTIONS
    folder: str = "jobs"
    directories: tuple[str, ...] = ()
    size: int = 32 << 20
    reserve: int = GIB
    deadline: float = 30.0
    tool: str = "auto"
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
    """One private folder and the checks in it, done by children with a deadline for each check."""

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
                self._in_child(lambda: share_folder.make(self._folder))
                folder["made"] = True
            except mounts.ChildError as error:
                if not self._silent:
                    self._ours = False
                    self._stopped = f"{self._folder}: {error}"
            if "use" in asked:
                found["use"]["checks"] = self._use()
                found["striping"] = self._striping()
            if "speed" in asked:
                found["speed"].update(self._speed())
        finally:
            folder.update(self._leave())
            for section in ("use", "speed"):
                if found[section]:
                    found[section]["error"] = self._stopped
        return found

    def _each_guarded(self, works: list[Callable[[], Any]]) -> list[Any]:
        """Return what each of `works` returns, or a ChildError, done in a child unless the session has stopped."""
        if self._stopped:
            return [mounts.ChildError(f"not done: {self._stopped}")] * len(works)
        return self._each_in_child(works)

    def _each_in_child(self, works: list[Callable[[], Any]]) -> list[Any]:
        """Return what each of `works` returns, or a ChildError; after a child that did not answer, start none."""
        if self._silent:
            return [mounts.ChildError(str(self._stopped))] * len(works)
        answers = mounts.each_in_child(works, self._options.deadline)
        for number, answer in enumerate(answers):
            if isinstance(answer, mounts.NoAnswerError):
                self._silent, self._stopped = True, f"the share does not answer: {answer}"
                rest = mounts.ChildError(f"not done: {self._stopped}")
                return [*answers[: number + 1], *[rest] * (len(answers) - number - 1)]
        return answers

    def _in_child(self, work: Callable[[], Any]) -> Any:
        """Return what `work` returns. Raise ChildError."""
        (answer,) = self._each_in_child([work])
        if isinstance(answer, mounts.ChildError):
            raise answer
        return answer

    def _use(self) -> Facts:
        """Return of each check `seen`, what it saw; `error`, what was refused; or `missing`, why it is unknown."""

        def check(name: str) -> Facts:
            folder = self._folder / name
            os.mkdir(folder)
            begin = time.monotonic()
            try:
                return {"seen": share_use.CHECKS[name](folder), "seconds": round(time.monotonic() - begin, 4)}
            except OSError as error:
                return {"error": f"{error.strerror or error}"}

        answers = self._each_guarded([partial(check, name) for name in share_use.CHECKS])
        nothing: Facts = {"seen": None, "error": None, "missing": None, "seconds": None}
        return {
            name: {**nothing, **({"missing": str(answer)} if isinstance(answer, mounts.ChildError) else answer)}
            for name, answer in zip(share_use.CHECKS, answers)
        }

    def _striping(self) -> Facts:
        names = self._options.directories
        if self._options.type == "other":
            answers: list[Any] = [mounts.ChildError(f"the share's type is {self._options.type}")] * len(names)
        else:
            paths = [Path(self._options.path) / name for name in names]
            answers = self._each_guarded([partial(share_stripe.stripe_info, path) for path in paths])
        nothing: Facts = {"pattern": None, "chunk_kib": None, "targets": None, "source": "ioctl"}
        return {
            name: {**nothing, "error": str(answer)} if isinstance(answer, mounts.ChildError) else answer
            for name, answer in zip(names, answers)
        }

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
        folder = self._folder / "metadata"

        def metadata() -> Any:
            os.mkdir(folder)
            return share_speed.metadata(folder)

        figures = [partial(measure, figure, self._folder, size) for figure in share_speed.FIGURES]
        *rates, result["metadata"] = self._each_guarded([*figures, metadata])
        for figure, rate in zip(share_speed.FIGURES, rates):
            result[f"{figure}_mib_s"] = rate if isinstance(rate, mounts.ChildError) else round(rate, 1)
        for key, answer in list(result.items()):
            if isinstance(answer, mounts.ChildError):
                result[key] = None
                result["problems"][key.removesuffix("_mib_s")] = str(answer)
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
