# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""`kit environment`: run a command with variables that nobody else may read."""

from __future__ import annotations

import argparse
import sys
from typing import NoReturn

from kit.process import environment


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    parser.add_argument("argv", nargs=argparse.REMAINDER, metavar="-- COMMAND ...")


def run(arguments: argparse.Namespace) -> NoReturn:
    """Become the command."""
    argv = arguments.argv[1:] if arguments.argv[:1] == ["--"] else arguments.argv
    environment.run(argv, sys.stdin.buffer)
