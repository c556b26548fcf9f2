# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is said of many jobs: one line at every interval, and one for each that did not end well."""

from __future__ import annotations

import pytest
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._wait.news import News
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._wait.waiting import Over, Queued, Running, Waiting

from tests.unit.plugins.plugin_utils._wait.test_wait import told

COUNT = 100


@pytest.fixture
def jobs() -> list[Waiting]:
    """Jobs on nodes of a fleet, all of them pending."""
    made = []
    for number in range(1, COUNT + 1):
        one = Waiting(str(number), f"preflight-n{number:03d}", key=f"n{number:03d}", ours=True)
        one.job, one.phase = told("PENDING", job_id=str(number)), Queued(0.0)
        made.append(one)
    return made


def run(one: Waiting) -> None:
    one.job, one.phase = told("RUNNING", job_id=one.job_id), Running(0.0)


def end(one: Waiting, state: str = "COMPLETED", outcome: str = "ended", why: str = "") -> None:
    one.job, one.phase = told(state, job_id=one.job_id), Over(outcome, why, "", Running(0.0))


def test_the_state_of_all_is_one_line_at_every_interval(jobs: list[Waiting]) -> None:
    news = News(jobs, 30.0, 0.0)
    assert news.lines(1.0) == []
    for one in jobs[:96]:
        end(one)
    run(jobs[96])
    assert news.lines(9.0) == []
    (line,) = news.lines(10.0)
    assert line == "96 of 100 jobs ended, 1 running, 3 pending: n[098-100]; about 0 s left"
    assert news.lines(11.0) == []
    assert len(news.lines(20.0)) == 1


def test_the_end_is_told_at_once_and_once(jobs: list[Waiting]) -> None:
    news = News(jobs, 30.0, 0.0)
    for one in jobs:
        end(one)
    assert news.lines(0.5) == ["100 of 100 jobs ended"]
    assert news.lines(99.0) == []


def test_a_failure_is_told_as_it_comes_and_only_once(jobs: list[Waiting]) -> None:
    news = News(jobs, 30.0, 0.0)
    end(jobs[6], "FAILED")
    end(jobs[7], "PENDING", "queue_timeout", "it waited 120 s")
    found = news.lines(1.0)
    assert len(found) == 2
    assert "FAILED" in found[0]
    assert "it waited 120 s" in found[1]
    assert news.lines(2.0) == []


def test_many_failures_at_once_are_folded(jobs: list[Waiting]) -> None:
    news = News(jobs, 30.0, 0.0)
    for one in jobs[:50]:
        end(one, "NODE_FAIL")
    found = news.lines(1.0)
    assert len(found) == 6
    assert found[-1] == "45 more did not end well: n[006-050]"


@pytest.mark.parametrize("count", [1000])
def test_no_line_grows_with_the_number_of_jobs(count: int) -> None:
    jobs = [Waiting(str(number), key=f"node{number * 2:05d}") for number in range(count)]
    for one in jobs:
        one.job = told("PENDING", job_id=one.job_id)
    (line,) = News(jobs, 30.0, 0.0).lines(10.0)
    assert len(line) <= 120


def test_a_short_interval_of_the_user_counts(jobs: list[Waiting]) -> None:
    news = News(jobs, 2.0, 0.0)
    assert [len(news.lines(float(now))) for now in range(1, 7)] == [0, 1, 0, 1, 0, 1]
