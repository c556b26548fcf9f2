# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Measure the memory that gradient checkpointing saves and the time it costs: the same steps with and without it."""

from __future__ import annotations

import gc
import statistics
import time
from pathlib import Path
from typing import Any

import torch
from kit.training import inference
from torch.autograd.graph import saved_tensors_hooks

ROUNDS = {"cuda": 10, "cpu": 2}  # steps with and without it alternate, so that a drift of the machine affects both
MEASURED = {
    "cuda": "peak of the GPU's allocated memory, with weights, gradients and the optimizer's state",
    "cpu": "tensors that autograd keeps for the backward pass",
}
LONGEST = 60.0  # seconds: the other ranks are waiting, but not for long
LEAST = 5  # minimum number of steps
TOO_SLOW = "nothing: {seconds:.0f} s for one step is too long to compare several"
DOES_NOT_FIT = "a step without checkpointing does not fit into the GPU's memory"


class Steps:
    """Training steps of a model on one batch of whole rows, in the data types of MLOPS-2.2."""

    def __init__(self, model: Any, rows: int, length: int) -> None:
        """Take ``rows`` of ``length`` tokens each; which tokens does not matter, they cost the same."""
        self._model = model.train()
        self._device = model.device
        self._optimizer = torch.optim.AdamW(model.parameters(), lr=1e-6)
        tokens = torch.randint(model.config.vocab_size, (rows, length), generator=torch.Generator().manual_seed(0))
        self._tokens = tokens.to(self._device)

    def seconds(self, checkpointed: bool) -> float:
        """Run a step; return its duration."""
        self._switch(checkpointed)
        self._wait()
        began = time.perf_counter()
        self._loss().backward()
        self._optimizer.step()
        self._optimizer.zero_grad(set_to_none=True)
        self._wait()
        return time.perf_counter() - began

    def memory(self, checkpointed: bool) -> int:
        """Return a step's peak GPU memory in bytes; on a CPU, the bytes that autograd keeps in a pass."""
        if self._device.type == "cuda":
            torch.cuda.reset_peak_memory_stats(self._device)
            self.seconds(checkpointed)
            return torch.cuda.max_memory_allocated(self._device)
        self._switch(checkpointed)
        return self._kept()

    def _switch(self, checkpointed: bool) -> None:
        if checkpointed:
            self._model.gradient_checkpointing_enable({"use_reentrant": False})
        else:
            self._model.gradient_checkpointing_disable()

    def _loss(self) -> torch.Tensor:
        with torch.autocast(self._device.type, dtype=torch.bfloat16, enabled=self._device.type == "cuda"):
            return self._model(input_ids=self._tokens, labels=self._tokens, use_cache=False).loss

    def _kept(self) -> int:
        """Return the bytes that autograd keeps, without the weights, which are in memory anyway."""
        weights = {parameter.untyped_storage().data_ptr() for parameter in self._model.parameters()}
        kept: dict[int, int] = {}

        def keep(tensor: torch.Tensor) -> torch.Tensor:
            storage = tensor.untyped_storage()
            if storage.data_ptr() not in weights:
                kept[storage.data_ptr()] = storage.nbytes()
            return tensor

        with saved_tensors_hooks(keep, lambda tensor: tensor):
            loss = self._loss()  # held until all is counted: freed memory would be reused and miscounted
        del loss
        return sum(kept.values())

    def _wait(self) -> None:
        if self._device.type == "cuda":
            torch.cuda.synchronize(self._device)


def compare(folder: Path, device: torch.device, rows: int, length: int) -> dict[str, Any]:
    """Return the memory and time of a step of the model in ``folder`` with and without checkpointing.

    In bytes and seconds; memory saved and speed lost as a percentage of the step without. If it cannot be measured, the
    result says why instead of raising: the figures are only recorded and must not fail the training.
    """
    began = time.monotonic()
    gc.collect()  # left by the training
    already = torch.cuda.memory_allocated(device) if device.type == "cuda" else 0
    seconds: dict[bool, list[float]] = {True: [], False: []}
    try:
        steps = Steps(inference.load(folder, device), rows, length)
        first = steps.seconds(checkpointed=True)  # creates the optimizer's state
        if LEAST * first > LONGEST:
            return {"measured": TOO_SLOW.format(seconds=first)}
        taken = {checkpointed: steps.memory(checkpointed) - already for checkpointed in (True, False)}
        for number in range(ROUNDS[device.type]):
            if number and time.monotonic() - began > LONGEST:
                break
            for checkpointed, found in seconds.items():
                found.append(steps.seconds(checkpointed))
    except torch.OutOfMemoryError:
        return {"measured": DOES_NOT_FIT}
    except RuntimeError as error:
        return {"measured": f"nothing: {type(error).__name__}: {error}"[:300]}
    with_it, without = statistics.median(seconds[True]), statistics.median(seconds[False])
    return {
        "measured": MEASURED[device.type],
        "rows": rows,
        "row_tokens": length,
        "bytes_with": taken[True],
        "bytes_without": taken[False],
        "step_seconds_with": with_it,
        "step_seconds_without": without,
        "memory_saved_percent": 100 * (1 - taken[True] / taken[False]),
        "speed_lost_percent": 100 * (1 - without / with_it),
    }
