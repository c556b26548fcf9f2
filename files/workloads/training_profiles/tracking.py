# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who is told of a training besides its own files: an MLflow server, W&B and TensorBoard, as the profile says.

None of them can stop or slow a training; what could not be told is counted, and said.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from kit.commands.tracker import PATIENCE, WELL
from kit.errors import KitError
from kit.profiles.model import Profile
from kit.trackers import outbox, sinks

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
    sender: subprocess.Popen[bytes] | None = None
    gap = NOT_ASKED if not logging.mlflow.enabled else NO_ADDRESS if logging.mlflow.tracking_uri is None else None
    try:
        started = sinks.start(output, profile.metadata.name, watch, said.append, logging.wandb.project)
        sender = None if gap else follower(output, profile)
    except (OSError, KitError) as error:
        said.append(str(error))
        gap = gap or str(error)
    well = False
    try:
        yield started
        well = True
    finally:
        until = time.monotonic() + PATIENCE + 1
        let_go(sender, well=well)
        sinks.close(started)
        wandb = logging.wandb.mode if logging.wandb.enabled else NOT_ASKED
        failed = [text for text in said if text.startswith("W&B")]
        mlflow = {"points": 0, "gap": gap} if sender is None else ended(output, sender, until)
        found.update(sinks=said, wandb=failed[0] if failed else wandb, mlflow={**mlflow, "due": due(output)})


def follower(output: Path, profile: Profile) -> subprocess.Popen[bytes]:
    """Start what sends rows to the MLflow server. Raise OSError."""
    server = profile.logging.mlflow
    command = [sys.executable, "-m", "kit", "tracker", "follow", str(output), "--address", str(server.tracking_uri)]
    command += [f"--experiment={server.experiment}", f"--name={profile.metadata.name}"]  # may begin with a hyphen
    for option, path in (("--token", server.token_file), ("--ca", server.ca_file)):
        command += [option, path] if path else []
    with (output / LOG).open("ab") as stream:
        return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=stream, stderr=stream)


def let_go(sender: subprocess.Popen[bytes] | None, *, well: bool) -> None:
    """Tell the sender that the training has ended, and whether well."""
    if sender is None or sender.stdin is None:
        return
    with suppress(OSError):  # it has ended before
        if well:
            sender.stdin.write(WELL)
        sender.stdin.close()


def ended(output: Path, sender: subprocess.Popen[bytes], until: float) -> dict[str, Any]:
    """Let it send the rest, until a time of the monotonic clock; return what has been sent, and why not all was."""
    try:
        code = sender.wait(max(0.0, until - time.monotonic()))
    except subprocess.TimeoutExpired:
        sender.kill()
        code = sender.wait()
    try:
        state = outbox.read_state(output)
    except KitError as error:
        return {"points": 0, "gap": str(error)}
    gap = state.gap or ("none" if code == 0 else f"its sender ended with exit code {code}: {output / LOG}")
    facts = {"points": state.points, "not_finite": state.not_finite, "unreadable": state.unreadable}
    return {**facts, "refused": state.refused, "gap": gap, "run": state.run}


def due(output: Path) -> int | None:
    """Return how many points the rows have; None if they cannot be read."""
    try:
        return outbox.count(output / outbox.ROWS)
    except KitError:
        return None
