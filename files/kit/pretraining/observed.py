# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a training's folder tells of it while it runs: read in bounded time, and never in the way of the training.

What is missing or unreadable is said, and the rest is told.
"""

from __future__ import annotations

import math
import os
import re
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kit import strict_json
from kit.errors import KitError
from kit.job import Job
from kit.pretraining.records import PERFORMANCE, STEPS
from kit.ranks import nodes
from kit.ranks import state as ranks
from kit.ranks.legs import LEGS_FILE

JOBS = Path("models/gpt-pretraining")  # below the share
SETTINGS = "settings.json"
UNKNOWN = "unknown"
TAIL = 1_000_000  # bytes that are read from the end of a file of rows
LONGEST = 4_000_000  # bytes of a document
MOST_RANKS = 4096
LARGEST = 1e15  # what is larger is no figure of a training
CHECKPOINT = re.compile(r"(?:final_)?checkpoint_step_([0-9]{1,12})")
JOB_FOLDER = re.compile(r"job-([0-9]+)(?:\.([0-9]+))?")

Row = dict[str, Any]


class NotBegunError(KitError):
    """A job has no output folder yet."""


@dataclass(frozen=True)
class Checkpoint:
    """A whole checkpoint, by its manifest and the sizes of its files; their contents are not read."""

    name: str
    step: int
    time: float | None  # seconds since the epoch


@dataclass
class Observed:
    """A training as its folder tells of it at ``now``, seconds since the epoch."""

    folder: Path  # of the training, or of the leg that is shown
    now: float
    job: str
    leg: str | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    rows: Sequence[Row] = ()  # the last of training_metrics.jsonl
    cut: bool = False  # there are earlier rows
    performance: Sequence[Row] = ()
    ranks: Sequence[Row] = ()
    gpus: Mapping[str, Row] = field(default_factory=dict)  # the last sample of each, by UUID
    checkpoint: Checkpoint | None = None
    damaged: Sequence[str] = ()  # newer checkpoints that are not whole
    began: float | None = None  # seconds since the epoch
    ended: float | None = None
    exit_code: int | None = None
    missing: list[str] = field(default_factory=list)


def find(job_or_folder: str, share: str | None) -> Path:
    """Return a training's folder: a path, or the newest attempt of a job on the share.

    Raise NotBegunError for a job that has none yet, KitError for what cannot be found.
    """
    if not re.fullmatch(r"[0-9]+", job_or_folder):
        folder = Path(job_or_folder)
        if not folder.is_dir():
            raise KitError(f"{folder}: no such folder; expected a Slurm job's number or a training's output folder")
        return folder
    if not share:
        raise KitError(f"where is job {job_or_folder}? Set --share or HPC_VALIDATION_SHARE to the share's path")
    jobs = Path(share) / JOBS
    found = {attempt: path for path in jobs.glob("job-*") for job, attempt in [job_of(path)] if job == job_or_folder}
    if not found:
        raise NotBegunError(
            f"{jobs} has no folder of job {job_or_folder}: it has not begun (squeue -j {job_or_folder}), "
            f"or {share} is not its share"
        )
    return found[max(found)]


def job_of(folder: Path) -> tuple[str, int]:
    """Return the job and the attempt that a folder is of, by its name; the job is ``unknown`` for other folders."""
    match = JOB_FOLDER.fullmatch(folder.name)
    return (match[1], int(match[2] or 0)) if match else (UNKNOWN, 0)


def observe(folder: Path, now: float | None = None) -> Observed:
    """Return what a training's folder tells. Nothing in it can make this fail."""
    job, attempt = job_of(folder)
    seen = Observed(folder, time.time() if now is None else now, job)
    _markers(seen, folder, Job(job, attempt))
    if seen.exit_code != 0:  # else the training itself: legs that come after it may not train
        seen.folder = active_leg(folder)
        seen.leg = seen.folder.name if seen.folder != folder else None
    here = [seen.folder, folder]  # a leg's own files, then the job's
    seen.settings = _settings(seen, here)
    seen.rows = _rows(seen.folder / STEPS, seen)
    first = _first_row(seen.folder / STEPS)
    seen.cut = bool(seen.rows) and first != seen.rows[0]
    seen.performance = _rows(seen.folder / PERFORMANCE, seen)
    seen.ranks = _ranks(seen, folder)
    seen.gpus = _gpus(folder, seen)
    _checkpoints(seen, here)
    if seen.began is None:
        seen.began = number(first.get("time"))
    return seen


