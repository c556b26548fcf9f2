# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# ruff: noqa: PT009 - unittest, for pytest is not in the runtime
"""What two real gloo ranks do together.

PYTHONPATH=files PYTHON -m unittest discover -s tests/workloads/pytorch -p 'slow_two*.py'
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import kit
from output_case import OutputCase

FILES = Path(kit.__file__).resolve().parents[1]


class Case(OutputCase):
    """Two ranks, started as a job starts them."""

    def found_by_two_ranks(self, text: str, **environment: str) -> list[Any]:
        """Return what each of two real ranks of this script wrote as found-RANK, as JSON."""
        script = self.output / "ranks.py"
        script.write_text(text)
        said = {"PYTHONPATH": str(FILES), "OUTPUT_DIR": str(self.output), "SLURM_JOB_ID": "12", **environment}
        launcher = [sys.executable, "-m", "kit", "legs", "--ranks", "2", sys.executable, "-m", "kit", "launch"]
        done = subprocess.run(
            [*launcher, str(script)],
            env={**os.environ, **said},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        return [json.loads((self.output / f"found-{rank}").read_text()) for rank in (0, 1)]


ALONE = """
import datetime, json, os, pathlib, threading
from kit.errors import KitError
from kit.training.distributed import group
from torch import distributed

def act(seconds, told=None):
    threading.Event().wait(seconds)
    if told:
        raise KitError(told)
    return joined.rank, seconds

output = pathlib.Path(os.environ["OUTPUT_DIR"])
with group("cpu", output) as joined:
    patience = distributed.distributed_c10d._set_pg_timeout
    patience(datetime.timedelta(seconds=1))
    found = [joined.on_first(lambda: act(3))]
    patience(datetime.timedelta(seconds=60))
    try:
        joined.on_first(lambda: act(0, "no bucket"))
    except KitError as error:
        found.append(str(error))
    (output / f"found-{joined.rank}").write_text(json.dumps(found))
"""


class Alone(Case):
    """What rank 0 does alone may take longer than a collective, and all know its result."""

    def test_the_others_wait_for_rank_0_and_hear_what_it_found_or_why_not(self) -> None:
        self.assertEqual(self.found_by_two_ranks(ALONE), [[[0, 3], "no bucket"]] * 2)


STUBBORN = """
import os, pathlib, signal, time
from kit.training.distributed import group
signal.signal(signal.SIGTERM, signal.SIG_IGN)
output = pathlib.Path(os.environ["OUTPUT_DIR"])
with group("cpu", output):
    (output / f"pid-{os.environ['RANK']}").write_text(str(os.getpid()))
    time.sleep(600)
"""


class Ending(Case):
    """Nothing stays behind."""

    def test_ranks_that_ignore_the_request_to_end_are_gone_before_the_job_script_loses_patience(self) -> None:
        script = self.output / "stubborn.py"
        script.write_text(STUBBORN)
        said = {"PYTHONPATH": str(FILES), "OUTPUT_DIR": str(self.output), "SLURM_JOB_ID": "12"}
        launcher = [sys.executable, "-m", "kit", "launch", str(script)]
        legs = subprocess.Popen(
            [sys.executable, "-m", "kit", "legs", "--ranks", "2", *launcher],
            env={**os.environ, **said},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self.wait(lambda: len(list(self.output.glob("pid-*"))) == 2, 120)
        pids = [int(path.read_text()) for path in self.output.glob("pid-*")]
        legs.terminate()
        self.assertNotEqual(legs.wait(10), 0)
        self.wait(lambda: not any(self.lives(pid) for pid in pids), 5)

    def wait(self, condition: Callable[[], bool], seconds: float) -> None:
        """Return as soon as the condition holds."""
        until = time.monotonic() + seconds
        while not condition():
            self.assertLess(time.monotonic(), until, f"it did not come about within {seconds} s")
            time.sleep(0.05)

    @staticmethod
    def lives(pid: int) -> bool:
        """Tell whether there is such a process, and not only what is left for its parent to read."""
        try:
            return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
        except OSError:
            return False


NCCL_TESTS = """
import dataclasses, json, os, pathlib, sys, torch
from kit.training import all_reduce, launch
from kit.training.distributed import group
output = pathlib.Path(os.environ["OUTPUT_DIR"])
with group("cpu", output) as joined:
    found = all_reduce.by_nccl_tests(dataclasses.replace(joined, device=torch.device("cuda")))
    ended = (output / "ended").exists()
    (output / f"found-{joined.rank}").write_text(json.dumps({"found": found, "ended": ended}))
"""
# Stands in for all_reduce_perf, which needs GPUs; its table is told apart in the kit's own tests.
FAKE_ALL_REDUCE_PERF = """#!/bin/sh
echo "$*" >> "$OUTPUT_DIR/called"
touch "$OUTPUT_DIR/ended"
exit 3
"""


class NcclTests(Case):
    """They are run once, by rank 0, and nobody goes on before their end."""

    def test_rank_0_runs_them_and_the_others_wait_for_what_they_say(self) -> None:
        program = self.output / "all_reduce_perf"
        program.write_text(FAKE_ALL_REDUCE_PERF)
        program.chmod(0o755)
        found = self.found_by_two_ranks(NCCL_TESTS, HPC_VALIDATION_NCCL_TESTS=str(program))
        self.assertEqual(found[0]["found"]["problem"], f"{program} answered 3: without a message")
        self.assertEqual(found[1], found[0])
        self.assertTrue(found[1]["ended"])
        self.assertEqual((self.output / "called").read_text(), "-b 8 -e 268435456 -f 2 -g 2\n")
