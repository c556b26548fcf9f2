# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""`kit devices`: the GPUs that this process may use."""

from __future__ import annotations

import argparse
from pathlib import Path

from kit.files import write_json
from kit.host import facts
from kit.job import current_job


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    parser.add_argument("--output", type=Path, required=True)


def run(arguments: argparse.Namespace) -> None:
    """Write the facts."""
    write_json(arguments.output, {**current_job().stamp, **facts.devices()})
