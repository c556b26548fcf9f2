# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Options for the package sources of commands that fetch packages."""

from __future__ import annotations

import argparse
from pathlib import Path

from kit.host.indexes import index_urls


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--index-url", help="package index (default: UV_DEFAULT_INDEX, PIP_INDEX_URL)")
    parser.add_argument("--extra-index-url", action="append", default=[], help="a further index; may be repeated")
    parser.add_argument("--wheelhouse", type=Path, help="folder of wheels; no index is used")


def indexes(arguments: argparse.Namespace) -> list[str]:
    """Return the indexes that the options or the environment name. Raise KitError if there are none."""
    return index_urls(arguments.index_url, arguments.extra_index_url)
