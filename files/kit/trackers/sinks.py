# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""W&B and TensorBoard, if asked for: each in a process of its own that the training neither waits for nor depends on.

W&B stays offline (`wandb sync` uploads later) unless a file with a key is given. The process gets rows through a pipe;
those that it does not take at once are left out, and if it fails or hangs the training's log says so once.
"""

from __future__ import annotations

import argparse
import os
import re
import select
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Callable

from kit import strict_json
from kit.errors import KitError
from kit.files import json_line
from kit.process.bounded import die_with_parent

PATIENCE = 8.0  # seconds to write or upload the rest; a job that is asked to end is killed after 10
# Settings that are told to W&B: nothing of files, buckets and credentials.
TOLD = ("model", "batch", "steps", "schedule", "optimizer", "precision", "seed", "parameters", "fingerprint")
TOLD_OF_A_PROFILE = ("metadata", "model", "training", "reproducibility", "validation")
END = b"\n"  # no row: all has been said
KEY = re.compile(r"[A-Za-z0-9_-]+")
NOT_FINITE = ("NaN", "Infinity", "-Infinity")
# W&B keeps nothing in a home folder, which a job may not have, and reports its own crashes to nobody.
WANDB_FOLDERS = ("WANDB_DIR", "WANDB_CACHE_DIR", "WANDB_CONFIG_DIR", "WANDB_DATA_DIR", "WANDB_ARTIFACT_DIR")


class Tracker:
    """The training's end of the pipe to one of them."""

    def __init__(self, name: str, command: Sequence[str], log: Path, say: Callable[[str], None]) -> None:
        """Start the process; ``name`` is for messages, which ``say`` is told."""
        self._name, self._log, self._say = name, log, say
        self._told: set[str] = set()
        self._dropped = 0
        with open(log, "ab") as stream:
            self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=stream, stderr=stream)
        if self._process.stdin is None:
            raise KitError(f"{name}: no pipe")
        self._pipe = self._process.stdin
        os.set_blocking(self._pipe.fileno(), False)

    def send(self, row: Mapping[str, Any]) -> None:
        """Pass a row on, or drop it."""
        line = json_line(row)
        if len(line) > select.PIPE_BUF:  # only shorter ones are passed on whole or not at all
            self._once(f"a row of {len(line)} bytes is too long for {self._name}")
            return
        try:
            os.write(self._pipe.fileno(), line)
        except BlockingIOError:
            self._dropped += 1
            self._once(f"{self._name} does not keep up; rows that it does not take at once are left out")
        except OSError:
            self._ended()

    def _once(self, text: str) -> None:
        if text not in self._told:
            self._told.add(text)
            self._say(text)

    def _ended(self) -> None:
        self._once(f"{self._name} has failed, and the training goes on without it: {self._last_words()}")

    def _last_words(self) -> str:
        try:
            lines = self._log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
        except OSError:
            lines = []
        return f"{lines[-1][:300] if lines else 'it said nothing'} ({self._log})"

    def finish(self) -> None:
        """Let it end; do not wait for it. It is told so, since other processes may hold the pipe open."""
        if not self._pipe.closed:
            with suppress(OSError):
                os.write(self._pipe.fileno(), END)
            self._pipe.close()

    def close(self, until: float) -> None:
        """Wait for its end, and kill it at ``until`` by the monotonic clock."""
        self.finish()
        try:
            if self._process.wait(max(0.0, until - time.monotonic())):
                self._ended()
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
            self._once(f"{self._name} did not end in time and was killed")
        if self._dropped:
            self._once(f"{self._dropped} rows were left out of {self._name}")


def start(output: Path, run: str, watch: Mapping[str, Any], say: Callable[[str], None], project: str) -> list[Tracker]:
    """Start what ``watch`` asks for by ``wandb``, with ``wandb_key``, and ``tensorboard``. Raise OSError.

    ``project`` is W&B's.
    """
    # A name may begin with a hyphen.
    common = [sys.executable, "-m", "kit.trackers.sinks", "--output", str(output), f"--run={run}"]
    common += [f"--project={project}"]
    found = []
    if watch.get("wandb"):
        key = ["--key", str(watch["wandb_key"])] if watch.get("wandb_key") else []
        found.append(Tracker("W&B", [*common, *key, "wandb"], output / "wandb.log", say))
    if watch.get("tensorboard"):
        found.append(Tracker("TensorBoard", [*common, "tensorboard"], output / "tensorboard.log", say))
    return found


def close(trackers: Sequence[Tracker], patience: float = PATIENCE) -> None:
    """End all of them, in ``patience`` seconds together."""
    until = time.monotonic() + patience
    for tracker in trackers:
        tracker.finish()
    for tracker in trackers:
        tracker.close(until)


