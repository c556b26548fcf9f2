# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# ruff: noqa: PT009, PT027 - unittest, for pytest is not in the runtime
"""What ranks agree on and how they are told apart, with a real gloo group of one; other ranks' answers are made up.

PYTHONPATH=files PYTHON -m unittest discover -s tests/workloads/pytorch -p 'check_dist*.py'
"""

from __future__ import annotations

import dataclasses
import json
import os
import socket
import threading
import time
import unittest
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest import mock

import torch
from kit.errors import KitError
from kit.training import all_reduce, launch
from kit.training.compute_clock import ComputeClock
from kit.training.distributed import Group, checksum, group
from output_case import OutputCase
from torch import distributed
from torch.nn.parallel import DistributedDataParallel


class Case(OutputCase):
    """A group of one rank."""

    @contextmanager
    def alone(self, *, repeats_exactly: bool = False) -> Iterator[Group]:
        """Form the group."""
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = str(free.getsockname()[1])
        said = {"RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
        with (
            mock.patch.dict(os.environ, {**said, "SLURMD_NODENAME": "compute01"}),
            group("cpu", self.output, repeats_exactly=repeats_exactly) as joined,
        ):
            yield joined

    def state(self) -> dict[str, Any]:
        """Return what the rank left of itself."""
        return dict(json.loads((self.output / "ranks/rank-0.json").read_text()))


class Repeatable(Case):
    """Only who asks for it gets the kernels whose results are the same each time; they cost time on GPUs."""

    def setUp(self) -> None:
        super().setUp()
        self.addCleanup(torch.use_deterministic_algorithms, False)

    def test_who_does_not_ask_gets_any(self) -> None:
        with self.alone():
            self.assertFalse(torch.are_deterministic_algorithms_enabled())
            self.assertNotIn("CUBLAS_WORKSPACE_CONFIG", os.environ)

    def test_who_asks_gets_them_before_the_group_is_joined(self) -> None:
        seen = []
        real = distributed.init_process_group

        def noted(*arguments: Any, **named: Any) -> None:
            seen.append(torch.are_deterministic_algorithms_enabled())
            real(*arguments, **named)

        with mock.patch.object(distributed, "init_process_group", noted), self.alone(repeats_exactly=True):
            self.assertEqual(os.environ["CUBLAS_WORKSPACE_CONFIG"], ":4096:8")
        self.assertEqual(seen, [True])


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
            "PyTorch is 2.9 on rank 1 (b), but 2.10 on rank 0 (a)",
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
        self.assertEqual(
            found["ranks"],
            {"rank 0 (compute01)": {"wrong_sums": 0, "bus_bandwidth": 0, "node": "compute01", "interface": None}},
        )

    def test_bandwidths_are_those_of_nccl_tests(self) -> None:
        self.assertEqual(all_reduce.bandwidths(1000, 0.5, 4), {"algorithm_bandwidth": 2000, "bus_bandwidth": 3000})

    def test_of_all_sizes_the_largest_counts_and_each_rank_has_its_own_time(self) -> None:
        made_up = [
            # By luck, a small message is faster than can be.
            mock.patch.object(all_reduce, "seconds", lambda _group, size: {4096: 1e-9, 5000: 2.0}[size]),
            mock.patch.object(all_reduce, "SIZES", {"cpu": [4096]}),
            mock.patch.object(all_reduce, "wrong_elements", return_value=0),
            mock.patch.object(Group, "largest", lambda _group, value: 2 * value),
            mock.patch.object(Group, "gather", lambda group, value: {group.label: value}),
        ]
        with self.alone() as joined, ExitStack() as stack:
            two = dataclasses.replace(joined, size=2)
            for patch in made_up:
                stack.enter_context(patch)
            found = all_reduce.check(two, 5000)
        self.assertEqual(found["bus_bandwidth"], 5000 / 4.0)
        self.assertEqual(found["ranks"]["rank 0 (compute01)"]["bus_bandwidth"], 5000 / 2.0)

    def test_a_rank_on_another_node_is_named_with_its_interface(self) -> None:
        def gather(group: Group, value: Any) -> dict[str, Any]:
            other = "127.0.0.1" if value == "compute01" else value
            return {group.label: value, "rank 1 (127.0.0.1)": other}

        with self.alone() as joined, mock.patch.object(Group, "gather", gather):
            found = all_reduce.check(joined, 1000)
        self.assertEqual(
            list(found["ranks"]), ["rank 0 (compute01) at lo 127.0.0.1", "rank 1 (127.0.0.1) at lo 127.0.0.1"]
        )
        self.assertEqual(found["ranks"]["rank 0 (compute01) at lo 127.0.0.1"]["interface"], "lo 127.0.0.1")


class NcclTests(Case):
    """They are run once, by rank 0, and nobody goes on before their end."""

    def test_nobody_runs_them_without_being_asked_or_without_cuda(self) -> None:
        with self.alone() as joined, mock.patch.dict(os.environ, {"HPC_VALIDATION_NCCL_TESTS": "/bin/false"}):
            self.assertIsNone(all_reduce.by_nccl_tests(joined))
            on_cuda = dataclasses.replace(joined, device=torch.device("cuda"))
            with mock.patch.dict(os.environ, {"HPC_VALIDATION_NCCL_TESTS": ""}):
                self.assertIsNone(all_reduce.by_nccl_tests(on_cuda))
            answer = all_reduce.by_nccl_tests(on_cuda)
        self.assertEqual(answer and answer["problem"], "/bin/false answered 1: without a message")

    def test_on_several_nodes_they_do_not_run(self) -> None:
        answers = {"rank 0 (a)": "a", "rank 1 (b)": "b"}
        said = mock.patch.dict(os.environ, {"HPC_VALIDATION_NCCL_TESTS": "/bin/false"})
        with self.alone() as joined, said, mock.patch.object(Group, "gather", return_value=answers):
            answer = all_reduce.by_nccl_tests(dataclasses.replace(joined, device=torch.device("cuda")))
        self.assertEqual(
            answer,
            {"wrong": None, "bus_bandwidth": None, "problem": "it runs on one node, but the ranks are on 2"},
        )


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

    def test_of_a_gpu_only_steps_count_that_begin_with_nothing_queued(self) -> None:
        waited: list[torch.device] = []

        class Event:  # as CUDA's: the stand-in's work is done when it is asked for
            moment = 0.0

            def __init__(self, *, enable_timing: bool) -> None:
                assert enable_timing

            def record(self) -> None:
                self.moment = time.perf_counter()

            def elapsed_time(self, other: Any) -> float:
                return (other.moment - self.moment) * 1000

        cuda = mock.patch.multiple(torch.cuda, Event=Event, synchronize=waited.append)
        with self.alone(), cuda:
            model = DistributedDataParallel(torch.nn.Linear(8, 8))
            clock = ComputeClock(model, torch.device("cuda", 0))
            for step in range(6):
                if step % 3 == 0:
                    clock.begin()
                else:
                    time.sleep(0.2)  # what an unaligned step would be charged with
                model(torch.ones(4, 8)).sum().backward()
                clock.end()
            self.assertEqual(len(waited), 2)
            compute, steps = clock.take()
        self.assertEqual((len(compute), len(steps)), (2, 6))
        self.assertTrue(all(seconds < 0.2 for seconds in compute), compute)
        self.assertEqual(sum(seconds >= 0.2 for seconds in steps), 4)

    def test_a_checksum_is_of_every_bit(self) -> None:
        model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.BatchNorm1d(4))
        before = checksum(model)
        model[1].running_mean += 1  # each rank's own
        self.assertEqual(checksum(model), before)
        with torch.no_grad():
            model[0].weight[0, 0] += 1e-7
        self.assertNotEqual(checksum(model), before)