def active_leg(folder: Path) -> Path:
    """Return the folder in which something was written last: the job's own, or that of one of its legs."""
    try:
        below = [path for path in folder.iterdir() if not path.is_symlink()]
    except OSError:
        below = []
    return max([folder, *below], key=lambda path: (_latest(path), path == folder))


def _latest(folder: Path) -> float:
    """Return when a training in this folder last wrote a row or a rank's state; minus infinity if it has neither."""
    found = []
    for path in (folder / STEPS, folder / ranks.FOLDER):
        with suppress(OSError):
            found.append(path.stat().st_mtime)
    return max(found, default=-math.inf)


def _markers(seen: Observed, folder: Path, job: Job) -> None:
    """Read when the job's script began and ended, if the folder is where jobs have it on the share."""
    markers = folder.absolute().parent.parent.parent / "jobs/.markers"
    begin, end = (_marker(markers / f"{job.job_id}.{kind}.json", job) for kind in ("begin", "end"))
    seen.began, seen.ended = number(begin.get("time")), number(end.get("time"))
    code = end.get("exit_code")
    seen.exit_code = code if isinstance(code, int) else None


def _marker(path: Path, job: Job) -> Row:
    try:
        document = _read(path)
    except (OSError, ValueError):
        return {}
    return document if (document.get("job_id"), document.get("attempt")) == (job.job_id, job.attempt) else {}


def _read(path: Path) -> Row:
    """Return a JSON object. Raise OSError, ValueError; a link is not followed."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as stream:
        content = stream.read(LONGEST + 1)
    if len(content) > LONGEST:
        raise ValueError(f"is longer than {LONGEST} bytes")
    try:
        document = strict_json.parse(content)
    except RecursionError:
        raise ValueError("is nested too deeply") from None
    if not isinstance(document, dict):
        raise ValueError("is no object")
    return document


def _settings(seen: Observed, folders: Sequence[Path]) -> Row:
    for folder in folders:
        try:
            return _read(folder / SETTINGS)
        except FileNotFoundError:
            continue
        except (OSError, ValueError) as error:
            seen.missing.append(f"{SETTINGS} cannot be read: {_why(error)}")
            return {}
    seen.missing.append(f"{SETTINGS} is not there")
    return {}


def _why(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)


def tail(path: Path, size: int = TAIL) -> list[Row]:
    """Return the rows in the last ``size`` bytes of a file, without lines that are no objects. Raise OSError."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as stream:
        length = stream.seek(0, os.SEEK_END)
        begin = max(0, length - size)
        stream.seek(begin)
        lines = stream.read(size).split(b"\n")
    if begin:
        del lines[0]  # its begin is missing
    return [row for line in lines if (row := _row(line)) is not None]


def _row(line: bytes) -> Row | None:
    try:
        row = strict_json.parse(line)
    except (ValueError, RecursionError):
        return None
    return row if isinstance(row, dict) else None


def _first_row(path: Path) -> Row:
    try:
        with open(path, "rb") as stream:
            return _row(stream.readline(LONGEST)) or {}
    except OSError:
        return {}


def _rows(path: Path, seen: Observed) -> list[Row]:
    try:
        found = [row for row in tail(path) if number(row.get("step")) is not None]
    except FileNotFoundError:
        seen.missing.append(f"{path.name} is not there: no step is complete, or it is not a training's folder")
        return []
    except OSError as error:
        seen.missing.append(f"{path.name} cannot be read: {_why(error)}")
        return []
    if not found:
        seen.missing.append(f"{path.name} has no row yet")
    return found


