# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which tests a mutant meets first, and how long they may take."""

from __future__ import annotations

import pytest

from tests.mutation.trial import Noticed, limit


def test_what_noticed_a_mutant_last_comes_first_and_the_others_stay_in_their_order():
    noticed = Noticed()
    for test in ("a.py::second", "b.py::third", "a.py::second"):
        noticed.by(test)
    tests = ["a.py::first", "b.py::third", "a.py::second", "a.py::fourth"]
    assert sorted(tests, key=noticed.place) == ["a.py::second", "b.py::third", "a.py::first", "a.py::fourth"]


def test_its_file_comes_before_others():
    noticed = Noticed()
    noticed.by("b.py::third")
    assert sorted(["a.py", "b.py", "b.pyi"], key=noticed.of_file) == ["b.py", "a.py", "b.pyi"]


@pytest.mark.parametrize(("unchanged", "seconds"), [(0.5, 10), (2.0, 10), (4.0, 20), (30.0, 150)])
def test_a_mutants_tests_may_take_five_times_as_long_and_some_seconds_at_least(unchanged, seconds):
    assert limit(unchanged) == seconds
