# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Windows of features with their answers, and the order in which ranks read them.

Data STEM is two files: STEM-inputs.npy, (samples, time steps, features) of 32 bits, and STEM-answers.npy, (samples,
outputs) of 32 bits, or (samples,) of whole numbers for classes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import torch
from kit.errors import KitError
from kit.profiles import arithmetic
from kit.profiles.model import CLASSIFICATION, Profile
from torch.utils.data import DataLoader, Dataset

Batch = tuple[torch.Tensor, torch.Tensor]


class Windows(Dataset[Batch]):
    """Samples, mapped into memory; each is normalised when it is read."""

    def __init__(self, stem: Path, profile: Profile) -> None:
        """Open the data. Raise KitError if its arrays are missing, or are not what the profile says."""
        model = profile.model
        inputs, answers = (stem.with_name(f"{stem.name}-{name}.npy") for name in ("inputs", "answers"))
        self.inputs, self.answers = _array(inputs), _array(answers)
        classes = model.task == CLASSIFICATION
        _require(inputs, self.inputs, np.dtype(np.float32), (len(self.inputs), model.window, model.input_features))
        kind = np.dtype(np.int64) if classes else np.dtype(np.float32)
        shape = (len(self.inputs),) if classes else (len(self.inputs), arithmetic.answers(model))
        _require(answers, self.answers, kind, shape)
        if not len(self.inputs):
            raise KitError(f"{inputs} has no samples")
        normalization = profile.data.normalization
        self._mean = torch.tensor(normalization.mean, dtype=torch.float32)
        self._std = torch.tensor(normalization.std, dtype=torch.float32)

    def __len__(self) -> int:
        """Return the number of samples."""
        return len(self.inputs)

    def __getitem__(self, numbers: Sequence[int]) -> Batch:
        """Return the samples of these numbers as one batch."""
        place = np.asarray(numbers)
        inputs = torch.from_numpy(self.inputs[place])
        return (inputs - self._mean) / self._std, torch.from_numpy(self.answers[place])


def _array(path: Path) -> np.ndarray:
    try:
        found: np.ndarray = np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError) as error:
        raise KitError(f"{path} cannot be read: {error}") from error
    return found


def _require(path: Path, array: np.ndarray, kind: np.dtype, shape: tuple[int, ...]) -> None:
    if array.dtype != kind or array.shape != shape:
        raise KitError(f"{path} is {array.dtype} of {array.shape}; the profile says {kind} of {shape}")


class Order:
    """The numbers of the samples that a rank reads, micro batch by micro batch, from one step to another.

    Which samples a step has depends on the seed, its number and the batch over all ranks alone.
    """

    def __init__(self, profile: Profile, rank: int, ranks: int, first: int, last: int) -> None:
        """Steps count from 1, ``first`` and ``last`` among them."""
        self._training, self._data = profile.training, profile.data
        self._seed, self._epoch_steps = profile.reproducibility.seed, arithmetic.steps_per_epoch(profile)
        self._batch = arithmetic.samples_per_step(profile)
        self._rank, self._ranks, self._first, self._last = rank, ranks, first, last

    def __len__(self) -> int:
        """Return the number of micro batches."""
        return (self._last - self._first + 1) * self._training.gradient_accumulation_steps

    def __iter__(self) -> Iterator[np.ndarray]:
        """Return the numbers of each micro batch."""
        micro, order, of_epoch = self._training.batch_size, np.empty(0, dtype=np.int64), -1
        for step in range(self._first, self._last + 1):
            epoch, within = divmod(step - 1, self._epoch_steps)
            if epoch != of_epoch:
                order, of_epoch = self.epoch(epoch), epoch
            for part in range(self._training.gradient_accumulation_steps):
                begin = within * self._batch + (part * self._ranks + self._rank) * micro
                yield order[begin : begin + micro]

    def epoch(self, number: int) -> np.ndarray:
        """Return the order of all samples in an epoch, which count from 0."""
        count = self._data.train_samples
        if not self._data.shuffle:
            return np.arange(count)
        return np.random.default_rng([self._seed, number]).permutation(count)


def reader(windows: Windows, order: Order | Sequence[np.ndarray], profile: Profile, device: torch.device) -> DataLoader:
    """Return what reads the batches, in processes of their own if the profile has some."""
    data = profile.data
    ahead = {"prefetch_factor": data.prefetch_factor or 2} if data.num_workers else {}
    return DataLoader(
        windows,
        sampler=order,
        batch_size=None,
        num_workers=data.num_workers,
        pin_memory=data.pin_memory and device.type == "cuda",
        generator=torch.Generator(),  # otherwise it draws from what dropout draws from, at each beginning
        **ahead,
    )
