# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One screen about a training: plain text of at most 24 lines of 100 characters for up to eight ranks. Pure."""

from __future__ import annotations

import math
import statistics
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timezone
from typing import Any

from kit.pretraining import alerts, pace
from kit.pretraining.observed import Observed, number
from kit.pretraining.price import CURRENCY
from kit.ranks import state as ranks

WIDTH = 100
LABEL = 12  # characters before what a line tells
MOST_LINES = 10  # for ranks; more are told by node, and more nodes by those that need a look
SPEED_STEPS = 100  # the median of so many steps is the speed
OLD_SAMPLE = 30.0  # seconds after which a GPU's sample is no longer its present state
SILENT = 60.0  # seconds without a report after which a rank is called silent
UNKNOWN = "unknown"

Row = Mapping[str, Any]


def screen(seen: Observed) -> str:
    """Return the screen, with a line break at its end."""
    lines = [
        _title(seen),
        str(seen.folder),
        *_named("Step", _step(seen)),
        *_named("Loss", _loss(seen)),
        *_named("Speed", _speed(seen)),
        *_named("Time left", _time_left(seen)),
        *_named("Cost", _cost(seen)),
        *_named("Checkpoint", _checkpoint(seen)),
        *_named("Alerts", _alerts(seen)),
        *_named("Missing", "; ".join(seen.missing)),
        "",
        *rank_table(seen),
    ]
    return "".join(f"{line}\n" for line in map(_plain, lines))


def _plain(line: str) -> str:
    """Return a line in ASCII, without anything that a terminal obeys, and not wider than the screen."""
    shown = "".join(each if each.isascii() and each.isprintable() else "?" for each in line).rstrip()
    return shown if len(shown) <= WIDTH else f"{shown[: WIDTH - 3]}..."


def _named(name: str, text: str) -> list[str]:
    """Return what a name says, on up to three lines; none for an empty text."""
    return textwrap.wrap(
        text,
        WIDTH,
        initial_indent=f"{name:<{LABEL}}",
        subsequent_indent=" " * LABEL,
        max_lines=3,
        placeholder=" ...",
        break_on_hyphens=False,
    )


def _title(seen: Observed) -> str:
    leg = f", leg {seen.leg}" if seen.leg else ""
    ended = ""
    if seen.exit_code is not None:
        ended = f", ended with exit code {seen.exit_code}"
    elif seen.ended is not None:
        ended = ", ended"
    return f"Job {seen.job}{leg}{ended}, seen {clock(seen.now)}"


def _step(seen: Observed) -> str:
    last = _last(seen.rows)
    step, steps = number(last.get("step")), number(last.get("steps"))
    if step is None:
        return "none is complete"
    share = f" of {steps:,.0f} ({step / steps:.1%})" if steps else " of an unknown number"
    when = number(last.get("time"))
    return f"{step:,.0f}{share}" + ("" if when is None else f", {duration(seen.now - when)} ago")


def _loss(seen: Observed) -> str:
    last = _last(seen.rows)
    if not last:
        return UNKNOWN
    parts = [_figure(last.get("loss"), ".4f")]
    validated = [row for row in seen.rows if row.get("validation_loss") is not None]
    if validated:
        row = validated[-1]
        parts.append(f"validation {_figure(row['validation_loss'], '.4f')} in step {_figure(row.get('step'), ',.0f')}")
    parts.append(f"gradient norm {_figure(last.get('grad_norm'), '.3f')}")
    parts.append(f"learning rate {_figure(last.get('learning_rate'), '.2e')}")
    parts.append(f"skipped steps {_figure(last.get('skipped_steps'), ',.0f')}")
    if last.get("loss_scale") is not None:
        parts.append(f"loss scale {_figure(last['loss_scale'], 'g')}")
    return ", ".join(parts)


def _speed(seen: Observed) -> str:
    rate = speed(seen.rows)
    if rate is None:
        return UNKNOWN
    tokens = _median(seen.rows, "tokens_per_second")
    mfu = _median(seen.performance, "mfu")
    parts = [
        "unknown tokens/s" if tokens is None else f"{tokens:,.0f} tokens/s",
        f"{rate:.3g} steps/s",
        f"{3600 * rate:,.0f} steps/h",
        "MFU unknown" if mfu is None else f"MFU {mfu:.1%}",
    ]
    return ", ".join(parts)


def speed(rows: Sequence[Row]) -> float | None:
    """Return the steps per second: the median of the last `SPEED_STEPS` rows, None if that is none of a training."""
    rate = _median(rows, "steps_per_second")
    return rate if rate is not None and rate >= pace.SLOWEST else None


