# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""`kit runtime`: a locked environment on the share."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from kit.commands import sources
from kit.runtime import installers, venv


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    parser.add_argument("--name", required=True)
    parser.add_argument("--lock", type=Path, required=True, help="requirements file with hashes")
    parser.add_argument("--root", type=Path, required=True, help="folder of environments")
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--uv", help="uv to use (default: the one on PATH, else the pinned one is fetched)")
    parser.add_argument("--installer", choices=("auto", "uv", "pip"), default="auto")
    parser.add_argument(
        "--cache", type=Path, help="uv's cache (default: ROOT/.cache/uv, so that files are hard-linked)"
    )
    parser.add_argument("--check", action="store_true", help="report what would be done, do nothing")
    sources.add_arguments(parser)


def run(arguments: argparse.Namespace) -> dict[str, Any]:
    """Install it unless it is there; return what was done."""
    named = arguments.index_url or arguments.extra_index_url
    return venv.install(
        name=arguments.name,
        lock_path=arguments.lock,
        root=arguments.root,
        python=arguments.python,
        source=installers.Source(tuple(sources.indexes(arguments) if named else ()), arguments.wheelhouse),
        tools=installers.Tools(arguments.installer, arguments.uv, arguments.cache),
        check=arguments.check,
    )
