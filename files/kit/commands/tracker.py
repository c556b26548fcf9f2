# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""`kit tracker`: send a training's rows to an MLflow server, while it trains or later."""

from __future__ import annotations

import argparse
import os
import select
import signal
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

from kit import strict_json
from kit.errors import KitError
from kit.files import METRICS_FILE
from kit.process.locks import sole
from kit.trackers import outbox
from kit.trackers.mlflow import RefusedError, Server, UnavailableError
from kit.trackers.sender import PROFILE, Sender, Training

PATIENCE = 8.0  # seconds for the rest, once a training has ended: a job that is asked to end is killed after 10
LATER = 600.0  # seconds without any success, by hand
WELL = b"well\n"  # what a training says before it closes the pipe, if it came to its end
LOCK, WAIT = "tracker.lock", 60.0  # seconds for another sender to end


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    actions = parser.add_subparsers(dest="action", required=True)
    for name, text in (
        ("send", "send what has not been sent, and end"),
        ("follow", "send rows as they come, until standard input ends"),
    ):
        action = actions.add_parser(name, help=text)
        action.add_argument("folder", type=Path, help="output folder of the training's job")
        action.add_argument("--address", required=True, help="of the MLflow server, such as https://mlflow:5000")
        action.add_argument("--experiment", help="name of the experiment (default: the profile's)")
        action.add_argument("--name", help="of the run (default: the profile's)")
        action.add_argument("--token", type=Path, help="file of mode 0600 with a token")
        action.add_argument("--ca", type=Path, help="certificates of the authorities to trust, instead of the system's")
        action.add_argument("--failed", action="store_true", help="the training failed")


def run(arguments: argparse.Namespace) -> None:
    """Send. Raise KitError for what cannot be used, SystemExit with 3 if something could not be sent."""
    folder, by_hand = arguments.folder, arguments.action == "send"
    if by_hand and not (folder / outbox.ROWS).is_file():
        raise KitError(f"{folder} has no {outbox.ROWS}: expected the output folder of a training's job")
    server = Server(arguments.address, arguments.token, arguments.ca)
    with sole(folder / LOCK, f"sending the rows in {folder}", WAIT):
        sender = Sender(server, _training(arguments), tell=_say_what_is_waited_for if by_hand else lambda _why: None)
        if by_hand:
            # Without metrics the training goes on, or nobody knows how it ended.
            ended_well = (folder / METRICS_FILE).is_file()
            status = "FAILED" if arguments.failed else "FINISHED" if ended_well else None
            try:
                all_sent = sender.follow(lambda: True, LATER, lambda: status, renews=True)
            except KeyboardInterrupt:
                all_sent = False
        else:
            signal.signal(signal.SIGINT, signal.SIG_IGN)  # it ends when the training closes the pipe
            all_sent = _follow(sender)
    state = sender.state
    if not all_sent:
        why = state.gap or "interrupted"
        print(f"not all rows were sent to {server.address}: {why}; later: kit tracker send", file=sys.stderr)
        raise SystemExit(3)
    left = f"; {state.unreadable} lines are no rows" if state.unreadable else ""
    print(f"{state.points} points are on {server.address}, run {state.run}{left}")


def _say_what_is_waited_for(why: str) -> None:
    print(f"{why}; trying again for {LATER / 60:g} minutes", file=sys.stderr, flush=True)


def _follow(sender: Sender) -> bool:
    """Send rows as they come; return whether all were sent."""
    pipe = Pipe(sys.stdin.fileno())
    with suppress(UnavailableError, RefusedError):  # the rows will show what is wrong
        sender.reopen()
    return sender.follow(pipe.ended, PATIENCE, lambda: "FINISHED" if pipe.well else "FAILED")


class Pipe:
    """The training's end: what it says in a pipe, and that it closes it."""

    def __init__(self, descriptor: int) -> None:
        """Read from ``descriptor``."""
        self._descriptor, self._said, self._closed = descriptor, b"", False

    def ended(self) -> bool:
        """Return whether the training has ended, well or not."""
        while not self._closed and select.select([self._descriptor], [], [], 0)[0]:
            part = os.read(self._descriptor, 1 << 12)
            self._said = (self._said + part)[-len(WELL) :]
            self._closed = not part or self.well  # others may keep the pipe open
        return self._closed

    @property
    def well(self) -> bool:
        """Whether it said that it came to its end."""
        return self._said == WELL


def _training(arguments: argparse.Namespace) -> Training:
    """Return what the training is called: as its profile says, unless told."""
    try:
        profile: Any = strict_json.read(arguments.folder / PROFILE)
        experiment, name = profile["logging"]["mlflow"]["experiment"], profile["metadata"]["name"]
    except (OSError, ValueError, KeyError, TypeError):
        experiment, name = "training-profiles", arguments.folder.name
    return Training(arguments.folder, arguments.experiment or str(experiment), arguments.name or str(name))
