# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRETRAIN-1: its settings are checked before anything is computed, and what it compares without PyTorch is right."""

from __future__ import annotations

import importlib
import json
import math
import re
import shutil
import sys
import typing as t
from pathlib import Path

import pytest
import yaml

from tests.unit.conftest import ROOT

HOME = ROOT / "files/workloads/gpt_pretraining"
sys.path.insert(0, str(HOME))  # as the interpreter does for the script

settings = importlib.import_module("settings")
comparisons = importlib.import_module("comparisons")
Json = dict[str, t.Any]
PRICE = {"price_per_hour": 7.92, "price_of": "node"}


def load(profile: str | None = None, own: t.Any = None, ranks: int = 8, folder: Path = HOME / "config") -> t.Any:
    """Load the settings as a rank does."""
    return settings.load(folder, profile, {} if own is None else own, ranks)


def test_the_documents_numbers() -> None:
    found = load()
    model = [found[f"model.{name}"] for name in ("n_embd", "n_layer", "n_head", "n_positions", "vocab_size")]
    assert model == [1536, 24, 24, 2048, 50000]
    assert (found.batch, found.micro, found.accumulation) == (512, 16, 4)  # the document has micro batches of 4
    assert found.precision == "bf16"
    assert found["deepspeed.gradient_clipping"] == 1.0
    assert found.learning_rate(1000) == pytest.approx(1.5e-4)
    assert found.learning_rate(2000) == pytest.approx(3e-4)
    assert found.learning_rate(51000) == pytest.approx(3e-4 * 0.55)
    assert found.learning_rate(100000) == found.learning_rate(200000) == pytest.approx(3e-5)


def test_every_profile_loads() -> None:
    ranks = {"mini": 4, "one_gpu": 1}
    names = sorted(path.stem for path in (HOME / "config/profiles").glob("*.yaml"))
    assert names == ["compile", "fp16", "full", "mini", "offload", "one_billion", "one_gpu"]
    found = {name: load(name, ranks=ranks.get(name, 8)) for name in names}
    assert found["full"]["training.steps"] == 49209 == 51_600_000_000 // (512 * 2048)
    assert {name: each.precision for name, each in found.items() if each.precision != "bf16"} == {
        "fp16": "fp16",
        "mini": "fp32",
    }
    assert len({each.fingerprint() for each in found.values()}) >= 5


def test_deepspeed_takes_our_optimizer_in_the_hosts_memory_too() -> None:
    found = load("offload").deepspeed()
    assert found["zero_optimization"]["offload_optimizer"]["device"] == "cpu"
    assert found["zero_force_ds_cpu_optimizer"] is False  # by default it refuses any but its own


@pytest.mark.parametrize(("ranks", "accumulation"), [(1, 32), (4, 8), (16, 2), (32, 1)])
def test_the_batch_stays_on_any_number_of_ranks(ranks: int, accumulation: int) -> None:
    found = load(ranks=ranks)
    assert (found.batch, found.accumulation) == (512, accumulation)
    assert found.fingerprint() == load().fingerprint()
    assert found.deepspeed()["gradient_accumulation_steps"] == accumulation