def _median(rows: Sequence[Row], name: str) -> float | None:
    found = [value for row in rows[-SPEED_STEPS:] if (value := number(row.get(name))) is not None]
    return statistics.median(found) if found else None


def seconds_left(seen: Observed) -> float | None:
    """Return how long the training still takes by its speed; None if that is not known, 0 once it has ended."""
    if seen.ended is not None:
        return 0.0
    last, rate = _last(seen.rows), speed(seen.rows)
    step, steps = number(last.get("step")), number(last.get("steps"))
    if step is None or steps is None or rate is None:
        return None
    return max(0.0, steps - step) / rate


def _time_left(seen: Observed) -> str:
    if seen.ended is not None:
        return "none, the job has ended"
    left = seconds_left(seen)
    if left is None:
        return UNKNOWN
    count = min(SPEED_STEPS, len(seen.rows))
    return f"{duration(left)}, until {clock(seen.now + left)}, by the median of the last {count} steps"


def _cost(seen: Observed) -> str:
    price = seen.settings.get("cost")
    if not isinstance(price, Mapping):
        return "no price is set (cost in the settings)"
    hourly = per_hour(price, seen)
    if hourly is None:
        return "unknown: cost in settings.json is incomplete, or no rank has reported its node"
    until = seen.now if seen.ended is None else seen.ended
    so_far = None if seen.began is None else max(0.0, until - seen.began) * hourly / 3600
    left = seconds_left(seen)
    currency = f" {price.get('currency') or CURRENCY}"
    parts = [
        "unknown so far" if so_far is None else f"{so_far:,.2f}{currency} so far",
        "unknown to come" if left is None else f"{left * hourly / 3600:,.2f}{currency} to come",
        f"{hourly:,.2f}{currency} an hour",
    ]
    return ", ".join(parts)


def per_hour(price: Mapping[str, Any], seen: Observed) -> float | None:
    """Return the price of an hour of all nodes or GPUs in use; None if it is not known."""
    each, of = number(price.get("price_per_hour")), price.get("price_of")
    names = {str(state["node"]) for state in seen.ranks if state.get("node")}
    count = {"node": len(names), "gpu": len(seen.ranks)}.get(str(of), 0)
    return None if each is None or not count or not names else each * count


def _checkpoint(seen: Observed) -> str:
    parts = []
    if seen.checkpoint is not None:
        text = seen.checkpoint.name
        if seen.checkpoint.time is not None:
            text += f", {clock(seen.checkpoint.time)}"
        step = number(_last(seen.rows).get("step"))
        if step is not None and step >= seen.checkpoint.step:
            text += f", {step - seen.checkpoint.step:,.0f} steps ago"
        parts.append(text)
    else:
        parts.append("none is whole" if seen.damaged else "none yet")
    if seen.damaged:
        parts.append(f"not whole: {', '.join(seen.damaged)}")
    return "; ".join(parts)


def _alerts(seen: Observed) -> str:
    """Return what the rules of Prometheus find in the last rows."""
    if not seen.rows:
        return UNKNOWN
    settings = seen.settings.get("checkpoint")
    every = settings.get("every") if isinstance(settings, Mapping) else None
    last = seen.rows[-1]
    before = seen.rows[0] if seen.cut else {}
    over = seen.ended is not None or last.get("step") == last.get("steps")
    try:
        fired = alerts.replay(
            seen.rows,
            seen.performance,
            checkpoint_every=every if "checkpoint_step" in seen.rows[0] else None,
            skipped_before=number(before.get("skipped_steps")) or 0,
            until=None if over else seen.now,
        )
    except (ValueError, TypeError) as error:
        return f"{UNKNOWN}: {error}"
    if not fired:
        return f"none in the last {len(seen.rows):,} rows"
    return "; ".join(dict.fromkeys(f"{each.alert}: {each.text}" for each in reversed(fired)))


def rank_table(seen: Observed) -> list[str]:
    """Return what each rank does, or each node if ranks are many, or the nodes that need a look if those are many."""
    if not seen.ranks:
        return []
    rows = [_rank(seen, state) for state in seen.ranks]
    if len(rows) <= MOST_LINES:
        return _columns([HEADING, *([str(row["rank"]), *_shown(row)] for row in rows)])
    groups: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        groups.setdefault(row["node"], []).append(row)
    merged = [_merged(group) for group in groups.values()]
    if len(merged) <= MOST_LINES:
        return _columns([HEADING, *([row["rank"], *_shown(row)] for row in merged)])
    worst = sorted(merged, key=lambda row: row["order"])[: MOST_LINES - 1]
    others = len(merged) - len(worst)
    table = _columns([HEADING, *([row["rank"], *_shown(row)] for row in worst)])
    return [*table, f"and {others} more nodes, which are further on"]


