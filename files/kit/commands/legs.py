# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""`kit legs`: run a distributed workload, between two runs on fewer ranks where it has a baseline."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from kit.errors import KitError
from kit.ranks import legs


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    parser.add_argument("--ranks", type=int, required=True, help="processes of the workload, one a GPU")
    parser.add_argument("--nodes", type=int, default=1, help="nodes that they are on, as many on each (default 1)")
    parser.add_argument("--baseline", type=int, help="ranks of the runs before and after, on the first of the GPUs")
    parser.add_argument("--work", choices=("weak", "strong"), help="what stays equal: a rank's batch, or all ranks'")
    parser.add_argument("--steady-seconds", type=float, help="how long each leg trains steadily, at least")
    parser.add_argument(
        "launcher", nargs=argparse.REMAINDER, help="command that starts the ranks: … python -m kit launch SCRIPT"
    )


def run(arguments: argparse.Namespace) -> None:
    """Run the legs. KitError for numbers that cannot be meant; SystemExit with the exit code of a leg that failed."""
    if arguments.ranks < 1:
        raise KitError(f"--ranks {arguments.ranks}: expected at least 1")
    if arguments.nodes < 1 or arguments.ranks % arguments.nodes:
        raise KitError(f"--nodes {arguments.nodes}: expected nodes with equally many of the {arguments.ranks} ranks")
    if arguments.baseline is not None and not 1 <= arguments.baseline < arguments.ranks:
        raise KitError(f"--baseline {arguments.baseline}: expected fewer than the {arguments.ranks} ranks")
    if not arguments.launcher:
        raise KitError("there is no command that starts the ranks")
    output = os.environ.get("OUTPUT_DIR")
    if not output:
        raise KitError("OUTPUT_DIR is not set: the job script says where a run writes")
    rules = {"work": arguments.work, "steady_seconds": arguments.steady_seconds}
    legged = legs.plan(Path(output), arguments.ranks, arguments.baseline, arguments.nodes)
    status = legs.Runner(arguments.launcher, Path(output), rules).run(legged)
    if status:
        raise SystemExit(status if status > 0 else 128 - status)
