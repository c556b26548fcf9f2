# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""`kit sample`: sample this job's GPUs on this node until stopped."""

from __future__ import annotations

import argparse
from pathlib import Path

from kit.errors import KitError
from kit.gpu import sampler
from kit.job import current_job, node_file


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    parser.add_argument("--output", type=Path, required=True, help="JSON Lines file; %%N is the node's name")
    parser.add_argument("--interval", type=float, default=1.0, help="seconds between samples (default 1)")
    parser.add_argument("--parent", type=int, help="process ID whose end ends the sampling (default: the parent)")


def run(arguments: argparse.Namespace) -> None:
    """Sample. Raise KitError for an invalid interval."""
    if not 0.05 <= arguments.interval <= 3600:
        raise KitError(f"--interval {arguments.interval}: expected 0.05 to 3600 seconds")
    sampler.run(node_file(arguments.output), arguments.interval, current_job(), arguments.parent)
