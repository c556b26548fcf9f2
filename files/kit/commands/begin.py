# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""`kit begin`: the job's script has started."""

from __future__ import annotations

import argparse
import os

from kit.errors import KitError
from kit.evidence import markers
from kit.job import current_job


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    parser.add_argument("--markers", default=os.environ.get("HPC_VALIDATION_MARKERS"), help="folder for markers")


def folder(arguments: argparse.Namespace) -> str:
    """Return the folder for markers. Raise KitError if none is given."""
    if not arguments.markers:
        raise KitError("no folder for markers: give --markers or set HPC_VALIDATION_MARKERS")
    return str(arguments.markers)


def run(arguments: argparse.Namespace) -> None:
    """Write the begin marker."""
    markers.begin(folder(arguments), current_job())
