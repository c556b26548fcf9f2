# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""`kit host`: facts about this host apart from GPUs and the share."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from kit.files import write_json
from kit.host import facts
from kit.job import current_job


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    parser.add_argument("--output", type=Path, help="JSON file (default: standard output)")
    parser.add_argument("--image", help="container image to look for the GPUs in")
    parser.add_argument("--reach", action="append", default=[], metavar="URL", help="try this URL; may be repeated")
    parser.add_argument("--index", action="store_true", help="try the package index of the environment")


def run(arguments: argparse.Namespace) -> dict[str, Any] | None:
    """Return the facts unless they go to a file."""
    found = facts.facts(current_job(), image=arguments.image, reach=arguments.reach, index=arguments.index)
    if arguments.output is None:
        return found
    write_json(arguments.output, found)
    return None
