# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""`kit checkpoints`: the checkpoints of a training, listed, verified, and fetched from a bucket."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from kit.errors import KitError
from kit.pretraining import checkpoints
from kit.pretraining.checkpoint_manager import CheckpointManager


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    actions = parser.add_subparsers(dest="action", required=True)
    listing = actions.add_parser("list", help="those in a folder, and in a bucket")
    verify = actions.add_parser("verify", help="read every file of one, or of all, and compare it with its manifest")
    verify.add_argument("--name", help="checkpoint_step_N; without, all")
    fetch = actions.add_parser("fetch", help="have one of a bucket in the folder, verified")
    fetch.add_argument("--name", help="checkpoint_step_N; without, the newest whole one")
    for each in (listing, verify, fetch):
        each.add_argument(
            "folder", type=Path, metavar="FOLDER", help="such as <share>/models/gpt-pretraining/job-N/checkpoints"
        )
    for each in (listing, fetch):
        each.add_argument("--remote", metavar="URL", help="gs://BUCKET/PREFIX or a folder")
        each.add_argument("--credentials", type=Path, help="file of a key, mode 0600; without, the application default")


def run(arguments: argparse.Namespace) -> dict[str, Any]:
    """Do it and return what there is. Raise KitError for a damaged one, or if there is nothing to look at."""
    if arguments.action == "verify":
        return _verify(arguments.folder, arguments.name)
    manager = CheckpointManager(arguments.folder, arguments.remote, credentials=arguments.credentials)
    if arguments.action == "fetch":
        if arguments.name:
            return {"path": str(manager.download_checkpoint(arguments.name))}
        taken = manager.download_newest()
        return {"path": str(taken.path), "refused": taken.refused}
    if not (arguments.remote or arguments.folder.is_dir()):
        raise KitError(f"{arguments.folder}: no such folder")
    return {"checkpoints": manager.list_checkpoints()}


def _verify(folder: Path, name: str | None) -> dict[str, Any]:
    paths = [folder / name] if name else checkpoints.listed(folder)
    if not paths:
        raise KitError(f"{folder} has no checkpoint")
    found: dict[str, str] = {}
    for path in paths:
        try:
            checkpoints.verify(path)
            found[path.name] = "whole"
        except checkpoints.DamagedError as error:
            found[path.name] = str(error)
    damaged = [why for why in found.values() if why != "whole"]
    if damaged:
        raise KitError(f"{len(damaged)} of {len(found)} checkpoints are damaged: {json.dumps(found)}")
    return {"checkpoints": found}
