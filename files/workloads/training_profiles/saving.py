# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Save a training so that it can go on exactly: weights, moments, the state of each rank's random numbers.

A checkpoint is a folder that is whole or is not taken (kit.pretraining.checkpoints); its tensors are in safetensors.
The first rank's file has the weights and moments, which are the same on all, and each rank's its own random numbers.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from kit.errors import KitError
from kit.job import current_job
from kit.pretraining import checkpoints
from kit.pretraining.checkpoints import DamagedError, Taken
from kit.training.distributed import Group
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import distributed, nn

MODEL, MOMENTS, RANDOM, RANDOM_GPU = "model/", "moments/", "random", "random_gpu"
BEST = "best"


class Saver:
    """Writes and reads the checkpoints of one training."""

    def __init__(self, folder: Path, joined: Group, facts: Mapping[str, Any], keep: int, *, best_only: bool) -> None:
        """``facts`` are those that change the result, by name; a checkpoint of others is not gone on from."""
        self.folder, self._joined, self._facts = folder, joined, dict(facts)
        self._keep, self._best_only = keep, best_only
        self.saved: list[int] = []

    def save(
        self, model: nn.Module, optimizer: torch.optim.Optimizer, state: Mapping[str, Any], *, best: bool, final: bool
    ) -> None:
        """Save; all ranks take part. ``state`` has the step, and all else that is needed to go on."""
        joined, step = self._joined, int(state["step"])
        name = checkpoints.name_of(step, final=final)
        own = self._random()
        tensors = dict(own)
        if joined.rank == 0:
            tensors |= {f"{MODEL}{key}": value.detach().contiguous() for key, value in model.state_dict().items()}
            tensors |= moments(model, optimizer)
        self._begin(name, _bytes(tensors) + (joined.size - 1) * _bytes(own))
        place = self.folder / f"{checkpoints.INCOMPLETE}{name}"
        said = joined.gather(_written(place / checkpoints.rank_file(joined.rank, joined.size), tensors))
        problems = [each for each in said.values() if isinstance(each, str)]
        if problems:
            raise KitError(f"{name}: {problems[0]}")
        if joined.rank == 0:
            facts = {
                **state,
                BEST: best,
                "ranks": joined.size,
                "settings": self._facts,
                "torch": torch.__version__,
                **current_job().stamp,
            }
            checkpoints.finish(place, facts, [each for each in said.values() if isinstance(each, dict)])
            self._retain()
        self.saved.append(step)
        distributed.barrier()

    def _begin(self, name: str, size: int) -> None:
        """Let rank 0 make the place, and all end with its error if it cannot."""
        said: list[Any] = [None]
        if self._joined.rank == 0:
            try:
                checkpoints.begin(self.folder, name, size)
            except (KitError, OSError) as error:
                said = [f"{name}: {error}"]
        distributed.broadcast_object_list(said)
        if said[0] is not None:
            raise KitError(said[0])

    def _random(self) -> dict[str, torch.Tensor]:
        found = {RANDOM: torch.get_rng_state()}
        if self._joined.device.type == "cuda":
            found[RANDOM_GPU] = torch.cuda.get_rng_state(self._joined.device)
        return found

    def _retain(self) -> None:
        """Remove what is not to be kept: all but the newest and the best, or but so many of the newest and the best."""
        there = checkpoints.listed(self.folder)
        best = next((path for path in there if _is_best(path)), None)
        kept = {*there[: 1 if self._best_only else self._keep], best}
        for path in there:
            if path not in kept:
                shutil.rmtree(path)

    def best(self) -> Path:
        """Return the checkpoint of the best evaluation that one was saved at, else the newest, on every rank."""
        there = self._joined.on_first(lambda: [*map(str, checkpoints.listed(self.folder))])
        paths = [Path(path) for path in there]
        return next((path for path in paths if _is_best(path)), paths[0])

    def newest(self) -> Taken | None:
        """Return the newest whole checkpoint of this training, or None if there is none; all ranks verify it together.

        Raise NoneWholeError if there are some, and none is whole.
        """
        if not any(self._joined.gather(bool(checkpoints.listed(self.folder))).values()):
            return None
        return checkpoints.newest(self.folder, self._facts, self._whole)

    def _whole(self, path: Path) -> dict[str, Any]:
        problem, manifest = None, {}
        try:
            manifest = checkpoints.verify(path, rank=self._joined.rank, ranks=self._joined.size)
        except DamagedError as error:
            problem = str(error)
        problems = [each for each in self._joined.gather(problem).values() if each]
        if problems:
            raise DamagedError(problems[0])
        return manifest

    def restore(self, taken: Taken, model: nn.Module) -> dict[str, torch.Tensor]:
        """Give the model its weights, and this rank its random numbers; return the moments, for `give_moments`.

        On another number of ranks each goes on with those of its own seed: what dropout leaves out differs.
        """
        saved_by = int(taken.manifest["ranks"])
        first = load_file(taken.path / checkpoints.rank_file(0, saved_by))
        model.load_state_dict({key[len(MODEL) :]: value for key, value in first.items() if key.startswith(MODEL)})
        if saved_by == self._joined.size:
            own = load_file(taken.path / checkpoints.rank_file(self._joined.rank, saved_by))
            torch.set_rng_state(own[RANDOM])
            if RANDOM_GPU in own:
                torch.cuda.set_rng_state(own[RANDOM_GPU], self._joined.device)
        return {key[len(MOMENTS) :]: value for key, value in first.items() if key.startswith(MOMENTS)}


def _bytes(tensors: Mapping[str, torch.Tensor]) -> int:
    return sum(value.numel() * value.element_size() for value in tensors.values())


def _is_best(path: Path) -> bool:
    try:
        return bool(checkpoints.verify(path, hashed=False).get(BEST))
    except DamagedError:
        return False


def _written(path: Path, tensors: dict[str, torch.Tensor]) -> dict[str, Any] | str:
    """Write a file; return its entry in the manifest, or what is wrong."""
    try:
        save_file(tensors, path)
        return checkpoints.describe(path)
    except (SafetensorError, OSError) as error:
        return f"{path.name} cannot be written: {error}"


def moments(model: nn.Module, optimizer: torch.optim.Optimizer) -> dict[str, torch.Tensor]:
    """Return the optimizer's state by the names of the weights."""
    names = {id(weight): name for name, weight in model.named_parameters()}
    return {
        f"{MOMENTS}{names[id(weight)]}/{kind}": value.detach().contiguous()
        for weight, kinds in optimizer.state.items()
        for kind, value in kinds.items()
    }


def give_moments(model: nn.Module, optimizer: torch.optim.Optimizer, found: Mapping[str, torch.Tensor]) -> None:
    """Give the optimizer the state that `moments` returned."""
    weights = dict(model.named_parameters())
    for key, value in found.items():
        name, _slash, kind = key.rpartition("/")
        weight = weights[name]
        # A count of steps stays where PyTorch keeps it; everything else lies beside its weight.
        optimizer.state[weight][kind] = value.clone() if kind == "step" else value.to(weight.device)
