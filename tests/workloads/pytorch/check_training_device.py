# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# ruff: noqa: PT009, PT027 - unittest, for pytest is not in the runtime
"""Which device a training takes and which it refuses; CUDA's and NVML's answers are made up.

PYTHONPATH=files PYTHON -m unittest discover -s tests/workloads/pytorch -p 'check_training*.py'
"""

from __future__ import annotations

import os
import tempfile
import types
import unittest
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest import mock

import torch
from kit.errors import KitError
from kit.gpu import nvml
from kit.training import device as training_device
from kit.training import launch

CUDA = ("aaaa", "bbbb")  # UUIDs, in CUDA's order


@contextmanager
def node(*allocated: str, slurm: str = "2", visible: str = "0,1") -> Iterator[mock.Mock]:
    """Act as a node with two GPUs, of which NVML says that the job has these; gives what set the device."""
    usable = nvml.Usable([nvml.Gpu(number, uuid=uuid) for number, uuid in enumerate(allocated)])
    properties = [types.SimpleNamespace(uuid=uuid) for uuid in CUDA]
    with (
        mock.patch.object(nvml, "usable_gpus", return_value=usable),
        mock.patch.object(torch.cuda, "is_available", return_value=True),
        mock.patch.object(torch.cuda, "device_count", return_value=len(CUDA)),
        mock.patch.object(torch.cuda, "get_device_properties", lambda device: properties[device.index]),
        mock.patch.object(torch.cuda, "set_device") as chosen,
        mock.patch.dict(os.environ, {"SLURM_GPUS_ON_NODE": slurm, "CUDA_VISIBLE_DEVICES": visible}),
    ):
        yield chosen


class Choosing(unittest.TestCase):
    """A GPU of this job, or none."""

    def test_each_rank_takes_its_own(self) -> None:
        for rank in (0, 1):
            with node("GPU-aaaa", "GPU-bbbb") as chosen:
                device = training_device.choose("cuda", rank)
            self.assertEqual(device, torch.device("cuda", rank))
            chosen.assert_called_once_with(device)
            with node():
                self.assertEqual(training_device.uuid_of(device), f"GPU-{CUDA[rank]}")

    def test_a_rank_without_one_is_refused(self) -> None:
        with node("GPU-aaaa", "GPU-bbbb"), self.assertRaisesRegex(KitError, "local rank 2 has no GPU of its own"):
            training_device.choose("cuda", 2)

    def test_another_jobs_is_refused(self) -> None:
        with node("GPU-bbbb", "GPU-cccc"):
            with self.assertRaisesRegex(
                KitError, "CUDA's device is GPU-aaaa.* allocated GPU-bbbb, GPU-cccc: set Const"
            ):
                training_device.choose("cuda", 0)
            self.assertEqual(training_device.choose("cuda", 1).index, 1)

    def test_where_nvml_knows_none_cudas_word_stands(self) -> None:
        with node():
            self.assertEqual(training_device.choose("cuda").index, 0)

    def test_an_instance_has_a_uuid_of_its_own(self) -> None:
        with node("GPU-whole", visible="MIG-aaaa,MIG-bbbb"):
            self.assertEqual(training_device.choose("cuda").index, 0)

    def test_a_cpu_is_taken_only_where_it_is_asked_for(self) -> None:
        for accelerator in ("cpu", "simulated"):
            self.assertEqual(training_device.choose(accelerator, 1), torch.device("cpu"))


class Home(unittest.TestCase):
    """Ranks can write below their home, where the flight recorder wants to."""

    def setUp(self) -> None:
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = Path(scratch.name)

    def home(self, path: Path) -> dict[str, str]:
        """Return what the launcher changes with this home."""
        with mock.patch.dict(os.environ, {"HOME": str(path)}):
            return launch.home(Path("/output"))

    def test_one_that_can_be_written_stays(self) -> None:
        self.assertEqual(self.home(self.folder), {})
        self.assertEqual(list(self.folder.iterdir()), [])

    def test_one_that_cannot_is_replaced(self) -> None:
        with mock.patch.object(os, "access", return_value=False) as asked:
            self.assertEqual(self.home(self.folder / "nobody"), {"HOME": "/output/ranks"})
        asked.assert_called_once_with(self.folder, os.W_OK | os.X_OK)


if __name__ == "__main__":
    unittest.main()
