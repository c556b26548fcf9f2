# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a training costs: from its measured speed and a price, for an epoch, for 100,000 steps and for what is left.

Pure: `job_folder` reads a job's files, `cost_page` writes the report for people. Hours are those of training; starting
a job, checkpoints and failures come on top, which the report states separately.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from kit.flops import peak_flops
from kit.pretraining import failures, pace, published, shape, strategies
from kit.pretraining.pace import Spread
from kit.pretraining.price import SCENARIOS, Price

SCHEMA = 1
DOCUMENT_TOKENS = 51_600_000_000  # an epoch of the corpus that the document names
DOCUMENT_STEP_TOKENS = 512 * 2048
LONG_STEPS = 100_000  # what the document's configuration trains
EPOCH, LONG = "epoch", "long"


@dataclass(frozen=True)
class Facts:
    """What is known of a training. None is what is not known; times in seconds.

    ``sequences`` are those of a step, ``every`` the steps between checkpoints, ``blocking`` how long a checkpoint stops
    the training, ``restart`` the time from a failure to the first step after it.
    """

    model: shape.Model
    training: shape.Training
    sequences: int
    every: int | None = None
    price: Price | None = None
    nodes: int | None = None
    gpu_name: str | None = None
    device_bytes: int | None = None
    epoch_tokens: int | None = None
    blocking: float | None = None
    restart: float | None = None
    mtbf_hours: tuple[float, ...] = failures.MTBF_HOURS
    history: pace.History = field(default_factory=pace.History)

    @property
    def step_tokens(self) -> int:
        """The tokens of a step."""
        return shape.tokens_per_step(self.model, self.sequences)

    @property
    def per_hour(self) -> float | None:
        """The price of an hour of all the hardware in use."""
        return self.price.per_hour(self.nodes, self.training.ranks) if self.price else None


def epoch_steps(tokens: int, step_tokens: int) -> int:
    """Return the whole steps in so many tokens: 49,209 for 51.6e9 tokens and steps of 512 x 2048."""
    return tokens // step_tokens


def flops_per_gpu(facts: Facts, steps_per_hour: float) -> float:
    """Return the FLOP/s that each GPU does at this speed."""
    return shape.flops_per_token(facts.model) * facts.step_tokens * steps_per_hour / 3600 / facts.training.ranks


def report(facts: Facts) -> dict[str, Any]:
    """Return the document of files/schemas/cost.json; what is not known is null, and named in ``missing``."""
    measured = pace.of(facts.history.window)
    speed = measured.steps_per_hour if measured else None
    tokens = facts.epoch_tokens or DOCUMENT_TOKENS
    runs = [
        _run(EPOCH, epoch_steps(tokens, facts.step_tokens), tokens, facts, speed),
        _run(LONG, LONG_STEPS, tokens, facts, speed),
    ]
    price, losses = _price(facts), _failures(facts, speed, runs[0]["steps"])
    last = facts.history.last or {}
    return {
        "schema": SCHEMA,
        "job_id": last.get("job_id"),
        "attempt": last.get("attempt"),
        "model": {
            "parameters": shape.parameters(facts.model),
            "flops_per_token": shape.flops_per_token(facts.model),
            "tokens_per_step": facts.step_tokens,
        },
        "gpus": {
            "name": facts.gpu_name,
            "count": facts.training.ranks,
            "nodes": facts.nodes,
            "peak_flops": peak_flops(facts.gpu_name),
        },
        "price": price,
        "measured": _measured(facts, measured),
        "runs": runs,
        "scenarios": _scenarios(facts, runs, speed),
        "failures": losses,
        "remaining": remaining(facts.history, speed, facts.per_hour),
        "strategies": [asdict(each) for each in _strategies(facts, losses, price)],
        "assumed": _assumed(facts, losses),
        "missing": _missing(facts, measured),
    }


