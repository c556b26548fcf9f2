# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The report of a training's cost, against figures computed by hand."""

from __future__ import annotations

import json
from typing import Any

import pytest
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._common import schema
from kit.pretraining import cost, pace, price
from kit.pretraining.pace import Spread

from tests.unit.kit.pretraining_job import EIGHT, GPT, H100, facts, history, rows


def reported(**changed: Any) -> dict[str, Any]:
    """The report, which fits its schema."""
    document = json.loads(json.dumps(cost.report(facts(**changed))))
    assert schema.problems("cost", document) == []
    return document


def even(median: float) -> dict[str, Any]:
    return {name: pytest.approx(median) for name in ("low", "median", "high")}


@pytest.mark.parametrize(
    ("tokens", "step_tokens", "steps"),
    [
        (51_600_000_000, 1_048_576, 49_209),  # 49,209.59
        (1_048_576, 1_048_576, 1),
        (1_048_575, 1_048_576, 0),
    ],
)
def test_an_epoch_has_whole_steps(tokens: int, step_tokens: int, steps: int) -> None:
    assert cost.epoch_steps(tokens, step_tokens) == steps


def test_a_step_of_the_document() -> None:
    assert cost.DOCUMENT_STEP_TOKENS == 1_048_576


def test_flops_of_each_gpu() -> None:
    # 5,465,401,344 FLOPs a token · 1,048,576 tokens · 2000 steps / 3600 s / 8 GPUs = 397.978 TFLOP/s
    assert cost.flops_per_gpu(facts(), 2000.0) == pytest.approx(397.978e12, rel=2e-6)


def test_what_was_measured() -> None:
    found = reported()
    assert (found["schema"], found["job_id"], found["attempt"]) == (1, "12", 0)
    assert found["model"] == {
        "parameters": 759_905_280,
        "flops_per_token": 5_465_401_344.0,
        "tokens_per_step": 1_048_576,
    }
    assert found["gpus"] == {"name": H100, "count": 8, "nodes": 1, "peak_flops": 989.4e12}
    assert found["measured"] == {
        "steps": 100,
        "steps_per_hour": even(2000),
        "overall_steps_per_hour": pytest.approx(2000),
        "tokens_per_second": pytest.approx(582_542.2, abs=0.1),  # 2000 · 1,048,576 / 3600
        "flops_per_gpu": pytest.approx(397.978e12, rel=2e-6),
        "mfu": pytest.approx(0.40224, abs=1e-5),  # 397.978 / 989.4
    }


def test_hours_and_cost_of_an_epoch_and_of_100_000_steps() -> None:
    epoch, long = reported()["runs"]
    assert epoch == {
        "name": "epoch",
        "steps": 49_209,
        "tokens": 49_209 * 1_048_576,
        "epochs": pytest.approx(0.999988, abs=1e-6),
        "hours": even(24.6045),  # 49,209 / 2000
        "cost": even(194.86764),  # · 7.92
    }
    assert long["name"] == "long"
    assert (long["steps"], long["tokens"]) == (100_000, 104_857_600_000)
    assert long["epochs"] == pytest.approx(2.0321, abs=1e-4)  # 104.8576 / 51.6
    assert (long["hours"], long["cost"]) == (even(50), even(396))


def test_the_spread_of_the_steps_is_that_of_hours_and_cost() -> None:
    # Steps of 1.6, 1.8 and 2.4 s are the quartiles: 2250, 2000 and 1500 steps/h
    found = reported(history=history(rows([*[1.6] * 30, *[1.8] * 41, *[2.4] * 29])))
    assert found["measured"]["steps_per_hour"] == {
        "low": pytest.approx(1500),
        "median": pytest.approx(2000),
        "high": pytest.approx(2250),
    }
    long = found["runs"][1]
    hours = (100_000 / 2250, 50.0, 100_000 / 1500)
    assert [long["hours"][name] for name in ("low", "median", "high")] == pytest.approx(hours)
    assert [long["cost"][name] for name in ("low", "median", "high")] == pytest.approx([7.92 * each for each in hours])


def test_a_price_of_each_gpu_is_eight_times_that_of_the_node() -> None:
    found = reported(price=price.Price(7.92, "gpu"))
    assert found["price"] == {
        "price_per_hour": 7.92,
        "price_of": "gpu",
        "currency": "USD",
        "per_hour": pytest.approx(63.36),
    }
    assert found["runs"][1]["cost"] == even(396 * 8)


