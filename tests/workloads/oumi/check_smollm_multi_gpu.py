# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# ruff: noqa: PT009 - unittest, for pytest is not in the runtime
"""What MLOPS-2.2 tells Oumi, its clock on a rank, and what checkpointing saves; two ranks: slow_smollm_multi_gpu.py.

PYTHONPATH=files:files/workloads/smollm_multi_gpu \
    PYTHON -m unittest discover -s tests/workloads/oumi -p 'check_smollm*.py'
"""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from typing import Any
from unittest import mock

os.environ["HF_HUB_OFFLINE"] = "1"

import kit
import oumi_rank
import smollm_checkpointing
import torch
from accelerate import Accelerator, PartialState
from oumi.core.configs import TrainingConfig
from oumi_rank import Job, RankClock
from oumi_sharding import sharing
from smollm_multi_gpu import ROWS_A_STEP

FILES = Path(kit.__file__).resolve().parents[1]
CONFIG = Path(oumi_rank.__file__).with_name("smollm_multi_gpu.yaml")


class Settings(unittest.TestCase):
    """The configuration as Oumi itself reads it."""

    def setUp(self) -> None:
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = Path(scratch.name)

    def read(self, device: str, source: str, **options: Any) -> Any:
        """Return Oumi's configuration of a job."""
        for name, facts in (("model", {"source": source}), ("data", {"rows": {"train": 1200}})):
            (self.folder / name).mkdir()
            (self.folder / name / "provenance.json").write_text(json.dumps(facts))
        job = Job(CONFIG, self.folder / "model", self.folder / "data", device, accumulation=4, **options)
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

    def test_the_model_is_shared_out_only_where_that_is_asked_for(self) -> None:
        config = self.read("cuda:0", "download")
        self.assertEqual((config.fsdp.enable_fsdp, config.deepspeed.enable_deepspeed), (False, False))

    def test_shared_out_is_every_layer(self) -> None:
        config = self.read("cuda:0", "download", strategy="fsdp")
        fsdp = config.fsdp
        self.assertEqual((fsdp.enable_fsdp, config.deepspeed.enable_deepspeed), (True, False))
        self.assertEqual(
            (fsdp.sharding_strategy.value, fsdp.auto_wrap_policy.value), ("FULL_SHARD", "TRANSFORMER_BASED_WRAP")
        )

    def test_deepspeed_shares_out_all_there_is(self) -> None:
        config = self.read("cuda:0", "download", strategy="deepspeed")
        self.assertEqual((config.fsdp.enable_fsdp, config.deepspeed.enable_deepspeed), (False, True))
        told = config.deepspeed.to_deepspeed()
        self.assertEqual(told["zero_optimization"]["stage"], 3)
        self.assertEqual(told["bf16"], {"enabled": "auto"})

    def test_what_is_to_do_nothing_is_there(self) -> None:
        module = importlib.import_module("oumi.train")
        self.assertEqual([name for name in oumi_rank.IDLE if not callable(getattr(module, name, None))], [])

    def test_a_cpu_computes_in_float32_on_as_many_rows_as_the_stand_in_has(self) -> None:
        config = self.read("cpu", "stand-in")
        self.assertEqual((config.model.device_map, config.training.mixed_precision_dtype.value), ("cpu", "none"))
        self.assertEqual(config.data.train.datasets[0].sample_count, 1200)


class Clock(unittest.TestCase):
    """A rank that does not save waits for the one that does, outside of its steps."""

    def test_all_ranks_wait_for_a_save_before_their_clocks_go_on(self) -> None:
        group = mock.Mock(device=torch.device("cpu"), size=1)
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
        clock = RankClock(mock.Mock(device=torch.device("cpu"), size=1), None)
        model = torch.nn.Linear(2, 2)
        clock.on_train_begin(mock.Mock(), mock.Mock(), mock.Mock(), model=model)
        clock.on_train_end(mock.Mock(), mock.Mock(), mock.Mock(), model=model)
        self.assertEqual((clock.device, clock.memory_share, clock.model), ("cpu", None, None))
        self.assertEqual(len(clock.checksum or ""), 64)
        self.assertEqual((clock.parameters_share, clock.compute_seconds), (1, None))

    def test_what_is_replaced_while_it_trains_is_back_afterwards(self) -> None:
        def replaced() -> list[Any]:
            return [Accelerator.gather, PartialState.__init__, dict(os.environ)]

        before = replaced()
        for strategy, others in (("ddp", {0}), ("fsdp", {0, 1, 2})):
            with self.subTest(strategy), RankClock(mock.Mock(), None).waits_counted():
                with sharing(strategy):
                    now = replaced()
                self.assertEqual({index for index, was in enumerate(before) if now[index] != was}, others)
            self.assertEqual(replaced(), before)


class Staged(unittest.TestCase):
    """The stand-ins of model and data, staged once; of the data only some rows are trained on."""

    folder: Path

    @classmethod
    def setUpClass(cls) -> None:
        scratch = tempfile.TemporaryDirectory()
        cls.addClassCleanup(scratch.cleanup)
        cls.folder = Path(scratch.name)
        for script in ("models/smollm_135m", "datasets/no_robots"):
            target = ["--target", str(cls.folder / Path(script).name), "--source", "stand-in"]
            command = [sys.executable, str(FILES / script / "stage.py"), *target]
            subprocess.run(command, capture_output=True, check=True)
        provenance = cls.folder / "no_robots/provenance.json"
        facts = json.loads(provenance.read_text())
        facts["rows"]["train"] = 3 * ROWS_A_STEP
        provenance.write_text(json.dumps(facts))


class Checkpointing(Staged):
    """The same steps with checkpointing and without."""

    def compare(self) -> dict[str, Any]:
        return smollm_checkpointing.compare(self.folder / "smollm_135m", torch.device("cpu"), rows=2, length=64)

    def test_fewer_activations_are_kept(self) -> None:
        found = self.compare()
        self.assertEqual(found["measured"], smollm_checkpointing.MEASURED["cpu"])
        self.assertTrue(0 < found["bytes_with"] < found["bytes_without"])
        self.assertEqual(found["memory_saved_percent"], 100 * (1 - found["bytes_with"] / found["bytes_without"]))
        with_it, without = found["step_seconds_with"], found["step_seconds_without"]
        self.assertEqual(found["speed_lost_percent"], 100 * (1 - without / with_it))

    def test_nothing_is_saved_where_it_is_never_switched_on(self) -> None:
        with mock.patch("transformers.PreTrainedModel.gradient_checkpointing_enable"):
            self.assertEqual(self.compare()["memory_saved_percent"], 0)

    def test_what_does_not_fit_without_it_is_told_and_ends_nothing(self) -> None:
        with mock.patch.object(smollm_checkpointing.Steps, "memory", side_effect=torch.OutOfMemoryError):
            self.assertEqual(self.compare(), {"measured": smollm_checkpointing.DOES_NOT_FIT})


if __name__ == "__main__":
    unittest.main()
