# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# ruff: noqa: E402, PT009 - the workload's folder comes first; unittest, for pytest is not in the runtime
"""A profile of a model so small that a training takes a second, and its data; for the tests beside."""

from __future__ import annotations

import os
import socket
import sys
import tempfile
import unittest
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import kit

FILES = Path(kit.__file__).resolve().parents[1]
HOME = FILES / "workloads/training_profiles"
sys.path.insert(0, str(HOME))

import numpy as np
import torch
import train
from kit.profiles.check import merged, usable
from kit.profiles.model import Profile
from kit.training.distributed import Group, group
from saving import Saver
from torch import distributed
from training import Done, Trainer
from windows import Windows

SAMPLES = 64
FEATURES, STEPS = 8, 4
SMALL: dict[str, Any] = {
    "model": {
        "hidden_size": 16,
        "num_layers": 3,
        "num_heads": 2,
        "feedforward_size": 24,
        "max_position": 6,
        "window": STEPS,
        "input_features": FEATURES,
    },
    "training": {
        "epochs": 3,
        "max_steps": 24,
        "batch_size": 8,
        "log_every_steps": 1,
        "scheduler": {"warmup_steps": 4, "t_max": 20},
        "evaluation": {"every_steps": 4},
        "checkpointing": {"every_steps": 6, "keep": 3},
    },
    "data": {"train_samples": SAMPLES},
    "distributed": {"enabled": False, "world_size": 1},
    "resources": {"num_gpus": 1},
    "monitoring": {"gradient_norm_every_steps": 1, "weight_histogram_every_steps": 8, "stall_seconds": 60},
    "validation": {"metrics": ["loss", "mae", "rmse", "r2"]},
}


class Case(unittest.TestCase):
    """Trainings on one real gloo rank."""

    def setUp(self) -> None:
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.output = Path(scratch.name)
        self.data(SMALL["data"]["train_samples"])

    def data(self, samples: int, classes: int | None = None) -> None:
        """Write data that can be learnt."""
        for position, name in enumerate(("train", "validation", "test")):
            random = np.random.default_rng(position)
            folder = self.output / "data"
            folder.mkdir(exist_ok=True)
            inputs = random.standard_normal((samples, STEPS, FEATURES)).astype(np.float32)
            worth = inputs[:, :, 0].mean(axis=1, keepdims=True)
            answers = np.digitize(worth[:, 0], np.linspace(-0.5, 0.5, classes - 1)) if classes else worth
            np.save(folder / f"{name}-inputs.npy", inputs)
            np.save(folder / f"{name}-answers.npy", answers)

    def profile(self, **changes: Any) -> Profile:
        """Return the small profile with these changes of its sections; it is checked as any other."""
        folders = {name: str(self.output / "data" / name) for name in ("train", "validation", "test")}
        own = merged(SMALL, {"data": folders})
        return usable(HOME / "local.yaml", merged(own, changes))

    @contextmanager
    def joined(self) -> Iterator[Group]:
        """Form a group of one."""
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = str(free.getsockname()[1])
        said = {"RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
        try:
            with mock.patch.dict(os.environ, said), group("cpu", self.output / "group") as joined:
                yield joined
        finally:
            if distributed.is_initialized():  # after an error
                distributed.destroy_process_group()

    def trainer(self, joined: Group, profile: Profile, output: str = "out", **more: Any) -> Trainer:
        """Make a trainer whose checkpoints are in its output folder."""
        data = [Windows(Path(folder), profile) for folder in (profile.data.train, profile.data.validation)]
        saved = profile.training.checkpointing
        folder = self.output / output
        saver = Saver(
            folder / "checkpoints", joined, train.result_facts(profile), saved.keep, best_only=saved.best_only
        )
        return Trainer(joined, profile, *data, folder, saver=saver, **more)

    def run_once(self, profile: Profile, output: str = "out", last: int | None = None) -> tuple[Trainer, Done]:
        """Train in a group of its own."""
        with self.joined() as joined:
            trainer = self.trainer(joined, profile, output)
            return trainer, trainer.run(last)

    def weights(self, trainer: Trainer) -> dict[str, torch.Tensor]:
        """Return a copy of all weights."""
        return {name: value.detach().clone() for name, value in trainer.module.state_dict().items()}

    def assert_same(self, one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> None:
        """Fail where a bit differs."""
        self.assertEqual([name for name in one if not torch.equal(one[name], other[name])], [])
