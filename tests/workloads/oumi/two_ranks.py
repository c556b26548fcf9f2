# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# ruff: noqa: PT009 - unittest, for pytest is not in the runtime
"""Two real gloo ranks of MLOPS-2.2, started as a job starts them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from check_smollm_multi_gpu import CONFIG, Staged


class TwoRanks(Staged):
    """Trains the stand-in on two ranks."""

    def train(self, script: str | Path, *arguments: str) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        """Return the metrics, and of them each rank's."""
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        output = Path(scratch.name, "out put")
        said = {
            "MODEL_DIR": str(self.folder / "smollm_135m"),
            "DATA_DIR": str(self.folder / "no_robots"),
            "OUTPUT_DIR": str(output),
            "HF_HOME": scratch.name,
            "HPC_VALIDATION_ACCELERATOR": "cpu",
            "DO_NOT_TRACK": "true",
            "SLURM_JOB_ID": "12",
        }
        legs = [sys.executable, "-m", "kit", "legs", "--ranks", "2", sys.executable, "-m", "kit", "launch", str(script)]
        done = subprocess.run(
            [*legs, *arguments],
            cwd=CONFIG.parent,
            env={**os.environ, **said},
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )
        self.assertEqual(done.returncode, 0, done.stderr[-3000:])
        metrics = json.loads((output / "metrics.json").read_text())
        return metrics, list(metrics["ranks"].values())

    def compare_whole_with(self, strategy: str) -> None:
        """Fail unless the model that is shared out learns what the one learns that is whole on each rank."""
        metrics, ranks = self.train("smollm_multi_gpu.py", "--steady-seconds", "0.1")
        self.assertEqual([figures["parameters_share"] for figures in ranks], [1, 1])
        self.assertEqual([figures["same_parameters"] for figures in ranks], [True, True])
        self.assertEqual(max(figures["pace"] for figures in ranks), 1)
        self.assertGreater(metrics["checkpointing"]["memory_saved_percent"], 0)
        # So long a window needs a second training in the same process.
        seconds = str(1.5 * metrics["training_time_seconds"])
        shared, ranks = self.train("smollm_multi_gpu.py", "--strategy", strategy, "--steady-seconds", seconds)
        for figures in ranks:
            self.assertAlmostEqual(figures["parameters_share"], 0.5, delta=0.01)
            self.assertIsNone(figures["pace"])
        self.assertGreater(len(shared["steady"]["windows"]), 1)
        for one, other in zip(shared["loss"], metrics["loss"]):
            self.assertAlmostEqual(one, other, delta=0.01)
        self.assertAlmostEqual(shared["held_out_loss"], metrics["held_out_loss"], delta=0.01)
