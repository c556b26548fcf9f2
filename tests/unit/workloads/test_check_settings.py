# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is wrong with a training's settings is said on the controller, before anything is submitted."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import pytest

from tests.unit.conftest import ROOT

SCRIPT = ROOT / "files/workloads/gpt_pretraining/check_settings.py"


def check(own: Any, *arguments: str) -> tuple[int, dict[str, Any]]:
    """Return the exit code and the answer about the inventory's own settings; text is handed on as it is."""
    done = subprocess.run(
        [sys.executable, "-B", str(SCRIPT), *(arguments or ("--profile", "mini", "--ranks", "4"))],
        input=own if isinstance(own, str) else json.dumps(own),
        env={"PATH": os.defpath, "PYTHONPATH": str(ROOT / "files")},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.stderr == ""
    (answer,) = json.loads(done.stdout)
    assert answer.pop("file") == "hpc_validation_pretraining"
    return done.returncode, answer


@pytest.mark.parametrize("profile", sorted(p.stem for p in (SCRIPT.parent / "config/profiles").glob("*.yaml")))
def test_every_profile_can_be_trained_with(profile: str) -> None:
    steps = ["--chain"] if profile == "full" else []
    assert check({}, "--profile", profile, "--ranks", "1", *steps) == (0, {"findings": []})


@pytest.mark.parametrize(
    ("own", "why"),
    [
        ({"training": {"stepz": 3}}, "training.stepz: unknown setting; is it training.steps?"),
        ({"deepspeed": {"zero_optimization": {"stage": 1}}}, "zero_optimization.stage is 1, expected 3"),
        ({"deepspeed": {"train_batch_size": 6}}, "a batch of 6 samples cannot be split into micro batches of"),
        ({"training": {"cost": {"price_per_hour": 7.92}}}, "training.cost.price_of is missing"),
        ({"training": {"steps": 10}}, "an acceptance needs at least three checkpoints"),
        ([1], "hpc_validation_pretraining: expected keys and values, found list"),
        ("{", "Expecting property name"),
        ('{"training": {}, "training": {}}', "twice"),
    ],
)
def test_what_the_job_would_refuse_is_refused(own: Any, why: str) -> None:
    code, answer = check(own)
    assert code == 1
    assert why in answer["unreadable"]


def test_each_number_of_ranks_must_be_able_to_share_the_batch() -> None:
    assert check({}, "--profile", "mini", "--ranks", "4")[0] == 0
    code, answer = check({}, "--profile", "mini", "--ranks", "4", "--ranks", "3")
    assert code == 1
    assert "on 3 ranks" in answer["unreadable"]


def test_the_training_itself_needs_no_room_for_legs() -> None:
    assert check({"training": {"steps": 10}}, "--profile", "mini", "--ranks", "4", "--chain")[0] == 0
