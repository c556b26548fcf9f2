# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""`kit end`: the job's script has ended, and how."""

from __future__ import annotations

import argparse

from kit.commands import begin
from kit.evidence import markers
from kit.job import current_job


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    begin.add_arguments(parser)
    parser.add_argument("--exit-code", type=int, required=True)


def run(arguments: argparse.Namespace) -> None:
    """Close the logs and write the end marker."""
    markers.end(begin.folder(arguments), current_job(), arguments.exit_code)
