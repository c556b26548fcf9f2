# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# ruff: noqa: PT009 - unittest, for pytest is not in the runtime
"""The CIFAR-10 workload on two real gloo ranks, started as a job starts them.

PYTHONPATH=files PYTHON -m unittest discover -s tests/workloads/pytorch -p 'check_cifar*.py'
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path
from typing import Any

import kit

FILES = Path(kit.__file__).resolve().parents[1]
TRAIN = [f"data_batch_{number}.bin" for number in range(1, 6)]
RECORD = 3073


def records(count: int, seed: int) -> bytes:
    """Return records of noise in which class N has a bright bar."""
    noise = random.Random(seed)
    made = bytearray()
    for position in range(count):
        label = position % 10
        pixels = bytearray(noise.randrange(60) for _each in range(RECORD - 1))
        pixels[label * 96 : label * 96 + 96] = b"\xff" * 96
        made += bytes([label]) + pixels
    return bytes(made)


class Case(unittest.TestCase):
    """A staged dataset, an output folder and the job script's environment."""

    def setUp(self) -> None:
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.data, self.output = Path(scratch.name, "da ta"), Path(scratch.name, "out put")
        self.data.mkdir()
        self.output.mkdir()
        files = {}
        for name, count in [*((name, 8) for name in TRAIN), ("test_batch.bin", 21)]:
            content = records(count, len(files))
            (self.data / name).write_bytes(content)
            files[name] = {"size": len(content), "sha256": hashlib.sha256(content).hexdigest()}
        document = {"name": "cifar10", "source": "path", "description": "bars", "train": 40, "test": 21, "files": files}
        (self.data / "provenance.json").write_text(json.dumps(document))

    def start(self, *arguments: str, baseline: bool = False, **environment: str) -> subprocess.Popen[str]:
        """Start the legs as the job script does."""
        said = {
            "PYTHONPATH": str(FILES),
            "DATA_DIR": str(self.data),
            "OUTPUT_DIR": str(self.output),
            "HPC_VALIDATION_ACCELERATOR": "cpu",
            "SLURM_JOB_ID": "12",
            **environment,
        }
        legs = ["legs", "--ranks", "2", *(["--baseline", "1", "--work", "weak"] if baseline else [])]
        script = ["cifar10_multi_gpu.py", "--epochs", "1", "--batch-size", "4", "--steady-seconds", "1", *arguments]
        return subprocess.Popen(
            [sys.executable, "-m", "kit", *legs, sys.executable, "-m", "kit", "launch", *script],
            cwd=FILES / "workloads/cifar10_multi_gpu",
            env={**os.environ, **said},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run_whole(self, *arguments: str, **options: Any) -> tuple[int, str]:
        """Run the legs to their end; return exit code and stderr."""
        started = self.start(*arguments, **options)
        _told, said = started.communicate(timeout=300)
        return started.returncode, said

    def written(self, name: str) -> dict[str, Any]:
        """Return a JSON document of the output folder; a bare NaN in it is an error."""
        text = (self.output / name).read_text()
        return dict(json.loads(text, parse_constant=lambda word: self.fail(f"{name} holds {word}")))


class TwoRanks(Case):
    """What two ranks that are well leave."""

    def test_two_ranks_train_one_model_and_are_measured_between_two_runs_of_one(self) -> None:
        code, said = self.run_whole(baseline=True)
        self.assertEqual(code, 0, said)
        metrics, legs = self.written("metrics.json"), self.written("legs.json")
        self.assertEqual(metrics["world_size"], 2)
        self.assertEqual(len(metrics["loss"]), 1)
        self.assertTrue(all(map(math.isfinite, [*metrics["loss"], metrics["samples_per_second"]])))
        self.assertTrue(0 <= metrics["test_accuracy"] <= 1)
        self.assertAlmostEqual(metrics["test_accuracy"] * 21, round(metrics["test_accuracy"] * 21), places=9)
        self.assertEqual([figures["same_parameters"] for figures in metrics["ranks"].values()], [True, True])
        self.assertEqual([figures["gradients_finite"] for figures in metrics["ranks"].values()], [True, True])
        self.assertEqual(max(figures["pace"] for figures in metrics["ranks"].values()), 1)
        self.assertEqual([found["wrong_sums"] for found in metrics["all_reduce"]["ranks"].values()], [0, 0])
        self.assertEqual(metrics["all_reduce"]["gradient_bytes"], 44_695_848)
        self.assertIsNone(metrics["all_reduce"]["nccl_tests"])  # they need CUDA
        self.assertTrue(0 <= metrics["all_reduce"]["exposed_share"] < 1)
        self.assertGreaterEqual(metrics["steady"]["seconds"], 1)
        self.assertGreater((self.output / "resnet18_multi_gpu.pt").stat().st_size, 44_000_000)
        self.assertEqual(
            {name: legs[name]["exit_code"] for name in ("before", "measured", "after")},
            dict.fromkeys(("before", "measured", "after"), 0),
        )
        for name in ("before", "after"):
            alone = self.written(f"baseline-{name}/metrics.json")
            self.assertEqual((alone["world_size"], alone["loss"], alone["all_reduce"]), (1, [], None))
            self.assertGreater(alone["samples_per_second"], 0)
            self.assertEqual(alone["batch_per_rank"], metrics["batch_per_rank"])
            self.assertEqual(alone["cpu_threads"], metrics["cpu_threads"])


class Faults(Case):
    """What goes wrong with one of the ranks is told of that rank."""

    def test_a_killed_rank_is_named_and_the_other_does_not_hang(self) -> None:
        started = self.start("--epochs", "500")
        state = self.output / "ranks/rank-1.json"
        until = time.monotonic() + 120
        while not (state.exists() and (json.loads(state.read_text())["step"] or 0) >= 2):
            self.assertLess(time.monotonic(), until, "rank 1 never came to its second step")
            self.assertIsNone(started.poll())
            time.sleep(0.1)
        os.kill(self.rank_1(), signal.SIGKILL)
        started.communicate(timeout=60)
        self.assertNotEqual(started.returncode, 0)
        failure = self.written("legs.json")["measured"]["first_failure"]
        self.assertRegex(failure, r"^rank 1 .*killed by SIGKILL, last in training, step \d+$")
        self.assertFalse((self.output / "metrics.json").exists())

    def rank_1(self) -> int:
        """Return the process that is rank 1 of our legs."""
        ours = {b"RANK=1", f"OUTPUT_DIR={self.output}".encode()}
        for path in Path("/proc").glob("[0-9]*/environ"):
            try:
                if ours <= set(path.read_bytes().split(b"\0")):
                    return int(path.parts[2])
            except OSError:
                continue
        raise AssertionError("there is no rank 1")

    def test_data_that_differ_from_what_was_staged_are_refused(self) -> None:
        path = self.data / "data_batch_3.bin"
        path.write_bytes(path.read_bytes()[:-1] + b"\x07")
        code, said = self.run_whole()
        self.assertNotEqual(code, 0)
        self.assertIn("data_batch_3.bin is damaged", said)
        self.assertIn("data_batch_3.bin is damaged", self.written("legs.json")["measured"]["first_failure"])

    def test_fewer_images_than_a_batch_are_refused(self) -> None:
        code, said = self.run_whole("--batch-size", "128")
        self.assertNotEqual(code, 0)
        self.assertIn("40 images are fewer than a batch of 128 for each of 2", said)


if __name__ == "__main__":
    unittest.main()
