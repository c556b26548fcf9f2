# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a rank of a training stands still, and how fast it computes by itself."""

from __future__ import annotations

import faulthandler
import os
import statistics
import sys
import threading
import time
from pathlib import Path

import torch
import torch.distributed as dist

from kit.ranks import state as ranks_state

FACTOR = 10.0  # a step may take so many times as long as half of the last ones did
LOOK = 0.5  # seconds between two looks at the clock
PATIENCE = 4 * LOOK  # so much longer lasts a rank that waits: one that stands still says where, before it is ended
RECENT = 50  # steps
COLLECTIVES = ("distributed_c10d.py", "deepspeed/comm/")
BACKWARD = "_engine_run_backward"  # within which DistributedDataParallel's all-reduce waits, without a frame of its own


class Stall:
    """Ends this rank, with its stack in a file, once no step has ended for too long.

    Every rank has one, and a rank that waits for others says so: it is another that stands still. The process group's
    own time-out is longer, and names only those that wait.
    """

    def __init__(self, output: Path, state: ranks_state.RankState, rank: int, seconds: float) -> None:
        """``seconds`` is the least time that counts as a stall. Nothing counts before the first `beat`: until then the
        time-out of the process group is the bound.
        """
        self._path = output / ranks_state.FOLDER / f"stack-{rank}.txt"
        self._state, self._seconds = state, seconds
        self._beat: float | None = None
        self._times = [0.0]
        self._main = threading.main_thread().ident
        self._ended = threading.Event()
        threading.Thread(target=self._watch, name="stall", daemon=True).start()

    def beat(self) -> None:
        """Take note that a step, or whatever else takes its time, has ended."""
        now = time.monotonic()
        if self._beat is not None:
            self._times = [*self._times[1 - RECENT :], now - self._beat]
        self._beat = now

    def rest(self) -> None:
        """Count nothing until the next `beat`: the steps are over."""
        self._beat = None

    def end(self) -> None:
        """Watch no more."""
        self._ended.set()

    @property
    def limit(self) -> float:
        """The seconds after which a step counts as stalled."""
        return max(self._seconds, FACTOR * self.typical)

    @property
    def typical(self) -> float:
        """The seconds that half of the last steps took at most."""
        return statistics.median(self._times)

    def _watch(self) -> None:
        while not self._ended.wait(LOOK):
            beat = self._beat
            if beat is None:
                continue
            took = time.monotonic() - beat
            late = took - self.limit
            if late > PATIENCE or (late > 0 and self._where() != ranks_state.WAITING):
                self._give_up(took)

    def _give_up(self, took: float) -> None:
        try:
            with self._path.open("w") as stream:
                faulthandler.dump_traceback(stream, all_threads=True)
        except OSError:
            pass  # the exit code and the state say the rest
        where = self._where()
        phase = self._state.current
        self._state.phase(f"{ranks_state.FAILED} in {phase}", f"no step for {took:.0f} s, {where}")
        print(f"stalled: no step for {took:.0f} s, {where}; its stack: {self._path}", file=sys.stderr, flush=True)
        os._exit(ranks_state.STALLED)

    def _where(self) -> str:
        """Return whether the main thread waits for other ranks, else what it is at."""
        frame = sys._current_frames().get(self._main or 0)
        innermost = frame
        among_others = dist.is_available() and dist.is_initialized() and dist.get_world_size() > 1
        while frame is not None:
            if any(part in frame.f_code.co_filename for part in COLLECTIVES):
                return ranks_state.WAITING
            if among_others and frame.f_code.co_name == BACKWARD:
                return ranks_state.WAITING
            frame = frame.f_back
        if innermost is None:
            return "not known where"
        code = innermost.f_code
        return f"at {Path(code.co_filename).name}, line {innermost.f_lineno}, {code.co_name}"


def solo(device: torch.device) -> float:
    """Return the seconds of a product of matrices, which waits for no other rank: the pace of this one.

    The steps of all ranks take equally long, since every layer waits for the slowest.
    """
    size = solo_size(device)
    dtype = torch.bfloat16 if device.type == "cuda" else torch.float32
    matrix = torch.ones(size, size, dtype=dtype, device=device)
    times = []
    for _each in range(4):
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        began = time.perf_counter()
        torch.mm(matrix, matrix)
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        times.append(time.perf_counter() - began)
    return min(times[1:])


def solo_size(device: torch.device) -> int:
    """Return the width of the square matrices of `solo`."""
    return 4096 if device.type == "cuda" else 256


def solo_flops(device: torch.device) -> int:
    """Return the floating-point operations of `solo`."""
    return 2 * solo_size(device) ** 3