def _ranks(seen: Observed, job: Path) -> list[Row]:
    names = [path.stem[5:] for path in (seen.folder / ranks.FOLDER).glob("rank-*.json")]
    numbers = [int(name) for name in names if name.isdecimal()]
    if not numbers:
        seen.missing.append("ranks/ has no file of a rank: none has started")
    expected = _ranks_of_leg(seen, job) if seen.leg else _ranks_of_job(seen)
    count = max([expected or 0, *(each + 1 for each in numbers)])
    try:
        return list(ranks.read(seen.folder, int(min(count, MOST_RANKS))).values())
    except RecursionError:
        seen.missing.append("ranks/ has a file that is nested too deeply")
        return []


def _ranks_of_job(seen: Observed) -> float | None:
    batch = seen.settings.get("batch")
    return number(batch.get("ranks")) if isinstance(batch, dict) else None


def _ranks_of_leg(seen: Observed, job: Path) -> float | None:
    """Return the number of ranks of a leg, which may be smaller than the job's; it is not known before the leg ends."""
    try:
        leg = _read(job / LEGS_FILE).get(seen.leg or "")
    except (OSError, ValueError):
        return None
    return number(leg.get("ranks")) if isinstance(leg, dict) else None


def _gpus(folder: Path, seen: Observed) -> dict[str, Row]:
    """Return the last sample of each GPU; while a job of several nodes runs, each node's sampler has its own file."""
    paths = [folder / nodes.SAMPLES, *sorted((folder / nodes.FOLDER).glob(f"*/{nodes.SAMPLES}"))]
    found: dict[str, Row] = {}
    read = False
    for path in paths:
        try:
            rows = tail(path)
        except OSError:
            continue
        read = True
        for row in rows:
            uuid, moment = row.get("uuid"), number(row.get("time"))
            if isinstance(uuid, str) and moment is not None and moment >= found.get(uuid, {}).get("time", moment):
                found[uuid] = row
    if not read:
        seen.missing.append("gpu.jsonl is not there: the GPUs are not sampled")
    elif not found:
        seen.missing.append("gpu.jsonl names no GPU: this job has none, or NVML does not answer")
    return found


def _checkpoints(seen: Observed, folders: Sequence[Path]) -> None:
    """Find the newest whole checkpoint and name newer ones that are not whole."""
    settings = seen.settings.get("checkpoint")
    path = settings.get("folder") if isinstance(settings, dict) else None
    places = [Path(path)] if isinstance(path, str) else [each / "checkpoints" for each in folders]
    found: list[tuple[int, Path]] = []
    for place in places:
        with suppress(OSError):
            names = [(CHECKPOINT.fullmatch(each.name), each) for each in place.iterdir()]
            found += [(int(match[1]), each) for match, each in names if match]
        if found:
            break
    damaged = []
    for _step, each in sorted(found, reverse=True):  # of one step, final_… is the later by its name too
        try:
            seen.checkpoint = whole(each)
            break
        except (OSError, ValueError, KeyError, TypeError) as error:
            damaged.append(f"{each.name}: {_why(error)}")
    seen.damaged = damaged
    if not found:
        seen.missing.append("checkpoints/ has no checkpoint yet")


def whole(path: Path) -> Checkpoint:
    """Return what a checkpoint's manifest says, if all files have their sizes.

    Raise OSError, ValueError, KeyError or TypeError for one that is not whole.
    """
    manifest = _read(path / "manifest.json")
    if manifest["name"] != path.name or not path.name.endswith(f"checkpoint_step_{manifest['step']}"):
        raise ValueError("the manifest is another checkpoint's")
    if not manifest["files"]:
        raise ValueError("the manifest names no files")
    for entry in manifest["files"]:
        size = (path / Path(str(entry["name"])).name).stat().st_size
        if size != entry["bytes"]:
            raise ValueError(f"{entry['name']} has {size} of {entry['bytes']} bytes")
    return Checkpoint(path.name, int(manifest["step"]), number(manifest.get("time")))


def number(value: Any) -> float | None:
    """Return a number that can be counted with, None for anything else."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return value if -LARGEST < value < LARGEST else None
