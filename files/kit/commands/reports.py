# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""`kit reports`: what the jobs of a preflight wrote."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from kit.evidence import reports


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    parser.add_argument("--folder", type=Path, required=True, help="folder with one folder per job")
    parser.add_argument("--markers", type=Path, required=True, help="folder for markers")
    parser.add_argument("--into", type=Path, required=True, help="file to write: JSON Lines, compressed")
    parser.add_argument("jobs", nargs="*", metavar="JOB", help="job IDs, by default those with a folder")


def run(arguments: argparse.Namespace) -> dict[str, Any]:
    """Gather and remove what the jobs wrote, and return how many jobs and bytes there are."""
    jobs = arguments.jobs or reports.reported(arguments.folder)
    size = reports.write(arguments.into, arguments.folder, arguments.markers, jobs)
    reports.remove(arguments.folder, arguments.markers, jobs)
    return {"jobs": len(jobs), "bytes": size}
