# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""`kit wheels`: a wheel that the kit itself needs."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from kit.commands import sources
from kit.runtime import wheels


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    parser.add_argument("--fetch", required=True, metavar="NAME[==VERSION]")
    parser.add_argument("--output", type=Path, required=True, help="target folder")
    parser.add_argument("--check", action="store_true", help="report what would be done, do nothing")
    sources.add_arguments(parser)


def run(arguments: argparse.Namespace) -> dict[str, Any]:
    """Fetch it unless it is there; return where it is and whether anything changed."""
    project, _sep, version = arguments.fetch.partition("==")
    named = not arguments.wheelhouse and not arguments.check
    path, changed = wheels.fetch(
        project,
        arguments.output,
        version or None,
        indexes=sources.indexes(arguments) if named else [],
        wheelhouse=arguments.wheelhouse,
        check=arguments.check,
    )
    return {"path": str(path), "changed": changed}
