# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Train ResNet-18 on CIFAR-10 with DistributedDataParallel: epochs for accuracy, then a steady window for speed."""

from __future__ import annotations

import math
import statistics
import time
from dataclasses import dataclass
from typing import Any

import torch
from cifar10_data import CLASSES
from kit.errors import KitError
from kit.training.compute_clock import ComputeClock
from kit.training.distributed import Group
from kit.training.images import Split
from torch import distributed, nn
from torch.nn import functional
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DistributedSampler
from torchvision.models import resnet18

EVALUATION_BATCH = 500
WARM_UP = {"cuda": 20, "cpu": 2}  # steps in which kernels are chosen and memory is allocated
EXPOSURE = {"cuda": 20, "cpu": 2}  # passes with and without the all-reduce
ALIKE = 10  # steps between those that all ranks begin together, from which each rank's own computing time is known


@dataclass(frozen=True)
class Settings:
    """Settings of one run."""

    epochs: int
    batch_size: int  # per rank
    learning_rate: float
    seed: int
    steady_seconds: float


@dataclass
class Steady:
    """The steps whose speed counts: after the warm-up, excluding evaluation and saving."""

    windows: list[list[float]]  # begin and end, seconds since the epoch
    seconds: float
    samples: int  # of this rank
    compute: list[float]  # seconds of each step
    steps: list[float]


def model(seed: int, device: torch.device) -> nn.Module:
    """Return torchvision's ResNet-18 with a first convolution for 32 x 32 images; the same on every rank."""
    torch.manual_seed(seed)
    network = resnet18(num_classes=CLASSES)
    network.conv1 = nn.Conv2d(3, 64, kernel_size=3, stride=1, padding=1, bias=False)
    network.maxpool = nn.Identity()
    return network.to(device, memory_format=torch.channels_last)


def gradient_bytes(network: nn.Module) -> int:
    """Return the number of bytes in a step's all-reduce."""
    return sum(parameter.numel() * parameter.element_size() for parameter in network.parameters())