class Nodes(unittest.TestCase):
    """Launchers of several nodes, which meet where the first one is."""

    def setUp(self) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.meeting = f"127.0.0.1:{free.getsockname()[1]}"

    def test_a_node_that_cannot_reach_the_others_names_itself_and_the_interface(self) -> None:
        said = mock.patch.dict(os.environ, {"SLURMD_NODENAME": "compute02"})
        caller = launch.Nodes(2, 1, self.meeting)
        with said, mock.patch.multiple(launch, JOINING=0.2, PAUSE=0.01), self.assertRaises(launch.ApartError) as apart:
            caller.reach()
        with said:
            self.assertRegex(
                caller.apart(apart.exception),
                rf"^compute02 \(lo 127\.0\.0\.1\) did not reach {self.meeting}: ConnectionRefusedError",
            )

    def test_a_node_that_is_late_is_waited_for(self) -> None:
        host, _colon, port = self.meeting.rpartition(":")

        def begin() -> None:
            late.append(socket.create_server((host, int(port))))

        late: list[socket.socket] = []
        timer = threading.Timer(0.3, begin)
        timer.start()
        with mock.patch.object(launch, "PAUSE", 0.01):
            launch.Nodes(2, 1, self.meeting).reach()
        timer.join()
        late[0].close()

    def test_the_node_that_is_called_waits_the_longest_and_one_alone_for_nobody(self) -> None:
        called, caller, alone = launch.Nodes(2, 0, self.meeting), launch.Nodes(2, 1, self.meeting), launch.Nodes()
        self.assertGreater(called.rendezvous()["rdzv_timeout"], caller.rendezvous()["rdzv_timeout"])
        self.assertEqual([nodes.rendezvous()["rdzv_configs"]["rank"] for nodes in (called, caller)], [0, 1])
        self.assertEqual(alone.rendezvous()["rdzv_endpoint"], "localhost:0")
        alone.reach()
        called.reach()


if __name__ == "__main__":
    unittest.main()
