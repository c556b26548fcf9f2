# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The numbers of docs/pretraining-cost.md are those that the kit computes."""

from __future__ import annotations

import math
import shlex
from pathlib import Path

import pytest
from kit.__main__ import _parser
from kit.flops import peak_flops
from kit.pretraining import cost, published, shape

from tests.unit.kit.pretraining_job import EIGHT, GPT, facts

PRICE, PEAK = 7.92, 989.4e12
MODELS = {
    "width 1536, 24 layers, tied": GPT,
    "the same, not tied": shape.Model(1536, 24, 24, 2048, 50_000, tied=False),
    "width 1536, 32 layers, tied": shape.Model(1536, 32, 24, 2048, 50_000),
    "width 1792, 24 layers, tied": shape.Model(1792, 24, 28, 2048, 50_000),
}


@pytest.fixture(scope="module")
def page(root: Path) -> str:
    return " ".join((root / "docs/pretraining-cost.md").read_text(encoding="utf-8").split())


def steps_at(model: shape.Model, mfu: float) -> float:
    return mfu * PEAK / cost.flops_per_gpu(facts(model=model), 1.0)


@pytest.mark.parametrize("name", MODELS)
def test_the_table_of_models(page: str, name: str) -> None:
    model = MODELS[name]
    cells = [name, f"{shape.parameters(model):,}", f"{shape.flops_per_token(model) / 1e9:.3f}"]
    for mfu in (0.30, 0.42, 0.50):
        steps = steps_at(model, mfu)
        hours = cost.epoch_steps(cost.DOCUMENT_TOKENS, cost.DOCUMENT_STEP_TOKENS) / steps
        cells.append(f"{steps:,.0f}; {hours:.1f} h, {hours * PRICE:.0f} USD")
    needed = cost.flops_per_gpu(facts(model=model), 2000.0)
    cells.append(f"{needed / 1e12:.0f} TFLOP/s, {100 * needed / PEAK:.1f} %")
    assert f"| {' | '.join(cells)} |" in page


def test_the_corrections(page: str) -> None:
    epoch = cost.epoch_steps(cost.DOCUMENT_TOKENS, cost.DOCUMENT_STEP_TOKENS)
    for steps, of in ((350, epoch), (2500, 100_000), (2000, epoch)):
        assert f"{of / steps:.1f} h, {of / steps * PRICE:,.2f} USD" in page
    for steps in (350, 2000, 2500):
        needed = cost.flops_per_gpu(facts(), steps)
        assert f"{needed / 1e12:.1f} TFLOP/s" in page
        assert f"{100 * needed / PEAK:.1f} %" in page
    offloaded = shape.states_bytes(GPT, EIGHT) - shape.states_bytes(GPT, shape.Training(8, 4, offloaded=True))
    for said in (
        f"an epoch ends after {epoch:,} steps",
        f"100,000 are {100_000 * cost.DOCUMENT_STEP_TOKENS / cost.DOCUMENT_TOKENS:.2f} epochs",
        f"or {100_000 * cost.DOCUMENT_STEP_TOKENS / 1e9:.1f} billion tokens",
        f"{100_000 // (512 // (4 * 8)):,} updates",
        f"{2 * cost.DOCUMENT_TOKENS / 1e9:.1f} GB with 2 bytes for each",
        f"it would be {8 * PRICE:.2f} USD an hour",
        f"ln 50,000 = {math.log(50_000):.2f}",
        f"{offloaded / 1e9:.2f} GB of 80 GB",
    ):
        assert said in page


def test_the_memory(page: str) -> None:
    for ranks, words in ((8, "On each of 8 GPUs ZeRO-3 keeps"), (4, "on each of 4 GPUs"), (1, "on one")):
        assert f"{words} {shape.states_bytes(GPT, shape.Training(ranks, 4)) / 1e9:.2f} GB" in page
    checkpoint = shape.checkpoint_bytes(GPT) / 1e9
    for said in (
        f"an estimated {shape.activation_bytes(GPT, EIGHT) / 1e9:.2f} GB",
        f"A checkpoint has {checkpoint:.2f} GB",
        f"take {6 * checkpoint:.1f} GB",
        f"takes {100 * checkpoint:.0f} GB",
    ):
        assert said in page


def test_the_published_figures(page: str) -> None:
    for figure in published.H100:
        of = figure.of.replace(" on ", ", ")
        row = f"| {figure.flops / 1e12:.0f} | {100 * figure.flops / PEAK:.1f} % |"
        assert f"| H100 | {of}, 2,048 tokens" in page
        assert row in page
    a100 = peak_flops("A100") or 0.0
    assert ", ".join(f"{each.flops / 1e12:.0f}" for each in published.A100) in page
    assert ", ".join(f"{100 * each.flops / a100:.1f} %" for each in published.A100) in page


def test_the_commands_are_ones_that_the_kit_takes(root: Path) -> None:
    lines = (root / "docs/pretraining-cost.md").read_text(encoding="utf-8").splitlines()
    commands = [shlex.split(line, comments=True) for line in lines if line.startswith("python3 -B -m kit cost FOLDER")]
    assert len(commands) == 4
    for command in commands:
        assert _parser("cost").parse_args(command[command.index("cost") :]).folder == Path("FOLDER")
