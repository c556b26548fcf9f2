# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""NVIDIA's nccl-tests, if the node has them: `all_reduce_perf` over message sizes on this node's GPUs.

A second measurement besides PyTorch's (all_reduce.py), by a program independent of PyTorch. Its GB are 10^9 bytes.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Any

from kit.process.bounded import GivenUpError, command_lines

SIZES = [1 << power for power in range(3, 29)]  # bytes
LIMIT = 60.0  # seconds
HEADER = ("size", "count", "type", "redop", "root", *("time", "algbw", "busbw", "#wrong") * 2)  # out of place, in place
WRONG = (8, 12)
IN_PLACE_BUS = 11  # in place, as PyTorch reduces


def measure(program: str, gpus: int) -> dict[str, Any]:
    """Run ``program``, an all_reduce_perf, on ``gpus`` GPUs; return its rows, in bytes and bytes/s, and its result.

    ``wrong`` is the number of wrong elements, ``bus_bandwidth`` that of the largest message. If it did not run to its
    end, both are None, with the reason in ``problem``, except that wrong elements already found are still reported.
    """
    lines: list[str] = []
    problem = None
    rows: list[dict[str, Any]] = []
    argv = [program, "-b", str(SIZES[0]), "-e", str(SIZES[-1]), "-f", "2", "-g", str(gpus)]
    try:
        for line in command_lines(argv, LIMIT):
            lines.append(line.decode(errors="backslashreplace"))
    except GivenUpError as error:  # also if it found wrong elements, after its table
        problem = str(error)
    try:
        for row in parse(lines):
            rows.append(row)
        if [row["bytes"] for row in rows] != SIZES:
            problem = problem or f"{program} reported {len(rows)} sizes, expected {len(SIZES)}"
    except ValueError as error:
        problem = problem or f"{program} printed unreadable output: {error}"
    wrong = sum(row["wrong"] for row in rows)
    return {
        "program": program,
        "sizes": rows,
        "wrong": wrong if wrong or problem is None else None,
        "bus_bandwidth": rows[-1]["bus_bandwidth"] if problem is None else None,
        "problem": problem,
    }


def parse(lines: Iterable[str]) -> Iterator[dict[str, Any]]:
    """Yield the rows of the table that all_reduce_perf prints. Raise ValueError at a line that is not a row."""
    headed, rows = False, 0
    for line in lines:
        fields = line.split()
        if fields[:2] == ["#", "size"]:
            if tuple(fields[1:]) != HEADER:
                raise ValueError(f"unknown columns {' '.join(fields[1:])}")
            headed = True
        elif fields and fields[0].isdigit():
            if not headed or len(fields) != len(HEADER):
                raise ValueError(f"expected a row of its table, found {line.strip()[:200]}")
            yield _row(fields)
            rows += 1
    if not rows:
        raise ValueError("it has no table")


def _row(fields: list[str]) -> dict[str, Any]:
    bandwidth = float(fields[IN_PLACE_BUS]) * 1e9
    wrong = sum(int(fields[column]) for column in WRONG)
    if not math.isfinite(bandwidth) or bandwidth < 0 or wrong < 0:
        raise ValueError(f"an impossible row: {' '.join(fields)}")
    return {"bytes": int(fields[0]), "bus_bandwidth": bandwidth, "wrong": wrong}
