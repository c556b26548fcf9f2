# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# ruff: noqa: PT009, PT027 - unittest, for pytest is not in the runtime
"""What a checkpoint brings back beside the tensors, and which ones a training keeps, on one rank without DeepSpeed."""

from __future__ import annotations

import json
import sys
import tempfile
import unittest
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from torch import distributed
from two_ranks_pretraining import HOME

sys.path.insert(0, str(HOME))

from engine import Sharded
from kit.errors import KitError
from kit.pretraining import checkpoints
from kit.ranks.state import RankState
from kit.training.distributed import Group
from utils.checkpoint_manager import Saver
from utils.own_format import Own

LEARNED = {"cur_scale": 2048.0, "cur_iter": 17, "last_overflow_iter": 5, "cur_hysteresis": 1}
BEGUN = {"cur_scale": 65536.0, "cur_iter": 0, "last_overflow_iter": -1, "cur_hysteresis": 2}


def engine_with(scaler: Any, dtype: torch.dtype = torch.float16) -> Sharded:
    """Return an engine of which only the factor of the loss is there."""
    made = Sharded.__new__(Sharded)
    made._dtype = dtype
    made._engine = SimpleNamespace(optimizer=SimpleNamespace(loss_scaler=scaler))
    return made


class Scale(unittest.TestCase):
    """The factor of the loss in half precision."""

    def test_what_it_has_learned_comes_back(self) -> None:
        state = engine_with(SimpleNamespace(dynamic=True, **LEARNED)).scaler()
        self.assertEqual(json.loads(json.dumps(state)), LEARNED)
        fresh = SimpleNamespace(dynamic=True, **BEGUN)
        engine_with(fresh).set_scaler(state)
        self.assertEqual(vars(fresh), {"dynamic": True, **LEARNED})

    def test_without_it_the_factor_stays(self) -> None:
        fresh = SimpleNamespace(dynamic=True, **BEGUN)
        engine_with(fresh).set_scaler(None)
        self.assertEqual(vars(fresh), {"dynamic": True, **BEGUN})

    def test_a_factor_that_is_fixed_stays(self) -> None:
        fixed = SimpleNamespace(dynamic=False, cur_scale=128.0)
        engine_with(fixed).set_scaler(LEARNED)
        self.assertEqual((fixed.cur_scale, engine_with(fixed).scaler()), (128.0, None))

    def test_other_precisions_have_none(self) -> None:
        self.assertIsNone(engine_with(SimpleNamespace(dynamic=True, **LEARNED), torch.bfloat16).scaler())

    def test_one_that_is_none_is_refused(self) -> None:
        with self.assertRaisesRegex(KitError, "loss_scaler is none: KeyError"):
            engine_with(SimpleNamespace(dynamic=True, **BEGUN)).set_scaler({"cur_scale": 1})


class Engine:
    """What `Saver` and the own format ask of an engine."""

    updates = 3

    def __init__(self) -> None:
        """Know no factor."""
        self.given: list[Any] = []

    def state(self) -> dict[str, torch.Tensor]:
        """Return one weight."""
        return {"weight/fp32": torch.ones(4)}

    def scaler(self) -> dict[str, Any]:
        """Return what was learned."""
        return LEARNED

    def restore(self, read: Any, steps: int) -> None:
        """Take the parts."""
        self.given += [len(read["weight/fp32"]), steps]

    def set_scaler(self, state: Any) -> None:
        """Take what was learned."""
        self.given.append(state)


class Keeps(unittest.TestCase):
    """A training on one rank."""

    def setUp(self) -> None:
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = Path(scratch.name, "checkpoints")
        distributed.init_process_group("gloo", store=distributed.HashStore(), rank=0, world_size=1)
        self.addCleanup(distributed.destroy_process_group)
        state = RankState(Path(scratch.name), 0)
        self.joined = Group(0, 0, 1, torch.device("cpu"), None, "here", 0.0, state)

    def saver(self, keep: int = 2) -> Saver:
        """Return one that saves into the folder."""
        return Saver(self.folder, self.joined, {"data": "abc"}, 4, keep, 8, checkpoints.OWN)

    def names(self) -> list[str]:
        """Return the checkpoints that are there."""
        return [path.name for path in checkpoints.listed(self.folder)]

    def test_the_factor_is_in_the_manifest_and_comes_back(self) -> None:
        saver, engine = self.saver(), Engine()
        saver.save(engine, 5, 8)
        taken = saver.newest()
        saver.restore(engine, taken, self.folder)
        self.assertEqual(engine.given, [1, 3, LEARNED])
        Own().read(engine, checkpoints.Taken(taken.path, {"ranks": 1, "updates": 3}), self.joined, self.folder)
        self.assertEqual(engine.given[3:], [1, 3, None])

    def test_damaged_ones_do_not_push_out_the_whole_one(self) -> None:
        first = self.saver(keep=5)
        for step in (5, 10, 15):
            first.save(Engine(), step, 8)
        for step in (10, 15):
            file = self.folder / checkpoints.name_of(step) / checkpoints.rank_file(0, 1)
            content = bytearray(file.read_bytes())
            content[-1] ^= 1
            file.write_bytes(content)
        saver = self.saver(keep=2)
        self.assertEqual(saver.newest().path.name, "checkpoint_step_5")
        saver.save(Engine(), 10, 8)
        self.assertEqual(self.names(), ["checkpoint_step_10", "checkpoint_step_5"])
        self.assertEqual(self.saver().newest().path.name, "checkpoint_step_10")


if __name__ == "__main__":
    unittest.main()
