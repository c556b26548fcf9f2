# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# ruff: noqa: PT009, PT027 - unittest, for pytest is not in the runtime
"""The MNIST workload, with real PyTorch on the CPU; unittest, so that it runs in the cluster's own environment.

PYTHONPATH=files:files/workloads/mnist_single_gpu:files/datasets/mnist \
    PYTHON -m unittest discover -s tests/workloads/pytorch -p 'check_*.py'
"""

from __future__ import annotations

import contextlib
import io
import json
import math
import os
import random
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

import idx
import mnist_single_gpu as workload
import stage
import torch
from kit.errors import KitError


def digits(count: int, seed: int) -> tuple[bytes, bytes]:
    """Return images that a small network learns at once: digit N is a bar in row 2N, with noise; and their labels."""
    noise = random.Random(seed)
    labels = bytes(position % 10 for position in range(count))
    pixels = bytearray(noise.randrange(60) for _each in range(count * 784))
    for position, label in enumerate(labels):
        start = position * 784 + label * 56
        pixels[start : start + 56] = b"\xff" * 56
    return bytes(pixels), labels


class Case(unittest.TestCase):
    """A staged dataset and an output folder."""

    def setUp(self) -> None:
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.data, self.output = Path(scratch.name, "da ta'; x"), Path(scratch.name, "out put")
        contents = {}
        for split, count in (("train", 320), ("test", 100)):
            pixels, labels = digits(count, seed=count)
            contents[idx.images_name(split)], contents[idx.labels_name(split)] = (
                idx.encode_images(pixels),
                idx.encode_labels(labels),
            )
        stage.put(self.data, {"name": "mnist", "source": "path", "recipe": None}, contents)

    def settings(self, **changes: object) -> workload.Settings:
        """Return settings for a short run on the CPU."""
        values: dict[str, object] = {
            "data_dir": self.data,
            "output_dir": self.output,
            "accelerator": "cpu",
            "epochs": 2,
            "batch_size": 32,
            "learning_rate": 1e-3,
            "seed": 1,
        }
        return workload.Settings(**{**values, **changes})  # type: ignore[arg-type]

    def run_quietly(self, **changes: object) -> dict[str, object]:
        """Run the workload in this process."""
        with contextlib.redirect_stdout(io.StringIO()):
            return workload.run(self.settings(**changes))

    def written(self) -> dict[str, object]:
        """Return metrics.json; a bare NaN in it is an error."""

        def refuse(word: str) -> None:
            raise AssertionError(f"{word} is not JSON")

        return json.loads((self.output / "metrics.json").read_text(), parse_constant=refuse)


class Model(unittest.TestCase):
    def test_it_is_the_documents_network(self) -> None:
        model = workload.SimpleCNN()
        shapes = {name: tuple(value.shape) for name, value in model.named_parameters() if name.endswith("weight")}
        expected = {"conv1": (32, 1, 3, 3), "conv2": (64, 32, 3, 3), "fc1": (128, 9216), "fc2": (10, 128)}
        self.assertEqual(shapes, {f"{name}.weight": shape for name, shape in expected.items()})
        self.assertEqual(sum(value.numel() for value in model.parameters()), 1_199_882)
        self.assertEqual(model(torch.zeros(3, 1, 28, 28)).shape, (3, 10))


class Training(Case):
    def test_it_learns_and_writes_everything(self) -> None:
        self.run_quietly(epochs=3)
        metrics = self.written()
        self.assertEqual(metrics["epochs"], [1, 2, 3])
        for name in ("loss", "accuracy", "test_accuracy_per_epoch"):
            self.assertEqual(len(metrics[name]), 3)
        self.assertEqual(metrics["test_accuracy"], metrics["test_accuracy_per_epoch"][-1])
        self.assertGreater(metrics["test_accuracy"], 0.95)
        self.assertLess(metrics["loss"][-1], metrics["loss"][0])
        self.assertEqual((metrics["device"], metrics["device_count"], metrics["seed"]), ("cpu", 0, 1))
        self.assertEqual(metrics["data"]["train"], 320)
        self.assertTrue(metrics["completed"])
        self.assertLessEqual(metrics["training_time_seconds"], metrics["wall_time_seconds"])
        rate = 3 * 320 / metrics["training_time_seconds"]
        self.assertAlmostEqual(metrics["samples_per_second"], rate, delta=rate * 0.001)
        rows = [json.loads(line) for line in (self.output / "progress.jsonl").read_text().splitlines()]
        self.assertEqual([row["epoch"] for row in rows if "test_accuracy" in row], [1, 2, 3])
        self.assertEqual(rows[-1]["step"], rows[-1]["steps"])
        self.assertEqual({row["job_id"] for row in rows}, {metrics["job_id"]})

    def test_the_saved_model_is_the_one_that_was_judged(self) -> None:
        metrics = self.run_quietly()
        model = workload.SimpleCNN()
        model.load_state_dict(torch.load(self.output / workload.MODEL_FILE, weights_only=True))
        test = workload.load(self.data, train=False, device=torch.device("cpu"))
        self.assertEqual(workload.accuracy(model, test), metrics["test_accuracy"])

    def test_the_test_set_is_not_the_training_set(self) -> None:
        device = torch.device("cpu")
        self.assertEqual(
            (len(workload.load(self.data, True, device)), len(workload.load(self.data, False, device))), (320, 100)
        )

    def test_pixels_are_normalised(self) -> None:
        images = workload.load(self.data, True, torch.device("cpu")).images
        self.assertAlmostEqual(images.max().item(), (1 - 0.1307) / 0.3081, places=5)

    def test_a_seed_repeats_and_another_differs(self) -> None:
        first, again, other = (self.run_quietly(seed=seed)["loss"] for seed in (1, 1, 2))
        self.assertEqual(first, again)
        self.assertNotEqual(first, other)

    def test_shuffled_labels_are_not_learned(self) -> None:
        contents = idx.read(self.data / "MNIST" / "raw")
        labels = bytearray(contents[idx.labels_name("train")][8:])
        random.Random(0).shuffle(labels)
        contents[idx.labels_name("train")] = idx.encode_labels(bytes(labels))
        stage.put(self.data, {"name": "mnist", "source": "path", "recipe": None}, contents)
        self.assertLess(self.run_quietly()["test_accuracy"], 0.5)

    def test_a_batch_larger_than_the_data_is_one_step(self) -> None:
        self.assertEqual(self.run_quietly(batch_size=1000, epochs=1)["epochs"], [1])