class Training:
    """This rank's part of the training."""

    def __init__(self, group: Group, settings: Settings, train: Split, test: Split) -> None:
        self.group, self.settings, self.train, self.test = group, settings, train, test
        device = group.device
        self.model = DistributedDataParallel(
            model(settings.seed, device),
            device_ids=[device.index] if device.type == "cuda" else None,
            broadcast_buffers=False,
        )
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=settings.learning_rate, momentum=0.9)
        self.sampler = DistributedSampler(
            range(len(train)), num_replicas=group.size, rank=group.rank, seed=settings.seed, drop_last=True
        )
        self.clock = ComputeClock(self.model, device)
        self.steady = Steady([], 0.0, 0, [], [])
        self.losses: list[float] = []
        self.accuracies: list[float] = []
        self.gradients_finite = True
        self._epoch = 0
        self._steps = 0
        self._batches: list[torch.Tensor] = []

    @property
    def steps_per_epoch(self) -> int:
        """Full batches in an epoch."""
        return self.sampler.num_samples // self.settings.batch_size

    def exposed_share(self) -> float | None:
        """Return the share of a forward and backward pass spent waiting for the all-reduce; None for one rank.

        Times passes with and without the all-reduce and drops their gradients. The slowest rank's time counts.
        """
        if self.group.size == 1:
            return None
        taken = {}
        for reduced in (True, False):
            self._time_passes(1, reduced)
            taken[reduced] = self.group.largest(self._time_passes(EXPOSURE[self.group.device.type], reduced))
        self.clock.take()
        return max(0.0, 1 - taken[False] / taken[True])

    def _time_passes(self, count: int, reduced: bool) -> float:
        chosen = torch.arange(min(self.settings.batch_size, len(self.train)), device=self.group.device)
        self._wait()
        began = time.perf_counter()
        for _pass in range(count):
            if reduced:
                self._loss(chosen)[0].backward()
            else:
                with self.model.no_sync():
                    self._loss(chosen)[0].backward()
            self.optimizer.zero_grad(set_to_none=True)
        self._wait()
        return time.perf_counter() - began

    def run_epoch(self) -> tuple[float, float]:
        """Train for an epoch and test; return the mean loss over all ranks and the accuracy over all test images."""
        self._begin_epoch()
        warm_up = max(0, min(WARM_UP[self.group.device.type] - self._steps, self.steps_per_epoch))
        losses = [self._steps_of(warm_up), self._timed(self.steps_per_epoch - warm_up)]
        total = sum(loss for loss, _count in losses)
        loss = self.group.sum(total) / self.group.size / self.steps_per_epoch
        self._require_finite(loss)
        self.losses.append(loss)
        self.accuracies.append(self.accuracy())
        return self.losses[-1], self.accuracies[-1]

    def run_until_steady(self) -> None:
        """Continue until the steady window is long enough; save the tested model before calling this."""
        if self._steps == 0:
            self._steps_of(WARM_UP[self.group.device.type])
        while (left := self.settings.steady_seconds - self.group.least(self.steady.seconds)) > 0:
            done = self.steady.steps[-10:]
            step = self.group.largest(statistics.median(done)) if done else left
            self._timed(max(1, min(math.ceil(left / step), 10_000)))

    def _timed(self, count: int) -> tuple[float, int]:
        """Run steps of the steady window; return the sum of their losses and their number."""
        if count == 0:
            return 0.0, 0
        self.clock.take()
        self._wait()
        moment, began = time.time(), time.perf_counter()
        result = self._steps_of(count)
        self._wait()
        seconds = time.perf_counter() - began
        compute, steps = self.clock.take()
        self.steady.windows.append([moment, moment + seconds])
        self.steady.seconds += seconds
        self.steady.samples += count * self.settings.batch_size
        self.steady.compute += compute
        self.steady.steps += steps
        return result

    def _steps_of(self, count: int) -> tuple[float, int]:
        total = torch.zeros((), device=self.group.device)
        finite = torch.ones((), dtype=torch.bool, device=self.group.device)
        self.model.train()
        for step in range(count):
            if step % ALIKE == 0:
                self.clock.begin()
            self.group.state.step(self._steps + 1)
            loss, _correct = self._loss(self._next_batch())
            self.optimizer.zero_grad(set_to_none=True)
            loss.backward()
            finite &= torch.isfinite(nn.utils.get_total_norm([item.grad for item in self.model.parameters()]))
            self.optimizer.step()
            self.clock.end()
            total += loss.detach()
            self._steps += 1
        self.gradients_finite &= bool(finite.item())
        return total.item(), count

    def _loss(self, chosen: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        device = self.group.device
        with torch.autocast(device.type, dtype=torch.bfloat16, enabled=device.type == "cuda"):
            output = self.model(self.train.images[chosen])
            return functional.cross_entropy(output, self.train.labels[chosen]), output

    def _begin_epoch(self) -> None:
        self.sampler.set_epoch(self._epoch)
        self._epoch += 1
        order = torch.tensor(list(self.sampler), device=self.group.device)
        size = self.settings.batch_size
        self._batches = list(order[: self.steps_per_epoch * size].split(size))

    def _next_batch(self) -> torch.Tensor:
        if not self._batches:
            self._begin_epoch()
        return self._batches.pop(0)

    def _require_finite(self, loss: float) -> None:
        if not math.isfinite(loss):
            raise KitError(
                f"the loss became {loss} in epoch {self._epoch}: the training is broken. Check the learning rate "
                f"({self.settings.learning_rate}) and the GPUs' health (ECC errors, Xid messages in the kernel log)"
            )

    @torch.inference_mode()
    def accuracy(self) -> float:
        """Return the share of all test images classified correctly; each rank tests every n-th image once."""
        network = self.model.module
        for buffer in network.buffers():  # differ between ranks so far; rank 0's are saved
            distributed.broadcast(buffer, 0)
        network.eval()
        mine = torch.arange(self.group.rank, len(self.test), self.group.size, device=self.group.device)
        correct = 0
        for chosen in mine.split(EVALUATION_BATCH):
            with torch.autocast(self.group.device.type, dtype=torch.bfloat16, enabled=self.group.device.type == "cuda"):
                found = network(self.test.images[chosen]).argmax(1)
            correct += int((found == self.test.labels[chosen]).sum().item())
        return self.group.sum(correct) / len(self.test)

    def _wait(self) -> None:
        if self.group.device.type == "cuda":
            torch.cuda.synchronize(self.group.device)

    def figures(self) -> dict[str, Any]:
        """Return this rank's median step time, and the part of it spent computing, in seconds."""
        return {
            "step_seconds": statistics.median(self.steady.steps),
            "compute_seconds": statistics.median(self.steady.compute),
            "gradients_finite": self.gradients_finite,
        }
