# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is said of a few jobs: each change, and how it is at every interval."""

from __future__ import annotations

import typing as t

import pytest
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._wait.news import News
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._wait.waiting import Over, Queued, Running, Waiting

from tests.unit.plugins.plugin_utils._wait.test_wait import told

INTERVAL = 30.0


def job(number: int = 12, state: str = "PENDING", **changes: t.Any) -> Waiting:
    one = Waiting(str(number), "train", ours=True, queue_timeout=600.0, run_timeout=900.0)
    one.job, one.phase = told(state, job_id=str(number), name="train", **changes), Queued(0.0)
    return one


def now_is(one: Waiting, state: str, **changes: t.Any) -> None:
    one.job = told(state, job_id=one.job_id, name="train", **changes)
    one.phase = Running(0.0) if state == "RUNNING" else one.phase


def end(one: Waiting, outcome: str = "ended", why: str = "", state: str = "COMPLETED") -> None:
    one.job, one.phase = told(state, job_id=one.job_id, name="train"), Over(outcome, why, "", one.phase)


@pytest.fixture
def one() -> Waiting:
    return job()


@pytest.fixture
def news(one: Waiting) -> News:
    made = News(INTERVAL)
    made.add(one, 0.0)
    return made


def test_a_state_is_told_once_and_again_at_every_interval(news: News) -> None:
    (line,) = news.lines(1.0)
    assert line.startswith("job 12 train: PENDING for 1 s of at most 10 min 0 s")
    assert news.lines(30.9) == []
    (line,) = news.lines(31.0)
    assert "PENDING for 31 s" in line
    assert news.lines(32.0) == []


@pytest.mark.parametrize(
    "changes",
    [
        {"state": "RUNNING"},
        {"state": "PENDING", "reason": "Priority"},
        {"state": "PENDING", "attempt": 1},
        {"state": "PENDING", "flags": ["COMPLETING"]},
    ],
)
def test_a_change_is_told_at_once(news: News, one: Waiting, changes: dict[str, t.Any]) -> None:
    assert len(news.lines(1.0)) == 1
    now_is(one, **changes)
    assert len(news.lines(2.0)) == 1
    assert news.lines(3.0) == []


def test_a_running_jobs_reason_is_no_news_nor_is_the_end_of_its_script(news: News, one: Waiting) -> None:
    now_is(one, "RUNNING", reason="None")
    (line,) = news.lines(1.0)
    assert line.startswith("job 12 train: RUNNING for 1 s of at most 15 min 0 s")
    now_is(one, "RUNNING", reason="Priority")
    assert news.lines(2.0) == []
    one.script.markers["end"] = {"exit_code": 3}
    assert news.lines(3.0) == []
    (line,) = news.lines(31.0)
    assert line.endswith("its script has ended with exit code 3")


def test_the_limit_of_the_job_itself_counts_where_the_task_has_none(news: News, one: Waiting) -> None:
    one.run_timeout = None
    now_is(one, "RUNNING", time_limit_seconds=1800)
    assert "of at most 30 min 0 s" in news.lines(1.0)[0]


def test_a_state_that_is_not_known_is_not_told_unless_the_script_has_begun(news: News, one: Waiting) -> None:
    now_is(one, "UNKNOWN")
    assert news.lines(1.0) == []
    one.phase = Running(0.0)
    one.script.markers["begin"] = {"host": "n1"}
    (line,) = news.lines(2.0)
    assert "RUNNING" in line


def test_an_end_is_told_once_and_never_again(news: News, one: Waiting) -> None:
    end(one)
    (line,) = news.lines(1.0)
    assert line.startswith("job 12 train: COMPLETED")
    assert news.lines(500.0) == []


def test_why_a_job_was_given_up_is_told(news: News, one: Waiting) -> None:
    end(one, "queue_timeout", "it waited 600 s", "PENDING")
    assert news.lines(1.0) == ["job 12 train: given up as PENDING: it waited 600 s"]
    end(one, "lost", "nobody knows it", "UNKNOWN")
    assert news.lines(2.0) == ["job 12 train: given up as UNKNOWN: nobody knows it"]


def test_what_ran_and_is_suspended_is_said_so_and_for_how_long(news: News, one: Waiting) -> None:
    now_is(one, "SUSPENDED")
    one.phase = Running(40.0)
    (line,) = news.lines(50.0)
    assert line.startswith("job 12 train: SUSPENDED for 10 s of at most 15 min 0 s")


def test_a_job_without_a_name_has_no_blank_before_the_colon() -> None:
    one, made = job(), News(INTERVAL)
    one.name = ""
    made.add(one, 0.0)
    end(one, "lost", "nobody knows it", "UNKNOWN")
    assert made.lines(1.0) == ["job 12: given up as UNKNOWN: nobody knows it"]


def test_of_several_that_start_at_once_the_start_is_not_told(news: News, one: Waiting) -> None:
    other = job(13)
    news.add(other, 0.0)
    for each in (one, other):
        now_is(each, "RUNNING")
    assert news.lines(1.0) == []
    assert len(news.lines(30.0)) == 2
    end(one)
    assert len(news.lines(31.0)) == 1


def test_of_several_a_start_after_a_wait_is_told(news: News, one: Waiting) -> None:
    news.add(job(13), 0.0)
    assert len(news.lines(1.0)) == 2
    now_is(one, "RUNNING")
    assert len(news.lines(2.0)) == 1
