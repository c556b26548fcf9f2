# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The training loop: everything that a profile says about how a model is trained."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from encoder import Encoder
from evaluation import LOSS, LOSSES, Stopping, Sums, evaluated
from kit.errors import KitError
from kit.pretraining import checkpoints
from kit.profiles import arithmetic
from kit.profiles.model import Profile
from kit.trackers.sinks import Tracker
from kit.training.distributed import Group
from kit.training.stall import Stall
from saving import Saver, give_moments
from schedule import frozen_blocks, learning_rate
from torch import distributed, nn
from torch.nn.parallel import DistributedDataParallel
from watching import Health, Rows, evaluation_of, prepare
from windows import Order, Windows, reader

DTYPES = {"float16": torch.float16, "bfloat16": torch.bfloat16}
COMPLETE, EARLY, LIMITED = "complete", "nothing more was learnt", "debug.limit_batches"
TRACED = (3, 5)  # steps that the profiler looks at
WATCHED = 120.0  # seconds: in the last of a training its GPUs are judged


@dataclass
class Done:
    """What came of a training; rates and times are of this process, losses of all ranks."""

    ended: str = COMPLETE
    first: int = 1
    last: int = 0
    rows: list[dict[str, Any]] = field(default_factory=list)
    evaluations: list[dict[str, Any]] = field(default_factory=list)
    seconds: float = 0.0
    sink_seconds: float = 0.0
    sink_rows: int = 0
    scale_falls: int = 0
    best: float | None = None
    samples: int = 0  # that this rank computed gradients of
    dtype: str | None = None  # of the answers, as the model gave them
    window: list[float] = field(default_factory=list)  # begin and end, seconds since the epoch
    opened: dict[str, int] = field(default_factory=dict)  # step at which a number of frozen blocks began


