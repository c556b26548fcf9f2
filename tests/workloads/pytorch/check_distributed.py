# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# ruff: noqa: PT009, PT027 - unittest, for pytest is not in the runtime
"""What ranks agree on and how they are told apart, with a real gloo group of one; other ranks' answers are made up.

PYTHONPATH=files PYTHON -m unittest discover -s tests/workloads/pytorch -p 'check_dist*.py'
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tempfile
import time
import unittest
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import kit
import torch
from kit import all_reduce
from kit.compute_clock import ComputeClock
from kit.distributed import Group, checksum, group
from kit.errors import KitError
from torch import distributed
from torch.nn.parallel import DistributedDataParallel

FILES = Path(kit.__file__).resolve().parents[1]


class Case(unittest.TestCase):
    """A group of one rank."""

    def setUp(self) -> None:
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.output = Path(scratch.name)

    @contextmanager
    def alone(self) -> Iterator[Group]:
        """Form the group."""
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = str(free.getsockname()[1])
        said = {"RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
        with mock.patch.dict(os.environ, {**said, "SLURMD_NODENAME": "compute01"}), group("cpu", self.output) as joined:
            yield joined

    def state(self) -> dict[str, Any]:
        """Return what the rank left of itself."""
        return dict(json.loads((self.output / "ranks/rank-0.json").read_text()))


class Agreement(Case):
    """Ranks that are not alike are refused, and named."""

    def refused(self, answers: dict[str, Any], call: str, *arguments: Any) -> str:
        """Return the refusal where all ranks answer so."""
        said = mock.patch.object(Group, "gather", return_value=answers)
        with self.assertRaises(KitError) as refusal, self.alone() as joined, said:
            getattr(joined, call)(*arguments)
        distributed.destroy_process_group()
        return str(refusal.exception)

    def test_a_fact_that_differs_is_told_with_both_values(self) -> None:
        answers = {"rank 0 (a)": {"PyTorch": "2.10"}, "rank 1 (b)": {"PyTorch": "2.9"}}
        self.assertEqual(
            self.refused(answers, "require_same", {"PyTorch": "2.10"}),
            "PyTorch is 2.9 on rank 1 (b) and 2.10 on rank 0 (a)",
        )

    def test_two_ranks_on_one_gpu_are_refused(self) -> None:
        answers = {"rank 0 (a GPU-x)": ("a", "GPU-x"), "rank 1 (a GPU-x)": ("a", "GPU-x")}
        self.assertEqual(
            self.refused(answers, "require_own_gpus"), "rank 1 (a GPU-x) and rank 0 (a GPU-x) compute on the same GPU"
        )

    def test_ranks_on_their_own_gpus_or_on_none_agree(self) -> None:
        with self.alone() as joined:
            for answers in (
                {"0": ("a", "GPU-x"), "1": ("a", "GPU-y"), "2": ("b", "GPU-z")},
                {"0": ("a", None), "1": ("a", None)},
            ):
                with mock.patch.object(Group, "gather", return_value=answers):
                    joined.require_own_gpus()
            joined.require_same({"anything": 1})

    def test_what_ends_a_rank_is_in_its_state(self) -> None:
        with self.assertRaises(KitError), self.alone() as joined:
            joined.state.phase("training")
            raise KitError("no\nmore")
        distributed.destroy_process_group()
        self.assertEqual((self.state()["phase"], self.state()["error"]), ("failed in training", "KitError: no more"))

    def test_a_rank_that_is_well_ends(self) -> None:
        with self.alone() as joined:
            self.assertEqual((joined.size, joined.label), (1, "rank 0 (compute01)"))
            self.assertEqual((joined.sum(2.5), joined.least(2.5), joined.largest(2.5)), (2.5, 2.5, 2.5))
        self.assertEqual(self.state()["phase"], "ended")
        self.assertFalse(distributed.is_initialized())


STUBBORN = """
import os, pathlib, signal, time
from kit.distributed import group
signal.signal(signal.SIGTERM, signal.SIG_IGN)
output = pathlib.Path(os.environ["OUTPUT_DIR"])
with group("cpu", output):
    (output / f"pid-{os.environ['RANK']}").write_text(str(os.getpid()))
    time.sleep(600)
