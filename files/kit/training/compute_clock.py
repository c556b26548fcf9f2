# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Each rank's own computing time in a step of distributed data parallel training, before it waits for the others.

All ranks' steps take equally long, since each waits for the slowest. A rank's own time ends when its last gradients are
ready for the all-reduce, minus any waiting for others until then; it identifies the slow rank.

On GPUs the GPUs wait for each other while the ranks' hosts run ahead: soon the GPU of the rank with the slightly faster
host finds a step's work all queued, while another GPU still waits for its host. One would be timed without its host
and one with it, so only steps that begin with nothing queued count. Imports PyTorch.
"""

# No `annotations` from __future__: PyTorch compares those of a communication hook, which must not be strings.
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import distributed
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks
from torch.nn.parallel import DistributedDataParallel


class ComputeClock:
    """Times steps: on a GPU with events in its own stream, for which nothing waits until they are read."""

    def __init__(self, model: DistributedDataParallel, device: torch.device) -> None:
        """Time the steps of ``model``, which keeps PyTorch's own all-reduce.

        Raise ValueError if the model waits for rank 0's buffers before each step: that wait would count for every rank.
        """
        if model.broadcast_buffers and any(True for _buffer in model.buffers()):
            raise ValueError("a model with buffers needs broadcast_buffers=False to be timed")
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
        """Begin a step while this rank's GPU and those of the other ranks have nothing left to do."""
        if self._device.type == "cuda":
            torch.cuda.synchronize(self._device)
        self._begun, self._ready, self._waits, self._alike = self._now(), None, [], True

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Exclude code that waits for other ranks, such as a collective, from the computing time."""
        before = self._now()
        yield
        if self._ready is None:
            self._waits.append((before, self._now()))

    def end(self) -> None:
        """End a step and begin the next: time between two steps delays the other ranks as well."""
        now = self._now()
        self._steps.append((self._begun, self._ready, now, self._waits, self._alike))
        self._begun, self._ready, self._waits, self._alike = now, None, [], self._device.type != "cuda"

    def take(self) -> tuple[list[float], list[float]]:
        """Return the seconds of computing and of the whole steps since the last call.

        On a GPU the former include only steps right after ``begin``.
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
