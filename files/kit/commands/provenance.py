# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""`kit provenance`: what the job runs on."""

from __future__ import annotations

import argparse
from pathlib import Path

from kit.evidence import provenance
from kit.files import write_json
from kit.job import current_job, node_file


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    parser.add_argument("--output", type=Path, required=True, help="%%N is the node's name")
    parser.add_argument("--data", type=Path, help="folder of the dataset")
    parser.add_argument("--model", type=Path, help="folder of the model that is trained further")
    parser.add_argument("--lock", type=Path, help="lock file that the runtime should match")
    parser.add_argument("--image", type=Path, help="Apptainer image that the runtime is in")
    parser.add_argument("--image-name", help="name under which the image was staged")
    parser.add_argument("--images", type=Path, help="folder of images")
    parser.add_argument("runtime", nargs="+", help="command that starts the runtime's Python")


def run(arguments: argparse.Namespace) -> None:
    """Write the document."""
    image = provenance.Image(arguments.image_name, arguments.image, arguments.images) if arguments.image else None
    document = provenance.collect(
        current_job(),
        arguments.runtime,
        lock=arguments.lock,
        data=arguments.data,
        model=arguments.model,
        image=image,
    )
    write_json(node_file(arguments.output), document)
