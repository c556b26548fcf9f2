# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The card of a training and its model."""

from __future__ import annotations

from typing import Any

import pytest
from kit.errors import KitError
from kit.pretraining import run_card

from tests.unit.kit.pretraining_job import METRICS, SETTINGS, rows

TOKENS = {
    "schema": 1,
    "source": "converted from 10 files of npz",
    "entropy": None,
    "splits": {"train": {"tokens": 51_600_000_000}, "validation": {"tokens": 1_000_000}},
}
CHAIN = [{"job_id": "7", "name": "checkpoint_step_1000", "step": 1000, "manifest_sha256": "a" * 64}]


def section(page: str, title: str) -> list[str]:
    return page.partition(f"## {title}\n\n")[2].partition("\n\n## ")[0].rstrip("\n").split("\n")


def test_points_are_few_and_keep_both_ends() -> None:
    curve = run_card.points(rows([1.0] * 100), "loss")
    assert len(curve) == 12
    assert [step for step, _loss in curve] == [1, 10, 19, 28, 37, 46, 55, 64, 73, 82, 91, 100]
    assert curve[0][1] == pytest.approx(9.99)
    assert run_card.points(rows([1.0] * 5), "loss", 3) == [(1, 9.99), (3, 9.97), (5, 9.95)]
    assert len(run_card.points(rows([1.0] * 12), "loss")) == 12
    assert [step for step, _loss in run_card.points(rows([1.0] * 7), "loss")] == [1, 2, 3, 4, 5, 6, 7]
    assert run_card.points([], "loss") == []


def test_a_step_that_was_repeated_counts_once() -> None:
    found = [*rows([1.0] * 3), *rows([1.0] * 2, first=2, attempt=1, loss=5.0)]
    assert run_card.points(found, "loss") == [(1, 9.99), (2, 5.0), (3, 5.0)]


def test_rows_without_a_step_or_the_value_have_no_point() -> None:
    found = [
        {"step": None, "loss": 1.0},
        {"loss": 1.0},
        {"step": 1},
        {"step": 2, "loss": None},
        {"step": 3, "loss": "NaN"},
    ]
    assert run_card.points(found, "loss") == [(3, "NaN")]


def test_the_whole_card() -> None:
    found = rows([1.8] * 3)
    found[2]["validation_loss"] = 9.5
    page = run_card.page(SETTINGS, METRICS, found, TOKENS, CHAIN, "pass")
    assert page.startswith("# A GPT of 759,905,280 parameters\n")
    assert section(page, "Model") == [
        "- A decoder of GPT-2's architecture: 24 layers of width 1536, 24 heads, inputs of up to 2,048 tokens, 50,000 "
        "words; both embeddings are the same weights",
        "- Parameters: 759,905,280",
        "- Trained in bf16",
    ]
    assert section(page, "Data") == [
        "- Source: share",
        f"- SHA-256 of its manifest: {'d' * 64}",
        "- Tokens: 51,600,000,000 to train on, 1,000,000 held out",
        "- Made from: converted from 10 files of npz",
    ]
    assert section(page, "Training") == [
        "- Step 3 of 49,209, 3,145,728 tokens",  # 3 · 1,048,576
        "- A step: 512 sequences of 2,048 tokens",
        "- Seed: 42",
        f"- Fingerprint of the settings that change the result: {'f' * 64}",
        "- Optimizer: eps 1e-08, weight\\_decay 0.1",
        "- Schedule: lr 0.0003, warmup 2000",
        "- Verdict: pass",
    ]
    assert section(page, "Loss") == [
        "| Step | Training loss (nats per token) |",
        "| --- | --- |",
        "| 1 | 9.9900 |",
        "| 2 | 9.9800 |",
        "| 3 | 9.9700 |",
        "",
        "| Step | Held-out loss (nats per token) |",
        "| --- | --- |",
        "| 3 | 9.5000 |",
    ]
    assert section(page, "Hardware and versions") == [
        "- GPU: NVIDIA H100 80GB HBM3, ranks: 8",
        "- Nodes: gpu01",
        "- PyTorch: 2.10.0",
        "- DeepSpeed: 0.19.8",
        "- CUDA: not known",
    ]
    assert section(page, "Continued from") == [
        f"1. checkpoint\\_step\\_1000, step 1,000, of job 7; SHA-256 of its manifest {'a' * 64}"
    ]
    assert page.endswith("a\n")


def test_what_is_not_known_is_said_to_be() -> None:
    page = run_card.page({"model": {**SETTINGS["model"], "tied": False}}, {}, [])
    assert "both embeddings are other weights" in page
    assert section(page, "Data") == ["- Source: not known", "- SHA-256 of its manifest: not known"]
    assert section(page, "Training")[0] == "- Step not known of not known, not known tokens"
    assert section(page, "Training")[-1] == "- Schedule: not known"
    assert section(page, "Loss") == ["No step has ended."]
    assert section(page, "Hardware and versions")[:2] == ["- GPU: not known, ranks: not known", "- Nodes: not known"]
    assert section(page, "Continued from") == ["Nothing: it began at step 0."]


def test_stand_in_tokens_are_marked() -> None:
    page = run_card.page(SETTINGS, METRICS, [], {**TOKENS, "entropy": 3.5})
    assert "- **Stand-in tokens**: a random source of 3.5 nats per token made them" in page
    assert "Stand-in" not in run_card.page(SETTINGS, METRICS, [], TOKENS)


def test_a_loss_that_is_not_finite_is_shown() -> None:
    assert "| 1 | NaN |" in run_card.page(SETTINGS, METRICS, rows([1.0], loss="NaN"))


@pytest.mark.parametrize("batch", [None, {"global": "512"}, 512])
def test_without_a_batch_the_tokens_are_not_known(batch: Any) -> None:
    page = run_card.page({**SETTINGS, "batch": batch}, METRICS, rows([1.0]))
    assert "- Step 1 of 49,209, not known tokens\n" in page


def test_ranks_that_are_no_objects_have_no_nodes() -> None:
    metrics = {**METRICS, "ranks": {"0": "gpu01", "1": {"node": None}, "2": {"node": "b"}, "3": {"node": "a"}}}
    assert "- Nodes: a, b\n" in run_card.page(SETTINGS, metrics, [])


def test_settings_without_a_model_are_refused() -> None:
    with pytest.raises(KitError, match="model: expected an object"):
        run_card.page({}, {}, [])
