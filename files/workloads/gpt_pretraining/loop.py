# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The loop of a training: read, compute, record, save; the same for every leg and for the whole training."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from engine import Replicated, Sharded
from kit.pretraining.monitor import Monitor
from kit.training.distributed import Group
from settings import Settings
from torch import distributed
from utils.data_loader import Loader
from utils.monitoring import Stall, solo

WARM = 5  # steps that are not timed, as the first ones allocate
STOP_FILE = "stop"  # in the output folder, or the chain's: ends the training with a checkpoint
MARGIN = 60.0  # seconds before the job's time limit, besides those that a step and a checkpoint take


@dataclass
class Run:
    """What all ranks know of the steps, and this rank's own times in seconds."""

    first: int
    losses: list[float] = field(default_factory=list)
    norms: list[float] = field(default_factory=list)
    checksums: list[int] = field(default_factory=list)
    samples: list[list[int]] = field(default_factory=list)  # first and last number of each step, over all ranks
    seconds: list[float] = field(default_factory=list)
    data_seconds: list[float] = field(default_factory=list)
    save_seconds: float = 0.0
    cpu_seconds: float = 0.0  # of this rank's process, over all steps
    solo: list[float] = field(default_factory=list)
    windows: list[list[float]] = field(default_factory=list)
    stopped: str | None = None  # why it ended before its last step

    @property
    def last(self) -> int:
        """The last step."""
        return self.first + len(self.losses) - 1

    def steady(self) -> list[float]:
        """Return the times of the steps after the first few."""
        return self.seconds[WARM:] or self.seconds


