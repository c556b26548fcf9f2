# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A training's rows on their way to a server: how far they have been sent, in a file that outlives every process."""

from __future__ import annotations

import math
import uuid
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from kit import strict_json
from kit.errors import KitError
from kit.files import write_json
from kit.trackers.mlflow import Point

ROWS, STATE = "progress.jsonl", "tracker.json"
AT_ONCE = 65_536  # bytes of rows that are read, and sent, at once
LONGEST = 1_048_576  # bytes of a row
NO_METRICS = ("attempt", "job_id", "step", "steps", "time", "eta_seconds")


@dataclass(frozen=True)
class State:
    """How far the rows have been sent: ``offset`` bytes of the file, ``points`` of them, to this run of the server."""

    identity: str = field(default_factory=lambda: uuid.uuid4().hex)  # of the training, by which its run is found again
    address: str | None = None
    offset: int = 0
    points: int = 0
    not_finite: int = 0  # values that are not sent
    unreadable: int = 0  # lines that are no rows
    experiment: str | None = None
    run: str | None = None
    parameters: bool = False  # whether they have been sent
    ended: bool = False  # whether the server knows of the end
    refused: int = 0  # requests that failed
    gap: str | None = None  # why not all has been sent, by the last attempt


def read_state(folder: Path) -> State:
    """Return the state of the training in ``folder``; a beginning if nothing was ever sent. Raise KitError."""
    path = folder / STATE
    try:
        found = strict_json.read(path)
        return State(**{name: found[name] for name in State.__dataclass_fields__})
    except FileNotFoundError:
        return State()
    except (OSError, ValueError, KeyError, TypeError) as error:
        why = f"{path} is damaged: {error!r}"
        raise KitError(f"{why}; remove it, and all rows are sent to a run of their own") from error


def write_state(folder: Path, state: State) -> None:
    """Replace the state."""
    write_json(folder / STATE, {"schema": 2, **asdict(state)})


def rewind(folder: Path) -> None:
    """After rows were cut off: what is left has been sent as far as it had been, and more comes. Raise KitError."""
    path = folder / ROWS
    if not (folder / STATE).exists():
        return
    state = read_state(folder)
    sent = min(state.offset, path.stat().st_size if path.exists() else 0)
    write_state(folder, replace(state, offset=sent, points=count(path, sent), ended=False))


def count(path: Path, end: int | None = None) -> int:
    """Return how many points the rows of a file have, up to a byte. Raise KitError."""
    found, offset = 0, 0
    while True:
        rows = read_rows(path, offset, end)
        if rows.offset == offset:
            return found
        found, offset = found + len(rows.points), rows.offset


@dataclass(frozen=True)
class Rows:
    """Points of some rows, and how far the file was read for them."""

    points: list[Point]
    not_finite: int
    unreadable: int
    offset: int


def read_rows(path: Path, offset: int, end: int | None = None) -> Rows:
    """Return the whole rows from ``offset`` on, so many bytes of them at once, and not beyond ``end``. Raise KitError.

    A line that is no row, as where a disk was full, is counted.
    """
    try:
        with path.open("rb") as stream:
            size = stream.seek(0, 2)
            if size < offset:
                raise KitError(f"{path} has {size} bytes, and {offset} were sent: it is the file of another training")
            stream.seek(offset)
            most = AT_ONCE if end is None else min(AT_ONCE, end - offset)
            content = stream.read(most)
            if b"\n" not in content and len(content) == most:
                content += stream.readline(LONGEST if end is None else min(LONGEST, end - offset - most))
    except FileNotFoundError:
        return Rows([], 0, 0, offset)
    except OSError as error:
        raise KitError(f"{path} cannot be read: {error.strerror}") from error
    whole = content[: content.rfind(b"\n") + 1]
    if not whole and len(content) > LONGEST:
        raise KitError(f"{path}: a row has more than {LONGEST:,} bytes")
    points: list[Point] = []
    not_finite = unreadable = 0
    for line in whole.splitlines():
        try:
            found, others = points_of(strict_json.parse(line))
        except (ValueError, KeyError, TypeError, AttributeError):
            unreadable += 1
            continue
        points += found
        not_finite += others
    return Rows(points, not_finite, unreadable, offset + len(whole))


def points_of(row: Mapping[str, Any]) -> tuple[list[Point], int]:
    """Return a row's numbers as points, and how many are not finite, which are not sent."""
    step, moment = int(row["step"]), int(float(row["time"]) * 1000)
    values = {
        name: value
        for name, value in row.items()
        if name not in NO_METRICS
        and not isinstance(value, bool)
        and (isinstance(value, (int, float)) or _no_number(value))
    }
    finite = {name: float(value) for name, value in values.items() if not _no_number(value) and math.isfinite(value)}
    return [Point(name, value, step, moment) for name, value in finite.items()], len(values) - len(finite)


def _no_number(value: Any) -> bool:
    return value in ("NaN", "Infinity", "-Infinity")


def moved_on(state: State, rows: Rows) -> State:
    """Return the state after these rows were sent."""
    return replace(
        state,
        offset=rows.offset,
        points=state.points + len(rows.points),
        not_finite=state.not_finite + rows.not_finite,
        unreadable=state.unreadable + rows.unreadable,
        gap=None,
    )
