# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The report of a training's cost for people: `cost.md`, from what `cost.report` returns. Pure."""

from __future__ import annotations

from typing import Any

from kit.pretraining import cost
from kit.pretraining.markdown import NOTHING, table, text

APART = 0.95  # of the steps' own speed: a clock that says less has seen the training do something else as well


def page(document: dict[str, Any]) -> str:
    """Return the page."""
    job = "" if document["job_id"] is None else f" of job {text(document['job_id'])}"
    lines = [f"# Cost{job}", "", *_summary(document), ""]
    for title, body in (
        ("Hours and cost", _runs(document)),
        ("Scenarios", _scenarios(document)),
        ("What is left of this job", _remaining(document)),
        ("What failures lose", _failures(document)),
        ("Ways to save cost", _strategies(document)),
        ("Assumed", [f"- {each}" for each in document["assumed"]]),
        ("Missing", [f"- {text(each)}" for each in document["missing"]]),
    ):
        if body:
            lines += [f"## {title}", "", *body, ""]
    return "\n".join(lines).rstrip("\n") + "\n"


def _summary(document: dict[str, Any]) -> list[str]:
    model, gpus, measured = document["model"], document["gpus"], document["measured"]
    nodes = "" if gpus["nodes"] is None else f" on {gpus['nodes']} node{'s' if gpus['nodes'] > 1 else ''}"
    lines = [
        f"- Model: {model['parameters']:,} parameters, {model['flops_per_token'] / 1e9:.3f} GFLOP for each token, "
        f"{model['tokens_per_step']:,} tokens in a step",
        f"- Hardware: {gpus['count']} x {text(gpus['name'] or 'GPU of unknown name')}{nodes}; "
        + cost.price_line(document["price"]),
    ]
    if measured is None:
        return [*lines, f"- Speed: {NOTHING}"]
    speed = measured["steps_per_hour"]
    lines.append(
        f"- Speed: {speed['median']:,.0f} steps/h, {measured['tokens_per_second']:,.0f} tokens/s, "
        f"{measured['flops_per_gpu'] / 1e12:,.1f} TFLOP/s for each GPU, MFU {_percent(measured['mfu'])}; median of the "
        f"last {measured['steps']} steps, quartiles {speed['low']:,.0f} to {speed['high']:,.0f}"
    )
    overall = measured["overall_steps_per_hour"]
    if overall is not None and overall < APART * speed["median"]:
        lines.append(
            f"- Over the same steps the clock says {overall:,.0f} steps/h: {1 - overall / speed['median']:.0%} of the "
            "time lies between the steps, such as for checkpoints and validation, and is not in the hours below"
        )
    if model["tokens_per_step"] != cost.DOCUMENT_STEP_TOKENS:
        lines.append(
            f"- The document's steps have {cost.DOCUMENT_STEP_TOKENS:,} tokens: its numbers of steps and of steps/h "
            "mean something else here"
        )
    return lines


def _runs(document: dict[str, Any]) -> list[str]:
    price = document["price"]
    rows = []
    for run in document["runs"]:
        hours = run["hours"]
        spread = NOTHING if hours is None else f"{hours['median']:,.1f} ({hours['low']:,.1f} to {hours['high']:,.1f})"
        paid = cost.amount(run["cost"], price["currency"]) if run["cost"] else NOTHING
        rows.append((cost.run_name(run), f"{run['tokens']:,}", spread, paid))
    return table(("", "Tokens", "Hours", "Cost"), rows)


def _scenarios(document: dict[str, Any]) -> list[str]:
    epoch, long = document["runs"]
    rows = [
        (
            f"**{row['steps_per_hour']:,.0f}**" if row["measured"] else f"{row['steps_per_hour']:,.0f}",
            f"{row['epoch_hours']:,.1f}",
            _money(row["epoch_cost"]),
            f"{row['long_hours']:,.1f}",
            _money(row["long_cost"]),
            f"{row['flops_per_gpu'] / 1e12:,.1f}",
            _percent(row["mfu"]),
            row["remark"],
        )
        for row in document["scenarios"]
    ]
    currency = document["price"]["currency"] if document["price"] else "cost"
    head = (
        "Steps/h",
        f"{epoch['steps']:,} steps: h",
        currency,
        f"{long['steps']:,} steps: h",
        currency,
        "TFLOP/s for each GPU",
        "MFU",
        "Has anybody published it?",
    )
    return table(head, rows)


def _remaining(document: dict[str, Any]) -> list[str]:
    left = document["remaining"]
    if left is None:
        return []
    currency = document["price"]["currency"] if document["price"] else ""
    lines = [f"- Step {left['step']:,} of {NOTHING if left['steps'] is None else format(left['steps'], ',')}"]
    so_far = "" if left["so_far_cost"] is None else f", {left['so_far_cost']:,.2f} {currency}"
    lines.append(f"- So far {left['so_far_hours']:,.2f} h from the first to the last step{so_far}")
    hours = left["hours"]
    if hours is None:
        return [*lines, f"- To come: {NOTHING}"]
    paid = f", {cost.amount(left['cost'], currency)}" if left["cost"] else ""
    to_come = f"{hours['median']:,.2f} h ({hours['low']:,.2f} to {hours['high']:,.2f})"
    return [*lines, f"- To come: {left['left']:,} steps, {to_come}{paid}"]


def _failures(document: dict[str, Any]) -> list[str]:
    found = document["failures"]
    if found is None:
        return []
    rows = [
        (
            f"{loss['mtbf_hours']:,.0f} h",
            f"{loss['failures']:,.2f}",
            f"{loss['hours']:,.2f}",
            f"{loss['share']:.1%}",
            _money(loss["cost"]),
            NOTHING if loss["young_steps"] is None else f"{loss['young_steps']:,.0f} steps",
            NOTHING if loss["blocking_hours"] is None else f"{loss['blocking_hours']:,.2f}",
        )
        for loss in found["losses"]
    ]
    return [
        f"Of an epoch, with a checkpoint every {found['interval_steps']:,} steps "
        f"({found['interval_seconds'] / 60:,.1f} minutes) and {found['restart_seconds']:,.0f} s from a failure to the "
        f"next step: on average a failure loses half an interval and the restart, {found['each_hours'] * 60:,.1f} min.",
        "",
        *table(
            (
                "Mean time between failures",
                "Failures",
                "Hours lost",
                "Share",
                "Cost",
                "Young's interval √(2 · blocking · MTBF)",
                "Hours that the checkpoints take",
            ),
            rows,
        ),
    ]


def _strategies(document: dict[str, Any]) -> list[str]:
    rows = [(each["name"], each["effect"], each["here"]) for each in document["strategies"]]
    return table(("The document's strategy", "Effect", "Here"), rows)


def _money(amount: float | None) -> str:
    return NOTHING if amount is None else f"{amount:,.2f}"


def _percent(share: float | None) -> str:
    return NOTHING if share is None else f"{share:.1%}"