HEADING = ["Rank", "Node", "Phase", "Step", "GPU", "GPU memory", "Last report"]


def _rank(seen: Observed, state: Row) -> dict[str, Any]:
    sample = seen.gpus.get(str(state.get("gpu")), {})
    when, reported = number(sample.get("time")), number(state.get("time"))
    fresh = seen.ended is None and when is not None and seen.now - when <= OLD_SAMPLE
    return {
        "rank": state.get("rank"),
        "node": str(state.get("node") or UNKNOWN),
        "phase": str(state.get("phase") or UNKNOWN) + (f": {state['error']}" if state.get("error") else ""),
        "step": number(state.get("step")),
        "util": number(sample.get("util")) if fresh else None,
        "memory": number(sample.get("memory_used")) if fresh else None,
        "total": number(sample.get("memory_total")),
        "silent": None if reported is None else max(0.0, seen.now - reported),
        "over": state.get("phase") in (ranks.ENDED, ranks.FAILED) or seen.ended is not None,
    }


def _merged(group: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return one row for a node's ranks, with the least and the most of each figure."""
    phases = list(dict.fromkeys(str(row["phase"]) for row in group))
    silent = [row["silent"] for row in group if row["silent"] is not None]
    steps = _range(row["step"] for row in group)
    util = _range(row["util"] for row in group)
    failed = any(row["phase"].startswith(ranks.FAILED) for row in group)
    reached = [row["step"] for row in group]
    behind = -math.inf if None in reached else min(reached)
    return {
        "rank": _spans([int(row["rank"]) for row in group]),
        "node": group[0]["node"],
        "phase": ", ".join(phases),
        "step": steps,
        "util": util,
        "memory": _range(row["memory"] for row in group),
        "total": max((row["total"] for row in group if row["total"] is not None), default=None),
        "silent": max(silent, default=None),
        "over": all(row["over"] for row in group),
        "order": (not failed, behind, util[0] if util else -math.inf),
    }


def _range(values: Iterable[float | None]) -> tuple[float, float] | None:
    known = [value for value in values if value is not None]
    return (min(known), max(known)) if known else None


def _spans(numbers: Sequence[int]) -> str:
    """Return numbers as spans: 0-3,6."""
    spans: list[list[int]] = []
    for each in sorted(numbers):
        if spans and each == spans[-1][1] + 1:
            spans[-1][1] = each
        else:
            spans.append([each, each])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in spans)


def _shown(row: Mapping[str, Any]) -> list[str]:
    memory = _between(row["memory"], lambda value: f"{value / 2**30:.1f}")
    total = "" if row["total"] is None else f" of {row['total'] / 2**30:.1f}"
    silent = row["silent"]
    if silent is None:
        report = "none"
    elif row["over"] or silent <= SILENT:
        report = f"{duration(silent)} ago"
    else:
        report = f"silent for {duration(silent)}"
    return [
        row["node"],
        row["phase"],
        _between(row["step"], lambda value: f"{value:,.0f}") or "-",
        f"{util} %" if (util := _between(row["util"], lambda value: f"{value:.0f}")) else "-",
        f"{memory}{total} GiB" if memory else "-",
        report,
    ]


def _between(value: Any, shown: Any) -> str:
    if value is None:
        return ""
    least, most = value if isinstance(value, tuple) else (value, value)
    return str(shown(least)) if shown(least) == shown(most) else f"{shown(least)}-{shown(most)}"


def _columns(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [min(34, max(map(len, column))) for column in zip(*rows)]
    return ["  ".join(f"{cell[:width]:<{width}}" for cell, width in zip(row, widths)) for row in rows]


def _last(rows: Sequence[Row]) -> Row:
    return rows[-1] if rows else {}


def _figure(value: Any, form: str) -> str:
    if value in ("NaN", "Infinity", "-Infinity"):  # how rows write them (kit.files.plain)
        return str(value)
    known = number(value)
    return UNKNOWN if known is None else format(known, form)


def duration(seconds: float) -> str:
    """Return seconds in the two largest units: 45 s, 3 min 20 s, 5 h 10 min, 2 days 3 h."""
    whole = max(0, round(seconds))
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    if whole < 86400:
        return f"{whole // 3600} h {whole % 3600 // 60} min"
    return f"{whole // 86400} days {whole % 86400 // 3600} h"


def clock(moment: float) -> str:
    """Return seconds since the epoch as date and time, in UTC."""
    try:
        return f"{datetime.fromtimestamp(moment, timezone.utc):%Y-%m-%d %H:%M:%S} UTC"
    except (OverflowError, OSError, ValueError):
        return UNKNOWN
