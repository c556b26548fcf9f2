# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# ruff: noqa: PT009 - unittest, for pytest is not in the runtime
"""Which of two real ranks is to blame where both stand still, by what each says of itself.

PYTHONPATH=files PYTHON -m unittest discover -s tests/workloads/pytorch -p 'check_stall.py'
"""

from __future__ import annotations

import json
import multiprocessing
import time
import unittest
from pathlib import Path
from typing import Any

import torch
from kit.ranks import state
from kit.training import stall
from kit.training.distributed import patience_beyond
from kit.training.stall import Stall
from output_case import OutputCase
from torch import distributed
from torch.nn.parallel import DistributedDataParallel

RANKS, PATIENCE = 2, 120
WAITS_LESS = (2.0, 12.0)  # by rank: the one that waits gives up first
ALIKE = (4.0, 4.0)
TRAINING = "training"


def train(rank: int, output: Path, seconds: float) -> None:
    """Be a rank of which the last one never begins its step."""
    torch.set_num_threads(1)
    meeting = f"file://{output / 'meeting'}"
    distributed.init_process_group("gloo", init_method=meeting, rank=rank, world_size=RANKS)
    model = DistributedDataParallel(torch.nn.Linear(4, 1))
    reported = state.RankState(output, rank)
    reported.phase(TRAINING)
    watch = Stall(output, reported, rank, seconds)
    distributed.barrier()
    watch.beat()
    while rank == RANKS - 1:
        time.sleep(1)
    model(torch.ones(2, 4)).sum().backward()


class TwoRanks(OutputCase):
    """One sleeps, the other computes gradients, which are summed over both within autograd."""

    def run_both(self, seconds: tuple[float, ...]) -> tuple[dict[int, int | None], dict[str, dict[str, Any]]]:
        """Run both until they end; return their exit codes, and their states by name in the order of the ranks."""
        self.output.mkdir(exist_ok=True)
        spawn = multiprocessing.get_context("spawn")
        ranks = [spawn.Process(target=train, args=(rank, self.output, seconds[rank])) for rank in range(RANKS)]
        for each in ranks:
            each.start()
            self.addCleanup(each.kill)
        for each in ranks:
            each.join(PATIENCE)
        codes = {rank: each.exitcode for rank, each in enumerate(ranks)}
        (self.output / state.FOLDER / "exit-codes-0.json").write_text(json.dumps({"exit_codes": codes}))
        return codes, state.read(self.output, RANKS)

    def test_the_one_that_sleeps_is_to_blame(self) -> None:
        codes, found = self.run_both(WAITS_LESS)
        self.assertEqual(codes, dict.fromkeys(range(RANKS), state.STALLED))
        self.assertIn(state.WAITING, found[next(iter(found))]["last"])
        failed = str(state.first_failure(self.output, found))
        self.assertTrue(failed.startswith("rank 1"), failed)
        self.assertIn("it stood still", failed)

    def test_the_one_that_sleeps_gives_up_before_the_one_that_waits(self) -> None:
        codes, found = self.run_both(ALIKE)
        self.assertEqual(codes[1], state.STALLED)
        self.assertNotEqual(codes[0], state.STALLED)  # it lost its peer
        failed = str(state.first_failure(self.output, found))
        self.assertTrue(failed.startswith("rank 1"), failed)
        self.assertIn("it stood still", failed)

    def test_a_collective_may_take_longer_than_a_stall(self) -> None:
        for seconds in (10, 60, 120, 900):
            with self.subTest(seconds=seconds):
                self.assertGreater(patience_beyond(seconds), seconds + stall.PATIENCE + stall.LOOK)


if __name__ == "__main__":
    unittest.main()
