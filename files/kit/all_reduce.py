# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The all-reduce of a job's ranks by itself: are its sums right, and how fast is it over message sizes?

Bandwidths as nccl-tests defines them: algorithm bandwidth is bytes over time; bus bandwidth is that times 2(n-1)/n,
what the slowest link carries. In bytes and seconds. Imports PyTorch.
"""

from __future__ import annotations

import statistics
import time
from typing import Any

import torch
from torch import distributed

from kit.distributed import Group

SIZES = {"cuda": [1 << power for power in range(12, 29, 2)], "cpu": [1 << power for power in range(12, 23, 2)]}
REPEATS = 10
PERIOD = 251  # a prime: no chunk of a ring begins with the same value as another


def expected(elements: int, ranks: int, device: torch.device) -> torch.Tensor:
    """Return the closed form of the sum over ranks r of (r + 1) (i mod 251), a whole number that float32 holds."""
    return _pattern(elements, device) * (ranks * (ranks + 1) / 2)


def _pattern(elements: int, device: torch.device) -> torch.Tensor:
    return (torch.arange(elements, device=device) % PERIOD).to(torch.float32)


def wrong_elements(group: Group, size: int) -> int:
    """Reduce a message of ``size`` bytes and return how many of its sums are wrong on this rank."""
    message = _pattern(size // 4, group.device) * (group.rank + 1)
    distributed.all_reduce(message)
    return int((message != expected(len(message), group.size, group.device)).sum().item())


def seconds(group: Group, size: int) -> float:
    """Return the median time of an all-reduce of ``size`` bytes, the slowest rank's."""
    message = torch.zeros(size // 4, device=group.device)
    times = []
    for _repeat in range(REPEATS + 2):
        distributed.barrier()
        _wait(group.device)
        began = time.perf_counter()
        distributed.all_reduce(message)
        _wait(group.device)
        times.append(time.perf_counter() - began)
    return group.largest(statistics.median(times[2:]))


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def check(group: Group, gradient_bytes: int) -> dict[str, Any]:
    """Return the sums that are wrong, by rank, and bandwidths, also for a message as long as the gradients."""
    sizes = sorted({*SIZES[group.device.type], max(4, gradient_bytes // 4 * 4)})
    wrong = sum(wrong_elements(group, size) for size in sizes)
    table = []
    for size in sizes:
        taken = seconds(group, size)
        table.append(
            {
                "bytes": size,
                "seconds": taken,
                "algorithm_bandwidth": size / taken,
                "bus_bandwidth": size / taken * 2 * (group.size - 1) / group.size,
            }
        )
    return {
        "backend": distributed.get_backend(),
        "ranks": group.gather({"wrong_sums": wrong}),
        "sizes": table,
        "bus_bandwidth": max(row["bus_bandwidth"] for row in table),
        "gradient_bytes": gradient_bytes,
    }