@pytest.mark.parametrize(
    ("own", "ranks", "why"),
    [
        (
            {"training": {"stepz": 3}},
            8,
            "hpc_validation_pretraining: training.stepz: unknown setting; is it",
        ),
        ({"nonsense": 1}, 8, "hpc_validation_pretraining: nonsense: unknown setting"),
        ({"training": {"steps": "3"}}, 8, "training.steps is '3', expected a whole number from 1"),
        ({"bogus": {}}, 8, "hpc_validation_pretraining: bogus: unknown setting"),
        ({"training": {"steps": {}}}, 8, "training.steps is {}, expected a whole number from 1"),
        ({"training": {"steps": {"a": 1}}}, 8, "training.steps is {'a': 1}, expected a whole number from 1"),
        ({"training": {"cost": {}}}, 8, "training.cost is {}, expected null, or price_per_hour and price_of"),
        ({"training": {"steps": True}}, 8, "training.steps is True, expected a whole number"),
        ({"training": {"steps": 0}}, 8, "training.steps is 0, expected a whole number from 1"),
        (
            {"training": {"schedule": {"learning_rate": math.nan}}},
            8,
            "learning_rate is nan, expected a number",
        ),
        ({"training": {"data": {"source": "gs://b/p"}}}, 8, "expected share; from a bucket .* hpc_validation_datasets"),
        ({"training": {"checkpoint": {"remote": "gs://"}}}, 8, "remote is 'gs://', expected gs://bucket"),
        ({"training": {"optimizer": {"betas": [0.9]}}}, 8, "expected two numbers from 0 to 1"),
        ({"training": {"optimizer": {"betas": [0.9, 1]}}}, 8, "expected two numbers from 0 to 1 and not 1"),
        ({"training": {"optimizer": {"eps": 0}}}, 8, "eps is 0, expected a number from 0 to 1 and not 0"),
        ({"training": {"schedule": {"learning_rate": 0.0}}}, 8, "learning_rate is 0.0, expected .* and not 0"),
        ({"training": {"steps": 5}, "training.steps": 6}, 8, "training.steps appears twice: as 5, and as 6"),
        ({"training": {"steps": 1 << 40}}, 8, "expected a whole number from 1 to 2147483648"),
        ({"model": {"n_embd": 1 << 60}}, 8, "n_embd is .*, expected a whole number from 1 to 65536"),
        ({"deepspeed": {"train_batch_size": 1 << 61}}, 3, "expected a whole number from 1 to 1048576"),
        ([], 8, "hpc_validation_pretraining: expected keys and values, found list"),
        ({"training": {"checkpoint": {"format": "torch"}}}, 8, "format is 'torch', expected one of own, deepspeed"),
        ({"training": {"checkpoint": {"keep": 1}}}, 8, "keep is 1, expected a whole number from 2"),
        ({"deepspeed": {"gradient_accumulation_steps": 4}}, 8, "cannot be set: it follows from the batch"),
        ({"deepspeed": {"bf16": {"enabled": "auto"}}}, 8, "bf16.enabled is 'auto', expected true or false"),
        ({"deepspeed": {"fp16": {"enabled": True}}}, 8, "are both true"),
        ({"deepspeed": {"zero_optimization": {"stage": 1}}}, 8, "zero_optimization.stage is 1, expected 3$"),
        ({"model": {"n_head": 7}}, 8, "model.n_head 7 does not divide model.n_embd 1536"),
        ({"model": {"bos_token_id": 50256}}, 8, "bos_token_id 50256 is not in a vocabulary of 50000 tokens"),
        ({"model": {"tie_word_embeddings": False}}, 8, "tie_word_embeddings is False, expected True"),
        ({"training": {"schedule": {"decay_steps": 10}}}, 8, "decay_steps is less than warmup_steps"),
        (
            {"deepspeed": {"zero_optimization": {"zero_hpz_partition_size": 3}}},
            8,
            "zero_hpz_partition_size 3 does not divide the 8 ranks",
        ),
        ({}, 6, "cannot be split into micro batches of 16 on 6 ranks; ranks that divide 512 are 1, 2, 4"),
        (
            {"deepspeed": {"train_micro_batch_size_per_gpu": 48}},
            8,
            "with 8 ranks .*can be 1, 2, 4, 8, 16",
        ),
        (
            {"training": {"cost": {"price_per_hour": 7.92, "currency": "USD"}}},
            8,
            "cost.price_of is missing; a price",
        ),
        ({"training": {"cost": {"price_of": "node", "currency": "USD"}}}, 8, "cost.price_per_hour is missing"),
        ({"training": {"cost": {"price_of": "box"}}}, 8, "price_of is 'box', expected one of node, gpu"),
        (
            {"training": {"cost": PRICE | {"price_per_hour": 0}}},
            8,
            "training.cost.price_per_hour: expected .* above 1e-09",
        ),
        ({"training": {"cost": PRICE | {"currency": "usd"}}}, 8, "training.cost.currency: expected three capital"),
        ({"training": {"cost": PRICE | {"scenarios": [0]}}}, 8, "training.cost.scenarios: .* above 1e-09"),
        ({"training": {"cost": PRICE | {"scenarios": [1] * 21}}}, 8, "training.cost.scenarios: .* at most 20 numbers"),
    ],
)
def test_what_cannot_be_meant_is_refused_by_name(own: t.Any, ranks: int, why: str) -> None:
    with pytest.raises(settings.SettingsError, match=why):
        load(own=own, ranks=ranks)


