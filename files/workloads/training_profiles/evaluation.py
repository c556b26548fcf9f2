# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Losses, and metrics of all samples of all ranks together, from sums that ranks add up."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

import torch
from kit.profiles.model import CLASSIFICATION, Profile
from torch.nn import functional

Loss = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
LOSSES: dict[str, Loss] = {
    "mse": functional.mse_loss,
    "mae": functional.l1_loss,
    "cross_entropy": functional.cross_entropy,
}
LOSS = "validation_loss"


class Sums:
    """What is added up over the samples; metrics are made of it."""

    def __init__(self, profile: Profile, device: torch.device) -> None:
        """Begin with nothing."""
        self._classes = profile.model.num_classes if profile.model.task == CLASSIFICATION else None
        self._loss = LOSSES[profile.training.loss.name]
        self._metrics = profile.validation.metrics
        size = self._classes**2 + 2 if self._classes else 6
        self.totals = torch.zeros(size, dtype=torch.float64, device=device)

    def add(self, answers: torch.Tensor, truth: torch.Tensor) -> None:
        """Add a batch of answers."""
        count = len(truth)
        loss = self._loss(answers.float(), truth).double() * count
        if self._classes:
            self.totals[:2] += torch.stack([torch.tensor(float(count), dtype=torch.float64, device=loss.device), loss])
            pairs = truth * self._classes + answers.argmax(dim=1)
            self.totals[2:] += torch.bincount(pairs, minlength=self._classes**2).double()
            return
        apart, right = (answers.double() - truth.double()), truth.double()
        self.totals += torch.stack(
            [
                torch.tensor(float(count), dtype=torch.float64, device=loss.device),
                loss,
                apart.abs().mean(dim=1).sum(),
                apart.square().mean(dim=1).sum(),
                right.mean(dim=1).sum(),
                right.square().mean(dim=1).sum(),
            ]
        )

    def metrics(self) -> dict[str, float]:
        """Return the loss and the profile's metrics."""
        count, loss, *others = self.totals.tolist()
        found = {LOSS: loss / count}
        more = _of_classes(self.totals[2:], self._classes) if self._classes else _of_numbers(count, *others)
        return {**found, **{name: more[name] for name in self._metrics if name != "loss"}}


def _of_numbers(count: float, absolute: float, squared: float, total: float, squares: float) -> dict[str, float]:
    spread = squares - total**2 / count
    return {
        "mae": absolute / count,
        "rmse": math.sqrt(squared / count),
        "r2": 1 - squared / spread if spread > 0 else math.nan,
    }


def _of_classes(flat: torch.Tensor, classes: int) -> dict[str, float]:
    pairs = flat.view(classes, classes)
    right = pairs.diagonal()
    of_truth, of_answers = pairs.sum(dim=1), pairs.sum(dim=0)
    scores = 2 * right / (of_truth + of_answers).clamp(min=1)
    return {"accuracy": float(right.sum() / pairs.sum()), "f1": float(scores.mean())}


def evaluated(
    model: torch.nn.Module,
    batches: Iterable[tuple[torch.Tensor, torch.Tensor]],
    sums: Sums,
    device: torch.device,
    autocast: Callable[[], torch.autocast],
) -> Sums:
    """Add what the model answers to the batches, without learning of them; the model is as it was afterwards."""
    was = model.training
    model.eval()
    with torch.no_grad():
        for inputs, truth in batches:
            with autocast():
                answers = model(inputs.to(device))
            sums.add(answers.float(), truth.to(device))
    model.train(was)
    return sums


class Stopping:
    """Says when nothing is learnt any more. Patience counts evaluations, never steps."""

    def __init__(self, profile: Profile) -> None:
        """Begin with no best."""
        self._rule = profile.training.early_stopping
        self.best: float | None = None
        self.without = 0

    def improves(self, value: float) -> bool:
        """Take note of an evaluation; return whether it is the best so far, by more than the least that counts."""
        less = self._rule.mode == "min"
        if self.best is None:
            better = math.isfinite(value)
        else:
            better = value < self.best - self._rule.min_delta if less else value > self.best + self._rule.min_delta
        if better:
            self.best, self.without = value, 0
        else:
            self.without += 1
        return better

    @property
    def fires(self) -> bool:
        """Whether the training is to end."""
        return self._rule.enabled and self.without >= self._rule.patience