class Trainer:
    """A model being trained as a profile says."""

    def __init__(
        self,
        joined: Group,
        profile: Profile,
        train: Windows,
        validation: Windows,
        output: Path,
        *,
        saver: Saver | None = None,
        stall: Stall | None = None,
        begins_with: dict[str, torch.Tensor] | None = None,
        module: Encoder | None = None,
    ) -> None:
        """Make model and optimizer; go on from the saver's newest checkpoint if there is one and the profile resumes.

        ``begins_with``: another model's weights. ``module``: a model that is there, in place of the profile's. Raise
        KitError if the data is not what the profile says.
        """
        if len(train) != profile.data.train_samples:
            raise KitError(f"{len(train)} training samples; data.train_samples is {profile.data.train_samples}")
        self.joined, self.profile, self.output = joined, profile, output
        self._train, self._validation, self._saver, self._stall = train, validation, saver, stall
        training, reproducible = profile.training, profile.reproducibility
        torch.manual_seed(reproducible.seed)
        torch.backends.cudnn.benchmark = reproducible.benchmark
        torch.autograd.set_detect_anomaly(profile.debug.detect_anomaly)
        self.module = module or Encoder(profile.model, activation_checkpointing=training.activation_checkpointing)
        if begins_with is not None:
            self.module.load_state_dict(begins_with)
        self.module.to(joined.device)
        torch.manual_seed(reproducible.seed * 1000 + joined.rank)  # what dropout leaves out differs between ranks
        self.stopping = Stopping(profile)
        self.step, self._frozen = 0, -1
        self.ended: str | None = None  # why the training was over before its last step
        self.scale_falls = 0  # steps that were left out as the loss's scale was too large
        mixed = training.mixed_precision
        self._dtype = DTYPES[mixed.dtype] if mixed.enabled else None
        self._fixed = mixed.loss_scale if isinstance(mixed.loss_scale, float) else None
        self._scaler = torch.amp.GradScaler(
            joined.device.type,
            init_scale=self._fixed or 2.0**16,
            enabled=mixed.enabled and mixed.dtype == "float16",
        )
        self._left_out = False  # the step before
        self.came_from: dict[str, Any] | None = None
        self._moments: dict[str, torch.Tensor] = {}
        if saver and profile.fault_tolerance.resume:
            self._resume(saver)
        elif saver and checkpoints.listed(saver.folder):
            why = "has checkpoints of an earlier training, which this one would mix with its own"
            raise KitError(f"{saver.folder} {why}: set fault_tolerance.resume, or another folder")
        self._before = prepare(output, self.step) if joined.rank == 0 else []
        self._open(self._epoch(self.step + 1))
        give_moments(self.module, self.optimizer, self._moments)

    def _resume(self, saver: Saver) -> None:
        taken = saver.newest()
        if taken is None:
            return
        found = taken.manifest
        self._moments = saver.restore(taken, self.module)
        self.step = int(found["step"])
        self.stopping.best, self.stopping.without = found["early_stopping"]
        if found["scaler"]:
            self._scaler.load_state_dict(found["scaler"])
        self.ended, self.scale_falls, saver.saved = found["ended"], found["scale_falls"], [*found["saved"], self.step]
        self.came_from = {"step": self.step, "checkpoint": taken.path.name, "refused": taken.refused}

    def _epoch(self, step: int) -> int:
        """Return the epoch of a step; both count from 1."""
        return (step - 1) // arithmetic.steps_per_epoch(self.profile) + 1

    def _open(self, epoch: int) -> None:
        """Freeze and open blocks as an epoch needs it; the optimizer holds no weight that is frozen."""
        frozen = frozen_blocks(self.profile.transfer_learning, epoch)
        if frozen == self._frozen:
            return
        self._frozen = frozen
        module = self.module
        module.positions.requires_grad_(not frozen)
        for part in (module.input, *module.blocks):
            part.requires_grad_(True)
        if frozen:
            for part in (module.input, *module.blocks[:frozen]):
                part.requires_grad_(False)
        for weight in module.parameters():
            weight.grad = None  # a gradient of zero would let the decay move a weight
        chosen = self.profile.training.optimizer
        kind = torch.optim.AdamW if chosen.name == "adamw" else torch.optim.Adam
        before = getattr(self, "optimizer", None)
        self.optimizer = kind(
            [weight for weight in module.parameters() if weight.requires_grad],
            lr=chosen.lr,
            betas=(chosen.betas[0], chosen.betas[1]),
            eps=chosen.eps,
            weight_decay=chosen.weight_decay,
        )
        if before is not None:
            self.optimizer.state.update(
                {weight: state for weight, state in before.state.items() if weight.requires_grad}
            )
        device_ids = [self.joined.device.index] if self.joined.device.type == "cuda" else None
        self.model: nn.Module = DistributedDataParallel(
            module,
            device_ids=device_ids,
            find_unused_parameters=self.profile.distributed.find_unused_parameters,
        )
        self._rehearse()

    def _rehearse(self) -> None:
        """Let gradients be exchanged once for nothing.

        After the first time DDP orders them anew, and other sums round otherwise: a training that goes on from a
        checkpoint would differ in the last bits from one that never stopped.
        """
        device, model = self.joined.device, self.profile.model
        with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
            with self._autocast():
                answers = self.model(torch.zeros(1, model.window, model.input_features, device=device))
            answers.float().sum().backward()
        for weight in self.module.parameters():
            weight.grad = None

    def _autocast(self) -> torch.autocast:
        return torch.autocast(self.joined.device.type, dtype=self._dtype, enabled=self._dtype is not None)

    def evaluate(self, windows: Windows | None = None) -> dict[str, float]:
        """Return loss and metrics on the validation data, or on other data, of all ranks together."""
        data = self._validation if windows is None else windows
        rank, ranks, micro = self.joined.rank, self.joined.size, self.profile.training.batch_size
        own = np.arange(rank, len(data), ranks)
        parts = [own[begin : begin + micro] for begin in range(0, len(own), micro)]
        sums = Sums(self.profile, self.joined.device)
        evaluated(self.module, self._read(data, parts), sums, self.joined.device, self._autocast)
        distributed.all_reduce(sums.totals)
        return sums.metrics()

    def _read(self, data: Windows, parts: Sequence[np.ndarray]) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        """Return the samples part by part; each shows that this rank does not stand still."""
        for part in parts:
            yield data[part]
            if self._stall:
                self._stall.beat()

    def run(
        self,
        last: int | None = None,
        before_step: Callable[[int], None] = lambda _step: None,
        sinks: Sequence[Tracker] = (),
    ) -> Done:
        """Train to the last step; return what came of it. ``before_step`` is told the number of each that begins.

        ``sinks`` are passed the rows of figures.
        """
        profile, training = self.profile, self.profile.training
        total = arithmetic.steps(profile) if last is None else last
        done = Done(first=self.step + 1, last=self.step, rows=[*self._before])
        done.evaluations = [evaluation_of(row) for row in self._before if LOSS in row]
        rows = Rows(self.output, sinks) if self.joined.rank == 0 else None
        health = Health(
            self.output / "ranks", self.joined.rank, profile.monitoring.health_check_seconds, lambda: self.step
        )
        order = Order(profile, self.joined.rank, self.joined.size, self.step + 1, total)
        batches = iter(reader(self._train, order, profile, self.joined.device))
        begun = time.time()
        began = since = time.perf_counter()
        losses: list[torch.Tensor] = []
        logged = self.step
        self.model.train()
        try:
            with self._profiled() as profiler:
                while self.step < total and self.ended is None:
                    step = self.step + 1
                    before_step(step)
                    self._open(self._epoch(step))
                    done.opened.setdefault(str(self._frozen), step)
                    rate = learning_rate(profile, step)
                    loss, norm = self._update(batches, rate, done)
                    self.step = step
                    losses.append(loss)
                    if self._stall:
                        self._stall.beat()
                    if profiler:
                        profiler.step()
                    row: dict[str, Any] = {}
                    if step % training.log_every_steps == 0 or step == total:
                        now = time.perf_counter()
                        row = self._figures(losses, rate, now - since, step - logged)
                        losses, since, logged = [], now, step
                    if step % profile.monitoring.gradient_norm_every_steps == 0 and not self._left_out:
                        row["grad_norm"] = float(norm)
                    improved, limited = False, self._limited(step)
                    if step % training.evaluation.every_steps == 0 or step == total or limited:
                        found = self.evaluate()
                        monitored = found[
                            LOSS if training.early_stopping.monitor == LOSS else training.early_stopping.monitor
                        ]
                        improved = self.stopping.improves(monitored)
                        done.evaluations.append({"step": step, **found})
                        row.update(found)
                    if row:
                        row = {"step": step, "steps": total, "epoch": self._epoch(step), **row}
                        done.rows.append(row)
                        if rows:
                            rows.row(**row)
                    if rows and step % profile.monitoring.weight_histogram_every_steps == 0:
                        rows.histograms(step, self.module)
                    self._tidy(step)
                    if "loss" in row and not math.isfinite(row["loss"]):
                        raise KitError(f"the loss of the steps up to {step} is {row['loss']}")
                    if step < total:
                        self.ended = EARLY if self.stopping.fires else LIMITED if limited else None
                    self._save(step, improved=improved, final=step == total or self.ended is not None)
        finally:
            del batches  # with it the processes that read, which keep pipes open
            health.end()
            if rows:
                rows.close()
        done.ended, done.scale_falls = self.ended or COMPLETE, self.scale_falls
        done.last, done.best = self.step, self.stopping.best
        done.seconds = time.perf_counter() - began
        done.window = [max(begun, time.time() - WATCHED), time.time()]
        if rows:
            done.sink_seconds, done.sink_rows = rows.seconds, rows.written
        return done

    def _update(self, batches: Any, rate: float, done: Done) -> tuple[torch.Tensor, torch.Tensor]:
        """Compute a step; return its loss, of all ranks, and the norm of its gradients before clipping."""
        parts, device = self.profile.training.gradient_accumulation_steps, self.joined.device
        function = LOSSES[self.profile.training.loss.name]
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        self.optimizer.zero_grad(set_to_none=True)
        total = torch.zeros((), device=device)
        for part in range(parts):
            inputs, truth = next(batches)
            apart: Callable[[], AbstractContextManager[None]] = nullcontext if part == parts - 1 else self.model.no_sync
            with apart():
                with self._autocast():
                    answers = self.model(inputs.to(device, non_blocking=True))
                done.samples += len(truth)
                done.dtype = str(answers.dtype).removeprefix("torch.")
                loss = function(answers.float(), truth.to(device, non_blocking=True)) / parts
                self._scaler.scale(loss).backward()
            total += loss.detach()
        self._scaler.unscale_(self.optimizer)
        weights = [weight for weight in self.module.parameters() if weight.requires_grad]
        norm = nn.utils.clip_grad_norm_(weights, self.profile.training.gradient_clipping.max_norm)
        before = self._scaler.get_scale()
        self._scaler.step(self.optimizer)
        self._scaler.update()
        self._left_out = self._scaler.get_scale() < before
        self.scale_falls += self._left_out
        if self._fixed:
            self._scaler.update(self._fixed)  # it was halved for the step that was left out
        return total, norm

    def _figures(self, losses: list[torch.Tensor], rate: float, seconds: float, steps: int) -> dict[str, Any]:
        loss = torch.stack(losses).mean()
        distributed.all_reduce(loss)
        figures = {"loss": float(loss) / self.joined.size, "lr": rate}
        if self.profile.monitoring.throughput:
            figures["steps_per_second"] = steps / seconds
            figures["samples_per_second"] = steps * arithmetic.samples_per_step(self.profile) / seconds
        if self._scaler.is_enabled():
            figures["loss_scale"] = self._scaler.get_scale()
        if self.joined.device.type == "cuda":
            figures["memory_bytes"] = torch.cuda.max_memory_allocated(self.joined.device)
        return figures

    def _tidy(self, step: int) -> None:
        """Give the memory that PyTorch holds back to the GPU, as often as the profile says."""
        optimizations = self.profile.embedded_optimizations
        every = optimizations.empty_cache_every_steps if optimizations else None
        if every and step % every == 0 and self.joined.device.type == "cuda":
            torch.cuda.empty_cache()

    def _limited(self, step: int) -> bool:
        """Return whether the training has had the micro batches that the profile limits it to."""
        limit = self.profile.debug.limit_batches
        return limit is not None and step * self.profile.training.gradient_accumulation_steps >= limit

    def _save(self, step: int, *, improved: bool, final: bool) -> None:
        saved = self.profile.training.checkpointing
        if self._saver and (final or step % saved.every_steps == 0 or (saved.best_only and improved)):
            state = {
                "step": step,
                "early_stopping": [self.stopping.best, self.stopping.without],
                "scaler": self._scaler.state_dict(),
                "scale_falls": self.scale_falls,
                "ended": self.ended if self.ended == EARLY else None,  # a limit may be another the next time
                "saved": self._saver.saved,
            }
            self._saver.save(self.module, self.optimizer, state, best=improved, final=final)
            if self._stall:
                self._stall.beat()

    def _profiled(self) -> AbstractContextManager[Any]:
        if not self.profile.debug.profiler or self.joined.rank:
            return nullcontext()
        first, last = TRACED
        path = str(self.output / "trace.json")
        return torch.profiler.profile(
            schedule=torch.profiler.schedule(wait=first - 2, warmup=1, active=last - first + 1, repeat=1),
            on_trace_ready=lambda profiler: profiler.export_chrome_trace(path),
        )
