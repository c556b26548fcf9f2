# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Save and restore a sharded training: each rank its own parts, by the names of the parameters, without pickle."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch
from engine import Sharded
from kit.errors import KitError
from kit.job import current_job
from kit.pretraining import checkpoints
from kit.pretraining.checkpoint_manager import CheckpointManager, Uploader
from kit.pretraining.checkpoints import DamagedError, Taken
from kit.training.distributed import Group
from safetensors import safe_open
from safetensors.torch import save, save_file
from torch import distributed

__all__ = ["CheckpointManager", "Saver"]

BYTES_EACH = 12  # of a parameter: the weight and two moments, in 32 bits


class Saver:
    """Writes and reads the checkpoints of one training in one folder."""

    def __init__(
        self,
        folder: Path,
        joined: Group,
        settings: Mapping[str, Any],
        parameters: int,
        keep: int,
        length: int,
        uploader: Uploader | None = None,
    ) -> None:
        """``settings`` are those that change the result; they and the data are compared at every resume.

        A sample has ``length`` tokens.

        Rank 0 may have an ``uploader``, to which each checkpoint is handed once it is whole.
        """
        self.folder, self._joined, self._settings = folder, joined, dict(settings)
        self._size, self._keep, self._uploader = parameters * BYTES_EACH, keep, uploader
        self._length = length
        self.saved: dict[str, dict[str, Any]] = {}

    def save(self, engine: Sharded, step: int, batch: int, *, final: bool = False, dies: bool = False) -> None:
        """Save step ``step``, in which all ranks take part.

        With ``dies`` the last rank is killed in the middle of it, as by a failure.
        """
        began = time.perf_counter()
        joined, name = self._joined, checkpoints.name_of(step, final=final)
        place = self._begun(name)
        tensors, updates = engine.state()
        path = place / checkpoints.rank_file(joined.rank, joined.size)
        if dies and joined.rank == joined.size - 1:
            whole = save(tensors)
            path.write_bytes(whole[: len(whole) // 2])
            os.kill(os.getpid(), signal.SIGKILL)
        save_file(tensors, path)
        entries = list(joined.gather(checkpoints.describe(path)).values())
        if joined.rank == 0:
            facts = {
                "step": step,
                "updates": updates,
                "samples": step * batch,
                "tokens": step * batch * self._length,
                "ranks": joined.size,
                "settings": self._settings,
                "torch": torch.__version__,
                "deepspeed": version("deepspeed"),
                **current_job().stamp,
            }
            checkpoints.finish(place, facts, entries)
            if self._uploader:
                self._uploader.add(name)
            checkpoints.retain(self.folder, self._keep)
        distributed.barrier()
        size = sum(int(entry["bytes"]) for entry in entries)
        self.saved[name] = {"step": step, "bytes": size, "seconds": time.perf_counter() - began}

    def _begun(self, name: str) -> Path:
        """Let rank 0 make the place, and all end with its error if it cannot."""
        said: list[Any] = [None]
        if self._joined.rank == 0:
            try:
                checkpoints.begin(self.folder, name, self._size)
            except (KitError, OSError) as error:
                said = [f"{name}: {error}"]
        distributed.broadcast_object_list(said)
        if said[0] is not None:
            raise KitError(said[0])
        return self.folder / f"{checkpoints.INCOMPLETE}{name}"

    def newest(self) -> Taken:
        """Return the newest whole checkpoint; all ranks verify it together. Raise NoneWholeError."""
        return checkpoints.newest(self.folder, self._settings, self.check)

    def verified(self) -> dict[str, dict[str, Any]]:
        """Return each checkpoint in the folder by name, and whether it is whole; all ranks take part."""
        found = {}
        for path in checkpoints.listed(self.folder):
            try:
                manifest = self.check(path)
                found[path.name] = {"verified": True, "step": manifest["step"], "ranks": manifest["ranks"]}
            except DamagedError as error:
                found[path.name] = {"verified": False, "why": str(error)}
        return found

    def check(self, path: Path) -> dict[str, Any]:
        """Return the manifest of a whole checkpoint; each rank reads its part. Raise DamagedError on all."""
        joined, manifest, problem = self._joined, {}, None
        try:
            manifest = checkpoints.verify(path, rank=joined.rank, ranks=joined.size)
        except DamagedError as error:
            problem = str(error)
        problems = [said for said in joined.gather(problem).values() if said]
        if problems:
            raise DamagedError(problems[0])
        return manifest

    def restore(self, engine: Sharded, taken: Taken) -> int:
        """Give the engine the state of a checkpoint, of however many ranks, and return its step."""
        ranks = taken.manifest["ranks"]
        files = [safe_open(taken.path / checkpoints.rank_file(rank, ranks), "pt") for rank in range(ranks)]
        engine.restore(_Parts(files), int(taken.manifest["updates"]))
        return int(taken.manifest["step"])


class _Parts(Mapping[str, list[torch.Tensor]]):
    """The parts of a tensor in the files of all ranks, read when they are asked for."""

    def __init__(self, files: list[Any]) -> None:
        self._files = files

    def __getitem__(self, name: str) -> list[torch.Tensor]:
        try:
            return [file.get_tensor(name) for file in self._files]
        except Exception as error:  # safetensors has its own, and says no more than the name
            raise KitError(f"the checkpoint has no {name}: {error}") from error

    def __iter__(self) -> Any:
        return iter(self._files[0].keys())

    def __len__(self) -> int:
        return len(self._files[0].keys())
