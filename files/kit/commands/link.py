# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""`kit link`: let a job take its place in a chain of jobs, or end at once if it has nothing to do."""

from __future__ import annotations

import argparse
from pathlib import Path

from kit.job import current_job
from kit.pretraining import chain

NOTHING_TO_DO = 3  # exit code


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    parser.add_argument("--chain", type=Path, required=True, help="the chain's folder on the share")
    parser.add_argument("--output", type=Path, required=True, help="the job's output folder")


def run(arguments: argparse.Namespace) -> None:
    """Say what the job will do. Raise SystemExit with NOTHING_TO_DO if that is nothing, KitError if it cannot tell."""
    decision = chain.begin(arguments.chain, arguments.output, current_job())
    if not decision.trains:
        print(f"{arguments.chain.name}: nothing to do: {decision.why}", flush=True)
        raise SystemExit(NOTHING_TO_DO)
    came = f"the checkpoint of step {decision.step}" if decision.step else "the beginning"
    print(f"{arguments.chain.name}: goes on from {came}{f': {decision.why}' if decision.why else ''}", flush=True)
