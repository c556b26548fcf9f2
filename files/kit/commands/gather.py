# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""`kit gather`: combine the files of a job's nodes into those that a job of one node has."""

from __future__ import annotations

import argparse
from pathlib import Path

from kit.ranks import legs, nodes


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    parser.add_argument("--output", type=Path, required=True, help="the job's output folder")
    parser.add_argument("--count", type=int, required=True, help="how many nodes the job has")


def run(arguments: argparse.Namespace) -> None:
    """Combine the files. Raise KitError if a node left no provenance."""
    nodes.gather(arguments.output, arguments.count)
    legs.look_at_gpus(arguments.output)
