# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Check the all-reduce of a job's ranks by itself: the sums, and the speed over message sizes.

Bandwidths are defined as in nccl-tests: algorithm bandwidth is bytes over time; bus bandwidth is that times 2(n-1)/n,
the load of the slowest link. In bytes and seconds. Imports PyTorch.
"""

from __future__ import annotations

import os
import statistics
import time
from typing import Any

import torch
from torch import distributed

from kit.ranks.interface import interface_to, wanted_by
from kit.training import nccl_tests
from kit.training.distributed import Group

SIZES = {"cuda": [1 << power for power in range(12, 29, 2)], "cpu": [1 << power for power in range(12, 23, 2)]}
REPEATS = 10
PERIOD = 251  # a prime: no two chunks of a ring begin with the same value


def expected(elements: int, ranks: int, device: torch.device) -> torch.Tensor:
    """Return the closed form of the sum over ranks r of (r + 1) (i mod 251), an integer that float32 holds exactly."""
    return _pattern(elements, device) * (ranks * (ranks + 1) / 2)


def _pattern(elements: int, device: torch.device) -> torch.Tensor:
    return (torch.arange(elements, device=device) % PERIOD).to(torch.float32)


def wrong_elements(group: Group, size: int) -> int:
    """Reduce a message of ``size`` bytes and return how many of its sums are wrong on this rank."""
    message = _pattern(size // 4, group.device) * (group.rank + 1)
    distributed.all_reduce(message)
    return int((message != expected(len(message), group.size, group.device)).sum().item())


def seconds(group: Group, size: int) -> float:
    """Return the median time of an all-reduce of ``size`` bytes on this rank."""
    message = torch.zeros(size // 4, device=group.device)
    times = []
    for _repeat in range(REPEATS + 2):
        distributed.barrier()
        _wait(group.device)
        began = time.perf_counter()
        distributed.all_reduce(message)
        _wait(group.device)
        times.append(time.perf_counter() - began)
    return statistics.median(times[2:])


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def bandwidths(size: int, taken: float, ranks: int) -> dict[str, float]:
    """Return algorithm and bus bandwidth of an all-reduce of ``size`` bytes that took ``taken`` seconds."""
    return {"algorithm_bandwidth": size / taken, "bus_bandwidth": size / taken * 2 * (ranks - 1) / ranks}


def check(group: Group, gradient_bytes: int) -> dict[str, Any]:
    """Return the wrong sums, by rank, and bandwidths, also for a message as long as the gradients.

    The bandwidths for a size are those of the slowest rank; the overall bus bandwidth is that of the largest message,
    where the start-up cost no longer matters. Ranks on several nodes are named with their interface to the others.
    """
    sizes = sorted({*SIZES[group.device.type], max(4, gradient_bytes // 4 * 4)})
    wrong = sum(wrong_elements(group, size) for size in sizes)
    table = []
    for size in sizes:
        own = seconds(group, size)
        taken = group.largest(own)
        table.append({"bytes": size, "seconds": taken, **bandwidths(size, taken, group.size)})
    ranks = group.gather(
        {
            "wrong_sums": wrong,
            "bus_bandwidth": bandwidths(sizes[-1], own, group.size)["bus_bandwidth"],
            "node": group.node,
            "interface": _interface(group),
        }
    )
    return {
        "backend": distributed.get_backend(),
        "ranks": {_named(label, facts["interface"]): facts for label, facts in ranks.items()},
        "sizes": table,
        "bus_bandwidth": table[-1]["bus_bandwidth"],
        "gradient_bytes": gradient_bytes,
    }


def _interface(group: Group) -> str | None:
    """Return the interface from this rank's node to the first other node, or None if all ranks are on one."""
    others = sorted(_nodes(group) - {group.node})
    return str(interface_to(others[0], wanted_by(distributed.get_backend(), os.environ))) if others else None


def _nodes(group: Group) -> set[str]:
    return set(group.gather(group.node).values())


def _named(label: str, interface: str | None) -> str:
    return f"{label} at {interface}" if interface else label


def by_nccl_tests(group: Group) -> dict[str, Any] | None:
    """Return the result of nccl-tests for the all-reduce (nccl_tests); None without CUDA or if not requested.

    Rank 0 runs them on all GPUs while the others wait on their CPUs: a GPU waiting in NCCL would affect the result.
    """
    program = os.environ.get("HPC_VALIDATION_NCCL_TESTS")
    if not program or group.device.type != "cuda":
        return None
    nodes = len(_nodes(group))
    if nodes > 1:
        return {"wrong": None, "bus_bandwidth": None, "problem": f"it runs on one node, but the ranks are on {nodes}"}
    torch.cuda.empty_cache()  # release the memory of our own messages
    return dict(group.on_first(lambda: nccl_tests.measure(program, group.size)))