class Training:
    """Runs an engine over the steps of a loader."""

    def __init__(
        self,
        joined: Group,
        settings: Settings,
        engine: Replicated | Sharded,
        loader: Loader,
        stall: Stall,
        monitor: Monitor | None = None,
        flops_per_token: float = 0.0,
        peak: float | None = None,
        evaluate: Callable[[], float] | None = None,
    ) -> None:
        """Rank 0 has a ``monitor``; ``peak`` is a GPU's FLOP/s, None on others.

        All ranks ``evaluate`` together before each checkpoint but the last, after which the leg itself does.
        """
        self.joined, self.settings, self.engine, self.loader, self.stall = joined, settings, engine, loader, stall
        self._monitor, self._flops, self._peak = monitor, flops_per_token, peak
        self._longest_save = 0.0
        self._evaluate, self._evaluation_seconds = evaluate, 0.0

    def run(
        self, first: int, last: int, output: Path, save: Callable[[int, bool], None] | None = None, every: int = 0
    ) -> Run:
        """Train from step ``first`` to ``last``; ``save(step, final)`` after each ``every`` of them and at the end."""
        joined, settings = self.joined, self.settings
        run = Run(first)
        window = time.time()
        cpu = time.process_time()
        self.stall.beat()
        for step in range(first, last + 1):
            joined.state.step(step)
            began = time.perf_counter()
            read = self.loader.read(step, joined.device)
            data = time.perf_counter() - began
            done = self.engine.step(read.batches, settings.learning_rate(step))
            probed = (
                solo(joined.device) if step % settings["training.watch.probe_every"] == 0 or step == first else None
            )
            loss, checksum, low, high, asked = self._together(done.loss, read, output)
            took = time.perf_counter() - began - (probed or 0.0)
            run.losses.append(loss)
            run.norms.append(done.grad_norm)
            run.checksums.append(checksum)
            run.samples.append([low, high])
            run.seconds.append(took)
            run.data_seconds.append(data)
            run.solo += [] if probed is None else [probed]
            self.stall.beat()
            broken = not (math.isfinite(loss) and (math.isfinite(done.grad_norm) or settings.precision == "fp16"))
            run.stopped = f"the loss or the gradients of step {step} are not finite" if broken else asked
            due = not broken and (step == last or run.stopped or (every and step % every == 0))
            if save and due and len(run.losses) > WARM:
                run.windows.append([window, time.time()])
            goes_on = step < last and not run.stopped
            self._tell(step, run, done, data, probed, self._evaluated() if save and due and goes_on else None)
            if save and due:
                self._saved(step, step == last, run, save)
                window = time.time()
            if run.stopped:
                break
        self.stall.rest()
        run.cpu_seconds = time.process_time() - cpu
        if not save:
            run.windows.append([window, time.time()])
        return run

    def _evaluated(self) -> float | None:
        if self._evaluate is None:
            return None
        began, phase = time.perf_counter(), self.joined.state.current
        self.joined.state.phase("evaluating")
        loss = self._evaluate()
        self.joined.state.phase(phase)
        self._evaluation_seconds = time.perf_counter() - began
        self.stall.beat()
        return loss

    def _saved(self, step: int, final: bool, run: Run, save: Callable[[int, bool], None]) -> None:
        began, phase = time.perf_counter(), self.joined.state.current
        self.joined.state.phase("saving")
        save(step, final)
        self.joined.state.phase(phase)
        took = time.perf_counter() - began
        run.save_seconds += took
        self._longest_save = max(self._longest_save, took + self._evaluation_seconds)
        if self._monitor:
            self._monitor.checkpoint(step)
        self.stall.beat()

    def _together(self, loss: float, read: Any, output: Path) -> tuple[float, int, int, int, str | None]:
        """Return the mean loss, the checksum and the first and last sample over all ranks, and why to stop, if."""
        joined = self.joined
        ends = self._why_to_end(output) if joined.rank == 0 else 0.0
        # The 53 bits of a mantissa hold the sums: a checksum has 32, and a step has fewer than 2 ** 21 samples.
        sums = torch.tensor([loss, float(read.checksum), ends], dtype=torch.float64, device=joined.device)
        distributed.all_reduce(sums)
        bounds = torch.tensor([-float(read.first), float(read.last)], dtype=torch.float64, device=joined.device)
        distributed.all_reduce(bounds, op=distributed.ReduceOp.MAX)
        total, checksum, asked = sums.tolist()
        why = {0.0: None, 1.0: "it was asked to stop", 2.0: "the job's time limit comes"}[asked]
        return total / joined.size, int(checksum), int(-bounds[0].item()), int(bounds[1].item()), why

    def _why_to_end(self, output: Path) -> float:
        chain = os.environ.get("HPC_VALIDATION_CHAIN")
        if any((folder / STOP_FILE).exists() for folder in (output, *([Path(chain)] if chain else []))):
            return 1.0
        with suppress(KeyError, ValueError):
            left = float(os.environ["SLURM_JOB_END_TIME"]) - time.time()
            return 2.0 if left < MARGIN + 2 * (self.stall.typical + self._longest_save) else 0.0
        return 0.0

    def _tell(
        self, step: int, run: Run, done: Any, data: float, probed: float | None, validation: float | None
    ) -> None:
        solos = None if probed is None else list(self.joined.gather(probed).values())
        if not self._monitor:
            return
        settings, joined = self.settings, self.joined
        took = run.seconds[-1]
        tokens = settings.batch * settings.length
        memory = torch.cuda.max_memory_allocated(joined.device) if joined.device.type == "cuda" else None
        self._monitor.step(
            step,
            loss=run.losses[-1],
            learning_rate=settings.learning_rate(step),
            grad_norm=done.grad_norm,
            steps_per_second=1 / took,
            tokens_per_second=tokens / took,
            memory_bytes=memory,
            loss_scale=self.engine.loss_scale if isinstance(self.engine, Sharded) else None,
            skipped_steps=self.engine.skipped,
            samples=run.samples[-1],
            validation_loss=validation,
        )
        self._monitor.performance(
            step,
            data_seconds=data,
            forward_seconds=done.forward,
            backward_seconds=done.backward,
            optimizer_seconds=done.optimizer,
            step_seconds=took,
            mfu=self.mfu(took),
            solo_seconds=solos,
        )

    def mfu(self, seconds: float) -> float | None:
        """Return the model FLOPs utilisation of a step that took so many seconds; None without a known peak."""
        if not self._peak:
            return None
        return self.flops_per_second(seconds) / self._peak

    def flops_per_second(self, seconds: float) -> float:
        """Return the floating-point operations a second of each rank, of a step that took so many seconds."""
        tokens = self.settings.batch * self.settings.length
        return self._flops * tokens / seconds / self.joined.size
