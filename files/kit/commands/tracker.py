# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""`kit tracker`: send a training's rows to an MLflow server, while it trains or later."""

from __future__ import annotations

import argparse
import os
import select
import sys
from pathlib import Path

from kit.errors import KitError
from kit.trackers.mlflow import RefusedError, Server, UnavailableError
from kit.trackers.sender import ROWS, Sender, Training

PATIENCE = 8.0  # seconds for the rest, once a training has ended: a job that is asked to end is killed after 10
LATER = 600.0  # seconds for all of them, by hand


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
        action.add_argument("--experiment", default="training-profiles")
        action.add_argument("--name", help="of the run (default: the folder's)")
        action.add_argument("--token", type=Path, help="file of mode 0600 with a token")
        action.add_argument("--ca", type=Path, help="certificates of the authorities to trust, instead of the system's")
        action.add_argument("--failed", action="store_true", help="the training failed")


def run(arguments: argparse.Namespace) -> None:
    """Send. Raise KitError for what cannot be used, SystemExit with 3 if something could not be sent."""
    if arguments.action == "send" and not (arguments.folder / ROWS).is_file():
        raise KitError(f"{arguments.folder} has no {ROWS}: expected the output folder of a training's job")
    server = Server(arguments.address, arguments.token, arguments.ca)
    name = arguments.name or arguments.folder.name
    sender = Sender(server, Training(arguments.folder, arguments.experiment, name, f"{arguments.folder.resolve()}"))
    by_hand = arguments.action == "send"
    said = ""
    all_sent = sender.follow((lambda: True) if by_hand else _input_ended, LATER if by_hand else PATIENCE)
    if all_sent:
        try:
            sender.finish(arguments.failed)
        except (UnavailableError, RefusedError) as error:
            all_sent, said = False, str(error)
    if not all_sent:
        why = sender.state.gap or said
        print(f"not all rows were sent to {server.address}: {why}; later: python -m kit tracker send", file=sys.stderr)
        raise SystemExit(3)
    print(f"{sender.state.points} points are on {server.address}, run {sender.state.run}")


def _input_ended() -> bool:
    """Return whether the training has closed its end of the pipe."""
    ready, _others, _more = select.select([sys.stdin], [], [], 0)
    return bool(ready) and not os.read(sys.stdin.fileno(), 1 << 12)
