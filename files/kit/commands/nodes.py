# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""`kit nodes`: run a command on each of a job's nodes."""

from __future__ import annotations

import argparse

from kit.errors import KitError
from kit.ranks import nodes


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    parser.add_argument("--count", type=int, required=True, help="number of the job's nodes; 1 is this node")
    parser.add_argument("argv", nargs=argparse.REMAINDER, metavar="COMMAND ...")


def run(arguments: argparse.Namespace) -> None:
    """Become the command. Raise KitError for an invalid number."""
    if arguments.count < 1:
        raise KitError(f"--count {arguments.count}: expected at least 1")
    nodes.become(arguments.count, arguments.argv)