def values(row: Mapping[str, Any]) -> dict[str, float]:
    """Return the numbers of a row, those that are not finite too, without its time and step."""
    found = {}
    for name, value in row.items():
        if name in ("attempt", "job_id", "step", "steps", "time", "timestamp"):
            continue
        if (isinstance(value, (int, float)) and not isinstance(value, bool)) or value in NOT_FINITE:
            found[name] = float(value)
    return found


def read_key(path: Path) -> str:
    """Return the key in a file that only its owner can read. Raise KitError, which does not quote it."""
    try:
        found = path.stat()
        if not stat.S_ISREG(found.st_mode) or found.st_mode & 0o077:
            mode = f"{found.st_mode & 0o7777:04o}"
            raise KitError(f"{path} (the key of W&B) has mode {mode}, expected 0600: chmod 600 {path}")
        key = path.read_text(encoding="ascii").strip()
    except (OSError, ValueError) as error:
        raise KitError(f"{path} (the key of W&B) cannot be read: {type(error).__name__}") from None
    if not KEY.fullmatch(key):
        raise KitError(f"{path} (the key of W&B) holds no key: expected letters, digits, - and _ on one line")
    return key


class TensorBoard:
    """Writes event files. Imports tensorboard."""

    def __init__(self, folder: Path) -> None:
        """Write into ``folder``."""
        from tensorboard.compat.proto.event_pb2 import Event  # noqa: PLC0415 - only where it is asked for
        from tensorboard.compat.proto.summary_pb2 import Summary  # noqa: PLC0415
        from tensorboard.summary.writer.event_file_writer import EventFileWriter  # noqa: PLC0415

        self._event, self._summary, self._writer = Event, Summary, EventFileWriter(str(folder))

    def row(self, row: Mapping[str, Any]) -> None:
        """Write one row's numbers."""
        numbers = [self._summary.Value(tag=name, simple_value=each) for name, each in values(row).items()]
        summary = self._summary(value=numbers)
        self._writer.add_event(self._event(step=row["step"], wall_time=row["time"], summary=summary))

    def close(self) -> None:
        """Put everything into the file."""
        self._writer.close()


class Wandb:
    """Writes a run of W&B. Imports wandb."""

    def __init__(self, output: Path, run: str, project: str, key: Path | None) -> None:
        """Begin a run below ``output``; offline without a key."""
        for name in WANDB_FOLDERS:
            os.environ[name] = str(output)
        os.environ["WANDB_ERROR_REPORTING"] = "false"
        import wandb  # noqa: PLC0415 - reads the variables above

        api_key = read_key(key) if key else None
        settings = wandb.Settings(
            api_key=api_key,
            console="off",
            disable_code=True,
            disable_git=True,
            symlink=False,
            silent=True,
            x_disable_meta=True,
        )
        mode = "online" if api_key else "offline"
        self._run = wandb.init(
            project=project, name=run, dir=str(output), mode=mode, config=_told(output), settings=settings
        )

    def row(self, row: Mapping[str, Any]) -> None:
        """Log one row's numbers."""
        self._run.log(values(row), step=row["step"])

    def close(self) -> None:
        """End the run."""
        self._run.finish()


def _told(output: Path) -> dict[str, Any]:
    for name, told in (("settings.json", TOLD), ("profile.json", TOLD_OF_A_PROFILE)):
        try:
            settings = strict_json.read(output / name)
            return {key: settings[key] for key in told if key in settings}
        except (OSError, ValueError, TypeError):
            continue
    return {}


def follow(lines: Iterable[bytes], taker: Any) -> None:
    """Pass the rows on until the pipe ends."""
    for line in lines:
        if line == END:
            break
        taker.row(strict_json.parse(line))
    taker.close()


def main() -> int:
    """Run the process of a `Tracker`; return 0, or 1 for a problem reported on stderr."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--run", required=True)
    parser.add_argument("--project", required=True)
    parser.add_argument("--key", type=Path)
    parser.add_argument("kind", choices=("wandb", "tensorboard"))
    arguments = parser.parse_args()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # it ends when the training closes the pipe
    die_with_parent(signal.SIGTERM)
    try:
        taker: TensorBoard | Wandb
        if arguments.kind == "tensorboard":
            taker = TensorBoard(arguments.output / "tensorboard")
        else:
            taker = Wandb(arguments.output, arguments.run, arguments.project, arguments.key)
        follow(sys.stdin.buffer, taker)
    except KitError as error:
        print(error, file=sys.stderr)
        return 1
    except Exception as error:  # whatever W&B may raise
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
