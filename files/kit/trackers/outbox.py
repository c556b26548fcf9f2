# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A training's rows on their way to a server: how far they have been sent, in a file that outlives every process."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from kit import strict_json
from kit.errors import KitError
from kit.files import write_json
from kit.trackers.mlflow import Point

STATE = "tracker.json"
AT_ONCE = 1 << 20  # bytes of rows that are read at once
NO_METRICS = ("attempt", "job_id", "step", "steps", "time", "eta_seconds")


@dataclass(frozen=True)
class State:
    """How far the rows have been sent: ``offset`` bytes of the file, ``points`` of them, to this run of the server."""

    offset: int = 0
    points: int = 0
    not_finite: int = 0  # values that a server does not take
    experiment: str | None = None
    run: str | None = None
    parameters: bool = False  # whether they have been sent
    ended: bool = False  # whether the server knows of the end
    refused: int = 0  # requests that failed
    gap: str | None = None  # why not all has been sent, by the last attempt


def read_state(folder: Path) -> State:
    """Return the state of the training in ``folder``; the beginning if nothing was ever sent. Raise KitError."""
    path = folder / STATE
    try:
        found = strict_json.read(path)
        return State(**{name: found[name] for name in State.__dataclass_fields__})
    except FileNotFoundError:
        return State()
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise KitError(
            f"{path} is damaged: {error!r}; remove it, and all rows are sent again, which is safe"
        ) from error


def write_state(folder: Path, state: State, address: str) -> None:
    """Replace the state."""
    write_json(folder / STATE, {"schema": 1, "address": address, **asdict(state)})


@dataclass(frozen=True)
class Rows:
    """Points of some rows, and how far the file was read for them."""

    points: list[Point]
    not_finite: int
    offset: int


def read_rows(path: Path, offset: int) -> Rows:
    """Return the whole rows from ``offset`` on, so many bytes of them at once. Raise KitError for what is no row."""
    try:
        with path.open("rb") as stream:
            stream.seek(offset)
            content = stream.read(AT_ONCE)
    except FileNotFoundError:
        return Rows([], 0, offset)
    except OSError as error:
        raise KitError(f"{path} cannot be read: {error.strerror}") from error
    whole = content[: content.rfind(b"\n") + 1]
    if not whole and len(content) == AT_ONCE:
        raise KitError(f"{path}: a row has more than {AT_ONCE:,} bytes")
    points: list[Point] = []
    not_finite = 0
    for line in whole.splitlines():
        try:
            row = strict_json.parse(line)
            found, others = points_of(row)
        except (ValueError, KeyError, TypeError) as error:
            raise KitError(f"{path}: a row cannot be read: {error!r}") from error
        points += found
        not_finite += others
    return Rows(points, not_finite, offset + len(whole))


def points_of(row: Mapping[str, Any]) -> tuple[list[Point], int]:
    """Return a row's numbers as points, and how many are not finite, which a server does not take."""
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
        gap=None,
    )
