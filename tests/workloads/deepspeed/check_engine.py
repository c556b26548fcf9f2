# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# ruff: noqa: PT009 - unittest, for pytest is not in the runtime
"""Which linear function a sharded model computes with: PyTorch's own where it is compiled.

DeepSpeed puts its own in the place of PyTorch's, for the whole process. Compiled, it gave no gradients on an H200.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import unittest

from two_ranks_pretraining import FILES, HOME

BUILD = """
import sys
from pathlib import Path
import torch
from engine import Sharded
from kit.training.distributed import group
from settings import load

own = torch.nn.functional.linear
with group("cpu", Path(sys.argv[1])) as joined:
    Sharded(load(Path("config"), "mini", {"training": {"compile": sys.argv[2] == "compiled"}}, 1), joined)
    print("linear:", "PyTorch's" if torch.nn.functional.linear is own else "another")
"""


class Linear(unittest.TestCase):
    """One rank builds its engine."""

    def built(self, how: str) -> str:
        """Return what a new process says of the linear function once the engine is built."""
        with tempfile.TemporaryDirectory() as output:
            alone = {"RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "0"}
            done = subprocess.run(
                [sys.executable, "-c", BUILD, output, how],
                cwd=HOME,
                env={**os.environ, **alone, "PYTHONPATH": f"{FILES}:{HOME}"},
                capture_output=True,
                text=True,
                check=False,
                timeout=300,
            )
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_a_compiled_model_computes_with_that_of_pytorch(self) -> None:
        self.assertIn("linear: PyTorch's", self.built("compiled"))

    def test_any_other_with_that_of_deepspeed(self) -> None:
        self.assertIn("linear: another", self.built("not compiled"))


if __name__ == "__main__":
    unittest.main()
