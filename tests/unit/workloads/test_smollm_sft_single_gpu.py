# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""MLOPS-1.2: what its requirements ask for is in its manifest, and its arithmetic is right."""

from __future__ import annotations

import importlib.util
import json
import math
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml

HOME = "files/workloads/smollm_sft_single_gpu"


@pytest.fixture(scope="module")
def script(root: Path) -> ModuleType:
    """The workload's script, which needs no library beside the kit."""
    spec = importlib.util.spec_from_file_location("smollm_sft_single_gpu", root / HOME / "smollm_sft_single_gpu.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def rows(count: int, **changes: Any) -> list[dict[str, Any]]:
    """Steps of two seconds and 100 tokens each, of which the first takes ten."""
    return [
        {
            "step": step,
            "steps": count,
            "epoch": step / count,
            "loss": 5.0 - step / count,
            "grad_norm": 1.0,
            "learning_rate": 2e-5,
            "tokens_seen": 100 * step,
            "step_seconds": 10.0 if step == 1 else 2.0,
            **changes,
        }
        for step in range(1, count + 1)
    ]


def test_every_requirement_has_its_criterion(root: Path) -> None:
    manifest = yaml.safe_load((root / HOME / "workload.yml").read_text(encoding="utf-8"))
    assert {f"S0-{number}" for number in range(31, 37)} <= {criterion["id"] for criterion in manifest["criteria"]}
    assert manifest["resources"] == {
        "nodes": 1, "ntasks_per_node": 1, "cpus_per_task": 4, "gres": "gpu:1", "mem": "16G", "time": "00:30:00"
    }  # fmt: skip


def test_oumis_configuration_is_the_documents_and_saves_before_it_ends(root: Path) -> None:
    config = yaml.safe_load((root / HOME / "smollm_sft_single_gpu.yaml").read_text(encoding="utf-8"))
    training = config["training"]
    assert (training["num_train_epochs"], training["per_device_train_batch_size"]) == (1, 4)
    assert (training["gradient_accumulation_steps"], training["learning_rate"]) == (4, 2e-5)
    steps = math.ceil(math.ceil(1000 / 4) / 4)
    manifest = yaml.safe_load((root / HOME / "workload.yml").read_text(encoding="utf-8"))
    (expected,) = [c["eq"] for c in manifest["criteria"] if c["id"] == "S0-20"]
    (saved,) = [c["each"]["count"] for c in manifest["criteria"] if c["id"] == "S0-33"]
    assert (steps, steps // training["save_steps"] + 1) == (expected, saved)  # the last step is saved too
    assert config["model"]["trust_remote_code"] is False


def test_warm_up_and_saving_are_left_out_of_the_rate(script: ModuleType) -> None:
    found = script.summarise(rows(13), save_seconds=7.0)
    assert found["tokens_per_second"] == 1000 / 20
    assert found["training_time_seconds"] == 10 + 12 * 2 + 7
    assert (found["steps"], found["planned_steps"], found["tokens"]) == (13, 13, 1300)
    assert (found["first_step_seconds"], found["step_seconds_median"]) == (10.0, 2.0)


def test_the_ends_of_the_loss_are_means(script: ModuleType) -> None:
    found = script.summarise(rows(10), save_seconds=0.0)
    assert found["loss_first"] == pytest.approx(5 - 0.3)
    assert found["loss_last"] == pytest.approx(5 - 0.8)


@pytest.mark.parametrize("count", [0, 1, 3])
def test_what_was_not_measured_is_null(script: ModuleType, count: int) -> None:
    found = script.summarise(rows(count), save_seconds=0.0)
    assert found["tokens_per_second"] is None
    assert found["steps"] == count
    assert (found["training_time_seconds"] is None) == (count == 0)


def test_uncounted_tokens_make_no_rate(script: ModuleType) -> None:
    assert script.summarise(rows(10, tokens_seen=None), save_seconds=0.0)["tokens_per_second"] is None


@pytest.mark.parametrize(
    ("training", "rate", "expected"),
    [
        ({"flops_per_token": 1e9, "peak_flops": 1e15}, 100_000.0, 0.1),
        ({"flops_per_token": 1e9, "peak_flops": None}, 100_000.0, None),
        ({}, 100_000.0, None),
        ({"flops_per_token": 1e9, "peak_flops": 1e15}, None, None),
    ],
)
def test_utilisation_is_told_where_both_sides_are_known(
    script: ModuleType, training: dict[str, Any], rate: float | None, expected: float | None
) -> None:
    assert script.utilisation(training, rate) == expected


def test_a_report_that_is_not_there_or_damaged_is_empty(script: ModuleType, tmp_path: Path) -> None:
    assert script.read_report(tmp_path / "none.json") == {}
    (tmp_path / "cut.json").write_text('{"a"')
    assert script.read_report(tmp_path / "cut.json") == {}
    (tmp_path / "whole.json").write_text(json.dumps({"a": 1}))
    assert script.read_report(tmp_path / "whole.json") == {"a": 1}
