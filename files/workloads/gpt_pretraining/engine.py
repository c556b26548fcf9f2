# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One interface to a model that every rank has whole (DDP), and to one that DeepSpeed's ZeRO shards over the ranks.

The state of a sharded one is read and written by the names of its parameters: each rank's part of the 32-bit weights
and of the optimizer's moments. That leans on six attributes of DeepSpeed's optimizer of stage 3, and therefore its
version is pinned: fp32_partitioned_groups_flat, fp16_groups, fp16_partitioned_groups, fp16_partitioned_groups_flat,
loss_scaler, and param_names.
"""

from __future__ import annotations

import copy
import hashlib
import importlib
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from gpt import GPT, Shape, groups
from kit.errors import KitError
from kit.training.distributed import Group
from settings import Settings
from torch import distributed
from torch.nn.parallel import DistributedDataParallel

PRECISIONS = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}
MOMENTS = ("exp_avg", "exp_avg_sq")
# What DeepSpeed's factor of the loss in half precision has learned.
SCALER = {"cur_scale": float, "cur_iter": int, "last_overflow_iter": int, "cur_hysteresis": int}
Batch = tuple[torch.Tensor, torch.Tensor]  # tokens and targets, each (samples, length)
Tensors = dict[str, torch.Tensor]


@dataclass
class Step:
    """What a rank knows of a step: its own mean loss in nats, the norm of all gradients, and its times in seconds."""

    loss: float
    grad_norm: float
    forward: float
    backward: float
    optimizer: float


class Engine(Protocol):
    """A model that trains."""

    model: GPT

    def step(self, batches: Sequence[Batch], learning_rate: float) -> Step:
        """Train on a rank's micro batches and update the weights."""

    def loss(self, batches: Sequence[Batch]) -> float:
        """Return this rank's mean loss without training."""

    @property
    def skipped(self) -> int:
        """The number of updates that were left out, as their gradients were not finite."""


def shape_of(settings: Settings) -> Shape:
    """Return the model's numbers."""
    return Shape(*(settings[f"model.{name}"] for name in ("n_embd", "n_layer", "n_head", "n_positions", "vocab_size")))


def build(settings: Settings, device: torch.device) -> GPT:
    """Return the model with its initial weights, in 32 bits."""
    model = GPT(shape_of(settings)).begin(settings["training.seed"]).to(device)
    if settings["training.compile"]:
        for block in model.h:
            block.compile()
    return model


def optimizer_of(model: torch.nn.Module, settings: Settings) -> torch.optim.AdamW:
    """Return AdamW with the settings' numbers; the learning rate is set in each step."""
    return torch.optim.AdamW(
        groups(model, settings["training.optimizer.weight_decay"]),
        lr=settings["training.schedule.learning_rate"],
        betas=tuple(settings["training.optimizer.betas"]),
        eps=settings["training.optimizer.eps"],
    )


def now(device: torch.device) -> float:
    """Return the time, once the device has done what it was given."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return time.perf_counter()


class Replicated:
    """Every rank has the whole model: PyTorch's distributed data parallel.

    In half precision it keeps what ZeRO keeps: weights of 16 bits to compute with, and for the optimizer those of 32.
    """

    skipped = 0

    def __init__(self, settings: Settings, joined: Group) -> None:
        """Build the same model on every rank."""
        self._settings, self._device = settings, joined.device
        dtype = PRECISIONS[settings.precision]
        self.model = build(settings, joined.device).to(dtype)
        # As with ZeRO, the weights of 32 bits begin with the values of those of 16.
        exact = self.model if dtype == torch.float32 else copy.deepcopy(self.model).float()
        self._exact = [] if exact is self.model else list(exact.parameters())
        self._optimizer = optimizer_of(exact, settings)
        self._trained = DistributedDataParallel(
            self.model, device_ids=[joined.device.index] if joined.device.type == "cuda" else None
        )

    def step(self, batches: Sequence[Batch], learning_rate: float) -> Step:
        """Train on a rank's micro batches and update the weights."""
        for group in self._optimizer.param_groups:
            group["lr"] = learning_rate
        self.model.zero_grad(set_to_none=True)
        losses, forward, backward = [], 0.0, 0.0
        for position, (tokens, targets) in enumerate(batches):
            last = position == len(batches) - 1
            began = now(self._device)
            with nullcontext() if last else self._trained.no_sync():
                loss = self._trained(tokens, targets)
                between = now(self._device)
                (loss / len(batches)).backward()
            losses.append(loss.detach())
            forward, backward = forward + between - began, backward + now(self._device) - between
        began = now(self._device)
        for exact, computes in self._pairs():
            exact.grad = None if computes.grad is None else computes.grad.float()
        norm = torch.nn.utils.clip_grad_norm_(
            self._exact or self.model.parameters(), self._settings["deepspeed.gradient_clipping"] or float("inf")
        )
        self._optimizer.step()
        with torch.no_grad():
            for exact, computes in self._pairs():
                computes.copy_(exact)
                exact.grad = None
        took = now(self._device) - began
        return Step(torch.stack(losses).mean().item(), float(norm), forward, backward, took)

    def _pairs(self) -> Iterator[tuple[torch.nn.Parameter, torch.nn.Parameter]]:
        """Yield each parameter of 32 bits with that of 16; nothing where the model computes with the former."""
        return zip(self._exact, self.model.parameters(), strict=bool(self._exact))

    @torch.no_grad()
    def loss(self, batches: Sequence[Batch]) -> float:
        """Return this rank's mean loss without training."""
        return float(torch.stack([self.model(*batch) for batch in batches]).mean())

    def gradients(self, batch: Batch) -> str:
        """Return a SHA-256 of the gradients of one micro batch, which leave no trace."""
        self.model.zero_grad(set_to_none=True)
        self.model(*batch).backward()
        digest = hashlib.sha256()
        for parameter in self.model.parameters():
            if parameter.grad is not None:
                digest.update(parameter.grad.contiguous().cpu().view(torch.uint8).numpy().tobytes())
        self.model.zero_grad(set_to_none=True)
        return digest.hexdigest()


