# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# ruff: noqa: PT009 - unittest, for pytest is not in the runtime
"""How a sharded model is built: its linear function, PyTorch's own where it is compiled, and what the host holds of it.

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
in_the_host = {"device": "cpu", "pin_memory": False}
changes = {
    "compiled": {"training": {"compile": True}},
    "offloaded": {"deepspeed": {"zero_optimization": {"offload_optimizer": in_the_host, "offload_param": in_the_host}}},
}
with group("cpu", Path(sys.argv[1])) as joined:
    engine = Sharded(load(Path("config"), "mini", changes.get(sys.argv[2], {}), 1), joined)
    print("linear:", "PyTorch's" if torch.nn.functional.linear is own else "another")
    if sys.argv[2] == "offloaded":
        tokens, before = torch.zeros(2, 128, dtype=torch.long), engine.digest()
        engine.step([(tokens, tokens)] * 8, 1e-3)
        print("trained:", engine.digest() != before)
"""


class Built(unittest.TestCase):
    """One rank builds its engine."""

    def built(self, how: str) -> str:
        """Return what a new process says of its engine."""
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

    def test_one_in_the_hosts_memory_trains_without_a_compiler(self) -> None:
        self.assertIn("trained: True", self.built("offloaded"))


if __name__ == "__main__":
    unittest.main()
