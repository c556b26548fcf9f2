# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Do two nodes see the same share? Run as one Slurm step, `srun --nodes=2 --ntasks=2`: task 0 is A, task 1 is B.

They communicate through files in a private folder on the share. Times are round trips on the writer's clock (the file
seen there and the answer seen here), so that the nodes' clocks need not agree.

A message may take as long to be seen as a change, --wait seconds, so an answer may take twice that, and three times
that if the other task first waits for a change in vain.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import hashlib
import json
import math
import os
import re
import shutil
import socket
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Callable

from kit import strict_json
from kit.errors import KitError
from kit.share import mounts

Facts = dict[str, Any]
BYTES = 1 << 20
PAUSES = (0.002, 0.02)  # seconds between two attempts: the first ones, later ones
LOCKS: dict[str, Callable[[int, int], None]] = {"flock": fcntl.flock, "fcntl": fcntl.lockf}
STEPS = ("create", "overwrite", "rename", "unlink")
ANSWER, LOOKED = 2, 3  # times the wait: for an answer, and for an answer after waiting for a change
# Times the wait for everything: meeting, then in both directions each step and twice two answers for each lock.
ALL = 2 * LOOKED + 2 * (len(STEPS) * LOOKED + 2 * len(LOCKS) * ANSWER) + ANSWER
START = 60.0  # seconds for the other task to be started, and for the writing itself


class PeerError(Exception):
    """The other task did not appear or did not answer; the message says at which step."""


@dataclass(frozen=True)
class Meeting:
    """One task's side: its number and node, the common folder, and how long to wait for the other's next word."""

    task: int
    node: str
    folder: Path
    wait: float

    def say(self, word: str, **said: Any) -> None:
        """Leave a message for the other task."""
        path = self.folder / f"{self.task}-{word}.json"
        temporary = path.with_suffix(".part")
        write(temporary, json.dumps(said).encode())
        os.replace(temporary, path)

    def hear(self, word: str, times: int = ANSWER) -> Facts:
        """Return the other task's message. Raise PeerError if it does not arrive in `times` x wait."""
        path = self.folder / f"{1 - self.task}-{word}.json"
        found = look(lambda: strict_json.read(path), self.wait * times)
        if found is None:
            raise PeerError(f"task {1 - self.task} did not get to {word!r} in {self.wait * times:g} s")
        return dict(found)


def look(see: Callable[[], Any], seconds: float) -> Any:
    """Return the first result that is neither None nor the error of a file not (yet) complete, or None."""
    begin = time.monotonic()
    while True:
        try:
            found = see()
        except (FileNotFoundError, ValueError):
            found = None
        passed = time.monotonic() - begin
        if found is not None or passed > seconds:
            return found
        time.sleep(PAUSES[0] if passed < 0.2 else PAUSES[1])


def write(path: Path, content: bytes) -> None:
    """Write or overwrite in place, and fsync. Raise OSError."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT, 0o600)
    try:
        view = memoryview(content)
        while view:
            view = view[os.write(descriptor, view) :]
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def content(name: str, version: int) -> bytes:
    """Return the content of that version, which both tasks can compute, so that the file itself is compared."""
    return hashlib.shake_256(f"{name} {version}".encode()).digest(BYTES)


def change(step: str, path: Path) -> None:
    """Do the writer's part of a step."""
    if step in ("create", "overwrite"):
        write(path, content(path.name, STEPS.index(step)))
    elif step == "rename":
        write(path.with_suffix(".new"), content(path.name, STEPS.index(step)))
        os.replace(path.with_suffix(".new"), path)
    else:
        os.unlink(path)


def change_seen(step: str, path: Path) -> bool | None:
    """Return whether the reader sees the step's outcome; None if it does not yet."""
    if step == "unlink":
        return None if path.exists() else True
    found = hashlib.sha256(path.read_bytes()).digest()
    return True if found == hashlib.sha256(content(path.name, STEPS.index(step))).digest() else None


def steps(meeting: Meeting, writer: int) -> dict[str, Facts]:
    """Go through the steps in one direction; the writer's result counts."""
    path = meeting.folder / f"data-{writer}"
    account: dict[str, Facts] = {}
    for step in STEPS:
        word = f"{step}-{writer}"
        if meeting.task != writer:
            meeting.hear(f"{word}-next")
            # The reader gets no message when it is done: the file is measured, not the message.
            meeting.say(word, seen=look(partial(change_seen, step, path), meeting.wait) is True)
            continue
        meeting.say(f"{word}-next")
        begin = time.monotonic()
        change(step, path)
        seen = meeting.hear(word, times=LOOKED).get("seen") is True
        account[step] = {"seen": seen, "seconds": round(time.monotonic() - begin, 4) if seen else None}
    return account


def attempt(path: Path, lock: Callable[[int, int], None]) -> str:
    """Try to take a lock; return granted, refused or the error's text."""
    descriptor = os.open(path, os.O_RDWR)
    try:
        lock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return "granted"
    except (BlockingIOError, PermissionError):
        return "refused"
    except OSError as error:
        return str(error.strerror or error)
    finally:
        os.close(descriptor)


