# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How fast a training is, from the rows of its ``training_metrics.jsonl``: the median of many steps, with a spread."""

from __future__ import annotations

import statistics
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

WINDOW = 100  # steps that count, the last ones
SLOWEST = 1e-9  # steps a second: one in thirty years
LARGEST = 1e18  # of all that a row states; a larger number is a mistake, and some are none of a float
LEAST = 10  # steps without which there is no spread worth telling


@dataclass(frozen=True)
class Spread:
    """A median between the quartiles; ``low`` is the smaller number."""

    low: float
    median: float
    high: float

    def divide(self, amount: float) -> Spread:
        """Return the spread of ``amount`` over this: of hours, from steps and steps per hour."""
        return Spread(amount / self.high, amount / self.median, amount / self.low)

    def times(self, factor: float) -> Spread:
        """Return the spread of this, times a factor above 0."""
        return Spread(self.low * factor, self.median * factor, self.high * factor)


@dataclass(frozen=True)
class Pace:
    """``steps_per_hour`` of the last ``steps`` steps by themselves.

    ``overall`` is what the clock says of the same steps with all that lies between them, such as checkpoints and
    validation, in steps per hour; None if that clock was set meanwhile.
    """

    steps: int
    steps_per_hour: Spread
    overall: float | None


@dataclass
class History:
    """What the rows of a job say, without keeping them: the last ones, the hours they span, a few losses."""

    window: deque[dict[str, Any]] = field(default_factory=lambda: deque(maxlen=WINDOW))
    rows: int = 0
    _spans: dict[tuple[Any, Any], tuple[float, float]] = field(default_factory=dict)

    def add(self, row: Mapping[str, Any]) -> None:
        """Take the next row. A new attempt begins a new window: its pace may differ."""
        if self.window and _attempt(self.window[-1]) != _attempt(row):
            self.window.clear()
        self.window.append(dict(row))
        self.rows += 1
        time: Any = row.get("time")
        if is_number(time):
            first, _last = self._spans.get(_attempt(row), (time, time))
            self._spans[_attempt(row)] = (first, time)

    @property
    def hours(self) -> float:
        """The hours from the first to the last row of each attempt; without the time to start one."""
        return sum(max(0.0, last - first) for first, last in self._spans.values()) / 3600

    @property
    def last(self) -> dict[str, Any] | None:
        """The last row."""
        return self.window[-1] if self.window else None


def of(rows: Iterable[Mapping[str, Any]]) -> Pace | None:
    """Return the pace of the last rows of the last attempt, or None if fewer than ``LEAST`` of them state one.

    A row states its step's speed as ``steps_per_second``, measured by rank 0's monotonic clock.
    """
    history = History()
    for row in rows:
        history.add(row)
    window = [row for row in history.window if is_number(row.get("steps_per_second"))]
    window = [row for row in window if row["steps_per_second"] >= SLOWEST]
    if len(window) < LEAST:
        return None
    low, median, high = statistics.quantiles([1 / row["steps_per_second"] for row in window], n=4, method="inclusive")
    return Pace(len(window), Spread(3600 / high, 3600 / median, 3600 / low), _overall(window[0], window[-1]))


def _overall(first: Mapping[str, Any], last: Mapping[str, Any]) -> float | None:
    if not all(is_number(row.get(name)) for row in (first, last) for name in ("step", "time")):
        return None
    steps, seconds = last["step"] - first["step"], last["time"] - first["time"]
    return steps * 3600 / seconds if steps > 0 and seconds >= 1 / LARGEST else None


def _attempt(row: Mapping[str, Any]) -> tuple[Any, Any]:
    return str(row.get("job_id")), str(row.get("attempt"))


def is_number(value: Any) -> bool:
    """Return whether it is a number of a sensible size; a row's NaN is a string."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) <= LARGEST
