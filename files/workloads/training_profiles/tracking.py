# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who is told of a training besides its own files: an MLflow server, W&B and TensorBoard, as the profile says.

None of them can stop or slow a training; what could not be told is counted, and said.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from kit.commands.tracker import PATIENCE
from kit.errors import KitError
from kit.profiles.model import Profile
from kit.trackers import outbox, sinks
from kit.trackers.sender import ROWS

NOT_ASKED, NO_ADDRESS = "not asked for", "no address: set logging.mlflow.tracking_uri"
LOG = "tracker.log"


@contextmanager
def told(output: Path, profile: Profile, found: dict[str, Any]) -> Iterator[list[sinks.Tracker]]:
    """Tell those of the rows in ``output`` while the block runs; ``found`` has in the end what came of it."""
    logging = profile.logging
    said: list[str] = []
    watch = {
        "wandb": logging.wandb.enabled,
        "wandb_key": logging.wandb.key_file if logging.wandb.mode == "online" else None,
        "tensorboard": logging.tensorboard.enabled,
    }
    started: list[sinks.Tracker] = []
    try:
        started = sinks.start(output, profile.metadata.name, watch, said.append, logging.wandb.project)
    except (OSError, KitError) as error:
        said.append(str(error))
    sender = follower(output, profile)
    try:
        yield started
    finally:
        sinks.close(started)
        wandb = logging.wandb.mode if logging.wandb.enabled else NOT_ASKED
        found.update(sinks=said, wandb=wandb, mlflow={**ended(output, profile, sender), "due": due(output)})


def follower(output: Path, profile: Profile) -> subprocess.Popen[bytes] | None:
    """Start what sends rows to the MLflow server; None if there is none to send to."""
    server = profile.logging.mlflow
    if not server.enabled or server.tracking_uri is None:
        return None
    command = [sys.executable, "-m", "kit", "tracker", "follow", str(output), "--address", server.tracking_uri]
    command += ["--experiment", server.experiment, "--name", profile.metadata.name]
    for option, path in (("--token", server.token_file), ("--ca", server.ca_file)):
        command += [option, path] if path else []
    with (output / LOG).open("ab") as stream:
        return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=stream, stderr=stream)


def ended(output: Path, profile: Profile, sender: subprocess.Popen[bytes] | None) -> dict[str, Any]:
    """Let it send the rest; return what has been sent, and why not all was."""
    if sender is None:
        return {"points": 0, "gap": NO_ADDRESS if profile.logging.mlflow.enabled else NOT_ASKED}
    if sender.stdin:
        sender.stdin.close()
    try:
        code = sender.wait(PATIENCE + 2)
    except subprocess.TimeoutExpired:
        sender.kill()
        code = sender.wait()
    try:
        state = outbox.read_state(output)
    except KitError as error:
        return {"points": 0, "gap": str(error)}
    gap = state.gap or ("none" if code == 0 else f"its sender ended with exit code {code}: {output / LOG}")
    return {
        "points": state.points,
        "not_finite": state.not_finite,
        "refused": state.refused,
        "gap": gap,
        "run": state.run,
    }


def due(output: Path) -> int | None:
    """Return how many points the rows have; None if they cannot be read."""
    count, offset = 0, 0
    try:
        while (rows := outbox.read_rows(output / ROWS, offset)).offset > offset:
            count, offset = count + len(rows.points), rows.offset
    except KitError:
        return None
    return count