"""


class Ending(Case):
    """Nothing stays behind."""

    def test_ranks_that_ignore_the_request_to_end_are_gone_before_the_job_script_loses_patience(self) -> None:
        script = self.output / "stubborn.py"
        script.write_text(STUBBORN)
        said = {"PYTHONPATH": str(FILES), "OUTPUT_DIR": str(self.output), "SLURM_JOB_ID": "12"}
        launcher = [sys.executable, "-m", "kit", "launch", str(script)]
        legs = subprocess.Popen(
            [sys.executable, "-m", "kit", "legs", "--ranks", "2", *launcher],
            env={**os.environ, **said},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self.wait(lambda: len(list(self.output.glob("pid-*"))) == 2, 120)
        pids = [int(path.read_text()) for path in self.output.glob("pid-*")]
        legs.terminate()
        self.assertNotEqual(legs.wait(10), 0)
        self.wait(lambda: not any(self.lives(pid) for pid in pids), 5)

    def wait(self, condition: Callable[[], bool], seconds: float) -> None:
        """Return as soon as the condition holds."""
        until = time.monotonic() + seconds
        while not condition():
            self.assertLess(time.monotonic(), until, f"it did not come about within {seconds} s")
            time.sleep(0.05)

    @staticmethod
    def lives(pid: int) -> bool:
        """Tell whether there is such a process, and not only what is left for its parent to read."""
        try:
            return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
        except OSError:
            return False


class AllReduce(Case):
    """Sums are compared with their closed form."""

    def test_the_closed_form(self) -> None:
        device = torch.device("cpu")
        ranks = [all_reduce.expected(1000, 1, device) * (rank + 1) for rank in range(3)]
        self.assertTrue(torch.equal(sum(ranks[1:], ranks[0]), all_reduce.expected(1000, 3, device)))
        self.assertGreater(len(set(all_reduce.expected(1000, 3, device).tolist())), 200)

    def test_sums_that_are_right_and_sums_that_are_not(self) -> None:
        def damaged(message: torch.Tensor) -> None:
            message[7] += 1
            message[9] = float("nan")

        with self.alone() as joined:
            self.assertEqual(all_reduce.wrong_elements(joined, 4096), 0)
            with mock.patch.object(distributed, "all_reduce", damaged):
                self.assertEqual(all_reduce.wrong_elements(joined, 4096), 2)

    def test_every_size_has_its_bandwidths(self) -> None:
        with self.alone() as joined:
            found = all_reduce.check(joined, 1003)
        self.assertEqual(found["sizes"][0]["bytes"], 1000)
        for row in found["sizes"]:
            self.assertAlmostEqual(row["algorithm_bandwidth"] * row["seconds"], row["bytes"], places=3)
            self.assertEqual(row["bus_bandwidth"], 0)  # one rank sends nothing
        self.assertEqual(found["ranks"], {"rank 0 (compute01)": {"wrong_sums": 0}})


class Clock(Case):
    """A rank's own time ends where its gradients are ready."""

    def test_computing_is_part_of_the_step(self) -> None:
        with self.alone() as joined:
            model = DistributedDataParallel(torch.nn.Linear(8, 8))
            clock = ComputeClock(model, joined.device)
            clock.begin()
            for _step in range(3):
                model(torch.ones(4, 8)).sum().backward()
                clock.end()
            compute, steps = clock.take()
            self.assertEqual((len(compute), len(steps)), (3, 3))
            self.assertTrue(all(0 < own <= whole for own, whole in zip(compute, steps)))
            self.assertEqual(clock.take(), ([], []))

    def test_a_model_whose_buffers_are_waited_for_is_not_timed(self) -> None:
        with self.alone() as joined:
            network = torch.nn.BatchNorm1d(8)
            with self.assertRaisesRegex(ValueError, "broadcast_buffers=False"):
                ComputeClock(DistributedDataParallel(network), joined.device)
            ComputeClock(DistributedDataParallel(network, broadcast_buffers=False), joined.device)

    def test_what_a_rank_does_between_two_steps_is_its_own_time(self) -> None:
        with self.alone() as joined:
            model = DistributedDataParallel(torch.nn.Linear(8, 8))
            clock = ComputeClock(model, joined.device)
            clock.begin()
            for _step in range(2):
                time.sleep(0.05)
                model(torch.ones(4, 8)).sum().backward()
                clock.end()
            compute, _steps = clock.take()
            self.assertTrue(all(seconds >= 0.05 for seconds in compute))

    def test_a_checksum_is_of_every_bit(self) -> None:
        model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.BatchNorm1d(4))
        before = checksum(model)
        model[1].running_mean += 1  # each rank's own
        self.assertEqual(checksum(model), before)
        with torch.no_grad():
            model[0].weight[0, 0] += 1e-7
        self.assertNotEqual(checksum(model), before)


if __name__ == "__main__":
    unittest.main()
