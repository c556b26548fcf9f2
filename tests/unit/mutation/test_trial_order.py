# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which tests a mutant meets first, and how long they may take."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.mutation.trial import ROOT, Noticed, limit


def test_what_noticed_a_mutant_last_comes_first_and_the_others_stay_in_their_order():
    noticed = Noticed()
    for test in ("a.py::second", "b.py::third", "a.py::second"):
        noticed.by(test)
    tests = ["a.py::first", "b.py::third", "a.py::second", "a.py::fourth"]
    assert sorted(tests, key=noticed.place) == ["a.py::second", "b.py::third", "a.py::first", "a.py::fourth"]


def test_others_come_by_how_long_they_take():
    noticed = Noticed()
    for test, seconds in (("a.py::long", 0.5), ("a.py::long", 3.0), ("a.py::short", 0.1), ("b.py::last", 1.0)):
        noticed.took(test, seconds)
    noticed.by("b.py::last")
    assert sorted(["a.py::long", "a.py::short", "b.py::last"], key=noticed.place) == [
        "b.py::last",
        "a.py::short",
        "a.py::long",
    ]
    assert sorted(["a.py", "c.py", "b.py"], key=noticed.of_file) == ["b.py", "c.py", "a.py"]


def test_its_file_comes_before_others():
    noticed = Noticed()
    noticed.by("b.py::third")
    assert sorted(["a.py", "b.py", "b.pyi"], key=noticed.of_file) == ["b.py", "a.py", "b.pyi"]


TIMED = """
from tests.mutation.trial import ROOT, Noticed, Trial
path, test = "plugins/module_utils/_common/scalars.py", "tests/unit/mutation/test_trial_order.py::test_its_file"
noticed = Noticed()
trial = Trial(path, (ROOT / path).read_text(encoding="utf-8"), [f"{test}_comes_before_others"], noticed, timed=True)
while trial.outcome() is None:
    pass
print(noticed.place(f"{test}_comes_before_others")[1] > 0)
"""


def test_a_timed_trial_takes_note_of_how_long_each_test_takes():
    told = subprocess.run([sys.executable, "-c", TIMED], cwd=ROOT, capture_output=True, text=True, check=True)
    assert told.stdout == "True\n"


@pytest.mark.parametrize(("unchanged", "seconds"), [(0.5, 4), (0.8, 4), (4.0, 20), (30.0, 150)])
def test_a_mutants_tests_may_take_five_times_as_long_and_some_seconds_at_least(unchanged, seconds):
    assert limit(unchanged) == seconds