def test_scenarios_lie_beside_what_was_measured() -> None:
    slow, measured, fast = reported()["scenarios"]
    assert slow == {
        "steps_per_hour": 350.0,
        "measured": False,
        "epoch_hours": pytest.approx(140.597, abs=1e-3),  # 49,209 / 350
        "epoch_cost": pytest.approx(1113.53, abs=0.01),
        "long_hours": pytest.approx(285.714, abs=1e-3),
        "long_cost": pytest.approx(2262.86, abs=0.01),
        "flops_per_gpu": pytest.approx(69.645e12, rel=1e-4),
        "mfu": pytest.approx(0.07039, abs=1e-5),
        "published": True,
        "remark": "llm-foundry's MPT-760M on 8 GPUs reached 345 TFLOP/s on H100",
    }
    assert measured["measured"] is True
    assert (measured["steps_per_hour"], measured["remark"]) == (pytest.approx(2000), "measured")
    assert (measured["epoch_cost"], measured["long_cost"]) == (pytest.approx(194.86764), pytest.approx(396))
    assert measured["published"] is True
    assert (fast["steps_per_hour"], fast["long_hours"], fast["long_cost"]) == (2500, 40, pytest.approx(316.80))
    assert fast["mfu"] == pytest.approx(0.50280, abs=1e-5)  # 497.473 / 989.4
    assert fast["published"] is False
    assert fast["remark"].startswith("above every published bf16 figure for H100 that we know")


def test_a_true_billion_at_2000_steps_is_above_what_was_published() -> None:
    # 7,169,025,024 FLOPs a token: 522 TFLOP/s, 52.8 %
    wide = cost.shape.Model(n_embd=1792, n_layer=24, n_head=28, n_positions=2048, vocab_size=50_000)
    one = reported(model=wide, price=price.Price(7.92, "node", "USD", (2000.0,)))["scenarios"][0]
    assert one["mfu"] == pytest.approx(0.5276, abs=1e-4)
    assert one["published"] is False


def test_what_failures_lose_of_an_epoch() -> None:
    found = reported()["failures"]
    (loss,) = found.pop("losses")
    assert found == {
        "of": "epoch",
        "interval_steps": 1000,
        "interval_seconds": pytest.approx(1800),
        "restart_seconds": 90,
        "blocking_seconds": 9,
        "each_hours": pytest.approx(0.275),
    }
    assert loss["failures"] == pytest.approx(24.6045 / 24)
    assert loss["hours"] == pytest.approx(24.6045 / 24 * 0.275)
    assert loss["cost"] == pytest.approx(24.6045 / 24 * 0.275 * 7.92)
    assert loss["young_steps"] == pytest.approx(1247.08 / 1.8, abs=0.01)


def test_what_is_left_of_a_running_job() -> None:
    found = reported()["remaining"]
    assert found == {
        "step": 100,
        "steps": 49_209,
        "left": 49_109,
        "hours": even(24.5545),
        "cost": even(194.47164),
        "so_far_hours": pytest.approx(99 * 1.8 / 3600),
        "so_far_cost": pytest.approx(99 * 1.8 / 3600 * 7.92),
    }


def test_nothing_is_left_after_the_last_step() -> None:
    kept = history([{"step": 12, "steps": 10, "time": 1.0}])
    assert cost.remaining(kept, Spread(1.0, 1.0, 1.0), 2.0) == {
        "step": 12,
        "steps": 10,
        "left": 0,
        "hours": {"low": 0.0, "median": 0.0, "high": 0.0},
        "cost": {"low": 0.0, "median": 0.0, "high": 0.0},
        "so_far_hours": 0.0,
        "so_far_cost": 0.0,
    }


def test_what_is_left_is_unknown_without_an_end_or_a_speed() -> None:
    endless = cost.remaining(history([{"step": 12, "steps": None}]), Spread(1.0, 1.0, 1.0), 2.0)
    assert endless is not None
    assert (endless["steps"], endless["left"], endless["hours"], endless["cost"]) == (None, None, None, None)
    unmeasured = cost.remaining(history([{"step": 12, "steps": 20}]), None, None)
    assert unmeasured is not None
    assert (unmeasured["left"], unmeasured["hours"], unmeasured["cost"]) == (8, None, None)
    assert unmeasured["so_far_cost"] is None
    assert cost.remaining(pace.History(), Spread(1.0, 1.0, 1.0), 2.0) is None
    unending = cost.remaining(history([{"step": 1, "steps": "NaN"}]), Spread(1.0, 1.0, 1.0), 2.0)
    assert unending is not None
    assert (unending["steps"], unending["left"]) == (None, None)
    assert cost.remaining(history([{"step": "NaN"}]), Spread(1.0, 1.0, 1.0), 2.0) is None


