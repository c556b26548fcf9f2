# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# ruff: noqa: PT009 - unittest, for pytest is not in the runtime
"""What MLOPS-2.2 tells Oumi, and its clock on a rank that does not save.

PYTHONPATH=files:files/workloads/smollm_multi_gpu \
    PYTHON -m unittest discover -s tests/workloads/oumi -p 'check_smollm*.py'
"""

from __future__ import annotations

import json
import os
import tempfile
import unittest
from pathlib import Path
from typing import Any
from unittest import mock

import oumi_rank
import torch
from oumi.core.configs import TrainingConfig
from oumi_rank import Job, RankClock

CONFIG = Path(oumi_rank.__file__).with_name("smollm_multi_gpu.yaml")


class Settings(unittest.TestCase):
    """The configuration as Oumi itself reads it."""

    def setUp(self) -> None:
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = Path(scratch.name)

    def read(self, device: str, source: str) -> Any:
        """Return Oumi's configuration of a job."""
        for name, facts in (("model", {"source": source}), ("data", {"rows": {"train": 1200}})):
            (self.folder / name).mkdir()
            (self.folder / name / "provenance.json").write_text(json.dumps(facts))
        job = Job(CONFIG, self.folder / "model", self.folder / "data", device, accumulation=4)
        return TrainingConfig.from_yaml_and_arg_list(str(CONFIG), job.overrides)

    def test_a_rank_that_sees_two_gpus_loads_its_model_onto_its_own(self) -> None:
        config = self.read("cuda:1", "download")
        self.assertEqual(config.model.device_map, "cuda:1")
        self.assertEqual(str(config.training.mixed_precision_dtype.value), "bf16")
        self.assertEqual(config.training.gradient_accumulation_steps, 4)
        self.assertEqual(config.data.train.datasets[0].sample_count, 5000)
        self.assertEqual(config.training.learning_rate, 2e-5)

    def test_what_the_documents_ask_for_is_set(self) -> None:
        training = self.read("cuda:0", "download").training
        self.assertTrue(training.enable_gradient_checkpointing)
        self.assertEqual(training.gradient_checkpointing_kwargs, {"use_reentrant": False})
        self.assertIs(training.ddp_find_unused_parameters, False)
        self.assertEqual((training.num_train_epochs, training.per_device_train_batch_size), (2, 8))

    def test_a_cpu_computes_in_float32_on_as_many_rows_as_the_stand_in_has(self) -> None:
        config = self.read("cpu", "stand-in")
        self.assertEqual((config.model.device_map, config.training.mixed_precision_dtype.value), ("cpu", "none"))
        self.assertEqual(config.data.train.datasets[0].sample_count, 1200)


class Clock(unittest.TestCase):
    """A rank that does not save waits for the one that does, outside of its steps."""

    def test_all_ranks_wait_for_a_save_before_their_clocks_go_on(self) -> None:
        group = mock.Mock(device=torch.device("cpu"))
        clock = RankClock(group, None)
        clock.on_train_begin(mock.Mock(), mock.Mock(), mock.Mock(), model=torch.nn.Linear(2, 2))
        order: list[str] = []

        def noted(what: str) -> Any:
            return mock.Mock(side_effect=lambda *_states, **_other: order.append(what))

        saved = mock.patch.object(oumi_rank.StepClock, "on_save", noted("clock"))
        with mock.patch.object(oumi_rank.distributed, "barrier", noted("barrier")), saved:
            clock.on_save(mock.Mock(), mock.Mock(), mock.Mock())
        self.assertEqual(order, ["barrier", "clock"])

    def test_the_model_is_looked_at_and_let_go(self) -> None:
        clock = RankClock(mock.Mock(device=torch.device("cpu")), None)
        model = torch.nn.Linear(2, 2)
        clock.on_train_begin(mock.Mock(), mock.Mock(), mock.Mock(), model=model)
        clock.on_train_end(mock.Mock(), mock.Mock(), mock.Mock(), model=model)
        self.assertEqual((clock.device, clock.memory_share, clock.model), ("cpu", None, None))
        self.assertEqual(len(clock.checksum or ""), 64)


if __name__ == "__main__":
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    unittest.main()
