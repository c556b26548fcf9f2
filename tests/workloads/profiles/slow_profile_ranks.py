# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# ruff: noqa: PT009 - unittest, for pytest is not in the runtime
"""Several real ranks: sums over four round otherwise than over two, whose order does not matter.

PYTHONPATH=files PYTHON -m unittest discover -s tests/workloads/profiles -p 'slow_*.py'
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import unittest
from pathlib import Path
from typing import Any

from kit.profiles.check import merged
from small_profile import FILES, HOME, SMALL, Case
from train import alone


class Ranks(Case):
    """Trainings by train.py, as a launcher starts it."""

    def trained(self, output: str, ranks: int, **changes: Any) -> dict[str, Any]:
        """Train on so many ranks; return the metrics."""
        folder = self.output / output
        folders = {name: str(self.output / "data" / name) for name in ("train", "validation", "test")}
        own = {
            "data": folders,
            "training": {"batch_size": 2, "checkpointing": {"directory": str(self.output / output / "checkpoints")}},
            "distributed": {"enabled": ranks > 1, "world_size": ranks},
            "resources": {"num_gpus": ranks},
            "model": {"dropout": 0.2},
            "logging": {"directory": str(folder), "tensorboard": {"enabled": False}},
        }
        settings = self.output / f"{output}.json"
        settings.write_text(json.dumps(merged(merged(SMALL, own), changes)))
        common = {**os.environ, **alone({"HPC_VALIDATION_ACCELERATOR": "cpu"}), "SETTINGS_FILE": str(settings)}
        common |= {"PYTHONPATH": str(FILES), "WORLD_SIZE": str(ranks), "OMP_NUM_THREADS": "1"}
        command = [sys.executable, str(HOME / "train.py"), "--config", str(HOME / "local.yaml")]
        running = [
            subprocess.Popen(command, env={**common, "RANK": str(rank), "LOCAL_RANK": str(rank)})
            for rank in range(ranks)
        ]
        self.assertEqual([each.wait(300) for each in running], [0] * ranks)
        return dict(json.loads((folder / "metrics.json").read_text()))

    def test_a_training_on_four_ranks_that_is_cut_off_comes_out_bit_by_bit_as_one_that_is_not(self) -> None:
        straight = self.trained("straight", 4)
        self.trained("cut", 4, debug={"limit_batches": 12})
        resumed = self.trained("cut", 4)
        self.assertEqual(resumed["first"], 13)
        self.assertEqual(straight["weights_sha256"], resumed["weights_sha256"])
        self.assertEqual(straight["evaluations"], resumed["evaluations"])
        self.assertEqual(straight["train_loss"], resumed["train_loss"])

    def test_samples_that_do_not_divide_among_ranks_are_all_evaluated(self) -> None:
        self.data(61)
        one = self.trained("one", 1, data={"train_samples": 61})
        three = self.trained("three", 3, data={"train_samples": 61})
        self.assertEqual((one["samples_per_step"], three["samples_per_step"]), (2, 6))
        self.assertTrue(all(each["same_weights"] for each in three["ranks"].values()))
        self.assertTrue(Path(self.output / "three/checkpoints").is_dir())


if __name__ == "__main__":
    unittest.main()