def remaining(history: pace.History, speed: Spread | None, per_hour: float | None) -> dict[str, Any] | None:
    """Return the hours and cost so far and still to come, by the last row; None before there is one.

    ``so_far_hours`` lie between the first and the last row of this job's attempts. What is left is unknown without a
    speed or if the row does not tell how many steps there are.
    """
    last = history.last
    if last is None or not pace.is_number(last.get("step")):
        return None
    steps = last.get("steps") if pace.is_number(last.get("steps")) else None
    left = None if steps is None else max(0, steps - last["step"])
    hours = speed.divide(left) if speed and left is not None else None
    return {
        "step": last["step"],
        "steps": steps,
        "left": left,
        "hours": _spread(hours),
        "cost": _spread(_times(hours, per_hour)),
        "so_far_hours": history.hours,
        "so_far_cost": None if per_hour is None else history.hours * per_hour,
    }


def verdict_lines(document: dict[str, Any]) -> tuple[str, str]:
    """Return the two lines for a verdict: the speed with an epoch's cost, and that of 100,000 steps with the price."""
    measured = document["measured"]
    if measured is None:
        return "Cost: not known, no speed was measured", f"Cost: {price_line(document['price'])}"
    speed = measured["steps_per_hour"]
    epoch, long = (_run_text(run, document["price"]) for run in document["runs"])
    return (
        f"Cost: {speed['median']:,.0f} steps/h ({speed['low']:,.0f} to {speed['high']:,.0f}, quartiles of the last "
        f"{measured['steps']} steps); {epoch}",
        f"Cost: {long}; {price_line(document['price'])}",
    )


def run_name(run: dict[str, Any]) -> str:
    """Return what a run is called by people."""
    if run["name"] == EPOCH:
        return f"an epoch of {run['steps']:,} steps"
    return f"{run['steps']:,} steps ({run['epochs']:,.2f} epochs)"


def amount(cost: dict[str, float], currency: str) -> str:
    """Return a cost with its spread in words."""
    return f"{cost['median']:,.2f} {currency} ({cost['low']:,.2f} to {cost['high']:,.2f})"


def price_line(price: dict[str, Any] | None) -> str:
    """Return the price in words."""
    if price is None:
        return "no price is set"
    of = {"node": "node", "gpu": "GPU"}[price["price_of"]]
    each = f"{price['price_per_hour']:,.2f} {price['currency']} an hour for each {of}"
    if price["per_hour"] is None:
        return f"{each}, on an unknown number of nodes"
    return f"{each}, {price['per_hour']:,.2f} for all"


def _run_text(run: dict[str, Any], price: Any) -> str:
    hours = run["hours"]
    cost = f", {amount(run['cost'], price['currency'])}" if run["cost"] else ""
    return f"{run_name(run)}: {hours['median']:,.1f} h ({hours['low']:,.1f} to {hours['high']:,.1f}){cost}"


def _price(facts: Facts) -> dict[str, Any] | None:
    price = facts.price
    if price is None:
        return None
    return {
        "price_per_hour": price.price_per_hour,
        "price_of": price.price_of,
        "currency": price.currency,
        "per_hour": facts.per_hour,
    }


def _measured(facts: Facts, measured: pace.Pace | None) -> dict[str, Any] | None:
    if measured is None:
        return None
    speed, peak = measured.steps_per_hour, peak_flops(facts.gpu_name)
    flops = flops_per_gpu(facts, speed.median)
    return {
        "steps": measured.steps,
        "steps_per_hour": _spread(speed),
        "overall_steps_per_hour": measured.overall,
        "tokens_per_second": speed.median * facts.step_tokens / 3600,
        "flops_per_gpu": flops,
        "mfu": flops / peak if peak else None,
    }


def _run(name: str, steps: int, tokens: int, facts: Facts, speed: Spread | None) -> dict[str, Any]:
    hours = speed.divide(steps) if speed else None
    return {
        "name": name,
        "steps": steps,
        "tokens": steps * facts.step_tokens,
        "epochs": steps * facts.step_tokens / tokens,
        "hours": _spread(hours),
        "cost": _spread(_times(hours, facts.per_hour)),
    }


