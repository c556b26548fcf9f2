# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the workloads that train with Oumi tell it, how they watch it, and how they read its losses."""

from __future__ import annotations

import json
import math
import sys
import types
from pathlib import Path
from typing import Any

import pytest
from kit.training import oumi

DTYPE = "training.mixed_precision_dtype=NONE"
RATE = "training.learning_rate=0.003"


@pytest.mark.parametrize(
    ("source", "on_cpu", "more"),
    [
        ("download", False, []),
        ("download", True, [DTYPE]),
        ("stand-in", False, [RATE]),
        ("stand-in", True, [DTYPE, RATE]),
    ],
)
def test_what_depends_on_model_and_device(tmp_path: Path, source: str, on_cpu: bool, more: list[str]) -> None:
    (tmp_path / "provenance.json").write_text(json.dumps({"source": source}))
    assert oumi.overrides(tmp_path, Path("/data/train.jsonl"), on_cpu=on_cpu) == [
        f"model.model_name={tmp_path}",
        "data.train.datasets[0].dataset_path=/data/train.jsonl",
        *more,
    ]


def test_a_model_that_does_not_say_what_it_is_is_not_trained(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="provenance"):
        oumi.overrides(tmp_path, Path("/data/train.jsonl"), on_cpu=True)


@pytest.fixture
def trainer(monkeypatch: pytest.MonkeyPatch) -> types.ModuleType:
    """In the place of transformers' own."""
    library, module = types.ModuleType("transformers"), types.ModuleType("transformers.trainer")
    module.DEFAULT_CALLBACKS = ["default"]  # type: ignore[attr-defined]
    library.trainer = module  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "transformers", library)
    monkeypatch.setitem(sys.modules, "transformers.trainer", module)
    return module


def test_a_callback_is_called_meanwhile_and_not_by_the_next_training(trainer: Any) -> None:
    with oumi.watched_by("clock"):
        assert trainer.DEFAULT_CALLBACKS == ["default", "clock"]
    assert trainer.DEFAULT_CALLBACKS == ["default"]
    with pytest.raises(ValueError, match="ended early"), oumi.watched_by("clock"):
        raise ValueError("ended early")
    assert trainer.DEFAULT_CALLBACKS == ["default"]


def test_the_configuration_is_read_with_what_was_chosen_and_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[Any] = []

    class TrainingConfig:
        @classmethod
        def from_yaml_and_arg_list(cls, path: str, chosen: list[str]) -> Any:
            calls.append((path, chosen))
            return cls()

        def finalize_and_validate(self) -> None:
            calls.append("checked")

    for name in ("oumi", "oumi.core", "oumi.core.configs"):
        monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
    sys.modules["oumi.core.configs"].TrainingConfig = TrainingConfig  # type: ignore[attr-defined]
    assert isinstance(oumi.configuration(Path("/c.yaml"), ["a=1"]), TrainingConfig)
    assert calls == [("/c.yaml", ["a=1"]), "checked"]


def test_the_ends_of_the_loss_are_means_of_five_steps() -> None:
    assert oumi.loss_at_ends([float(n) for n in range(10)]) == (2.0, 7.0)
    assert oumi.loss_at_ends([4.0, 2.0]) == (3.0, 3.0)
    assert oumi.loss_at_ends([]) == (None, None)


def test_a_loss_that_is_not_finite_stays_so_as_json_has_it() -> None:
    first, last = oumi.loss_at_ends(["NaN", *[1.0] * 5])
    assert first is not None
    assert math.isnan(first)
    assert last == 1.0
