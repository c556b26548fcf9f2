# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# ruff: noqa: PT009 - unittest, for pytest is not in the runtime
"""MLOPS-2.2 on two real gloo ranks: the model whole or shared out, and a rank that is slow.

PYTHONPATH=files:files/workloads/smollm_multi_gpu \
    PYTHON -m unittest discover -s tests/workloads/oumi -p 'slow_smollm*.py'
"""

from __future__ import annotations

import unittest

from two_ranks import TwoRanks

# A GPU whose clocks are held down: rank 1 needs a second more for the two passes of a step.
SLOW = """
import functools, os, runpy, time
from transformers import LlamaForCausalLM

forward = LlamaForCausalLM.forward

@functools.wraps(forward)
def slow(*arguments, **options):
    time.sleep(0.5 * int(os.environ["RANK"]))
    return forward(*arguments, **options)

LlamaForCausalLM.forward = slow
runpy.run_path("smollm_multi_gpu.py", run_name="__main__")
"""


class Ranks(TwoRanks):
    """What two ranks come to."""

    def test_the_model_is_whole_on_each_rank_or_shared_out_and_learns_the_same(self) -> None:
        self.compare_whole_with("fsdp")

    def test_a_slow_rank_is_named_although_all_wait_for_it_within_each_pass(self) -> None:
        script = self.folder / "slow.py"
        script.write_text(SLOW)
        _metrics, (sound, slow) = self.train(script, "--steady-seconds", "0.1")
        self.assertEqual(sound["pace"], 1)
        self.assertLess(slow["pace"], 0.7)
        self.assertGreater(slow["compute_seconds"], 1)


if __name__ == "__main__":
    unittest.main()