class Refusals(Case):
    def refuse(self, told: str, **changes: object) -> None:
        """The run stops with such a message and leaves nothing that could pass."""
        self.output.mkdir(exist_ok=True)
        (self.output / "metrics.json").write_text('{"test_accuracy": 0.99}')  # of an earlier run by hand
        with self.assertRaisesRegex((workload.WorkloadError, KitError), told):
            self.run_quietly(**changes)
        self.assertFalse((self.output / workload.MODEL_FILE).exists())

    def test_cuda_expected_and_missing(self) -> None:
        with mock.patch.object(torch.cuda, "is_available", return_value=False):
            self.refuse("expected a CUDA GPU, but PyTorch sees none", accelerator="cuda")
        self.assertFalse((self.output / "metrics.json").exists())

    def test_more_gpus_visible_than_allocated(self) -> None:
        with (
            mock.patch.object(torch.cuda, "is_available", return_value=True),
            mock.patch.object(torch.cuda, "device_count", return_value=8),
            mock.patch.dict(os.environ, {"SLURM_GPUS_ON_NODE": "1"}),
        ):
            self.refuse(r"allocated 1 GPU\(s\).*PyTorch sees 8.*ConstrainDevices", accelerator="cuda")
        self.assertFalse((self.output / "metrics.json").exists())

    def test_a_loss_that_is_not_finite(self) -> None:
        broken = torch.tensor(math.nan, requires_grad=True)
        with mock.patch.object(workload.functional, "cross_entropy", lambda output, _: output.sum() * broken):
            self.refuse("the loss became nan in epoch 1")
        metrics = self.written()
        self.assertFalse(metrics["completed"])
        self.assertIsNone(metrics["test_accuracy"])

    def test_a_learning_rate_that_explodes(self) -> None:
        self.refuse(r"the loss became (nan|inf).*learning rate \(1e\+30\)", learning_rate=1e30)
        self.assertFalse(self.written()["completed"])

    def test_no_dataset(self) -> None:
        self.refuse("stage it again", data_dir=self.data / "none")

    def test_a_damaged_dataset(self) -> None:
        path = self.data / "MNIST" / "raw" / idx.images_name("train")
        path.write_bytes(path.read_bytes()[:-1])
        self.refuse("is damaged.*stage it again")

    def test_damaged_provenance(self) -> None:
        for text in ("", "{}", "[]", '{"files": []}', '{"files": {"x": 1}}'):
            with self.subTest(text):
                (self.data / "provenance.json").write_text(text)
                self.refuse("stage it again")

    def test_a_dataset_that_torchvision_cannot_read(self) -> None:
        with mock.patch.object(
            workload, "read_provenance", return_value={"description": "", "source": "", "train": 1, "test": 1}
        ):
            (self.data / "MNIST" / "raw" / idx.labels_name("test")).unlink()
            self.refuse("torchvision cannot read it")


class CommandLine(Case):
    def start(self, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """Run the script as the job script does."""
        variables = {"DATA_DIR": str(self.data), "OUTPUT_DIR": str(self.output), **environment}
        keep = {name: os.environ[name] for name in ("PATH", "PYTHONPATH") if name in os.environ}
        command = [sys.executable, str(workload.__file__), *arguments]
        return subprocess.run(command, env={**keep, **variables}, capture_output=True, text=True, check=False)

    def test_the_job_scripts_environment_is_enough(self) -> None:
        done = self.start("--epochs", "1", HPC_VALIDATION_ACCELERATOR="cpu", SLURM_JOB_ID="12", HPC_VALIDATION_SEED="7")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        metrics = self.written()
        self.assertEqual((metrics["job_id"], metrics["attempt"], metrics["seed"]), ("12", 0, 7))

    def test_without_a_gpu_it_stops_with_one_line(self) -> None:
        done = self.start(SLURM_JOB_ID="12", CUDA_VISIBLE_DEVICES="")
        self.assertEqual(done.returncode, 1)
        self.assertTrue(done.stderr.startswith("mnist_single_gpu: expected a CUDA GPU"), done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1)
        self.assertFalse((self.output / "metrics.json").exists())

    def test_wrong_usage_is_refused(self) -> None:
        for arguments in (["--epochs", "0"], ["--batch-size", "-1"], ["--accelerator", "tpu"]):
            with self.subTest(arguments):
                self.assertEqual(self.start(*arguments).returncode, 2)


if __name__ == "__main__":
    unittest.main()
