# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A profile's training with a fault in it: faulty_training.py FAULT and what train.py is told, which it stands in for.

Each puts one thing wrong from outside, as a machine or a mistake would; the training itself knows nothing of it. Most
happen in step 50 of the measured leg, to the last of two ranks. The plays of tests/faults/profiles.yml use it.
"""

from __future__ import annotations

import errno
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import acceptance
import saving
import torch
import train
import training
from evaluation import Stopping
from windows import Windows

NAME = sys.argv.pop(1)
AT = 50
LEG, OUTPUT = os.environ.get("HPC_VALIDATION_LEG"), Path(os.environ["OUTPUT_DIR"])


def on_rank(rank: int) -> bool:
    """Return whether this is the rank; the environment is the launcher's."""
    return int(os.environ.get("RANK", "-1")) == rank


def before_the_step(rank: int, act: Callable[[], None]) -> None:
    """Let a rank do something before one step of the measured leg."""
    update = training.Trainer._update

    def changed(self: Any, *given: Any) -> Any:
        if self.step + 1 == AT and LEG == "measured" and on_rank(rank):
            act()
        return update(self, *given)

    training.Trainer._update = changed  # type: ignore[method-assign]


def wait_for(path: Path) -> None:
    """Wait until somebody makes the file."""
    while not path.exists():
        time.sleep(0.1)


def held() -> None:
    """Wait in a step, so that somebody else can put something wrong: `held` is there then, and `go` ends it."""

    def wait() -> None:
        (OUTPUT / "held").write_text("here")
        wait_for(OUTPUT / "go")

    before_the_step(0, wait)


def die() -> None:
    """End this process as a kernel would."""
    os.kill(os.getpid(), signal.SIGKILL)


def dies_once() -> None:
    """Kill one rank in the first attempt."""
    if os.environ.get("HPC_VALIDATION_RESTART") == "0":
        before_the_step(1, die)


def dies_again_and_again() -> None:
    """Kill one rank in the first step of each attempt."""
    update = training.Trainer._update

    def changed(self: Any, *given: Any) -> Any:
        if LEG == "measured" and on_rank(1):
            die()
        return update(self, *given)

    training.Trainer._update = changed  # type: ignore[method-assign]


def stands_still() -> None:
    """Let one rank wait for ever."""
    before_the_step(1, lambda: wait_for(OUTPUT / "never"))


def sender_killed() -> None:
    """Kill what sends the rows to a server."""

    def kill() -> None:
        senders = [pid for pid in children() if b"tracker" in Path("/proc", pid, "cmdline").read_bytes().split(b"\0")]
        for pid in senders:
            os.kill(int(pid), signal.SIGKILL)

    before_the_step(0, kill)


def children() -> list[str]:
    """Return the process ids of this process's children."""
    tasks = Path("/proc/self/task").glob("*/children")
    return [pid for task in tasks for pid in task.read_text(encoding="ascii").split()]


def disk_full() -> None:
    """Have no space for the second checkpoint."""
    save, calls = saving.save_file, [0]

    def changed(*given: Any) -> None:
        calls[0] += 1
        if calls[0] == 2 and LEG == "measured":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        save(*given)

    saving.save_file = changed


def stops_at_once() -> None:
    """End at the first evaluation."""
    fires = property(lambda self: LEG == "measured" and self.best is not None)
    Stopping.fires = fires  # type: ignore[method-assign, assignment]


def never_stops() -> None:
    """Learn nothing, and go on all the same."""
    lr_zero()
    Stopping.fires = property(lambda _self: False)  # type: ignore[method-assign, assignment]


def lr_zero() -> None:
    """Have a learning rate of zero."""
    if LEG == "measured":
        training.learning_rate = lambda _profile, _step: 0.0


def leaks() -> None:
    """Have the answers among the inputs."""
    read = Windows.__getitem__

    def changed(self: Windows, numbers: Any) -> Any:
        inputs, answers = read(self, numbers)
        inputs[:, :, 0] = answers.float()
        return inputs, answers

    Windows.__getitem__ = changed  # type: ignore[method-assign]


def frozen_move() -> None:
    """Let frozen weights decay, as an optimizer does that holds them with gradients of zero."""
    update = training.Trainer._update

    def changed(self: Any, *given: Any) -> Any:
        done = update(self, *given)
        with torch.no_grad():
            for weight in self.module.parameters():
                if not weight.requires_grad:
                    weight.mul_(1 - 1e-6)
        return done

    training.Trainer._update = changed  # type: ignore[method-assign]


def far_target() -> None:
    """Adapt to what is far where it should be near."""
    adapt = acceptance.adapt

    def changed(leg: Any, purpose: str, stem: Path, source: Path | None) -> Any:
        return adapt(leg, purpose, stem.with_name(stem.name.replace("near", "far")), source)

    acceptance.adapt = changed


FAULTS = (
    held,
    dies_once,
    dies_again_and_again,
    stands_still,
    sender_killed,
    disk_full,
    stops_at_once,
    never_stops,
    lr_zero,
    leaks,
    frozen_move,
    far_target,
)

if __name__ == "__main__":
    {fault.__name__: fault for fault in FAULTS}[NAME]()
    sys.exit(train.main())
