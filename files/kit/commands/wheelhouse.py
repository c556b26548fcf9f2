# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""`kit wheelhouse`: the wheels of a lock, for a machine that cannot fetch them itself."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from kit import files
from kit.commands import sources
from kit.runtime import wheelhouse


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    parser.add_argument("--lock", type=Path, required=True, help="the lock, as uv writes it")
    parser.add_argument("--python", required=True, metavar="VERSION", help="of the machine, such as 3.11 or 3.8.10")
    parser.add_argument("--machine", required=True, help="its processor, such as x86_64 or aarch64")
    parser.add_argument("--libc", metavar="VERSION", help="its glibc, such as 2.31: leave out what needs a newer one")
    parser.add_argument("--output", type=Path, required=True, help="target folder")
    sources.add_arguments(parser)


def run(arguments: argparse.Namespace) -> dict[str, Any]:
    """Fetch those that are not there; return which wheels there are and whether anything changed."""
    found, changed = wheelhouse.fetch(
        arguments.lock,
        wheelhouse.target(arguments.python, arguments.machine, arguments.libc),
        arguments.output,
        indexes=[] if arguments.wheelhouse else sources.indexes(arguments),
        wheelhouse=arguments.wheelhouse,
    )
    return {
        "folder": str(arguments.output),
        "wheels": [
            {"file": path.name, "sha256": files.sha256(path), "bytes": path.stat().st_size} for path in sorted(found)
        ],
        "packages": {each.name: each.version for each in found.values()},
        "changed": changed,
    }
