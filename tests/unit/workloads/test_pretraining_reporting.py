# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The list of a training's checkpoints: those that are whole, and where their copies are."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

from kit.pretraining import checkpoints

from tests.unit.conftest import ROOT

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
