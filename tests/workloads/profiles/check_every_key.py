# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# ruff: noqa: PT009 - unittest, for pytest is not in the runtime
"""No key of a profile is there for nothing, and a profile that the check accepts trains.

PYTHONPATH=files PYTHON -m unittest discover -s tests/workloads/profiles -p 'check_*.py'
"""

from __future__ import annotations

import os
import random
import unittest
from functools import reduce
from pathlib import Path
from typing import Any
from unittest import mock

import train
from kit.profiles import job
from kit.profiles.check import UnusableError, merged
from kit.profiles.model import Profile, Section
from small_profile import FEATURES, STEPS, Case

# Keys that nothing in a training reads, and why they are keys all the same.
NOT_READ = {
    "metadata.version": "recorded with the profile",
    "metadata.owner": "recorded with the profile",
    "metadata.description": "recorded with the profile",
    "metadata.created": "recorded with the profile",
    "metadata.target": "the check chooses ranges by it",
    "metadata.purpose": "the check chooses ranges by it",
    "model.type": "there is one",
    "model.num_classes": "read for classification",
    "training.checkpointing.format": "there is one",
    "validation.every_epochs": "the check compares it with training.evaluation.every_steps",
    "distributed.init_method": "there is one",
    "distributed.backend": "the device decides: a GPU has nccl, which criterion S4-3.backend judges",
    "distributed.world_size": "read where it is enabled, on more than one rank",
    "logging.directory": "the output folder is made below it before a training begins",
    "logging.level": "the launcher's log has all lines",
    "monitoring.temperature": "the sampler reads all sensors at once",
    "monitoring.power": "the sampler reads all sensors at once",
    "resources.gpu_memory_gb": "the check compares its estimate with it",
    "logging.wandb.key_file": "read where W&B is online",
    "notes": "recorded with the profile",
    "compliance": "recorded with the profile",
    "post_training": "for what comes after the training",
    "power_management": "for what comes after the training",
    "embedded_optimizations.memory_efficient_attention": "the check compares it with model.attention",
    "embedded_optimizations.max_memory_gb": "for what comes after the training",
}


class Noting:
    """A section that notes which of its keys are read."""

    def __init__(self, section: Section, read: set[str], place: str = "") -> None:
        self._section, self._read, self._place = section, read, place

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._section, name)
        path = f"{self._place}{name}"
        if isinstance(value, Section):
            return Noting(value, self._read, f"{path}.")
        if name in type(self._section).model_fields:
            self._read.add(path)
        return value


def leaves(section: Section, place: str = "") -> set[str]:
    """Return the keys that are no sections."""
    found: set[str] = set()
    for name in type(section).model_fields:
        value = getattr(section, name)
        inner = isinstance(value, Section)
        found |= leaves(value, f"{place}{name}.") if inner else {f"{place}{name}"}
    return found


EMBEDDED = {
    "power_management": {"mode": "MAXN", "max_temperature_c": 85.0, "soak_seconds": 5.0},
    "embedded_optimizations": {
        "memory_efficient_attention": True,
        "empty_cache_every_steps": 4,
        "max_memory_gb": 2.0,
    },
}
TRANSFER = {
    "metadata": {"purpose": "transfer"},
    "training": {"begins_with": "/of/another", "optimizer": {"lr": 1e-4}},
    "transfer_learning": {"freeze_layers": 2, "unfreeze_epochs": [2, 3]},
}


class Keys(Case):
    """What a training reads of its profile."""

    def read_of(self, profile: Profile, output: str) -> set[str]:
        """Train as train.py does, with what a job asks for; return what was read."""
        read: set[str] = set()
        noting: Any = Noting(profile, read)
        job.options(noting, "cuda")
        job.training(noting, Path("profile.yaml"), 1)
        job.sampling(noting, self.output, 1)
        folder = self.output / output
        folder.mkdir()
        said = train.alone({"HPC_VALIDATION_ACCELERATOR": "cpu"})
        with mock.patch.dict(os.environ, said):
            train.trained(noting, folder, validate=False)
        return read

    def test_every_key_is_read_or_has_its_reason(self) -> None:
        own = [
            {"data": {"num_workers": 1, "prefetch_factor": 2}},
            {"training": {"mixed_precision": {"enabled": True, "dtype": "float16", "loss_scale": "dynamic"}}},
            {"training": {"checkpointing": {"directory": str(self.output / "kept")}}},
            # A server that nobody is at: what is read of it is read before that is found out.
            {"logging": {"mlflow": {"enabled": True, "tracking_uri": "http://127.0.0.1:9"}}},
            EMBEDDED,
        ]
        first = self.profile(**reduce(merged, own))
        read = self.read_of(first, "first")
        source = {"training": {"begins_with": str(self.output / "kept/final_checkpoint_step_24")}}
        folder = {"training": {"checkpointing": {"directory": str(self.output / "kept-2")}}}
        second = self.profile(**reduce(merged, [TRANSFER, source, folder]))
        read |= self.read_of(second, "second")
        there = leaves(first) | leaves(second)
        reasons = {path for path in there for name in NOT_READ if path == name or path.startswith(f"{name}.")}
        nothing = {"power_management", "embedded_optimizations", "transfer_learning"}  # where they are not given
        self.assertEqual(sorted(there - read - reasons - nothing), [])
        self.assertEqual([name for name in NOT_READ if name in read], [], "it is read: it needs no reason")


