# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a training says of itself afterwards: its alerts, its checkpoints, and where their copies are."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path

import pytest
from kit.pretraining import checkpoints

from tests.unit.conftest import ROOT
from tests.unit.kit import pretraining_job
from tests.unit.kit.token_folders import make

sys.path.insert(0, str(ROOT / "files/workloads/gpt_pretraining"))  # as the interpreter does for the script

reporting = importlib.import_module("reporting")


def test_a_checkpoint_that_was_uploaded_has_the_address_of_its_copy(tmp_path: Path) -> None:
    for step in (10, 20, 30):
        place = checkpoints.begin(tmp_path / "checkpoints", checkpoints.name_of(step), 1)
        checkpoints.finish(place, {"step": step}, [])
    metrics = {
        "checkpoints": {f"checkpoint_step_{step}": {"verified": step != 30} for step in (10, 20, 30)},
        "uploads": {
            "checkpoint_step_10": {"uploaded": True, "url": "gs://b/job-1/checkpoint_step_10"},
            "checkpoint_step_20": {"uploaded": False, "url": None},
        },
    }
    found = {each.manifest["step"]: each.remote for each in reporting._found(tmp_path, metrics)}
    assert found == {10: "gs://b/job-1/checkpoint_step_10", 20: None}
    assert {each.remote for each in reporting._found(tmp_path, {**metrics, "uploads": None})} == {None}


def _rows(folder: Path, *losses: float | str) -> Path:
    rows = [
        {"step": step, "time": 1000.0 + step, "loss": loss, "grad_norm": 1.0, "skipped_steps": 0, "checkpoint_step": 0}
        for step, loss in enumerate(losses, 1)
    ]
    text = "".join(f"{json.dumps(row)}\n" for row in rows)
    (folder / "training_metrics.jsonl").write_text(text, encoding="utf-8")
    (folder / "performance_metrics.jsonl").write_text('{"step": 1, "time": 1001.0}\n', encoding="utf-8")
    return folder


def test_the_alerts_of_a_training_are_named(tmp_path: Path) -> None:
    assert reporting.alerts_of(_rows(tmp_path, 3.0, 2.0, 1.0), 10) == "none"
    assert reporting.alerts_of(_rows(tmp_path, 3.0, "NaN", 1.0), 10) == "PretrainingLossNotFinite"


def test_rows_that_cannot_be_read_have_no_alerts(tmp_path: Path) -> None:
    _rows(tmp_path, 3.0, "many")
    assert reporting.alerts_of(tmp_path, 10) is None
    (tmp_path / "training_metrics.jsonl").write_text('{"step": 1}\nnothing\n', encoding="utf-8")
    assert reporting.alerts_of(tmp_path, 10) is None


def test_without_one_kind_of_rows_the_alerts_are_not_known(tmp_path: Path) -> None:
    (_rows(tmp_path, 3.0, 2.0, 1.0) / "performance_metrics.jsonl").unlink()
    assert reporting.alerts_of(tmp_path, 10) is None


def test_a_training_without_rows_has_no_alerts(tmp_path: Path) -> None:
    assert reporting.alerts_of(tmp_path, 10) is None


@pytest.mark.parametrize("count", [0, 1, 100])
def test_without_a_measured_speed_nothing_is_said_of_the_cost(tmp_path: Path, count: int) -> None:
    job, data = tmp_path / "job-12", tmp_path / "tokens"
    job.mkdir()
    data.mkdir()
    make(data, range(100), vocab=100)
    metrics = {**pretraining_job.METRICS, "checkpoints": {}}
    pretraining_job.write(job, metrics=metrics, found=pretraining_job.rows([1.8] * count))
    if not count:
        (job / "training_metrics.jsonl").touch()
    found = reporting.write(job, data)
    if count == 100:
        assert found["lines"][0].startswith("Cost: 2,000 steps/h")
    else:
        assert found["lines"] is None
        assert found["missing"][0].startswith("a speed: ")
    assert "- DeepSpeed: 0.19.8" in (job / "run_card.md").read_text()
