# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""`kit watch`: show how a training goes, on one screen."""

from __future__ import annotations

import argparse
import os
import sys
import time

from kit.errors import KitError
from kit.pretraining import observed, overview

LONGEST_WAIT = 31 * 86400  # seconds


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    parser.add_argument("training", metavar="JOB|FOLDER", help="number of a Slurm job, or a training's output folder")
    parser.add_argument(
        "--share", default=os.environ.get("HPC_VALIDATION_SHARE"), help="path of the share (HPC_VALIDATION_SHARE)"
    )
    parser.add_argument("--every", type=float, default=10.0, help="seconds between two screens (default 10)")
    parser.add_argument("--wait", type=float, default=0.0, help="seconds to wait for a job to begin (default 0)")
    parser.add_argument("--once", action="store_true", help="show one screen")


def run(arguments: argparse.Namespace) -> None:
    """Show screens until the job has ended. Raise KitError for a training that is not found."""
    if not 1 <= arguments.every <= 3600:
        raise KitError(f"--every {arguments.every:g}: expected 1 to 3600 seconds")
    if not 0 <= arguments.wait <= LONGEST_WAIT:
        raise KitError(f"--wait {arguments.wait:g}: expected 0 to {LONGEST_WAIT} seconds")
    try:
        _wait(arguments)
        while True:
            seen = observed.observe(observed.find(arguments.training, arguments.share))
            sys.stdout.write(overview.screen(seen))
            if arguments.once or seen.ended is not None:
                break
            sys.stdout.write(f"{'-' * 40}\n")
            sys.stdout.flush()
            time.sleep(arguments.every)
        sys.stdout.flush()
    except KeyboardInterrupt:
        return
    except BrokenPipeError:  # a pager that was left
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _wait(arguments: argparse.Namespace) -> None:
    """Return when the job has begun. Raise KitError if it has not in time."""
    until = time.monotonic() + arguments.wait
    is_told = False
    while True:
        try:
            observed.find(arguments.training, arguments.share)
            return
        except observed.NotBegunError:
            left = until - time.monotonic()
            if left <= 0:
                raise
        if not is_told:
            sys.stdout.write(f"job {arguments.training} has not begun; squeue -j {arguments.training} says why\n")
            sys.stdout.flush()
            is_told = True
        time.sleep(min(left, arguments.every))