def deepspeed_for(device: torch.device) -> Any:
    """Return DeepSpeed, imported for a device."""
    if device.type != "cuda":
        # It looks for NVIDIA's library to choose, has PyTorch do so as well, and would compile a helper for CPUs,
        # which gloo does not need.
        os.environ.update(DS_ACCELERATOR="cpu", PYTORCH_NVML_BASED_CUDA_CHECK="0")
        importlib.import_module("deepspeed.comm.torch").build_shm_op = lambda: None
    return importlib.import_module("deepspeed")


class Sharded:
    """Weights, gradients and optimizer are shared out over the ranks by DeepSpeed."""

    def __init__(self, settings: Settings, joined: Group) -> None:
        """Share the model out. Raise KitError if DeepSpeed did not do it as it was told."""
        deepspeed = deepspeed_for(joined.device)
        self._joined, self._device = joined, joined.device
        model = build(settings, joined.device)
        optimizer = optimizer_of(model, settings)
        configuration = {**settings.deepspeed(), "zero_allow_untested_optimizer": True, "wall_clock_breakdown": False}
        if settings["training.compile"]:
            # With DeepSpeed's own linear function a compiled model on a GPU has no gradients.
            configuration["zero_optimization"]["memory_efficient_linear"] = False
        self._engine, *_others = deepspeed.initialize(
            model=model, optimizer=optimizer, config=configuration, dist_init_required=False
        )
        self.model = model
        self._dtype = PRECISIONS[settings.precision]

    def step(self, batches: Sequence[Batch], learning_rate: float) -> Step:
        """Train on a rank's micro batches and update the weights."""
        for group in self._engine.optimizer.param_groups:
            group["lr"] = learning_rate
        losses, forward, backward, optimizer = [], 0.0, 0.0, 0.0
        for tokens, targets in batches:
            began = now(self._device)
            loss = self._engine(tokens, targets)
            between = now(self._device)
            self._engine.backward(loss)
            after = now(self._device)
            self._engine.step()
            losses.append(loss.detach())
            forward, backward = forward + between - began, backward + after - between
            optimizer += now(self._device) - after
        norm = self._engine.get_global_grad_norm()
        return Step(
            torch.stack(losses).float().mean().item(),
            float("nan") if norm is None else float(norm),
            forward,
            backward,
            optimizer,
        )

    @torch.no_grad()
    def loss(self, batches: Sequence[Batch]) -> float:
        """Return this rank's mean loss without training; every rank takes part, with as many batches."""
        return float(torch.stack([self._engine(*batch).float() for batch in batches]).mean())

    @property
    def skipped(self) -> int:
        """The number of updates that were left out, as their gradients were not finite."""
        return int(self._engine.skipped_steps)

    @property
    def loss_scale(self) -> float | None:
        """The factor of the loss in half precision; None in others."""
        return float(self._engine.optimizer.loss_scale) if self._dtype == torch.float16 else None

    def scaler(self) -> dict[str, Any] | None:
        """Return what the factor of the loss has learned in half precision; None in others, or where it is fixed."""
        own = self._learning_scaler()
        return None if own is None else {name: kind(getattr(own, name)) for name, kind in SCALER.items()}

    def set_scaler(self, state: Mapping[str, Any] | None) -> None:
        """Go on with what a factor had learned. Without that, or where it is fixed, it stays. Raise KitError."""
        own = self._learning_scaler()
        if state is None or own is None:
            return
        try:
            found = {name: kind(state[name]) for name, kind in SCALER.items()}
        except (KeyError, TypeError, ValueError) as error:
            raise KitError(f"the checkpoint's loss_scaler is none: {error!r}") from error
        for name, value in found.items():
            setattr(own, name, value)

    def _learning_scaler(self) -> Any:
        own = self._engine.optimizer.loss_scaler if self._dtype == torch.float16 else None
        return own if own is not None and own.dynamic else None

    def share(self) -> float:
        """Return the share of the parameters that this rank holds."""
        own = whole = 0
        for parameter in self.model.parameters():
            own += parameter.ds_tensor.numel() if hasattr(parameter, "ds_tensor") else parameter.numel()
            whole += getattr(parameter, "ds_numel", parameter.numel())
        return own / whole

    def whole(self) -> Iterator[tuple[str, torch.Tensor]]:
        """Yield each parameter, whole, as it computes; on every rank, in which all take part."""
        gathered = importlib.import_module("deepspeed").zero.GatheredParameters
        for name, parameter in self.model.named_parameters():
            with gathered([parameter]):
                yield name, parameter.detach()

    def digest(self) -> str:
        """Return a SHA-256 of the whole model as this rank computes with it."""
        digest = hashlib.sha256()
        for name, value in self.whole():
            digest.update(name.encode())
            digest.update(value.contiguous().cpu().flatten().view(torch.uint8).numpy().tobytes())
        return digest.hexdigest()

    @property
    def deepspeed(self) -> Any:
        """DeepSpeed's engine."""
        return self._engine

    @property
    def updates(self) -> int:
        """How often the optimizer has updated."""
        states = [self._engine.optimizer.optimizer.state[flat] for flat, _group in self._groups()]
        return int(states[0].get("step", 0))

    # -- the state, by the names of parameters

    def state(self) -> Tensors:
        """Return this rank's parts, by name and kind."""
        found: Tensors = {}
        for flat, group in self._groups():
            inner = self._engine.optimizer.optimizer.state[flat]
            at = 0
            for parameter in group:
                count = parameter.partition_numel()
                parts = {"fp32": flat.data, **{moment: inner.get(moment) for moment in MOMENTS}}
                for kind, values in parts.items():
                    if values is not None:
                        found[f"{self._name(parameter)}/{kind}"] = values[at : at + count].clone()
                at += count
        return found

    def restore(self, read: Mapping[str, Sequence[torch.Tensor]], steps: int) -> None:
        """Take this rank's parts from those of all ranks that wrote them, however many: name and kind → parts."""
        zero = self._engine.optimizer
        rank = self._joined.rank
        for flat, group in self._groups():
            inner = zero.optimizer.state[flat]
            # A step of its own for each group: one that they share would be counted once for each.
            inner["step"] = torch.tensor(float(steps))
            for moment in MOMENTS:
                inner[moment] = torch.zeros_like(flat)
            at = 0
            for parameter in group:
                count = parameter.partition_numel()
                for kind, values in {"fp32": flat.data, **{moment: inner[moment] for moment in MOMENTS}}.items():
                    whole = torch.cat(list(read[f"{self._name(parameter)}/{kind}"]))[: parameter.ds_numel]
                    part = whole[rank * count : (rank + 1) * count]
                    values[at : at + part.numel()].copy_(part)
                at += count
        for number, flat in enumerate(zero.fp32_partitioned_groups_flat):  # and then what computes
            computing = zero.fp16_partitioned_groups_flat[number]
            computing.data.copy_(flat.data)
            parts = zero.fp16_partitioned_groups[number]
            for part, value in zip(parts, zero.unflatten(computing, parts), strict=True):
                part.data = value.data
        for parameter in self.model.parameters():  # small ones are kept whole on every rank: renewed from the parts
            if getattr(parameter, "ds_persist", False):
                parameter.partition()
                parameter.all_gather()
        self._engine.skipped_steps = 0
        distributed.barrier()

    def _groups(self) -> Iterator[tuple[torch.Tensor, list[Any]]]:
        zero = self._engine.optimizer
        yield from zip(zero.fp32_partitioned_groups_flat, zero.fp16_groups, strict=True)

    def _name(self, parameter: Any) -> str:
        return str(self._engine.optimizer.param_names[parameter]).removeprefix("module.")


def sharded_or_not(settings: Settings, joined: Group, *, plain: bool) -> Replicated | Sharded:
    """Return the engine of a leg."""
    return Replicated(settings, joined) if plain else Sharded(settings, joined)
