# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Oumi's own training on one rank, in the process group that this project has formed, with a clock beside it."""

from __future__ import annotations

import importlib
import os
import statistics
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from accelerate import Accelerator
from kit import strict_json
from kit.metrics import Progress
from kit.staged import is_stand_in
from kit.training import oumi as training_oumi
from kit.training.compute_clock import ComputeClock
from kit.training.distributed import Group, checksum
from kit.training.oumi import WARM_UP
from kit.training.step_clock import StepClock
from oumi_sharding import SWITCHES, is_sharded, own_share, sharing
from torch import distributed
from torch.nn.modules.module import register_module_forward_pre_hook
from torch.nn.parallel import DistributedDataParallel
from transformers import TrainerControl, TrainerState, TrainingArguments

IDLE = ("init_distributed", "cleanup_distributed", "log_devices_info")  # functions of Oumi that have nothing to do here


class RankClock(StepClock):
    """The clock, this rank's report of its step and of its own computing, and what the model was at the end."""

    def __init__(self, group: Group, progress: Progress | None) -> None:
        super().__init__(progress)
        self.group = group
        self.checksum: str | None = None  # of a model that is whole on each rank
        self.parameters_share: float | None = None  # that this rank holds, of the model's
        self.device: str | None = None
        self.memory_share: float | None = None  # of the GPU's, at most
        self.compute_seconds: float | None = None  # of the median step; only with others to wait for, and their model
        self._compute: ComputeClock | None = None
        self._search: Any = None

    def on_train_begin(self, *states: Any, **other: Any) -> None:
        """Begin a new measure; find the model that meets the other ranks, which callbacks are not given."""
        if self.group.device.type == "cuda":
            torch.cuda.reset_peak_memory_stats(self.group.device)
        if self.group.size > 1:
            self._search = register_module_forward_pre_hook(self._look_at)
        super().on_train_begin(*states, **other)

    def _look_at(self, module: torch.nn.Module, _inputs: Any) -> None:
        if isinstance(module, DistributedDataParallel):
            self._search.remove()
            # Oumi leaves no way to say so. The buffers are the rotary embedding's constants: nothing to wait for.
            module.broadcast_buffers = False
            self._compute = ComputeClock(module, self.group.device)
            self._compute.begin()

    @contextmanager
    def waits_counted(self) -> Iterator[None]:
        """Leave out of a rank's computing what it waits for others: TRL gathers figures within each pass."""
        gather = Accelerator.gather

        def counted(accelerator: Accelerator, tensor: Any) -> Any:
            with self._compute.waiting() if self._compute else nullcontext():
                return gather(accelerator, tensor)

        Accelerator.gather = counted
        try:
            yield
        finally:
            Accelerator.gather = gather

    def on_save(self, *states: Any, **other: Any) -> None:
        """Wait for the rank that saves: on the others its time would count as a step's."""
        distributed.barrier()
        super().on_save(*states, **other)

    def on_step_begin(self, _args: TrainingArguments, state: TrainerState, *_other: Any, **_more: Any) -> None:
        """Tell which step begins. The ranks have just met, to add up their tokens."""
        self.group.state.step(state.global_step + 1)
        if self._compute:
            self._compute.begin()

    def on_step_end(self, *_states: Any, **_other: Any) -> None:
        """Take the step's time."""
        if self._compute:
            self._compute.end()

    def on_train_end(
        self,
        _args: TrainingArguments,
        _state: TrainerState,
        _control: TrainerControl,
        model: Any = None,
        **_other: Any,
    ) -> None:
        """Look at the weights while they are there, and let go of them: another training may follow."""
        if not is_sharded(model):
            self.checksum = checksum(model)
        self.parameters_share = own_share(model)
        devices = {parameter.device for parameter in model.parameters()}
        self.device = ", ".join(sorted({device.type for device in devices}))
        if self.group.device.type == "cuda":
            total = torch.cuda.get_device_properties(self.group.device).total_memory
            self.memory_share = torch.cuda.max_memory_allocated(self.group.device) / total
        if self._search:
            self._search.remove()
        if self._compute and (seconds := self._compute.take()[0][WARM_UP:]):
            self.compute_seconds = statistics.median(seconds)
        self.model = self._compute = None


@dataclass(frozen=True)
class Job:
    """What one rank trains, and on what."""

    config: Path
    model: Path
    data: Path
    device: str  # cpu, or cuda:N
    accumulation: int
    strategy: str = "ddp"  # of oumi_sharding.STRATEGIES

    @property
    def overrides(self) -> list[str]:
        """What depends on the job, in Oumi's own dotted words."""
        chosen = [
            *training_oumi.overrides(self.model, self.data / "train.jsonl", on_cpu=self.device == "cpu"),
            f"training.gradient_accumulation_steps={self.accumulation}",
            *(f"{switch}={str(name == self.strategy).lower()}" for name, switch in SWITCHES.items()),
            # By itself Oumi would spread the model over all GPUs that one rank sees.
            f"model.device_map={self.device}",
        ]
        if is_stand_in(self.model):
            rows = strict_json.read(self.data / "provenance.json")["rows"]["train"]
            chosen.append(f"data.train.datasets[0].sample_count={rows}")
        return chosen


def train(job: Job, group: Group, progress: Progress | None, *changes: str) -> RankClock:
    """Run Oumi's training to its end; return the clock. What Oumi raises, and NotFiniteError, goes through.

    Oumi forms a process group itself, by NCCL alone, and takes it down at its end. There is one already, on whichever
    device, in which the ranks have agreed on what they run; so those two functions have nothing to do. Nor has the one
    with which the first rank would print every GPU's memory: that takes some of it, and fails where a GPU is for one
    process alone (compute mode EXCLUSIVE_PROCESS).
    """
    if job.device == "cpu":
        os.environ["ACCELERATE_USE_CPU"] = "true"
    # `oumi.train` is a function once it was imported from; the module of that name is what holds its names.
    module = importlib.import_module("oumi.train")
    for name in IDLE:
        setattr(module, name, lambda *_, **__: None)
    config = training_oumi.configuration(job.config, [*job.overrides, *changes])
    clock = RankClock(group, progress)
    with training_oumi.watched_by(clock), clock.waits_counted(), sharing(job.strategy):
        module.train(config)
    return clock
