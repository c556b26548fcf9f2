# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A file's mutants are measured: in forks, in trials of their own, and with tests that fail from the start."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.mutation.trial import ROOT, limit

MODULE = """from __future__ import annotations

LIMIT = 3
TWICE = [2 * LIMIT]


def small(x: int) -> bool:
    return x < LIMIT


def last(x: int) -> int:
    while x > 1:
        x = x - 1
    return x


def unseen(x: int) -> bool:
    return not x
"""
TESTS = """from halves import TWICE, last, small


def test_small():
    assert small(2) and not small(3)


def test_last():
    assert last(4) == 1


def test_twice():
    assert TWICE == [6]
"""
MEASURE = """
import json, os, sys
from tests.mutation.measure import measure
from tests.mutation.targets import MutationError, Target
from tests.mutation.trial import warm_up

class Own(Target):
    imported_as = "halves"

def tell(line):
    os.write(screen, f"{line}\\n".encode())

screen = os.dup(1)
warm_up()
try:
    result = measure(Own(sys.argv[1], sys.argv[2:], {"last: x > 1 -> x >= 1": "none"}), tell)
except MutationError as error:
    sys.exit(str(error))
print(json.dumps([result.killed, [str(each) for each in result.survived], result.excused]))
"""


def measured(folder, tests):
    (folder / "halves.py").write_text(MODULE)
    (folder / "test_halves.py").write_text(tests)
    arguments = [sys.executable, "-c", MEASURE, folder / "halves.py", folder / "test_halves.py"]
    return subprocess.run(arguments, cwd=ROOT, capture_output=True, text=True, check=False)


def test_what_no_test_notices_survives_and_all_else_is_killed(tmp_path):
    done = measured(tmp_path, TESTS)
    assert done.returncode == 0, done.stderr
    *told, result = done.stdout.splitlines()
    killed, survived, excused = json.loads(result)
    assert survived == ["unseen: not x -> x"]
    assert excused == ["last: x > 1 -> x >= 1"]
    outcomes = {line.split(f"{tmp_path}/halves.py:")[1]: line.split()[0] for line in told}
    assert len(told) == killed + 1 == len(outcomes)
    assert outcomes["18  unseen: not x -> x"] == "survived"
    # By the exchange of a function, by an import, and because it goes round and round.
    for mutant in ("8  small: x < LIMIT -> x <= LIMIT", "4  module: 2 -> 3", "13  last: x - 1 -> x + 1"):
        assert outcomes[mutant] == "killed"


@pytest.mark.parametrize("tests", [TESTS.replace("last(4) == 1", "last(4) == 2"), "import nothing_of_that_name\n"])
def test_tests_that_fail_from_the_start_say_nothing(tmp_path, tests):
    done = measured(tmp_path, tests)
    assert done.returncode == 1
    assert "halves.py: its tests fail on the unchanged file" in done.stderr


@pytest.mark.parametrize(("unchanged", "seconds"), [(0.5, 4), (0.8, 4), (4.0, 20), (30.0, 150)])
def test_a_mutants_tests_may_take_five_times_as_long_and_some_seconds_at_least(unchanged, seconds):
    assert limit(unchanged) == seconds
