# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The alerts of monitoring/rules.yml as code, for a training without Prometheus: which fired, by its own rows. Pure.

Bounds and durations are those of the rules; a test compares them. Alerts about the exporter, the text file and the disk
have no place here: rows do not tell of them.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

NOT_FINITE, SKIPPED, NO_STEP = "PretrainingLossNotFinite", "PretrainingStepsSkipped", "PretrainingNoStep"
CHECKPOINT, SLOW, SPIKE = "PretrainingCheckpointTooOld", "PretrainingRankSlow", "PretrainingLossSpike"

# Seconds: how far a rule looks back, and how long its condition must hold.
NOT_FINITE_WINDOW = 900
SKIPPED_WINDOW = 900
NO_STEP_WINDOW, NO_STEP_FOR = 300, 120
CHECKPOINT_FOR = 60
SLOW_FOR = 600
SPIKE_WINDOW, SPIKE_FOR = 1800, 60
# Bounds.
SKIPPED_MOST = 0  # steps in the window
SKIPPED_MOST_SCALED = 10  # in half precision, which finds its loss scale by skipping steps
CHECKPOINT_INTERVALS = 2  # times the steps from one checkpoint to the next
PACE_LEAST = 0.9  # of a rank, relative to the fastest
SPIKE_FACTOR = 2  # times the mean of the window
DAY = 86400  # seconds: no probe takes so long
LARGEST = 1e15  # of a time or a step; to a larger one, some seconds more would be none

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Fired:
    """An alert that fired: since which step and time (since the epoch, in s), and its first value beyond the bound."""

    alert: str
    step: int
    time: float
    value: float
    bound: float
    text: str


@dataclass(frozen=True)
class _Moment:
    """What a rule saw at one time, and whether its condition held."""

    holds: bool
    step: int
    time: float
    value: float
    bound: float
    text: str


def replay(
    rows: Sequence[Row],
    performance: Sequence[Row] = (),
    *,
    checkpoint_every: int | None = None,
    skipped_before: float = 0,
    until: float | None = None,
) -> list[Fired]:
    """Return the alerts that fired over the rows of training_metrics.jsonl and performance_metrics.jsonl, by time.

    ``checkpoint_every`` is the number of steps from one checkpoint to the next, None if there are none, and
    ``skipped_before`` that of the steps skipped before the first row. ``until`` is when the training ended, or now; the
    last row's time by default. Within an attempt the time passes as ``elapsed_seconds`` says, which a node's clock that
    is set does not change. Raise ValueError for a row that lacks a number.
    """
    steps: list[_Step] = []
    for place, row in enumerate(rows, 1):
        steps.append(_Step.of(row, place, _time(rows, place, steps[-1:])))
    if not steps:
        return []
    end = steps[-1].time
    if until is not None:
        end += max(0.0, until - _finite(rows[-1], "time", len(rows)))
    fired = [
        *_held(NOT_FINITE, _not_finite(steps), 0, end),
        *_held(SKIPPED, _skipped(steps, skipped_before), 0, end),
        *_no_step(steps, end),
        *_held(SPIKE, _spikes(steps), SPIKE_FOR, end),
        *_slow(performance, end),
    ]
    if checkpoint_every is not None:
        fired += _held(CHECKPOINT, _without_checkpoint(rows, steps, checkpoint_every), CHECKPOINT_FOR, end)
    return sorted(fired, key=lambda each: (each.time, each.alert, each.text))


@dataclass(frozen=True)
class _Step:
    number: int
    time: float
    loss: float
    grad_norm: float
    skipped: float
    scaled: bool

    @classmethod
    def of(cls, row: Row, place: int, time: float) -> _Step:
        return cls(
            number=int(_finite(row, "step", place)),
            time=time,
            loss=_number(row, "loss", place),
            grad_norm=_number(row, "grad_norm", place),
            skipped=_finite(row, "skipped_steps", place),
            scaled=row.get("loss_scale") is not None,
        )


def _time(rows: Sequence[Row], place: int, last: Sequence[_Step]) -> float:
    """Return a row's time: the last one's and what has elapsed since, or by the clock, which never goes back."""
    row = rows[place - 1]
    by_clock = _finite(row, "time", place)
    if not last:
        return by_clock
    before = rows[place - 2]
    now, then = row.get("elapsed_seconds"), before.get("elapsed_seconds")
    if now is None or then is None or any(row.get(key) != before.get(key) for key in ("job_id", "attempt")):
        return max(last[0].time, by_clock)
    passed = _finite(row, "elapsed_seconds", place) - _finite(before, "elapsed_seconds", place - 1)
    return last[0].time + passed if passed >= 0 else max(last[0].time, by_clock)  # else it is another process


def _number(row: Row, name: str, place: int) -> float:
    value = row.get(name)
    if value in ("NaN", "Infinity", "-Infinity"):  # how rows write them (kit.files.plain)
        return float(str(value))
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ValueError(f"row {place}: {name} is {value!r}, expected a number")
    try:
        return float(value)
    except OverflowError:
        raise ValueError(f"row {place}: {name} is too large") from None


def _finite(row: Row, name: str, place: int) -> float:
    value = _number(row, name, place)
    if math.isnan(value) or abs(value) >= LARGEST:
        raise ValueError(f"row {place}: {name} is {value}, expected a finite number below {LARGEST:g}")
    return value