def locks(meeting: Meeting, holder: int) -> dict[str, Facts]:
    """Hold each kind of lock on one node and try it on the other, then without it."""
    account: dict[str, Facts] = {}
    for name, lock in LOCKS.items():
        path, word = meeting.folder / f"{name}-{holder}", f"{name}-{holder}"
        if meeting.task != holder:
            meeting.hear(f"{word}-held")
            meeting.say(f"{word}-tried", outcome=attempt(path, lock))
            meeting.hear(f"{word}-released")
            meeting.say(f"{word}-again", outcome=attempt(path, lock))
            continue
        write(path, b"lock")
        descriptor = os.open(path, os.O_RDWR)
        try:
            try:
                lock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                held = None
            except OSError as error:
                held = str(error.strerror or error)
            meeting.say(f"{word}-held")
            tried = meeting.hear(f"{word}-tried").get("outcome")
        finally:
            os.close(descriptor)  # which releases it
        meeting.say(f"{word}-released")
        again = meeting.hear(f"{word}-again").get("outcome")
        account[name] = {"while_held": held or tried, "after_release": again}
    return account


def take_part(meeting: Meeting) -> Facts | None:
    """Play this task's part. Task 0 returns the document, task 1 None. Raise PeerError, OSError."""
    meeting.say("hello", node=meeting.node)
    nodes = {meeting.task: meeting.node, 1 - meeting.task: str(meeting.hear("hello", times=LOOKED).get("node"))}
    accounts: dict[int, Facts] = {}
    for writer in (0, 1):
        accounts[writer] = {"steps": steps(meeting, writer), "locks": locks(meeting, writer)}
    if meeting.task == 1:
        meeting.say("account", **accounts[1])
        return None
    accounts[1] = meeting.hear("account")
    return {
        "nodes": [nodes[0], nodes[1]],
        "directions": [{"writer": nodes[writer], "reader": nodes[1 - writer], **accounts[writer]} for writer in (0, 1)],
    }


def _play(task: int, node: str, folder: Path, wait: float) -> Facts | None:
    if task == 0:
        os.mkdir(folder, 0o700)
    elif look(lambda: True if folder.is_dir() else None, LOOKED * wait) is None:
        raise PeerError(f"task 0 did not make {folder} in {LOOKED * wait:g} s")
    return take_part(Meeting(task, node, folder, wait))


def _number(environment: dict[str, str], name: str) -> int:
    text = environment.get(name, "")
    if text not in ("0", "1"):
        raise KitError(f"{name} is {text!r}: run this with srun --nodes=2 --ntasks=2, one task on each of two nodes")
    return int(text)


def run(arguments: argparse.Namespace, environment: dict[str, str]) -> Facts | None:
    """Return the coherence document from task 0, None from task 1. Raise KitError if it is called wrongly."""
    task = _number(environment, "SLURM_PROCID")
    name = arguments.run or "-".join(
        environment.get(key, "0") for key in ("SLURM_JOB_ID", "SLURM_RESTART_COUNT", "SLURM_STEP_ID")
    )
    if not re.fullmatch(r"[A-Za-z0-9_.-]{1,80}", name):
        raise KitError(f"--run {name!r}: expected letters, digits, . _ -")
    wait = arguments.wait
    deadline = START + ALL * wait if arguments.deadline is None else arguments.deadline
    if not (0 < wait < math.inf and 0 < deadline < math.inf):
        raise KitError("expected --wait and --deadline above 0")
    folder = Path(arguments.folder) / f".coherence-{name}"
    node = arguments.node or environment.get("SLURMD_NODENAME") or socket.gethostname()
    document: Facts = {"schema": 1, "time": time.time(), "folder": str(folder), "wait": wait}
    document.update(nodes=None, directions=None)
    error = None
    try:
        found = mounts.in_child(lambda: _play(task, node, folder, wait), deadline)
    except mounts.NoAnswerError as reason:
        raise KitError(f"the share did not let task {task} finish: {reason}") from None
    except mounts.ChildError as reason:
        found, error = None, f"task {task} on {node}: {reason}"
    finally:
        if task == 0:
            _remove(folder)
    if task == 1:
        if error:
            raise KitError(error)
        return None
    return {**document, **(found or {}), "error": error}


def _remove(folder: Path) -> None:
    with contextlib.suppress(mounts.ChildError):  # it does not answer, as the document already reports
        mounts.in_child(lambda: shutil.rmtree(folder, ignore_errors=True), 10.0)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    parser.add_argument("--folder", required=True, help="folder on the share, such as <share>/jobs")
    parser.add_argument("--run", help="a name that both tasks agree on (default: from job, restart and step)")
    parser.add_argument("--node", help="this node's name (default: SLURMD_NODENAME, then the host's)")
    parser.add_argument(
        "--wait", type=float, default=10.0, help="seconds that a change may take to be seen (default 10)"
    )
    parser.add_argument(
        "--deadline",
        type=float,
        help=f"seconds for everything (default {START:g} plus {ALL} times --wait: the maximum for all steps)",
    )