class Accepted(Case):
    """Profiles at random: what the check accepts trains."""

    def chosen(self, source: random.Random) -> dict[str, Any]:
        """Return keys at random, some of which do not fit together."""
        classes = source.random() < 0.3
        dtype = source.choice(["float16", "bfloat16"])
        metrics = ["loss", "accuracy", "f1"] if classes else ["loss", "mae", "rmse", "r2"]
        return {
            "model": {
                "task": "classification" if classes else "regression",
                "outputs": None if classes else 1,
                "num_classes": 4 if classes else None,
                "hidden_size": source.choice([8, 16, 24]),
                "num_layers": source.choice([1, 2, 3]),
                "num_heads": source.choice([1, 2, 3, 4]),
                "feedforward_size": source.choice([8, 30]),
                "max_position": source.choice([STEPS, 9]),
                "dropout": source.choice([0.0, 0.3]),
                "activation": source.choice(["gelu", "relu"]),
                "attention": source.choice(["sdpa", "math"]),
            },
            "training": {
                "epochs": source.choice([1, 2]),
                "max_steps": source.choice([3, 5]),
                "batch_size": source.choice([4, 8]),
                "gradient_accumulation_steps": source.choice([1, 2]),
                "log_every_steps": source.choice([1, 2]),
                "activation_checkpointing": source.random() < 0.5,
                "optimizer": {"name": source.choice(["adam", "adamw"]), "weight_decay": source.choice([0.0, 0.01])},
                "scheduler": {
                    "name": source.choice(["cosine", "constant"]),
                    "warmup_steps": source.choice([0, 1, 2]),
                    "t_max": source.choice([3, 5]),
                },
                "loss": {"name": "cross_entropy" if classes else source.choice(["mse", "mae"])},
                "mixed_precision": {
                    "enabled": source.random() < 0.5,
                    "dtype": dtype,
                    "loss_scale": source.choice(["dynamic", 64.0]) if dtype == "float16" else None,
                },
                "evaluation": {"every_steps": source.choice([1, 2])},
                "checkpointing": {
                    "every_steps": source.choice([1, 2]),
                    "keep": source.choice([1, 3]),
                    "best_only": source.random() < 0.5,
                },
                "early_stopping": {
                    "enabled": source.random() < 0.5,
                    "monitor": source.choice(["validation_loss", metrics[1]]),
                    "mode": source.choice(["min", "max"]),
                    "patience": source.choice([1, 3]),
                },
            },
            "data": {
                "shuffle": source.random() < 0.5,
                "normalization": {
                    "mean": source.choice([0.0, [0.1] * FEATURES]),
                    "std": source.choice([1.0, [2.0] * FEATURES]),
                },
            },
            "validation": {"metrics": metrics},
            "reproducibility": {"deterministic": source.random() < 0.5, "seed": source.randrange(2**32)},
            "debug": {
                "profiler": source.random() < 0.1,
                "detect_anomaly": source.random() < 0.2,
                "limit_batches": source.choice([None, 2]),
            },
            "monitoring": {
                "weight_histogram_every_steps": 1,
                "throughput": source.random() < 0.5,
            },
        }

    def test_what_the_check_accepts_trains(self) -> None:
        source = random.Random(26)
        accepted = refused = 0
        for number in range(120):
            keys = self.chosen(source)
            self.data(64, keys["model"]["num_classes"])
            try:
                profile = self.profile(**keys)
            except UnusableError:
                refused += 1
                continue
            accepted += 1
            with self.subTest(number=number, keys=keys):
                _trainer, done = self.run_once(profile, output=f"out-{number}")
                self.assertGreater(done.last, 0)
                self.assertTrue(done.evaluations)
        self.assertGreater(accepted, 10)
        self.assertGreater(refused, 10)


if __name__ == "__main__":
    unittest.main()
