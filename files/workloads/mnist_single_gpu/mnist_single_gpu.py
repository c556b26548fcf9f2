# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# ruff: noqa: E402 - the clock and OpenMP's setting come before PyTorch's import
"""MLOPS-1.1: train a small convolutional network on MNIST with one GPU, and report the results.

The job script sets the environment; by hand: `python mnist_single_gpu.py --data-dir … --output-dir … --accelerator cpu`
(the kit must be on PYTHONPATH). Writes mnist_cnn_single_gpu.pt, metrics.json and progress.jsonl to the output folder.
Exit code 0 only after a complete training; whatever stops it is reported in one line on stderr.
"""

from __future__ import annotations

import os
import time

STARTED = time.monotonic()

import argparse
import math
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from kit import strict_json
from kit.errors import KitError
from kit.files import METRICS_FILE, sha256, write_atomic
from kit.metrics import Progress, write_metrics
from kit.training import device as training_device
from kit.training.images import Split, split
from torch import nn
from torch.nn import functional
from torchvision.datasets import MNIST

MODEL_FILE = "mnist_cnn_single_gpu.pt"
PROGRESS_FILE = "progress.jsonl"
MEAN, DEVIATION = 0.1307, 0.3081  # of MNIST's training pixels
EVALUATION_BATCH = 1000
CPU_ROWS_PER_EPOCH = 4  # a GPU's epochs are too short to report from within, and reporting would wait for the device


class WorkloadError(Exception):
    """Why the training cannot start or continue: what, where, and what to do."""


class SimpleCNN(nn.Module):
    """Two convolutions, one pooling, two linear layers: 1,199,882 parameters."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(1, 32, 3)
        self.conv2 = nn.Conv2d(32, 64, 3)
        self.fc1 = nn.Linear(9216, 128)
        self.fc2 = nn.Linear(128, 10)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Return the ten logits of each image."""
        hidden = functional.relu(self.conv1(images))
        # Pooling before the ReLU gives the same values at a quarter of the ReLU's cost.
        hidden = functional.relu(functional.max_pool2d(self.conv2(hidden), 2))
        hidden = functional.relu(self.fc1(torch.flatten(hidden, 1)))
        return self.fc2(hidden)


@dataclass(frozen=True)
class Settings:
    """Settings of one run."""

    data_dir: Path
    output_dir: Path
    accelerator: str
    epochs: int
    batch_size: int
    learning_rate: float
    seed: int


def read_provenance(data_dir: Path) -> dict[str, Any]:
    """Return the staged dataset's provenance after checking its files against it; raise WorkloadError on a mismatch."""
    remedy = "stage it again (files/datasets/mnist/stage.py; the playbooks do this by default)"
    try:
        provenance = strict_json.read(data_dir / "provenance.json")
        for name, file in provenance["files"].items():
            path = data_dir / "MNIST" / "raw" / name
            if sha256(path) != file["sha256"]:
                raise WorkloadError(f"dataset file {path} is damaged: it differs from provenance.json; {remedy}")
        return {key: provenance[key] for key in ("source", "description", "train", "test")}
    except OSError as error:
        raise WorkloadError(f"dataset {data_dir}: cannot read {error.filename}: {error.strerror}; {remedy}") from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise WorkloadError(f"dataset {data_dir}: provenance.json is damaged ({error!r}); {remedy}") from error


def load(data_dir: Path, train: bool, device: torch.device) -> Split:
    """Load one whole split onto the device, so an epoch waits for nothing on the host."""
    try:
        dataset = MNIST(str(data_dir), train=train, download=False)
    except (RuntimeError, OSError, ValueError) as error:
        raise WorkloadError(f"dataset {data_dir}: torchvision cannot read it: {error}") from error
    return split(dataset.data.unsqueeze(1), dataset.targets, MEAN, DEVIATION, device)


