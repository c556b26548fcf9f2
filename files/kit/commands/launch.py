# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""`kit launch`: start a leg's ranks on this node with the runtime's Python; called by `kit legs`."""

from __future__ import annotations

import argparse
import os
import signal
from pathlib import Path

from kit.errors import KitError
from kit.process.bounded import die_with_parent
from kit.ranks.legs import KILLED


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    parser.add_argument("script", nargs=argparse.REMAINDER, help="the workload's script and its arguments")


def run(arguments: argparse.Namespace) -> None:
    """Start the ranks and wait. Raise SystemExit with 1 if one failed unexpectedly, KitError outside `kit legs`."""
    die_with_parent(signal.SIGTERM)
    from kit.training.launch import Nodes, launch  # noqa: PLC0415 - only the runtime's Python has PyTorch

    said = os.environ
    try:
        count, output = int(said["HPC_VALIDATION_RANKS"]), Path(said["OUTPUT_DIR"])
        nodes = Nodes(int(said["HPC_VALIDATION_NODES"]))
        if nodes.count > 1:
            nodes = Nodes(nodes.count, int(said["SLURM_NODEID"]), said["HPC_VALIDATION_RENDEZVOUS"])
    except (KeyError, ValueError) as error:
        raise KitError(f"a variable that `kit legs` or Slurm sets is missing: {error!r}") from error
    status = launch(arguments.script, count, output, nodes)
    # Of a leg that is meant to fail `kit legs` reads what became of it; see there.
    if status and said.get("HPC_VALIDATION_ENDS") != KILLED:
        raise SystemExit(status)