def _held(alert: str, moments: Sequence[_Moment], seconds: float, end: float) -> Iterator[Fired]:
    """Yield the periods in which a condition held at all times for as long as its rule demands."""
    since: _Moment | None = None
    for moment in moments:
        if moment.holds:
            since = since or moment
        elif since is not None:
            yield from _long_enough(alert, since, moment.time, seconds)
            since = None
    if since is not None:
        yield from _long_enough(alert, since, end, seconds)


def _long_enough(alert: str, since: _Moment, until: float, seconds: float) -> Iterator[Fired]:
    if max(until, since.time) - since.time >= seconds:
        yield Fired(alert, since.step, since.time, since.value, since.bound, since.text)


def not_finite(loss: float, grad_norm: float, *, scaled: bool) -> list[float]:
    """Return those figures of a step that are not finite and ought to be.

    With a ``scaled`` loss, in half precision, gradients that overflow are how the scale is found: DeepSpeed skips the
    step and lowers it. `PretrainingStepsSkipped` counts these.
    """
    return [each for each in ((loss,) if scaled else (loss, grad_norm)) if not math.isfinite(each)]


def _not_finite(steps: Sequence[_Step]) -> list[_Moment]:
    found, last = [], -math.inf
    for step in steps:
        broken = not_finite(step.loss, step.grad_norm, scaled=step.scaled)
        last = step.time if broken else last
        holds = step.time - last < NOT_FINITE_WINDOW
        text = f"loss {step.loss:.4g}, gradient norm {step.grad_norm:.4g} in step {step.number}"
        found.append(_Moment(holds, step.number, step.time, [*broken, step.loss][0], 0.0, text))
    return found


def _skipped(steps: Sequence[_Step], before: float) -> list[_Moment]:
    found: list[_Moment] = []
    times: list[float] = []
    sums: list[float] = [0.0]  # of all skipped steps before each of `times`, over restarts of the counter
    for step in steps:
        times.append(step.time)
        sums.append(sums[-1] + (step.skipped - before if step.skipped >= before else step.skipped))
        before = step.skipped
        new = sums[-1] - sums[bisect_right(times, step.time - SKIPPED_WINDOW)]
        most = SKIPPED_MOST_SCALED if step.scaled else SKIPPED_MOST
        text = f"{new:g} steps were skipped in {SKIPPED_WINDOW / 60:g} minutes, up to step {step.number}"
        found.append(_Moment(new > most, step.number, step.time, new, most, text))
    return found


def _no_step(steps: Sequence[_Step], end: float) -> Iterator[Fired]:
    last = steps[0]
    for step in steps:
        if step.number != last.number:  # the same step again is none
            yield from _gap(last, step.time)
            last = step
    yield from _gap(last, end)


def _gap(last: _Step, until: float) -> Iterator[Fired]:
    gap, least = until - last.time, NO_STEP_WINDOW + NO_STEP_FOR
    if gap >= least:
        text = f"no step for {gap:.0f} s after step {last.number}"
        yield Fired(NO_STEP, last.number, last.time, gap, least, text)


def _spikes(steps: Sequence[_Step]) -> list[_Moment]:
    found: list[_Moment] = []
    begin, total = 0, 0.0
    for place, step in enumerate(steps):
        total += step.loss
        while steps[begin].time <= step.time - SPIKE_WINDOW:
            total -= steps[begin].loss
            begin += 1
        if not math.isfinite(total):  # a loss in or before the window was not finite: add up what is in it
            total = sum(each.loss for each in steps[begin : place + 1])
        mean = total / (place + 1 - begin)
        text = f"loss {step.loss:.4f} in step {step.number}, {mean:.4f} on average in {SPIKE_WINDOW / 60:g} minutes"
        bound = SPIKE_FACTOR * mean  # nothing is above it if it is not a number, as in Prometheus
        found.append(_Moment(step.loss > bound, step.number, step.time, step.loss, bound, text))
    return found


def _without_checkpoint(rows: Sequence[Row], steps: Sequence[_Step], every: int) -> list[_Moment]:
    most = CHECKPOINT_INTERVALS * every
    found = []
    for place, (row, step) in enumerate(zip(rows, steps), 1):
        saved = int(_finite(row, "checkpoint_step", place))
        value = step.number - saved
        text = f"step {step.number}, the last whole checkpoint is of step {saved}"
        found.append(_Moment(value > most, step.number, step.time, value, most, text))
    return found


def _slow(performance: Sequence[Row], end: float) -> Iterator[Fired]:
    by_rank: dict[int, list[_Moment]] = {}
    for place, row in enumerate(performance, 1):
        if row.get("solo_seconds") is None:
            continue
        step, moment = int(_finite(row, "step", place)), _finite(row, "time", place)
        solo = {rank: _seconds(each, rank, place) for rank, each in enumerate(row["solo_seconds"]) if each is not None}
        for rank, seconds in solo.items():
            fastest = min(solo.values())
            pace = fastest / seconds
            text = f"rank {rank} computes at {pace:.0%} of the fastest rank's pace: {seconds:.4g} s, {fastest:.4g} s"
            seen = _Moment(pace < PACE_LEAST, step, moment, pace, PACE_LEAST, text)
            by_rank.setdefault(rank, []).append(seen)
    for moments in by_rank.values():
        yield from _held(SLOW, moments, SLOW_FOR, end)


def _seconds(value: Any, rank: int, place: int) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < DAY:
        raise ValueError(f"row {place}: solo_seconds of rank {rank} is {value!r}, expected seconds")
    return value
