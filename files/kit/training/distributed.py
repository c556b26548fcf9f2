# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What every rank of a distributed training does besides training: join the group, compare, report, and leave.

Imports PyTorch, so it is only for scripts that run in a runtime, not for the rest of the kit.
"""

from __future__ import annotations

import hashlib
import os
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
from torch import distributed

from kit.errors import KitError
from kit.gpu import nvml
from kit.job import node_name
from kit.process.bounded import die_with_parent
from kit.ranks import state as ranks_state
from kit.training import device as training_device

PATIENCE = 120  # seconds that a collective may take, which bounds a hang
ALONE = timedelta(hours=6)  # that ranks wait at most while rank 0 does something that has bounds of its own


@dataclass(frozen=True)
class Group:
    """This rank among the others."""

    rank: int
    local_rank: int
    size: int
    device: torch.device
    gpu: str | None  # its UUID
    node: str
    init_seconds: float  # from the call to the first collective's end
    state: ranks_state.RankState

    @property
    def label(self) -> str:
        """This rank's name in verdicts."""
        return ranks_state.label({"rank": self.rank, "node": self.node, "gpu": self.gpu})

    def gather(self, value: Any) -> dict[str, Any]:
        """Return every rank's value, by label."""
        found: list[Any] = [None] * self.size
        distributed.all_gather_object(found, (self.label, value))
        return dict(found)

    def require_same(self, facts: Mapping[str, Any]) -> None:
        """Raise KitError on every rank if one differs from rank 0 in a fact: what, on which rank, both values."""
        everybody = self.gather(dict(facts))
        first, *others = everybody.items()
        for name in facts:
            for label, said in others:
                if said[name] != first[1][name]:
                    raise KitError(f"{name} is {said[name]} on {label}, but {first[1][name]} on {first[0]}")

    def on_first(self, act: Callable[[], Any]) -> Any:
        """Let rank 0 do what may take longer than a collective may; return what it returned, on every rank.

        What it raises of KitError and OSError is a KitError on every rank.
        """
        waiting = distributed.new_group(backend="gloo", timeout=ALONE)
        said: list[Any] = [None, None]
        if self.rank == 0:
            try:
                said = [act(), None]
            except (KitError, OSError) as error:
                said = [None, str(error)]
        distributed.broadcast_object_list(said, group=waiting)
        self.gather(True)  # no rank leaves the group while another is still told
        distributed.destroy_process_group(waiting)
        if said[1] is not None:
            raise KitError(said[1])
        return said[0]

    def require_own_gpus(self) -> None:
        """Raise KitError if two ranks compute on one GPU."""
        seen: dict[tuple[str, str], str] = {}
        for label, (node, gpu) in self.gather((self.node, self.gpu)).items():
            if gpu is not None and (node, gpu) in seen:
                raise KitError(f"{label} and {seen[node, gpu]} compute on the same GPU")
            if gpu is not None:
                seen[node, gpu] = label

    def largest(self, value: float) -> float:
        """Return the largest of all ranks' values."""
        return self._reduced(value, distributed.ReduceOp.MAX)

    def least(self, value: float) -> float:
        """Return the smallest of all ranks' values."""
        return self._reduced(value, distributed.ReduceOp.MIN)

    def sum(self, value: float) -> float:
        """Return the sum of all ranks' values."""
        return self._reduced(value, distributed.ReduceOp.SUM)

    def _reduced(self, value: float, how: Any) -> float:
        tensor = torch.tensor(value, dtype=torch.float64, device=self.device)
        distributed.all_reduce(tensor, op=how)
        return tensor.item()


def repeat_exactly() -> None:
    """Have PyTorch take only kernels whose results are the same each time.

    Before a group is joined, for it then keeps NCCL from NVLS, which adds up in any order.
    """
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # without it PyTorch refuses to multiply on a GPU
    torch.use_deterministic_algorithms(True)
    torch.utils.deterministic.fill_uninitialized_memory = False  # shows mistakes, and takes time


def patience_beyond(stall_seconds: float) -> float:
    """Return the seconds that a collective may take where `kit.training.stall` ends a rank after ``stall_seconds``.

    They are more: the group's time-out would name the rank that waits, and not the one that stands still.
    """
    return max(PATIENCE, stall_seconds + 60)


@contextmanager
def group(
    accelerator: str, output: Path, patience: float = PATIENCE, *, repeats_exactly: bool = False
) -> Iterator[Group]:
    """Join the other ranks on this rank's own device; leave a state file in any case.

    NCCL on GPUs, gloo on CPUs; a collective may take ``patience`` seconds. With ``repeats_exactly`` the same training
    has the same losses each time, to the last bit, and an operation that cannot be repeated raises RuntimeError. Raise
    KitError if the device is not the requested one.
    """
    die_with_parent(signal.SIGKILL)  # ranks have their own sessions, so nothing else ends them
    rank, local_rank, size = (int(os.environ[name]) for name in ("RANK", "LOCAL_RANK", "WORLD_SIZE"))
    state = ranks_state.RankState(output, rank)
    if repeats_exactly:
        repeat_exactly()
    with state.during("started"):
        device, gpu = _own_device(accelerator, local_rank)
        state.gpu(gpu)
        state.phase("joining")
        began = time.monotonic()
        distributed.init_process_group(
            "nccl" if device.type == "cuda" else "gloo",
            timeout=timedelta(seconds=patience),
            device_id=device if device.type == "cuda" else None,
        )
        distributed.barrier()
        here = node_name()
        joined = Group(rank, local_rank, size, device, gpu, here, time.monotonic() - began, state)
        state.phase("joined")
        joined.require_own_gpus()
        joined.require_same(
            {
                "the GPUs' driver": None if accelerator == "cpu" else nvml.driver_version() or f"unknown to {here}",
                "PyTorch": torch.__version__,
                "CUDA": torch.version.cuda,
                "NCCL": ".".join(map(str, torch.cuda.nccl.version())) if device.type == "cuda" else None,
                "the number of ranks": size,
            }
        )
        with training_device.occupied(accelerator, local_rank):
            yield joined
        distributed.barrier()  # no rank leaves while another still communicates with it
        distributed.destroy_process_group()
        state.phase(ranks_state.ENDED)


def _own_device(accelerator: str, local_rank: int) -> tuple[torch.device, str | None]:
    """Return the device of a node's rank and its GPU's UUID."""
    device = training_device.choose(accelerator, local_rank)
    if device.type == "cuda":
        return device, training_device.uuid_of(device)
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS") or torch.get_num_threads()))
    if accelerator != "simulated":
        return device, None
    gpus = nvml.usable_gpus().gpus
    if local_rank >= len(gpus):
        raise KitError(f"local rank {local_rank} has no GPU of its own: this node gave the job {len(gpus)}")
    return device, gpus[local_rank].uuid


def checksum(model: torch.nn.Module) -> str:
    """Return the SHA-256 of a model's parameters, bit by bit. Buffers, such as running means, differ per rank."""
    digest = hashlib.sha256()
    for name, tensor in model.named_parameters():
        digest.update(name.encode())
        digest.update(tensor.detach().contiguous().cpu().flatten().view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()
