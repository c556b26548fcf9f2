# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Save and restore a sharded training, in one of two formats; what is promised of checkpoints is the same for both."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any, Protocol

import torch
from engine import Sharded
from kit.errors import KitError
from kit.job import current_job
from kit.pretraining import checkpoints
from kit.pretraining.checkpoint_manager import CheckpointManager, Uploader
from kit.pretraining.checkpoints import DamagedError, Taken
from kit.training.distributed import Group
from torch import distributed

from utils.deepspeed_format import DeepSpeed
from utils.own_format import Own

__all__ = ["CheckpointManager", "Saver"]

BYTES_EACH = 12  # of a parameter: the weight and two moments, in 32 bits


class Format(Protocol):
    """What is in a checkpoint's files; `Saver` has seen to it that those to read are whole."""

    name: str
    reads: tuple[str, ...]  # formats that a training with this one goes on from

    def write(self, engine: Sharded, place: Path, joined: Group) -> list[Path]:
        """Write this rank's files, and return where they are; all ranks take part."""

    def read(self, engine: Sharded, taken: Taken, joined: Group, scratch: Path) -> None:
        """Give the engine the state of a checkpoint, of however many ranks; all take part. It may use ``scratch``."""

    def weights(self, taken: Taken, joined: Group) -> dict[str, torch.Tensor]:
        """Return all weights in 32 bits, by name: flat, perhaps with padding at the end."""


FORMATS: dict[str, Format] = {form.name: form for form in (Own(), DeepSpeed())}


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
        form: str,
        uploader: Uploader | None = None,
    ) -> None:
        """``settings`` are those that change the result; they and the data are compared at every resume.

        A sample has ``length`` tokens. ``form`` is the name of the format to save in.

        Rank 0 may have an ``uploader``, to which each checkpoint is handed once it is whole.
        """
        self.folder, self._joined, self._settings = folder, joined, dict(settings)
        self._size, self._keep, self._uploader = parameters * BYTES_EACH, keep, uploader
        self._length, self._format = length, FORMATS[form]
        self._refused: set[str] = set()
        self.saved: dict[str, dict[str, Any]] = {}

    def save(self, engine: Sharded, step: int, batch: int, *, final: bool = False, dies: bool = False) -> None:
        """Save step ``step``, in which all ranks take part.

        With ``dies`` the last rank is killed in the middle of it, as by a failure.
        """
        began = time.perf_counter()
        joined, name = self._joined, checkpoints.name_of(step, final=final)
        place, updates = self._begun(name), engine.updates
        written = self._format.write(engine, place, joined)
        if dies and joined.rank == joined.size - 1:
            os.truncate(written[-1], written[-1].stat().st_size // 2)
            os.kill(os.getpid(), signal.SIGKILL)
        described = joined.gather(_described(name, written))
        entries = [entry for of_a_rank in described.values() for entry in of_a_rank]
        if joined.rank == 0:
            facts = {
                "format": self._format.name,
                "step": step,
                "updates": updates,
                "samples": step * batch,
                "tokens": step * batch * self._length,
                "ranks": joined.size,
                "loss_scaler": engine.scaler(),
                "settings": self._settings,
                "torch": torch.__version__,
                "deepspeed": version("deepspeed"),
                **current_job().stamp,
            }
            checkpoints.finish(place, facts, entries)
            if self._uploader:
                self._uploader.add(name)
            self._refused.discard(name)
            checkpoints.retain(self.folder, self._keep, self._refused)
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
        taken = checkpoints.newest(self.folder, self._settings, self._usable)
        self._refused = set(taken.refused)
        return taken

    def _usable(self, path: Path) -> dict[str, Any]:
        manifest = self.check(path)
        form = checkpoints.format_of(manifest)
        if form not in self._format.reads:
            raise DamagedError(
                f"{path.name} is of the format {form}, this training has training.checkpoint.format {self._format.name}"
            )
        return manifest

    def verified(self) -> dict[str, dict[str, Any]]:
        """Return each checkpoint in the folder by name, and whether it is whole; all ranks take part."""
        found = {}
        for path in checkpoints.listed(self.folder):
            try:
                manifest = self.check(path)
                found[path.name] = {
                    "verified": True,
                    "problem": "none",
                    "step": manifest["step"],
                    "ranks": manifest["ranks"],
                }
            except DamagedError as error:
                found[path.name] = {"verified": False, "problem": str(error)}
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

    def restore(self, engine: Sharded, taken: Taken, scratch: Path) -> int:
        """Give the engine the state of a checkpoint, of however many ranks, and return its step.

        ``scratch`` is a folder that all ranks see, for what the format may need to make of the checkpoint.
        """
        FORMATS[checkpoints.format_of(taken.manifest)].read(engine, taken, self._joined, scratch)
        return int(taken.manifest["step"])

    def weights(self, taken: Taken) -> dict[str, torch.Tensor]:
        """Return a checkpoint's weights in 32 bits, by name: flat, perhaps with padding at the end."""
        return FORMATS[checkpoints.format_of(taken.manifest)].weights(taken, self._joined)


def _described(name: str, written: list[Path]) -> list[dict[str, Any]]:
    """Return the entries of a rank's files of checkpoint ``name``. Raise KitError, as of a disk that is full."""
    try:
        return [checkpoints.describe(path) for path in written]
    except OSError as error:
        raise KitError(f"{name} cannot be written: {error}") from error
