# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The kit's command line: `python -m kit …`."""

from __future__ import annotations

import argparse
import importlib
import json
import os
import signal
import sys
from types import FrameType, ModuleType
from typing import NoReturn

from kit.errors import KitError

COMMANDS = {
    "begin": "write the job's begin marker",
    "end": "write the job's end marker",
    "runtime": "install a locked environment on the share",
    "image": "put an Apptainer image on the share",
    "inside": "describe the runtime, from its own Python",
    "wheels": "fetch a wheel that the kit needs, by its pinned hash",
    "wheelhouse": "fetch the wheels of a lock for another machine",
    "sample": "sample this job's GPUs on this node until stopped",
    "host": "describe this host apart from GPUs and the share",
    "preflight": "examine this node, as its preflight job",
    "devices": "list the GPUs that this process may use",
    "reports": "gather what the jobs of a preflight wrote",
    "probe": "describe the GPUs and their health: facts as JSON",
    "provenance": "write what the job runs on",
    "nodes": "run a command on each of the job's nodes",
    "gather": "combine the files left by the job's nodes",
    "link": "let a job take its place in a chain of jobs",
    "legs": "run a distributed workload, as several runs if it has legs or a baseline",
    "launch": "start a leg's ranks on this node, with the runtime's Python",
    "watch": "show how a training goes, on one screen",
    "environment": "run a command with the variables (JSON) on standard input",
    "share": "examine the share from this node: facts as JSON",
    "cost": "tell what a pretraining costs, from its job's output folder",
    "coherence": "check that two nodes see the same share, under srun",
    "checkpoints": "list, verify or fetch the checkpoints of a pretraining",
    "profile": "check training profiles, or describe what one may hold",
    "tracker": "send a training's rows to an MLflow server",
    "tokens": "make, verify, fetch or upload a folder of tokens for pretraining",
}


def _command(name: str) -> ModuleType:
    # Import only the requested one: jobs keep no compiled files on the share, so every import is compiled anew.
    return importlib.import_module(f"kit.commands.{name}")


def _parser(asked: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m kit", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    if asked in COMMANDS:
        _command(asked).add_arguments(commands.add_parser(asked, help=COMMANDS[asked]))
        return parser
    for name, text in COMMANDS.items():
        commands.add_parser(name, help=text)
    return parser


def _terminated(number: int, _frame: FrameType | None) -> NoReturn:
    # An exception, so that children are killed and unfinished folders removed on the way out.
    raise SystemExit(128 + number)


def main() -> int:
    """Run the command line; return 0 on success, 1 for a problem reported on stderr, 2 for wrong usage."""
    arguments = _parser(sys.argv[1] if len(sys.argv) > 1 else "").parse_args()
    os.umask(0o022)  # jobs read and run these files, so nobody else may write to them
    signal.signal(signal.SIGTERM, _terminated)
    try:
        result = _command(arguments.command).run(arguments)
    except (KitError, OSError) as error:
        print(f"kit {arguments.command}: {error}", file=sys.stderr)
        return 1
    if result is not None:
        print(json.dumps(result))
    return 0


if __name__ == "__main__":
    sys.exit(main())
