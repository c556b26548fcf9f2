# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The learning rate of each step, and which blocks learn in each epoch. Pure functions of the profile."""

from __future__ import annotations

import math

from kit.profiles.model import Profile, TransferLearning


def learning_rate(profile: Profile, step: int) -> float:
    """Return the learning rate of a step; steps count from 1."""
    highest, scheduler = profile.training.optimizer.lr, profile.training.scheduler
    if step <= scheduler.warmup_steps:
        return highest * step / scheduler.warmup_steps
    if scheduler.name == "constant":
        return highest
    part = min(1.0, (step - scheduler.warmup_steps) / (scheduler.t_max - scheduler.warmup_steps))
    return scheduler.eta_min + 0.5 * (highest - scheduler.eta_min) * (1 + math.cos(math.pi * part))


def frozen_blocks(transfer: TransferLearning | None, epoch: int) -> int:
    """Return how many blocks, from the first on, stay as they are in an epoch; epochs count from 1.

    At each epoch of ``unfreeze_epochs`` one more opens, from the last frozen one down; at the last of them all are
    open, and with them what comes before the first block.
    """
    if transfer is None or not transfer.freeze_layers:
        return 0
    if not transfer.unfreeze_epochs:
        return transfer.freeze_layers
    if epoch >= transfer.unfreeze_epochs[-1]:
        return 0
    return transfer.freeze_layers - sum(epoch >= at for at in transfer.unfreeze_epochs)
