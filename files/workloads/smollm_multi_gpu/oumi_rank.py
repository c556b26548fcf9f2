# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run Oumi's own training on one rank, with a clock, in the process group that this project has formed."""

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

IDLE = ("init_distributed", "cleanup_distributed", "log_devices_info")  # functions of Oumi that must do nothing here


class RankClock(StepClock):
    """The clock; also reports this rank's step and computing time, and the final model."""

    def __init__(self, group: Group, progress: Progress | None) -> None:
        super().__init__(progress)
        self.group = group
        self.checksum: str | None = None  # of a model that is not sharded
        self.parameters_share: float | None = None  # the part of the model's that this rank holds
        self.device: str | None = None
        self.memory_share: float | None = None  # peak, of the GPU's
        self.compute_seconds: float | None = None  # of the median step; only with several ranks and DDP
        self._compute: ComputeClock | None = None
        self._search: Any = None

    def on_train_begin(self, *states: Any, **other: Any) -> None:
        """Start a new measurement; find the model that synchronises with other ranks, which callbacks do not get."""
        if self.group.device.type == "cuda":
            torch.cuda.reset_peak_memory_stats(self.group.device)
        if self.group.size > 1:
            self._search = register_module_forward_pre_hook(self._look_at)
        super().on_train_begin(*states, **other)

    def _look_at(self, module: torch.nn.Module, _inputs: Any) -> None:
        if isinstance(module, DistributedDataParallel):
            self._search.remove()
            # Oumi has no setting for this. The buffers are the rotary embedding's constants: nothing to wait for.
            module.broadcast_buffers = False
            self._compute = ComputeClock(module, self.group.device)
            self._compute.begin()

    @contextmanager
    def waits_counted(self) -> Iterator[None]:
        """Exclude waiting for other ranks from the computing time: TRL gathers figures within each pass."""
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
        """Wait for the rank that saves: on the others, its time would count as part of a step."""
        distributed.barrier()
        super().on_save(*states, **other)

    def on_step_begin(self, _args: TrainingArguments, state: TrainerState, *_other: Any, **_more: Any) -> None:
        """Report which step begins. The ranks have just synchronised to add up their tokens."""
        self.group.state.step(state.global_step + 1)
        if self._compute:
            self._compute.begin()

    def on_step_end(self, *_states: Any, **_other: Any) -> None:
        """Record the step's time."""
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
        """Inspect the weights while they exist, then release them: another training may follow."""
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
    """What one rank trains, and on which device."""

    config: Path
    model: Path
    data: Path
    device: str  # cpu, or cuda:N
    accumulation: int
    strategy: str = "ddp"  # of oumi_sharding.STRATEGIES

    @property
    def overrides(self) -> list[str]:
        """Settings that depend on the job, as Oumi's dotted overrides."""
        chosen = [
            *training_oumi.overrides(self.model, self.data / "train.jsonl", on_cpu=self.device == "cpu"),
            f"training.gradient_accumulation_steps={self.accumulation}",
            *(f"{switch}={str(name == self.strategy).lower()}" for name, switch in SWITCHES.items()),
            # By default Oumi would spread the model over all GPUs that a rank sees.
            f"model.device_map={self.device}",
        ]
        if is_stand_in(self.model):
            rows = strict_json.read(self.data / "provenance.json")["rows"]["train"]
            chosen.append(f"data.train.datasets[0].sample_count={rows}")
        return chosen


def train(job: Job, group: Group, progress: Progress | None, *changes: str) -> RankClock:
    """Run Oumi's training to its end; return the clock. Raises what Oumi raises, and NotFiniteError.

    Oumi forms a process group itself, with NCCL only, and destroys it at the end. One already exists, for any device,
    in which the ranks have agreed on what they run, so those two functions must do nothing. Neither must the one with
    which the first rank would print every GPU's memory: that uses some of it, and fails if a GPU allows only one
    process (compute mode EXCLUSIVE_PROCESS).
    """
    if job.device == "cpu":
        os.environ["ACCELERATE_USE_CPU"] = "true"
    # After the import `oumi.train` is a function; the names to patch are in the module of that name.
    module = importlib.import_module("oumi.train")
    for name in IDLE:
        setattr(module, name, lambda *_, **__: None)
    config = training_oumi.configuration(job.config, [*job.overrides, *changes])
    clock = RankClock(group, progress)
    with training_oumi.watched_by(clock), clock.waits_counted(), sharing(job.strategy):
        module.train(config)
    return clock