@pytest.mark.parametrize("remote", ["gs://bucket", "gs://my.bucket-1/a/b_c", "gs://bucket/prefix/", None])
def test_a_bucket_is_known_by_its_address(remote: str | None) -> None:
    assert load(own={"training": {"checkpoint": {"remote": remote}}})["training.checkpoint.remote"] == remote


def test_a_known_section_may_be_empty() -> None:
    own: Json = {"training": {"schedule": {}}, "deepspeed": {"fp16": {}}, "model": {}}
    assert load(own=own).values == load().values


def blocks() -> t.Iterator[t.Any]:
    """Yield what the pages of the pretraining tell people to put into their inventory."""
    for page in sorted((ROOT / "docs").glob("pretraining*.md")):
        for number, block in enumerate(re.findall(r"^```yaml\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)):
            own = yaml.safe_load(block).get("hpc_validation_pretraining")
            if own is not None:
                yield pytest.param(own, id=f"{page.stem}-{number}")


@pytest.mark.parametrize("own", list(blocks()))
@pytest.mark.parametrize(("profile", "ranks"), [(None, 8), ("mini", 4)])
def test_what_the_pages_tell_people_to_set_suits_the_acceptance(own: Json, profile: str | None, ranks: int) -> None:
    settings.require_steps(load(profile, own, ranks))


@pytest.mark.parametrize(("steps", "every"), [(209, 50), (100, 50), (200, 150)])
def test_steps_without_room_for_the_legs_are_refused(steps: int, every: int) -> None:
    found = load(own={"training": {"steps": steps, "checkpoint": {"every": every}}})
    with pytest.raises(settings.SettingsError, match=f"steps is {steps} and .*every {every}: .* at least three"):
        settings.require_steps(found)


def test_an_unknown_profile_names_those_that_there_are() -> None:
    with pytest.raises(settings.SettingsError, match="unknown profile 'tiny'; available: compile, fp16, full, mini"):
        load("tiny")


@pytest.mark.parametrize(
    ("name", "text", "why"),
    [
        ("model_config.json", "{", "model_config.json cannot be read"),
        ("model_config.json", "[]", "model_config.json: expected keys and values, found list"),
        ("training_config.yaml", "steps: [", "training_config.yaml cannot be read"),
        ("training_config.yaml", "steps: 3", "training.seed, .*: missing"),
        ("training_config.yaml", "steps: 3\nsteps: 4", "'steps' appears twice"),
        ("training_config.yaml", "? [1, 2]\n: 3", "training_config.yaml cannot be read"),
        ("training_config.yaml", "zz: !!map [1]", "training_config.yaml cannot be read"),
        ("training_config.yaml", "zz: !!timestamp x", "training_config.yaml cannot be read"),
        ("training_config.yaml", "zz: " + "[" * 3000, "training_config.yaml cannot be read"),
        ("training_config.yaml", "zz: &x {b: *x}", "zz: unknown setting"),
        ("training_config.yaml", "steps: &x {b: *x}", "training.steps is .*, expected a whole number"),
        ("model_config.json", "[" * 100_000, "model_config.json cannot be read"),
        ("deepspeed_config.json", None, "deepspeed_config.json cannot be read"),
    ],
)
def test_a_broken_file_is_named(tmp_path: Path, name: str, text: str | None, why: str) -> None:
    folder = shutil.copytree(HOME / "config", tmp_path / "config")
    (folder / name).unlink()
    if text is not None:
        (folder / name).write_text(text)
    with pytest.raises(settings.SettingsError, match=why):
        load(folder=folder)


def test_later_settings_replace_earlier_ones_and_blocks_replace_null() -> None:
    cost = {"price_per_hour": 7.92, "price_of": "node", "currency": "USD", "scenarios": [350, 2500]}
    found = load("mini", {"training": {"steps": 60, "cost": cost}}, ranks=4)
    document = found.document()
    assert (document["steps"], document["schedule"]["warmup_steps"], document["cost"]) == (60, 10, cost)
    assert load("mini", {"training": {"cost": None}}, ranks=4).document()["cost"] is None
    assert (
        load(own={"training": {"cost": PRICE}}).document()["cost"] == PRICE
    )  # a price without a currency is in dollars


def test_the_fingerprint_is_of_what_changes_the_result() -> None:
    known = load().fingerprint()
    same: list[Json] = [{"training": {"steps": 7}}, {"training": {"checkpoint": {"every": 9}}}]
    same += [
        {"deepspeed": {"train_micro_batch_size_per_gpu": 8}},
        {"deepspeed": {"zero_optimization": {"overlap_comm": False}}},
    ]
    other: list[Json] = [{"training": {"seed": 1}}, {"model": {"n_layer": 2}}, {"deepspeed": {"train_batch_size": 256}}]
    other += [{"training": {"schedule": {"learning_rate": 1e-4}}}, {"deepspeed": {"gradient_clipping": 0.5}}]
    assert {load(own=each).fingerprint() for each in same} == {known}
    assert known not in {load(own=each).fingerprint() for each in other}


def test_the_document_is_json() -> None:
    assert json.loads(json.dumps(load().document()))["batch"] == {
        "global": 512,
        "micro": 16,
        "accumulation": 4,
        "ranks": 8,
    }


ONE = {"first": 1, "loss": [5.0, 4.0, 3.0, 2.0], "checksums": [1, 2, 3, 4]}


@pytest.mark.parametrize(
    ("other", "expected"),
    [
        ({"first": 3, "loss": [3.0, 2.0], "checksums": [3, 4]}, (2, 0.0, 0)),
        ({"first": 3, "loss": [2.5, 2.0], "checksums": [3, 4]}, (2, 0.5, 0)),
        ({"first": 3, "loss": [3.25, 2.0, 9.0], "checksums": [3, 4, 5]}, (2, 0.25, 0)),
        ({"first": 3, "loss": [3.0, 2.0], "checksums": [3, 5]}, (2, 0.0, 1)),
        ({"first": 1, "loss": [math.nan], "checksums": [1]}, (1, math.inf, 0)),
        ({"first": 5, "loss": [1.0], "checksums": [5]}, (0, None, None)),
    ],
)
def test_runs_are_compared_where_both_were(other: Json, expected: tuple[int, float | None, int | None]) -> None:
    found = comparisons.apart(ONE, other)
    assert (found["steps"], found["loss"], found["samples"]) == expected
    assert comparisons.apart(other, ONE)["loss"] == expected[1]


def test_only_the_first_steps_can_be_compared() -> None:
    later = {**ONE, "loss": [5.0, 4.0, 3.0, 9.0]}
    assert comparisons.apart(ONE, later, 3) == {"steps": 3, "first": 1, "last": 3, "loss": 0.0, "samples": 0}
    assert comparisons.apart(ONE, later, 4)["loss"] == 7.0


def test_a_spike_is_five_high_losses_in_a_row() -> None:
    calm = [4.0] * 40
    assert comparisons.spike(calm) == 1.0
    assert comparisons.spike([*calm[:20], 40.0, *calm[:19]]) == 1.0
    assert (comparisons.spike([*calm[:20], *[12.0] * 5, *calm[:15]]) or 0) > 2
    assert comparisons.spike([4.0] * 5) is None