@torch.inference_mode()
def accuracy(model: SimpleCNN, split: Split) -> float:
    """Return the share of the split that the model classifies correctly."""
    model.eval()
    correct = torch.zeros((), dtype=torch.int64, device=split.labels.device)
    for start in range(0, len(split), EVALUATION_BATCH):
        stop = start + EVALUATION_BATCH
        correct += (model(split.images[start:stop]).argmax(1) == split.labels[start:stop]).sum()
    return correct.item() / len(split)


class Training:
    """One training run: the model, its optimizer, and each epoch's results."""

    def __init__(self, settings: Settings, device: torch.device, train: Split, test: Split) -> None:
        torch.manual_seed(settings.seed)
        self.settings, self.device, self.train, self.test = settings, device, train, test
        self.shuffle = torch.Generator(device=device).manual_seed(settings.seed)
        self.model = SimpleCNN().to(device, memory_format=torch.channels_last)
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=settings.learning_rate, fused=True)
        self.losses: list[float] = []
        self.train_accuracies: list[float] = []
        self.test_accuracies: list[float] = []

    @property
    def steps_per_epoch(self) -> int:
        """Batches in an epoch, the last one possibly smaller."""
        return math.ceil(len(self.train) / self.settings.batch_size)

    def run(self, progress: Progress) -> None:
        """Train for all epochs; raise WorkloadError at the first loss that is not finite."""
        for epoch in range(1, self.settings.epochs + 1):
            self._run_epoch(epoch, progress)
            self.test_accuracies.append(accuracy(self.model, self.test))
            self._report(
                progress,
                epoch,
                epoch * self.steps_per_epoch,
                loss=self.losses[-1],
                accuracy=self.train_accuracies[-1],
                test_accuracy=self.test_accuracies[-1],
            )
            print(
                f"epoch {epoch}/{self.settings.epochs}: loss {self.losses[-1]:.4f}, "
                f"training accuracy {self.train_accuracies[-1]:.4f}, test accuracy {self.test_accuracies[-1]:.4f}",
                flush=True,
            )

    def _run_epoch(self, epoch: int, progress: Progress) -> None:
        self.model.train()
        order = torch.randperm(len(self.train), generator=self.shuffle, device=self.device)
        loss_sum = torch.zeros((), device=self.device)
        correct = torch.zeros((), dtype=torch.int64, device=self.device)
        report_every = max(1, self.steps_per_epoch // CPU_ROWS_PER_EPOCH) if self.device.type == "cpu" else 0
        for step, chosen in enumerate(order.split(self.settings.batch_size), start=1):
            labels = self.train.labels[chosen]
            output = self.model(self.train.images[chosen])
            loss = functional.cross_entropy(output, labels)
            self.optimizer.zero_grad(set_to_none=True)
            loss.backward()
            self.optimizer.step()
            loss_sum += loss.detach() * len(chosen)
            correct += (output.detach().argmax(1) == labels).sum()
            if report_every and step % report_every == 0 and step < self.steps_per_epoch:
                self._check(loss.item(), epoch)
                self._report(progress, epoch, (epoch - 1) * self.steps_per_epoch + step, loss=loss.item())
        self.train_accuracies.append(correct.item() / len(self.train))
        self.losses.append(loss_sum.item() / len(self.train))  # the epoch's only wait for the device
        self._check(self.losses[-1], epoch)

    def _report(self, progress: Progress, epoch: int, step: int, **reached: float) -> None:
        steps = self.settings.epochs * self.steps_per_epoch
        progress.row(epoch=epoch, epochs=self.settings.epochs, step=step, steps=steps, **reached)

    def _check(self, loss: float, epoch: int) -> None:
        if not math.isfinite(loss):
            raise WorkloadError(
                f"the loss became {loss} in epoch {epoch}: the training is broken. Check the learning rate "
                f"({self.settings.learning_rate}) and the GPU's health (ECC errors, Xid messages in the kernel log)"
            )


def collect_metrics(training: Training, seconds: float, data: dict[str, Any], completed: bool) -> dict[str, Any]:
    """Return the metrics document; ``seconds`` is the time from the first batch to the last evaluation."""
    done = len(training.losses)
    settings = training.settings
    return {
        "completed": completed,
        "epochs": list(range(1, done + 1)),
        "loss": training.losses,
        "accuracy": training.train_accuracies,
        "test_accuracy": training.test_accuracies[-1] if completed else None,
        "test_accuracy_per_epoch": training.test_accuracies,
        "training_time_seconds": seconds,
        "wall_time_seconds": time.monotonic() - STARTED,
        "samples_per_second": len(training.test_accuracies) * len(training.train) / seconds,
        "batch_size": settings.batch_size,
        "learning_rate": settings.learning_rate,
        "seed": settings.seed,
        "data": data,
        **training_device.describe(training.device, settings.accelerator),
    }


def run(settings: Settings) -> dict[str, Any]:
    """Run the whole workload; return the metrics that were written."""
    settings.output_dir.mkdir(parents=True, exist_ok=True)
    for name in (
        METRICS_FILE,
        MODEL_FILE,
    ):  # by hand a folder may be used twice; an old result must not pass for a new one
        (settings.output_dir / name).unlink(missing_ok=True)
    device = training_device.choose(settings.accelerator)
    if device.type == "cuda":
        torch.set_float32_matmul_precision("high")  # TF32, as cuDNN's convolutions use by default
        torch.backends.cudnn.deterministic = True
    data = read_provenance(settings.data_dir)
    train, test = (load(settings.data_dir, train, device) for train in (True, False))
    print(f"training on {device} with {len(train)} images, testing on {len(test)}: {data['description']}", flush=True)
    with training_device.occupied(settings.accelerator), Progress(settings.output_dir / PROGRESS_FILE) as progress:
        started = time.monotonic()  # includes the device's and cuDNN's own warm-up
        training = Training(settings, device, train, test)
        try:
            training.run(progress)
        except WorkloadError:
            metrics = collect_metrics(training, time.monotonic() - started, data, completed=False)
            write_metrics(settings.output_dir / METRICS_FILE, metrics)
            raise
        seconds = time.monotonic() - started
        state = {name: value.cpu().contiguous() for name, value in training.model.state_dict().items()}
        write_atomic(settings.output_dir / MODEL_FILE, lambda stream: torch.save(state, stream))
        metrics = collect_metrics(training, seconds, data, completed=True)
    write_metrics(settings.output_dir / METRICS_FILE, metrics)
    return metrics


def parse(arguments: list[str] | None = None) -> Settings:
    """Read the command line, whose defaults are the job script's environment."""
    environment = os.environ.get
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-dir", type=Path, default=environment("DATA_DIR"))
    parser.add_argument("--output-dir", type=Path, default=environment("OUTPUT_DIR"))
    parser.add_argument(
        "--accelerator",
        choices=("cuda", "simulated", "cpu"),
        default=environment("HPC_VALIDATION_ACCELERATOR") or "cuda",
    )
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--batch-size", type=int, default=128)
    parser.add_argument("--learning-rate", type=float, default=1e-3)
    parser.add_argument("--seed", type=int, default=int(environment("HPC_VALIDATION_SEED") or 42))
    settings = parser.parse_args(arguments)
    for name in ("data_dir", "output_dir"):
        if not getattr(settings, name):
            parser.error(f"--{name.replace('_', '-')} is required (or {name.upper()} in the environment)")
    if settings.epochs < 1 or settings.batch_size < 1:
        parser.error("--epochs and --batch-size must be at least 1")
    return Settings(**vars(settings))


def main() -> int:
    """Run the workload; return 0 after a complete training, else 1 with a line on stderr."""
    try:
        metrics = run(parse())
    except (WorkloadError, KitError, OSError) as error:
        print(f"mnist_single_gpu: {error}", file=sys.stderr)
        return 1
    print(
        f"test accuracy {metrics['test_accuracy']:.4f} after {metrics['training_time_seconds']:.1f} s, "
        f"{metrics['samples_per_second']:.0f} images/s"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
