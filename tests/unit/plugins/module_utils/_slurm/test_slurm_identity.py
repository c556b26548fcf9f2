# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which rows and markers are a job's own, and which are another's of the same id."""

from __future__ import annotations

import pytest
from ansible_collections.mlops.hpc_validation.plugins.module_utils._slurm.identity import Identity

OURS = "hpc_validation:0123456789abcdef"
NAMED, TIMED, BARE = Identity("1", OURS, 1000.0), Identity("1", submitted=1000.0), Identity("1")
LATEST = Identity("1", OURS, by=1000.0)


@pytest.mark.parametrize(
    ("job", "row", "same"),
    [
        (NAMED, {"comment": OURS, "submitted": 5000.0}, True),  # requeued: the comment is enough
        (NAMED, {"comment": "", "submitted": 1000.0}, False),
        (TIMED, {"comment": OURS, "submitted": 1000.9}, True),
        (TIMED, {"comment": OURS, "submitted": 1001.0}, False),
        (TIMED, {"comment": OURS, "submitted": 999.0}, False),
        (TIMED, {"comment": OURS, "submitted": None}, False),
        (TIMED, {"comment": "", "submitted": 5000.0, "attempt": 1}, True),
        (BARE, {"comment": OURS, "submitted": None}, True),
        (Identity("1", by=1.0), {"comment": OURS, "submitted": 5000.0}, True),
    ],
)
def test_squeue_tells_a_job_by_its_comment_or_its_time(job, row, same):
    assert job.matches({"attempt": 0, **row}) is same


@pytest.mark.parametrize(
    ("job", "submitted", "same"),
    [
        (NAMED, 1000.0, True),
        (NAMED, 1001.0, False),
        (TIMED, 999.1, True),
        (TIMED, None, False),
        (LATEST, 1000.0, True),
        (LATEST, 1000.4, True),
        (LATEST, 1000.5, False),
        (LATEST, 880.1, True),
        (LATEST, 880.0, False),
        (LATEST, None, False),
        (Identity("1", OURS, 1000.0, 5000.0), 1000.0, True),  # what Slurm said goes before what is only its bound
        (BARE, None, True),
        (Identity("1", OURS), 1.0, True),
    ],
)
def test_accounting_tells_a_job_by_its_time_alone(job, submitted, same):
    assert job.matches({"submitted": submitted, "attempt": 3}) is same


@pytest.mark.parametrize(
    ("job", "marker", "own"),
    [
        (NAMED, {"time": 1000.0}, True),
        (NAMED, {"time": 970.0}, True),
        (NAMED, {"time": 969.9}, False),
        (NAMED, {}, True),
        (NAMED, {"time": "soon"}, True),
        (LATEST, {"time": 969.9}, False),
        (LATEST, {"time": 9999.0}, True),
        (Identity("1", OURS, 1000.0, 5000.0), {"time": 1000.0}, True),
        (BARE, {"time": 0.0}, True),
    ],
)
def test_a_marker_that_is_older_than_the_job_is_anothers(job, marker, own):
    assert job.wrote("1", {"attempt": 0, **marker}, 0) is own


@pytest.mark.parametrize(
    ("told", "attempt", "own"),
    [({}, 0, True), ({}, 1, False), ({"attempt": 1}, 1, True), ({"attempt": 2}, 1, True), ({"attempt": "2"}, 1, False)],
)
def test_a_marker_of_an_earlier_attempt_says_nothing_of_this_one(told, attempt, own):
    assert BARE.wrote("1", told, attempt) is own


@pytest.mark.parametrize(("job_id", "own"), [("1", True), (1, True), ("2", False), (None, False)])
def test_a_marker_names_its_job(job_id, own):
    assert BARE.wrote(job_id, {}, 0) is own
