# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Checkpoints as DeepSpeed itself writes them, for those who take them elsewhere.

They are pickles. DeepSpeed reads pickles of any content; here they are read by PyTorch's restricted reader, which knows
tensors and the few classes of DeepSpeed that belong there, and calls nothing else.

On as many ranks as wrote it, a checkpoint is read as it is. For another number, rank 0 makes a universal checkpoint of
it, which is not kept. DeepSpeed 0.19.8 reads that one wrongly (`_repaired`).
"""

from __future__ import annotations

import argparse
import importlib
import io
import os
import pickle
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
from engine import Sharded, deepspeed_for
from kit.errors import KitError
from kit.pretraining import checkpoints
from kit.pretraining.checkpoints import Taken
from kit.training.distributed import Group
from torch import distributed

UNIVERSAL = "universal"
HERE = "."  # DeepSpeed's tag, a folder below the one that it is given
CLASSES = {"runtime.fp16.loss_scaler": ("LossScaler", "DynamicLossScaler"), "runtime.zero.config": ("ZeroStageEnum",)}
CONVERSION = timedelta(hours=2)  # that ranks wait for a universal checkpoint at most
RESTRICTED = "TORCH_FORCE_WEIGHTS_ONLY_LOAD"


class DeepSpeed:
    """Reads and writes DeepSpeed's format; reads the own format as well."""

    name = checkpoints.DEEPSPEED
    reads = (checkpoints.DEEPSPEED, checkpoints.OWN)

    def write(self, engine: Sharded, place: Path, joined: Group) -> list[Path]:
        """Write this rank's files; all take part. Raise KitError if there is no space."""
        try:
            engine.deepspeed.save_checkpoint(str(place), tag=HERE, save_latest=False)
        except RuntimeError as error:  # PyTorch's writer does not say that a disk is full
            free = shutil.disk_usage(place).free
            raise KitError(f"{place.name} cannot be written, {place} has {free:,} bytes free: {error}") from error
        if joined.rank == 0:
            for script in place.glob("*.py"):  # a checkpoint holds no programs
                script.unlink()
        return sorted(place.glob(f"*zero_pp_rank_{joined.rank}_mp_rank_*.pt"))

    def read(self, engine: Sharded, taken: Taken, joined: Group, scratch: Path) -> None:
        """Give the engine the state of a checkpoint, of however many ranks; all take part."""
        if taken.manifest["ranks"] == joined.size:
            _load(engine, taken.path)
        else:
            with _universal(taken, joined, scratch) as path, _repaired(engine):
                _load(engine, path)
        engine.deepspeed.skipped_steps = 0

    def weights(self, taken: Taken, joined: Group) -> dict[str, torch.Tensor]:
        """Return all weights in 32 bits, by name, flat."""
        deepspeed_for(joined.device)
        reader = importlib.import_module("deepspeed.utils.zero_to_fp32")
        with restricted(taken.path), quiet(), plainly_named(taken.path) as path:
            found = reader.get_fp32_state_dict_from_zero_checkpoint(str(path), HERE)
        return {name: value.flatten() for name, value in found.items()}


def _load(engine: Sharded, path: Path) -> None:
    with restricted(path), plainly_named(path) as plain:
        loaded, _state = engine.deepspeed.load_checkpoint(str(plain), tag=HERE)
    if loaded is None:
        raise KitError(f"DeepSpeed found no checkpoint in {path}")


@contextmanager
def _universal(taken: Taken, joined: Group, scratch: Path) -> Iterator[Path]:
    """Have rank 0 convert a checkpoint, with all ranks waiting for it; yield where it is until all are through."""
    waiting = distributed.new_group(backend="gloo", timeout=CONVERSION)
    said: list[Any] = [None, None]
    if joined.rank == 0:
        try:
            said = [str(_converted(taken, scratch)), None]
        except (KitError, OSError, RuntimeError, ValueError) as error:
            said = [None, str(error)]
    distributed.broadcast_object_list(said, group=waiting)
    if said[1] is not None:
        raise KitError(f"{taken.path.name} cannot be converted for {joined.size} ranks: {said[1]}")
    path = Path(said[0])
    yield path
    distributed.barrier(group=waiting)
    distributed.destroy_process_group(waiting)
    if joined.rank == 0:
        shutil.rmtree(path.parent)


def _converted(taken: Taken, scratch: Path) -> Path:
    """Return the folder of a universal checkpoint that was made of another."""
    convert = importlib.import_module("deepspeed.checkpoint.ds_to_universal").main
    # While it is made, each parameter is there in parts as well.
    size = 3 * sum(int(entry["bytes"]) for entry in taken.manifest["files"])
    place = checkpoints.begin(scratch, f"universal_{taken.path.name}", size)
    options = {"keep_temp_folder": False, "strict": True, "inject_missing_state": False}
    workers = {"num_extract_workers": 1, "num_merge_workers": 1}  # more would be processes
    with restricted(taken.path), quiet(), plainly_named(taken.path) as read, plainly_named(place) as written:
        folders = {"input_folder": str(read), "output_folder": str(written / UNIVERSAL)}
        convert(argparse.Namespace(**folders, **workers, **options))
    return place / UNIVERSAL


@contextmanager
def plainly_named(folder: Path) -> Iterator[Path]:
    """Yield another path of a folder: DeepSpeed takes paths for patterns, in which `[` and `+` mean something else."""
    with tempfile.TemporaryDirectory(prefix="checkpoint-") as place:
        link = Path(place, "folder")
        link.symlink_to(folder.resolve(), target_is_directory=True)
        yield link


@contextmanager
def _repaired(engine: Sharded) -> Iterator[None]:
    """Let DeepSpeed load a universal checkpoint, and repair what it then does wrong with more than one group.

    It gives every group the numbers of the first, biases and norms a weight decay, that is; and all of them one tensor
    that counts the updates, so that each update counts as many times as there are groups. There is no error, and the
    loss is right at first.
    """
    configuration, optimizer = engine.deepspeed._config, engine.deepspeed.optimizer.optimizer
    groups = [{key: value for key, value in group.items() if key != "params"} for group in optimizer.param_groups]
    configuration.load_universal_checkpoint = True
    try:
        yield
    finally:
        configuration.load_universal_checkpoint = False
    repair_groups(optimizer, groups)
    repair_steps(optimizer)


def repair_groups(optimizer: Any, groups: list[dict[str, Any]]) -> None:
    """Give each group its own numbers back."""
    for group, own in zip(optimizer.param_groups, groups, strict=True):
        group.update(own)


def repair_steps(optimizer: Any) -> None:
    """Let each group count its own updates."""
    for state in optimizer.state.values():
        state["step"] = state["step"].clone()


@contextmanager
def restricted(path: Path) -> Iterator[None]:
    """Let all of DeepSpeed's reading of pickles take tensors and its own classes only. Raise KitError for others."""
    classes = [
        getattr(importlib.import_module(f"deepspeed.{module}"), name)
        for module, names in CLASSES.items()
        for name in names
    ]
    before = os.environ.get(RESTRICTED)
    os.environ[RESTRICTED] = "1"
    try:
        with torch.serialization.safe_globals(classes):
            yield
    except pickle.UnpicklingError as error:
        raise KitError(f"{path}: a file holds what no checkpoint does, and was not read: {error}") from error
    finally:
        if before is None:
            del os.environ[RESTRICTED]
        else:
            os.environ[RESTRICTED] = before


@contextmanager
def quiet() -> Iterator[None]:
    """Keep progress bars and the like off the job's log."""
    with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
        yield
