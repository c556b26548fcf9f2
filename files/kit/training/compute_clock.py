# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Each rank's own computing time in a step of distributed data parallel training, before it waits for the others.

All ranks' steps take equally long, since each waits for the slowest. What a rank needs until its last gradients are
ready for the all-reduce, without what it waits for others until then, is its own, and names the slow one.

On GPUs it is the GPUs that wait for each other, while the ranks' hosts run on: soon the GPU of the rank whose host is a
little faster finds a step's work all queued, and the other's still waits for its host. One would be timed without its
host and one with it, so only steps count that begin with nothing queued. Imports PyTorch.
"""

# Without the annotations' future: PyTorch compares those of a communication hook, which must be no strings.
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import distributed
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks
from torch.nn.parallel import DistributedDataParallel


class ComputeClock:
    """Times steps: on a GPU by events in its own order of work, which nothing waits for until they are read."""

    def __init__(self, model: DistributedDataParallel, device: torch.device) -> None:
        """Time the steps of ``model``, whose all-reduce stays PyTorch's own.

        ValueError where the model waits for rank 0's buffers before each step: their wait would be every rank's.
        """
        if model.broadcast_buffers and any(True for _buffer in model.buffers()):
            raise ValueError("a model with buffers is to be timed with broadcast_buffers=False")
        self._device = device
        self._steps: list[tuple[Any, Any, Any, list[tuple[Any, Any]], bool]] = []
        self._begun: Any = None
        self._ready: Any = None
        self._waits: list[tuple[Any, Any]] = []
        self._alike = True
        model.register_comm_hook(None, self._reduce)

    def _now(self) -> Any:
        if self._device.type != "cuda":
            return time.perf_counter()
        event = torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    def _reduce(self, _state: None, bucket: distributed.GradBucket) -> torch.futures.Future[torch.Tensor]:
        self._ready = self._now()
        return default_hooks.allreduce_hook(distributed.group.WORLD, bucket)

    def begin(self) -> None:
        """A step begins on a GPU that has nothing left to do, as the other ranks' has not."""
        if self._device.type == "cuda":
            torch.cuda.synchronize(self._device)
        self._begun, self._ready, self._waits, self._alike = self._now(), None, [], True

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """What happens within waits for other ranks, such as a collective: it is no computing."""
        before = self._now()
        yield
        if self._ready is None:
            self._waits.append((before, self._now()))

    def end(self) -> None:
        """A step ended, and the next begins: what a rank does between two steps holds up the others as well."""
        now = self._now()
        self._steps.append((self._begun, self._ready, now, self._waits, self._alike))
        self._begun, self._ready, self._waits, self._alike = now, None, [], self._device.type != "cuda"

    def take(self) -> tuple[list[float], list[float]]:
        """Return the seconds of computing alone and of the whole of the steps since the last call.

        On a GPU the former are of the steps right after ``begin`` alone.
        """
        if self._device.type == "cuda":
            torch.cuda.synchronize(self._device)
        steps, self._steps = self._steps, []
        return [
            self._between(begun, ready) - sum(self._between(*wait) for wait in waits)
            for begun, ready, _end, waits, alike in steps
            if alike
        ], [self._between(begun, end) for begun, _ready, end, _waits, _alike in steps]

    def _between(self, first: Any, second: Any) -> float:
        if self._device.type == "cuda":
            return float(first.elapsed_time(second)) / 1000
        return float(second - first)
