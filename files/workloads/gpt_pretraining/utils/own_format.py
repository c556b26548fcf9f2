# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Checkpoints in safetensors: each rank's own parts, by the names of the parameters, for any number of ranks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import torch
from engine import Sharded
from kit.errors import KitError
from kit.pretraining import checkpoints
from kit.pretraining.checkpoints import Taken
from kit.training.distributed import Group
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file

WEIGHTS = "/fp32"


class Own:
    """Reads and writes the own format."""

    name = checkpoints.OWN
    reads = (checkpoints.OWN,)

    def write(self, engine: Sharded, place: Path, joined: Group) -> list[Path]:
        """Write this rank's file. Raise KitError, as of a disk that is full."""
        path = place / checkpoints.rank_file(joined.rank, joined.size)
        try:
            save_file(engine.state(), path)
        except (SafetensorError, OSError) as error:
            name = place.name.removeprefix(checkpoints.INCOMPLETE)
            raise KitError(f"{name}/{path.name} cannot be written: {error}") from error
        return [path]

    def read(self, engine: Sharded, taken: Taken, joined: Group, scratch: Path) -> None:  # noqa: ARG002 - see Format
        """Give the engine the state of a checkpoint, of however many ranks."""
        engine.restore(_Parts(taken), int(taken.manifest["updates"]))
        engine.set_scaler(taken.manifest.get("loss_scaler"))

    def weights(self, taken: Taken, joined: Group) -> dict[str, torch.Tensor]:  # noqa: ARG002
        """Return all weights in 32 bits, by name: flat, perhaps with padding at the end."""
        parts = _Parts(taken)
        return {key[: -len(WEIGHTS)]: torch.cat(parts[key]) for key in parts if key.endswith(WEIGHTS)}


class _Parts(Mapping[str, list[torch.Tensor]]):
    """The parts of a tensor in the files of all ranks, read when they are asked for."""

    def __init__(self, taken: Taken) -> None:
        ranks = taken.manifest["ranks"]
        self._files = [safe_open(taken.path / checkpoints.rank_file(rank, ranks), "pt") for rank in range(ranks)]

    def __getitem__(self, name: str) -> list[torch.Tensor]:
        try:
            return [file.get_tensor(name) for file in self._files]
        except Exception as error:  # safetensors has its own, and says no more than the name
            raise KitError(f"the checkpoint has no {name}: {error}") from error

    def __iter__(self) -> Iterator[str]:
        return iter(self._files[0].keys())

    def __len__(self) -> int:
        return len(self._files[0].keys())
