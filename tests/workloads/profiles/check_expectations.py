# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# ruff: noqa: PT009 - unittest, for pytest is not in the runtime
"""What a training must have left is worked out right, and a real training leaves it.

PYTHONPATH=files PYTHON -m unittest discover -s tests/workloads/profiles -p 'check_*.py'
"""

from __future__ import annotations

import json
import unittest
from typing import Any

import expectations
from acceptance import RATES, left, on_one_rank, purposes_profile, verified
from kit.pretraining import checkpoints
from kit.profiles.model import Profile
from small_profile import Case


def evaluations(*losses: float) -> list[dict[str, Any]]:
    """Return evaluations with these losses, at every fourth step."""
    return [{"step": 4 * place, "validation_loss": loss} for place, loss in enumerate(losses, 1)]


class Expectations(Case):
    """Pure functions of the profile and the rows."""

    def stopping(self, **keys: Any) -> Profile:
        """Return a profile with these keys of early stopping."""
        return self.profile(training={"early_stopping": {"patience": 2, "min_delta": 0.1, **keys}})

    def test_only_what_counts_is_an_improvement(self) -> None:
        profile = self.stopping()
        self.assertEqual(expectations.improving(profile, evaluations(1.0, 0.95, 0.85, 0.9)), [4, 12])

    def test_patience_counts_evaluations_from_the_best_on(self) -> None:
        profile = self.stopping()
        self.assertEqual(expectations.stops_at(profile, evaluations(1.0, 0.5, 0.5, 0.5, 0.1)), 16)
        self.assertEqual(expectations.stops_at(profile, evaluations(1.0, 1.0, 0.5, 0.5)), None)
        self.assertEqual(expectations.stops_at(profile, evaluations(float("nan"), float("nan"))), 8)

    def test_what_is_off_never_stops(self) -> None:
        self.assertEqual(expectations.stops_at(self.stopping(enabled=False), evaluations(*[1.0] * 9)), None)

    def test_more_is_better_where_the_profile_says_so(self) -> None:
        profile = self.profile(
            model={"task": "classification", "outputs": None, "num_classes": 4},
            training={"loss": {"name": "cross_entropy"}, "early_stopping": {"monitor": "accuracy", "mode": "max"}},
            validation={"metrics": ["accuracy"]},
        )
        rows = [{"step": 4, "accuracy": 0.5}, {"step": 8, "accuracy": 0.4}, {"step": 12, "accuracy": 0.6}]
        self.assertEqual(expectations.improving(profile, rows), [4, 12])

    def test_a_profile_that_trains_can_be_adapted(self) -> None:
        self.data(240)
        profile = self.profile(
            training={"optimizer": {"lr": 1e-3}, "scheduler": {"eta_min": 5e-4}}, validation={"metrics": ["loss"]}
        )
        for purpose, rate in RATES.items():
            source = None if purpose == "scratch" else self.output
            adapted = purposes_profile(profile, purpose, self.output / "data/train", source)
            self.assertEqual(adapted.training.scheduler.eta_min, min(rate, 5e-4))
            self.assertIn("mae", adapted.validation.metrics)

    def test_a_profile_that_trains_on_ranks_trains_on_one(self) -> None:
        profile = self.profile(
            metadata={"purpose": "transfer"},
            training={
                "begins_with": "/of/another",
                "epochs": 24,
                "max_steps": 24,
                "optimizer": {"lr": 1e-4},
                "scheduler": {"warmup_steps": 0},
            },
            data={"train_samples": 32},
            distributed={"enabled": True, "world_size": 4},
            resources={"num_gpus": 4},
            transfer_learning={"freeze_layers": 2, "unfreeze_epochs": [2, 20]},
        )
        alone = on_one_rank(profile)
        self.assertEqual((alone.resources.num_gpus, alone.transfer_learning), (1, profile.transfer_learning))

    def test_the_newest_are_kept_and_the_best_of_those_saved(self) -> None:
        profile = self.profile(training={"checkpointing": {"every_steps": 4, "keep": 2}})
        rows = evaluations(1.0, 0.5, 0.9, 0.9, 0.9, 0.9)
        saved = expectations.saved_at(profile, 24, rows)
        self.assertEqual(saved, [4, 8, 12, 16, 20, 24])
        self.assertEqual(expectations.kept_of(profile, saved, rows), [8, 20, 24])

    def test_where_only_the_best_is_kept_it_is_saved_when_it_comes(self) -> None:
        profile = self.profile(training={"checkpointing": {"every_steps": 12, "best_only": True}})
        rows = evaluations(1.0, 0.5, 0.9, 0.9, 0.9, 0.9)
        saved = expectations.saved_at(profile, 24, rows)
        self.assertEqual(saved, [4, 8, 12, 24])
        self.assertEqual(expectations.kept_of(profile, saved, rows), [8, 24])

    def test_a_bin_that_is_dropped_is_noticed(self) -> None:
        path = self.output / "histograms.jsonl"
        tensors = {
            "whole": {"min": 0.0, "max": 1.0, "counts": [3, 2], "weights": 5},
            "equal": {"min": 1.0, "max": 1.0, "counts": None, "weights": 4},
        }
        path.write_text(json.dumps({"step": 8, "weights": tensors}) + "\n", encoding="utf-8")
        self.assertEqual(expectations.histograms(path), {"step 8": {"weights": 9, "uncounted": 0}})
        tensors["whole"]["counts"] = [3, 1]
        tensors["nan"] = {"min": float("nan"), "max": float("nan"), "counts": None, "weights": 2}
        path.write_text(json.dumps({"step": 8, "weights": tensors}) + "\n", encoding="utf-8")
        self.assertEqual(expectations.histograms(path), {"step 8": {"weights": 11, "uncounted": 3}})


class Left(Case):
    """Real trainings leave what is worked out."""

    def assert_as_due(self, **training: Any) -> dict[str, Any]:
        """Train, and compare what is left; return it."""
        profile = self.profile(training=training)
        trainer, done = self.run_once(profile)
        folder = self.output / "out/checkpoints"
        kept = {path.name: verified(path) for path in checkpoints.listed(folder)}
        found = left(profile, done, trainer._saver.saved, kept)
        self.assertEqual(found["checkpoints"]["kept_otherwise"], [])
        self.assertEqual(found["checkpoints"]["saved_otherwise"], [])
        self.assertEqual(found["evaluated_otherwise"], [])
        self.assertTrue(found["early_stopping"]["as_due"], found["early_stopping"])
        self.assertEqual(trainer.step, done.last)
        self.assertEqual(
            expectations.histograms(self.output / "out/histograms.jsonl").keys(),
            {f"step {step}" for step in range(8, done.last + 1, 8)},
        )
        return found

    def test_of_a_training_to_its_end(self) -> None:
        self.assert_as_due(checkpointing={"every_steps": 4, "keep": 2})

    def test_of_one_that_keeps_the_best_alone(self) -> None:
        self.assert_as_due(checkpointing={"every_steps": 12, "best_only": True})

    def test_of_one_that_nothing_more_is_learnt_in(self) -> None:
        early = {"enabled": True, "patience": 2, "min_delta": 100.0}
        found = self.assert_as_due(early_stopping=early)
        self.assertEqual(found["early_stopping"]["stopped_at"], 12)


if __name__ == "__main__":
    unittest.main()
