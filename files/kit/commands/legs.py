# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""`kit legs`: run a distributed workload, as several runs where it has legs or a baseline."""

from __future__ import annotations

import argparse
import os
import time
from contextlib import suppress
from pathlib import Path

from kit.errors import KitError
from kit.evidence import markers
from kit.job import current_job
from kit.ranks import legs


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    parser.add_argument("--ranks", type=int, required=True, help="processes of the workload, one per GPU")
    parser.add_argument("--nodes", type=int, default=1, help="nodes to distribute them over evenly (default 1)")
    parser.add_argument("--baseline", type=int, help="ranks of the runs before and after, on the first of the GPUs")
    parser.add_argument(
        "--leg",
        action="append",
        metavar="NAME[:RANKS[:ENDS]]",
        help="one of several runs, on all ranks unless told; ends `ok`, `killed` or `restarted`; one is `measured`",
    )
    parser.add_argument(
        "--work", choices=("weak", "strong"), help="what stays equal: the batch of a rank, or of all ranks"
    )
    parser.add_argument(
        "--restarts", type=int, default=0, help="how often a leg that fails is started again (default 0)"
    )
    parser.add_argument("--restart-delay", type=float, default=0.0, help="seconds before each restart (default 0)")
    parser.add_argument("--steady-seconds", type=float, help="minimum time that each leg trains steadily")
    parser.add_argument(
        "launcher", nargs=argparse.REMAINDER, help="command that starts the ranks: … python -m kit launch SCRIPT"
    )


def run(arguments: argparse.Namespace) -> None:
    """Run the legs. Raise KitError for invalid numbers, SystemExit with the exit code of a failed leg."""
    if arguments.ranks < 1:
        raise KitError(f"--ranks {arguments.ranks}: expected at least 1")
    if arguments.nodes < 1 or arguments.ranks % arguments.nodes:
        raise KitError(f"--nodes {arguments.nodes}: expected a number that divides the {arguments.ranks} ranks")
    if arguments.baseline is not None and not 1 <= arguments.baseline < arguments.ranks:
        raise KitError(f"--baseline {arguments.baseline}: expected fewer than the {arguments.ranks} ranks")
    if arguments.baseline is not None and arguments.leg:
        raise KitError("--baseline and --leg exclude each other")
    if arguments.restarts < 0 or not 0 <= arguments.restart_delay < float("inf"):
        raise KitError("--restarts and --restart-delay: expected numbers from 0")
    if not arguments.restarts and any(leg.endswith(f":{legs.RESTARTED}") for leg in arguments.leg or []):
        raise KitError(f"a leg that is {legs.RESTARTED} needs --restarts")
    if not arguments.launcher:
        raise KitError("no command to start the ranks is given")
    output = os.environ.get("OUTPUT_DIR")
    if not output:
        raise KitError("OUTPUT_DIR is not set: the job script must set the output folder")
    rules = {"work": arguments.work, "steady_seconds": arguments.steady_seconds}
    legged = legs.plan(Path(output), arguments.ranks, arguments.nodes, _told(arguments))
    restarts = legs.Restarts(arguments.restarts, arguments.restart_delay)
    status = legs.Runner(arguments.launcher, Path(output), rules, announce, restarts).run(legged)
    if status:
        raise SystemExit(status if status > 0 else 128 - status)


def announce(leg: str) -> None:
    """Let the job's progress marker name a leg: what it had is of the leg before. It is a hint, and may be lost."""
    folder, job = os.environ.get("HPC_VALIDATION_MARKERS"), current_job()
    if folder:
        with suppress(OSError):
            markers.progress(folder, job, {**job.stamp, "time": time.time(), "leg": leg})


def _told(arguments: argparse.Namespace) -> list[str]:
    """Return the legs as `legs.plan` reads them."""
    if arguments.leg:
        return list(arguments.leg)
    if arguments.baseline is None:
        return [legs.MEASURED]
    return [f"{legs.BEFORE}:{arguments.baseline}", legs.MEASURED, f"{legs.AFTER}:{arguments.baseline}"]
