# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Shard the model of Oumi's training over the ranks, on GPUs and on CPUs.

fsdp: with PyTorch's fully_shard. deepspeed: with DeepSpeed's ZeRO, stage 3.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

from accelerate import PartialState
from accelerate.utils import DistributedType
from torch.distributed.tensor import DTensor
from transformers.integrations.deepspeed import unset_hf_deepspeed_config

STRATEGIES = ("ddp", "fsdp", "deepspeed")  # each rank has the whole model, or a part of it
# Oumi's settings for them.
SWITCHES = {"fsdp": "fsdp.enable_fsdp", "deepspeed": "deepspeed.enable_deepspeed"}


def sharing(strategy: str) -> AbstractContextManager[None]:
    """Make Oumi and Accelerate shard the model by the strategy; restore everything afterwards."""
    return {"fsdp": _fully_sharded, "deepspeed": _zero_sharded}.get(strategy, nullcontext)()


@contextmanager
def _replaced(owner: Any, name: str, value: Any) -> Iterator[None]:
    before = getattr(owner, name)
    setattr(owner, name, value)
    try:
        yield
    finally:
        setattr(owner, name, before)


@contextmanager
def _environment_kept() -> Iterator[None]:
    """Restore the environment afterwards.

    Oumi and Transformers configure Accelerate by environment variables. In a second training it would find them again
    and take them for the user's.
    """
    before = dict(os.environ)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


@contextmanager
def _fully_sharded() -> Iterator[None]:
    """Shard with fully_shard, on CPU ranks as well.

    By default Accelerate uses PyTorch's older FSDP, which is deprecated and does not run on CPUs, and on CPUs it uses
    no FSDP at all: a training would be plain data parallel.
    """
    begin = PartialState.__init__

    def begin_as_accelerators(state: PartialState, *arguments: Any, **options: Any) -> None:
        begin(state, *arguments, **options)
        if state.distributed_type == DistributedType.MULTI_CPU:
            state.distributed_type = DistributedType.MULTI_GPU

    with _environment_kept(), _replaced(PartialState, "__init__", begin_as_accelerators):
        os.environ["FSDP_VERSION"] = "2"
        yield


@contextmanager
def _zero_sharded() -> Iterator[None]:
    """Shard with DeepSpeed's ZeRO, on CPU ranks as well.

    Accelerate supports DeepSpeed on GPUs only: set to use CPUs, it uses no DeepSpeed; otherwise it finds no backend and
    takes each rank for the only one. DeepSpeed itself would compile a helper for CPUs, but a node has no compiler; gloo
    needs none. And Oumi lets only rank 0 save the model, which would wait for the others forever.
    """
    prepare = PartialState._prepare_backend

    def prepare_cpus_too(state: PartialState, *arguments: Any, **options: Any) -> tuple[str, DistributedType]:
        backend, distributed_type = prepare(state, *arguments, **options)
        return (backend, distributed_type) if backend else ("gloo", DistributedType.MULTI_CPU)

    backend = importlib.import_module("deepspeed.comm.torch")
    trainer = importlib.import_module("oumi.core.trainers.hf_trainer").HuggingFaceTrainer
    with (
        _environment_kept(),
        _replaced(PartialState, "_prepare_backend", prepare_cpus_too),
        _replaced(backend, "build_shm_op", lambda: None),
        _replaced(trainer, "_save_model", trainer._save_fsdp_model),  # in which every rank takes part
    ):
        os.environ.pop("ACCELERATE_USE_CPU", None)
        try:
            yield
        finally:
            unset_hf_deepspeed_config()  # a model loaded afterwards must not be sharded


def is_sharded(model: Any) -> bool:
    """Return whether any parameter is sharded over the ranks."""
    return any(isinstance(parameter, DTensor) or hasattr(parameter, "ds_tensor") for parameter in model.parameters())


def own_share(model: Any) -> float:
    """Return the share of the model's parameters that this rank holds."""
    own = whole = 0
    for parameter in model.parameters():
        if hasattr(parameter, "ds_tensor"):  # DeepSpeed's: its own tensor is empty while no layer computes with it
            own += parameter.ds_tensor.numel()
            whole += parameter.ds_numel
        else:
            own += (parameter.to_local() if isinstance(parameter, DTensor) else parameter).numel()
            whole += parameter.numel()
    return own / whole
