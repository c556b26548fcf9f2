# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""`kit image`: an Apptainer image on the share."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from kit.runtime import image, image_build


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    parser.add_argument("--name", required=True, help="the environment in the image")
    parser.add_argument("--path", type=Path, required=True, help="path of the image, existing or not")
    parser.add_argument("--root", type=Path, required=True, help="folder of images")
    parser.add_argument("--sha256", help="expected SHA-256")
    parser.add_argument("--incoming", type=Path, help="a copy to check and put in place")
    parser.add_argument("--base", help="build it from this base image, such as docker://python:3.13-slim")
    parser.add_argument("--scripts", type=Path, help="folder with kit/, requirements/ and containers/ (to build it)")
    parser.add_argument("--cache", type=Path, help="uv's cache (to build it)")
    parser.add_argument("--wheelhouse", type=Path, help="folder of wheels (to build it without an index)")
    parser.add_argument("--check", action="store_true", help="report whether it is ready, do nothing")


def run(arguments: argparse.Namespace) -> dict[str, Any]:
    """Put the image in place; return its description."""
    recipe = None
    if arguments.base:
        recipe = image_build.Recipe(
            name=arguments.name,
            base=arguments.base,
            scripts=arguments.scripts,
            cache=arguments.cache,
            wheelhouse=arguments.wheelhouse,
        )
    wanted = image.Wanted(arguments.name, arguments.path, arguments.sha256, arguments.incoming, recipe)
    if arguments.check:
        return {"ready": image.is_ready(wanted, arguments.root)}
    return image.stage(wanted, arguments.root)
