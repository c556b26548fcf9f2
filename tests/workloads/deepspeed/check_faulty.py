# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# ruff: noqa: PT009 - unittest, for pytest is not in the runtime
"""Each fault still finds what it puts wrong: where that has been moved, the training would end for another reason."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import unittest

from two_ranks_pretraining import FAULTY, FILES, HOME

# None of them does anything yet when it is put into the measured leg, on whichever rank.
PUT_IN = """
import os, sys
sys.argv[1:] = ["well"]
import faulty
for rank in "01":
    os.environ["RANK"] = rank
    for fault in faulty.FAULTS:
        fault()
        print(rank, fault.__name__, flush=True)
"""


class EachFault(unittest.TestCase):
    """All faults, put into one process."""

    def test_each_fault_can_be_put_in(self) -> None:
        with tempfile.TemporaryDirectory() as output:
            said = {
                "PYTHONPATH": f"{FILES}:{HOME}:{FAULTY.parent}",
                "OUTPUT_DIR": output,
                "HPC_VALIDATION_CHAIN": output,
                "HPC_VALIDATION_LEG": "measured",
            }
            done = subprocess.run(
                [sys.executable, "-c", PUT_IN],
                env={**os.environ, **said},
                capture_output=True,
                text=True,
                check=False,
                timeout=300,
            )
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertGreater(len(done.stdout.splitlines()), 40)


if __name__ == "__main__":
    unittest.main()
