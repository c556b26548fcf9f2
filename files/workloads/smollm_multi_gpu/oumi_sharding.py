# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Oumi's training with the model spread over the ranks by PyTorch's fully_shard (FSDP), on GPUs and on CPUs."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from accelerate import PartialState
from accelerate.utils import DistributedType
from torch.distributed.tensor import DTensor


@contextmanager
def fully_sharded() -> Iterator[None]:
    """Make Oumi and Accelerate shard by fully_shard, on CPU ranks as well; leave the environment as it was.

    Of its own accord Accelerate takes PyTorch's older FSDP, which is deprecated and does not run on CPUs, and on CPUs
    it takes no FSDP at all: a training would be plain data parallel. And Oumi tells Accelerate by variables, which it
    would find again in a second training, and take for somebody else's.
    """
    before = dict(os.environ)
    begin = PartialState.__init__

    def begin_as_accelerators(state: PartialState, *arguments: Any, **options: Any) -> None:
        begin(state, *arguments, **options)
        if state.distributed_type == DistributedType.MULTI_CPU:
            state.distributed_type = DistributedType.MULTI_GPU

    PartialState.__init__ = begin_as_accelerators
    os.environ["FSDP_VERSION"] = "2"
    try:
        yield
    finally:
        PartialState.__init__ = begin
        os.environ.clear()
        os.environ.update(before)


def is_sharded(model: Any) -> bool:
    """Whether some parameter is spread over the ranks."""
    return any(isinstance(parameter, DTensor) for parameter in model.parameters())


def own_share(model: Any) -> float:
    """Return the share of the model's parameters that this rank holds."""
    whole = sum(parameter.numel() for parameter in model.parameters())
    own = sum((p.to_local() if isinstance(p, DTensor) else p).numel() for p in model.parameters())
    return own / whole
