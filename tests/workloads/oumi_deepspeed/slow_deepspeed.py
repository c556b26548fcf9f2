# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# ruff: noqa: PT009 - unittest, for pytest is not in the runtime
"""MLOPS-2.2 on two real gloo ranks, the model shared out by DeepSpeed.

PYTHONPATH=files:files/workloads/smollm_multi_gpu:tests/workloads/oumi \
    PYTHON -m unittest discover -s tests/workloads/oumi_deepspeed -p 'slow_*.py'
"""

from __future__ import annotations

import importlib
import os
import unittest
from typing import Any

from accelerate import PartialState
from oumi.core.trainers.hf_trainer import HuggingFaceTrainer
from oumi_sharding import sharing
from two_ranks import TwoRanks


class Zero(TwoRanks):
    """What the two ranks come to, and what is left of it."""

    def test_the_model_is_shared_out_and_learns_the_same(self) -> None:
        self.compare_whole_with("deepspeed")

    def test_what_is_replaced_while_it_trains_is_back_afterwards(self) -> None:
        backend = importlib.import_module("deepspeed.comm.torch")
        os.environ["ACCELERATE_USE_CPU"] = "true"
        self.addCleanup(os.environ.pop, "ACCELERATE_USE_CPU")

        def replaced() -> list[Any]:
            functions = [PartialState._prepare_backend, backend.build_shm_op, HuggingFaceTrainer._save_model]
            return [*functions, dict(os.environ)]

        before = replaced()
        with sharing("deepspeed"):
            now = replaced()
            self.assertIsNone(backend.build_shm_op())
        self.assertEqual([one for one, other in zip(now, before) if one == other], [])
        self.assertEqual(replaced(), before)


if __name__ == "__main__":
    unittest.main()
