# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The page of a training's cost."""

from __future__ import annotations

from typing import Any

import pytest
from kit.pretraining import cost, cost_page, pace, price

from tests.unit.kit.pretraining_job import facts, history, rows


def paged(**changed: Any) -> str:
    return cost_page.page(cost.report(facts(**changed)))


def section(page: str, title: str) -> list[str]:
    body = page.partition(f"## {title}\n\n")[2].partition("\n\n## ")[0]
    return body.rstrip("\n").split("\n")


def test_the_summary() -> None:
    page = paged()
    assert page.startswith(
        "# Cost of job 12\n\n- Model: 759,905,280 parameters, 5.465 GFLOP for each token, 1,048,576 "
    )
    assert "- Hardware: 8 x NVIDIA H100 80GB HBM3 on 1 node; 7.92 USD an hour for each node, 7.92 for all\n" in page
    assert (
        "- Speed: 2,000 steps/h, 582,542 tokens/s, 398.0 TFLOP/s for each GPU, MFU 40.2%; median of the last 100 "
        "steps, quartiles 2,000 to 2,000\n"
    ) in page
    assert page.endswith("|\n")
    assert "the clock says" not in page
    assert "mean something else here" not in page


def test_two_nodes() -> None:
    assert " on 2 nodes; 7.92 USD an hour for each node, 15.84 for all" in paged(nodes=2)


def test_hours_and_cost() -> None:
    assert section(paged(), "Hours and cost") == [
        "|  | Tokens | Hours | Cost |",
        "| --- | --- | --- | --- |",
        "| an epoch of 49,209 steps | 51,599,376,384 | 24.6 (24.6 to 24.6) | 194.87 USD (194.87 to 194.87) |",
        "| 100,000 steps (2.03 epochs) | 104,857,600,000 | 50.0 (50.0 to 50.0) | 396.00 USD (396.00 to 396.00) |",
    ]


def test_scenarios() -> None:
    lines = section(paged(), "Scenarios")
    assert lines[0].startswith(
        "| Steps/h | 49,209 steps: h | USD | 100,000 steps: h | USD | TFLOP/s for each GPU | MFU |"
    )
    assert lines[2].startswith("| 350 | 140.6 | 1,113.53 | 285.7 | 2,262.86 | 69.6 | 7.0% | llm-foundry's")
    assert lines[3] == "| **2,000** | 24.6 | 194.87 | 50.0 | 396.00 | 398.0 | 40.2% | measured |"
    assert lines[4].startswith("| 2,500 | 19.7 | 155.89 | 40.0 | 316.80 | 497.5 | 50.3% | above every published")


def test_what_is_left() -> None:
    assert section(paged(), "What is left of this job") == [
        "- Step 100 of 49,209",
        "- So far 0.05 h from the first to the last step, 0.39 USD",
        "- To come: 49,109 steps, 24.55 h (24.55 to 24.55), 194.47 USD (194.47 to 194.47)",
    ]


def test_failures() -> None:
    lines = section(paged(), "What failures lose")
    assert lines[0] == (
        "Of an epoch, with a checkpoint every 1,000 steps (30.0 minutes) and 90 s from a failure to the next step: on "
        "average a failure loses half an interval and the restart, 16.5 min."
    )
    assert lines[2] == (
        "| Mean time between failures | Failures | Hours lost | Share | Cost | Young's interval √(2 · blocking · MTBF) "
        "| Hours that the checkpoints take |"
    )
    assert lines[4] == "| 24 h | 1.03 | 0.28 | 1.1% | 2.23 | 693 steps | 0.12 |"


def test_strategies() -> None:
    lines = section(paged(), "Ways to save cost")
    assert len(lines) == 2 + 5
    assert lines[0] == "| The document's strategy | Effect | Here |"
    assert lines[5].startswith("| Offloading to the CPU | costs more | slower: ")


def test_time_between_the_steps_is_told() -> None:
    found = rows([1.8] * 100)
    found[-1]["time"] += 19.8  # 198 s instead of 178.2 s for 99 steps: 10 % of it
    assert "the clock says 1,800 steps/h: 10% of the time lies between the steps" in paged(history=history(found))
    found[-1]["time"] -= 19.8 - 8.9  # 4.76 %
    assert "the clock says" not in paged(history=history(found))
    found[-1].update(time=None)
    assert "the clock says" not in paged(history=history(found))


def test_time_within_the_tolerance_is_not_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cost_page, "APART", 1.0)
    exactly = history(rows([2.0] * 11))  # 1800 steps/h by both
    assert "the clock says" not in paged(history=exactly)


def test_another_batch_is_told() -> None:
    assert "- The document's steps have 1,048,576 tokens: its numbers" in paged(sequences=16)


@pytest.mark.parametrize("changed", [{"price": None}, {"nodes": None}])
def test_without_a_price(changed: dict[str, Any]) -> None:
    page = paged(**changed)
    assert section(page, "Hours and cost")[3].endswith("| 50.0 (50.0 to 50.0) | not known |")
    assert section(page, "What is left of this job")[1:] == [
        "- So far 0.05 h from the first to the last step",
        "- To come: 49,109 steps, 24.55 h (24.55 to 24.55)",
    ]
    assert section(page, "What failures lose")[4] == "| 24 h | 1.03 | 0.28 | 1.1% | not known | 693 steps | 0.12 |"


def test_the_head_of_scenarios_without_a_currency() -> None:
    assert section(paged(price=None), "Scenarios")[0].startswith("| Steps/h | 49,209 steps: h | cost | ")


def test_without_a_speed() -> None:
    page = paged(history=pace.History(), nodes=None, gpu_name=None)
    assert page.startswith("# Cost\n")
    assert (
        "- Hardware: 8 x GPU of unknown name; 7.92 USD an hour for each node, on an unknown number of nodes\n" in page
    )
    assert "- Speed: not known\n" in page
    assert "What is left" not in page
    assert "What failures lose" not in page
    assert section(page, "Hours and cost")[2].endswith("| not known | not known |")
    assert section(page, "Scenarios")[2].endswith("| 69.6 | not known | not known: no data sheet of this GPU |")
    assert len(section(page, "Missing")) == 3
    assert section(page, "Missing")[0].startswith("- a speed: training\\_metrics.jsonl has 0 rows")


def test_without_an_end() -> None:
    found = history([{**row, "steps": None} for row in rows([1.8] * 100)])
    assert section(paged(history=found), "What is left of this job") == [
        "- Step 100 of not known",
        "- So far 0.05 h from the first to the last step, 0.39 USD",
        "- To come: not known",
    ]


def test_without_the_time_of_a_checkpoint() -> None:
    lines = section(paged(blocking=None), "What failures lose")
    assert lines[4] == "| 24 h | 1.03 | 0.28 | 1.1% | 2.23 | not known | not known |"


def test_what_is_assumed() -> None:
    assert section(paged(epoch_tokens=None), "Assumed") == ["- an epoch has the document's 51,600,000,000 tokens"]
    assert "Assumed" not in paged()


def test_another_currency() -> None:
    page = paged(price=price.Price(1.0, "gpu", "EUR", (2000.0,)))
    assert "400.00 EUR (400.00 to 400.00)" in page
    assert "0.40 EUR\n" in page


def test_a_name_does_not_become_markup() -> None:
    assert "8 x \\[H100\\]\\(x\\) on 1 node" in paged(gpu_name="[H100](x)")
    found = history([{**row, "job_id": "1|2"} for row in rows([1.8] * 100)])
    assert paged(history=found).startswith("# Cost of job 1\\|2\n")