def test_a_whole_report_misses_nothing() -> None:
    found = reported()
    assert (found["missing"], found["assumed"]) == ([], [])
    assert found["strategies"][0]["name"] == "Larger batches"
    assert "16.5 minutes or 2.18 USD here" in found["strategies"][4]["here"]  # 0.275 h · 7.92


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"history": pace.History()}, "a speed: training_metrics.jsonl has 0 rows, and at least 10"),
        ({"price": None}, "a price: `cost` is null in settings.json"),
        ({"nodes": None}, "the number of nodes: "),
        ({"gpu_name": None}, "the GPU's name: "),
        ({"gpu_name": "Tesla T4"}, "the peak of Tesla T4: "),
        ({"every": None}, "the interval between checkpoints: "),
        ({"blocking": None}, "how long a checkpoint stops the training; "),
    ],
)
def test_what_is_missing_is_named(changed: dict[str, Any], said: str) -> None:
    (missing,) = reported(**changed)["missing"]
    assert missing.startswith(said)


def test_without_a_speed_there_are_only_scenarios() -> None:
    found = reported(history=pace.History())
    assert (found["measured"], found["failures"], found["remaining"]) == (None, None, None)
    assert (found["job_id"], found["attempt"]) == (None, None)
    assert [(run["hours"], run["cost"]) for run in found["runs"]] == [(None, None), (None, None)]
    assert [row["steps_per_hour"] for row in found["scenarios"]] == [350, 2500]
    assert found["strategies"][4]["here"].endswith("on average")


@pytest.mark.parametrize("changed", [{"price": None}, {"nodes": None}])
def test_without_a_price_there_are_hours(changed: dict[str, Any]) -> None:
    found = reported(**changed)
    assert found["runs"][1]["hours"] == even(50)
    assert found["runs"][1]["cost"] is None
    assert {(row["epoch_cost"], row["long_cost"]) for row in found["scenarios"]} == {(None, None)}
    assert found["failures"]["losses"][0]["cost"] is None
    assert found["remaining"]["cost"] is None
    assert found["strategies"][4]["here"].endswith("16.5 minutes here")


def test_without_a_price_the_documents_scenarios_are_compared() -> None:
    found = reported(price=None, history=pace.History())["scenarios"]
    assert [row["steps_per_hour"] for row in found] == [350, 1500, 2000, 2500]


def test_without_checkpoints_failures_are_not_counted() -> None:
    assert reported(every=None)["failures"] is None


def test_without_a_data_sheet_there_is_no_mfu() -> None:
    found = reported(gpu_name="Tesla T4")
    assert found["measured"]["mfu"] is None
    assert {row["mfu"] for row in found["scenarios"]} == {None}
    assert {row["published"] for row in found["scenarios"]} == {None}


def test_what_is_assumed_is_named() -> None:
    found = reported(epoch_tokens=None, restart=None)
    assert found["assumed"] == ["an epoch has the document's 51,600,000,000 tokens", "a restart takes 300 s"]
    assert found["runs"][0]["steps"] == 49_209
    assert found["failures"]["restart_seconds"] == 300
    assert reported(restart=None, every=None)["assumed"] == []  # nothing is computed from it


def test_young_needs_the_time_of_a_checkpoint() -> None:
    (loss,) = reported(blocking=None)["failures"]["losses"]
    assert (loss["young_seconds"], loss["young_steps"], loss["blocking_hours"]) == (None, None, None)


def test_an_epoch_of_other_tokens() -> None:
    assert reported(epoch_tokens=10_485_760)["runs"][0]["steps"] == 10


def test_the_two_lines_of_the_verdict() -> None:
    assert cost.verdict_lines(reported()) == (
        "Cost: 2,000 steps/h (2,000 to 2,000, quartiles of the last 100 steps); an epoch of 49,209 steps: 24.6 h "
        "(24.6 to 24.6), 194.87 USD (194.87 to 194.87)",
        "Cost: 100,000 steps (2.03 epochs): 50.0 h (50.0 to 50.0), 396.00 USD (396.00 to 396.00); "
        "7.92 USD an hour for each node, 7.92 for all",
    )


def test_the_lines_without_a_speed_or_a_price() -> None:
    assert cost.verdict_lines(reported(history=pace.History())) == (
        "Cost: not known, no speed was measured",
        "Cost: 7.92 USD an hour for each node, 7.92 for all",
    )
    first, second = cost.verdict_lines(reported(price=None))
    assert first.endswith("24.6 h (24.6 to 24.6)")
    assert second == "Cost: 100,000 steps (2.03 epochs): 50.0 h (50.0 to 50.0); no price is set"
    first, second = cost.verdict_lines(reported(nodes=None))
    assert first.endswith("24.6 h (24.6 to 24.6)")
    assert second.endswith("7.92 USD an hour for each node, on an unknown number of nodes")
    assert (
        "0.99 USD an hour for each GPU, 7.92 for all" in cost.verdict_lines(reported(price=price.Price(0.99, "gpu")))[1]
    )


def test_the_defaults_of_facts_are_unknown() -> None:
    found = cost.Facts(model=GPT, training=EIGHT, sequences=512)
    assert found.mtbf_hours == (24, 168, 720)
    assert found.per_hour is None
    assert found.step_tokens == 1_048_576
