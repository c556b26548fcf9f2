# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# ruff: noqa: PT009 - unittest, for pytest is not in the runtime
"""The pretraining's short form: it survives that a rank is killed in the middle of a save, bit for bit."""

from __future__ import annotations

import json
import unittest

from two_ranks_pretraining import Case


class Survives(Case):
    """What is left of a training that was killed goes on as if nothing had happened."""

    def test_a_killed_training_goes_on_bit_for_bit(self) -> None:
        code, said = self.run_legs("shape:1", "measured", "killed::killed", "resumed", "export:1")
        self.assertEqual(code, 0, said)
        metrics, legs = self.written("metrics.json"), self.written("legs.json")
        self.assertTrue(metrics["repeats_exactly"])
        self.assertEqual({each["outcome"] for each in legs["outcomes"].values()}, {"as expected"})
        self.assertRegex(legs["killed"]["first_failure"], r"^rank 1 .*killed by SIGKILL, last in saving, step 8$")
        resumed = metrics["resumed"]
        self.assertEqual(
            (resumed["from"], resumed["from_step"], resumed["from_expected"]), ("checkpoint_step_4", 4, True)
        )
        self.assertEqual(metrics["resumed"]["left"], [".incomplete-checkpoint_step_8"] * 0)
        self.assertEqual(metrics["resumed"]["apart"], {"steps": 8, "first": 5, "last": 12, "loss": 0.0, "samples": 0})
        self.assertEqual(metrics["resumed"]["samples_skipped"], 0)
        self.assertEqual({each["parameters_share"] for each in metrics["ranks"].values()}, {0.5})
        self.assertTrue(all(each["same_parameters"] for each in metrics["ranks"].values()))
        self.assertEqual([each["verified"] for each in metrics["checkpoints"].values()], [True] * 3)
        self.assertLessEqual(metrics["export"]["loss_apart"], 1e-5)
        self.assertEqual(metrics["export"]["valid_tokens"], 64)
        rows = [json.loads(line) for line in (self.output / "training_metrics.jsonl").read_text().splitlines()]
        self.assertEqual([row["step"] for row in rows], list(range(1, 13)))
        # Held-out loss with each checkpoint; that of the last step is in metrics.json.
        losses = {row["step"]: row["validation_loss"] for row in rows if "validation_loss" in row}
        self.assertEqual(list(losses), [4, 8])
        self.assertTrue(losses[4] > losses[8] > metrics["validation_loss"] > 0)
        self.assertEqual(metrics["alerts"], "none")
        log = (self.output / "training.log").read_text()
        self.assertIn("saved a checkpoint of step 12\n", log)


if __name__ == "__main__":
    unittest.main()