def _scenarios(facts: Facts, runs: list[dict[str, Any]], speed: Spread | None) -> list[dict[str, Any]]:
    asked = [(each, False) for each in (facts.price.scenarios if facts.price else SCENARIOS)]
    asked += [(speed.median, True)] if speed else []
    peak = peak_flops(facts.gpu_name)
    rows = []
    for steps_per_hour, measured in sorted(asked):
        flops = flops_per_gpu(facts, steps_per_hour)
        is_published, remark = published.compare(facts.gpu_name, flops)
        hours = [run["steps"] / steps_per_hour for run in runs]
        costs = [None if facts.per_hour is None else each * facts.per_hour for each in hours]
        rows.append(
            {
                "steps_per_hour": steps_per_hour,
                "measured": measured,
                "epoch_hours": hours[0],
                "epoch_cost": costs[0],
                "long_hours": hours[1],
                "long_cost": costs[1],
                "flops_per_gpu": flops,
                "mfu": flops / peak if peak else None,
                "published": is_published,
                "remark": "measured" if measured else remark,
            }
        )
    return rows


def _failures(facts: Facts, speed: Spread | None, steps: int) -> dict[str, Any] | None:
    if speed is None or facts.every is None:
        return None
    restart = failures.RESTART_SECONDS if facts.restart is None else facts.restart
    saving = failures.Saving(facts.every / speed.median * 3600, restart, facts.blocking)
    losses = []
    for mtbf in facts.mtbf_hours:
        found = failures.loss(steps / speed.median, mtbf, saving)
        young = found["young_seconds"]
        losses.append(
            {
                **found,
                "cost": None if facts.per_hour is None else found["hours"] * facts.per_hour,
                "young_steps": None if young is None else young * speed.median / 3600,
            }
        )
    return {
        "of": EPOCH,
        "interval_steps": facts.every,
        "interval_seconds": saving.interval,
        "restart_seconds": restart,
        "blocking_seconds": facts.blocking,
        "each_hours": failures.hours_each(saving),
        "losses": losses,
    }


def _strategies(facts: Facts, losses: dict[str, Any] | None, price: dict[str, Any] | None) -> list[strategies.Strategy]:
    each = None
    if losses:
        hours = losses["each_hours"]
        each = f"{hours * 60:,.1f} minutes"
        if price and price["per_hour"] is not None:
            each += f" or {hours * price['per_hour']:,.2f} {price['currency']}"
    return strategies.all_of(facts.model, facts.training, facts.sequences, facts.device_bytes, each)


def _assumed(facts: Facts, losses: dict[str, Any] | None) -> list[str]:
    found = []
    if facts.epoch_tokens is None:
        found.append(f"an epoch has the document's {DOCUMENT_TOKENS:,} tokens")
    if losses and facts.restart is None:
        found.append(f"a restart takes {failures.RESTART_SECONDS:.0f} s")
    return found


def _missing(facts: Facts, measured: pace.Pace | None) -> list[str]:
    found = []
    if measured is None:
        found.append(
            f"a speed: training_metrics.jsonl has {facts.history.rows} rows, and at least {pace.LEAST} of the last "
            "attempt must state steps_per_second"
        )
    if facts.price is None:
        found.append("a price: `cost` is null in settings.json; give --price-per-hour and --price-of")
    elif facts.per_hour is None:
        found.append("the number of nodes: neither metrics.json nor ranks/ names them; give --nodes")
    if facts.gpu_name is None:
        found.append("the GPU's name: metrics.json has no gpu_name; give --gpu")
    elif peak_flops(facts.gpu_name) is None:
        found.append(f"the peak of {facts.gpu_name}: it is in no data sheet that is known here")
    if facts.every is None:
        found.append("the interval between checkpoints: settings.json has no checkpoint.every")
    elif facts.blocking is None:
        found.append("how long a checkpoint stops the training; give --blocking-seconds")
    return found


def _spread(spread: Spread | None) -> dict[str, float] | None:
    return None if spread is None else asdict(spread)


def _times(spread: Spread | None, factor: float | None) -> Spread | None:
    return None if spread is None or factor is None else spread.times(factor)
