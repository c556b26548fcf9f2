# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is said of many jobs: one line at every interval, and one for each that did not end well."""

from __future__ import annotations

import pytest
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._wait.many import WIDTH, Left, ManyNews, summary
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
    news = ManyNews(30.0, 0.0)
    assert news.lines(jobs, Left(), None, 1.0) == []
    for one in jobs[:96]:
        end(one)
    run(jobs[96])
    assert news.lines(jobs, Left(), None, 9.0) == []
    (line,) = news.lines(jobs, Left(), None, 10.0)
    assert line == "96 of 100 jobs ended, 1 running, 3 pending: n[098-100]; about 0 s left"
    assert news.lines(jobs, Left(), None, 11.0) == []
    assert len(news.lines(jobs, Left(), None, 20.0)) == 1


def test_the_end_is_told_at_once_and_once(jobs: list[Waiting]) -> None:
    news = ManyNews(30.0, 0.0)
    for one in jobs:
        end(one)
    assert news.lines(jobs, Left(), None, 0.5) == ["100 of 100 jobs ended"]
    assert news.lines(jobs, Left(), None, 99.0) == []


def test_an_end_that_was_told_is_not_told_again(jobs: list[Waiting]) -> None:
    news = ManyNews(30.0, 0.0)
    for one in jobs:
        run(one)
        one.script.markers["end"] = {"exit_code": 0}
    assert news.lines(jobs, Left(), None, 10.0) == ["100 of 100 jobs ended"]
    for one in jobs:
        end(one)
    assert news.lines(jobs, Left(), None, 12.0) == []


def test_a_failure_is_told_as_it_comes_and_only_once(jobs: list[Waiting]) -> None:
    news = ManyNews(30.0, 0.0)
    end(jobs[6], "FAILED")
    end(jobs[7], "PENDING", "queue_timeout", "it waited 120 s")
    found = news.lines(jobs, Left(), None, 1.0)
    assert len(found) == 2
    assert "FAILED" in found[0]
    assert "it waited 120 s" in found[1]
    assert news.lines(jobs, Left(), None, 2.0) == []


def test_many_failures_at_once_are_folded(jobs: list[Waiting]) -> None:
    news = ManyNews(30.0, 0.0)
    for one in jobs[:50]:
        end(one, "NODE_FAIL")
    assert len(news.lines(jobs, Left(), None, 1.0)) == 5
    found = news.lines(jobs, Left(), None, 10.0)
    assert found[0] == "45 more did not end well: n[006-050]"
    assert found[1].startswith("50 of 100 jobs ended (50 not well), 50 pending: n[051-100]")


@pytest.mark.parametrize("count", [1000])
def test_no_line_grows_with_the_number_of_jobs(count: int) -> None:
    jobs = [Waiting(str(number), key=f"node{number * 2:05d}") for number in range(count)]
    for one in jobs:
        one.job = told("PENDING", job_id=one.job_id)
    (line,) = ManyNews(30.0, 0.0).lines(jobs, Left(), None, 10.0)
    assert len(line) <= WIDTH


def test_a_short_interval_of_the_user_counts(jobs: list[Waiting]) -> None:
    news = ManyNews(2.0, 0.0)
    assert [len(news.lines(jobs, Left(), None, float(now))) for now in range(1, 7)] == [0, 1, 0, 1, 0, 1]


def test_it_says_why_most_wait_what_is_held_back_and_what_is_still_to_come(jobs: list[Waiting]) -> None:
    for one in jobs[:98]:
        end(one)
    for one in jobs[98:]:
        one.job = told("PENDING", job_id=one.job_id, reason="ReqNodeNotAvail, UnavailableNodes:n[099-100]")
    line = summary(jobs, Left(800, "AssocMaxSubmitJobLimit Batch job submission failed"), None, 10.0, 10.0)
    assert line.startswith("98 of 900 jobs ended, 800 to be submitted (held back: AssocMaxSubmitJobLimit")
    assert len(line) <= WIDTH
    assert "held back" not in summary(jobs, Left(9), None, 10.0, 10.0)
    line = summary(jobs, Left(), None, 10.0, 10.0)
    assert line == "98 of 100 jobs ended, 2 pending: n[099-100] a node it needs is not available now; about 0 s left"


def test_the_time_left_is_that_of_the_jobs_that_ended_so_far(jobs: list[Waiting]) -> None:
    for one in jobs[:10]:
        end(one)
    assert summary(jobs, Left(), None, 22.0, 500.0).endswith("; about 3 min 18 s left")


def test_a_few_that_ended_do_not_tell_the_time_left(jobs: list[Waiting]) -> None:
    assert "left" not in summary(jobs, Left(), None, 2.0, 500.0)
    for one in jobs[:9]:
        end(one)
    assert "left" not in summary(jobs[:91], Left(), None, 2.0, 500.0)
    assert "about" in summary(jobs[:90], Left(), None, 2.0, 500.0)


def test_the_time_is_counted_from_the_start(jobs: list[Waiting]) -> None:
    news = ManyNews(10.0, 1000.0)
    for one in jobs[:50]:
        end(one)
    assert news.lines(jobs, Left(), None, 1010.0)[0].endswith("; about 10 s left")


def test_of_jobs_with_different_graces_the_last_counts(jobs: list[Waiting]) -> None:
    for one in jobs:
        one.needs = str(one.key)
    jobs[0].phase = Queued(30.0)
    assert summary(jobs, Left(), 60.0, 20.0, 20.0).endswith("; about 70 s left")
    assert "left" not in summary(jobs, Left(5), 60.0, 20.0, 20.0)
    jobs[0].script.markers["begin"] = {}
    run(jobs[0])
    assert "left" not in summary(jobs, Left(), 60.0, 20.0, 20.0)
    assert summary(jobs[1:], Left(), 60.0, 90.0, 90.0).endswith("; about 0 s left")


def test_what_only_waits_for_dead_nodes_takes_until_the_grace_ends(jobs: list[Waiting]) -> None:
    for one in jobs[:98]:
        end(one)
    for one in jobs[98:]:
        one.needs = str(one.key)
    assert summary(jobs, Left(), 60.0, 20.0, 20.0).endswith("; about 40 s left")


@pytest.mark.parametrize("reason", ["", "None", "Priority", "Resources"])
def test_a_usual_reason_is_not_told(jobs: list[Waiting], reason: str) -> None:
    for one in jobs:
        one.job = told("PENDING", job_id=one.job_id, reason=reason)
    assert summary(jobs, Left(), None, 1.0, 1.0) == "0 of 100 jobs ended, 100 pending: n[001-100]"


def test_jobs_without_a_key_go_by_their_name_or_number() -> None:
    jobs = [Waiting("7", "train"), Waiting("8")]
    assert summary(jobs, Left(), None, 1.0, 1.0).startswith("0 of 2 jobs ended, 2 pending: 8,train")


def test_a_failure_of_a_job_that_ran_says_how_it_ended(jobs: list[Waiting]) -> None:
    end(jobs[0], "FAILED")
    end(jobs[1], "COMPLETED", "lost", "no part of Slurm knows it")
    jobs[0].job["reason_text"] = "it was killed"
    first, second = ManyNews(10.0, 0.0).lines(jobs, Left(), None, 1.0)
    assert first.startswith("job 1 train: FAILED")
    assert first.endswith(": it was killed")
    assert "given up as COMPLETED: no part of Slurm knows it" in second
    jobs[2].job = {**told("NODE_FAIL", job_id="3"), "reason_text": ""}
    jobs[2].phase = Over("ended", "", "", Running(0.0))
    (third,) = ManyNews(10.0, 0.0).lines(jobs[2:], Left(), None, 1.0)
    assert not third.endswith(": ")


def test_after_the_interval_there_is_a_handful_of_lines_again(jobs: list[Waiting]) -> None:
    news = ManyNews(10.0, 0.0)
    for one in jobs[:6]:
        end(one, "NODE_FAIL")
    assert len(news.lines(jobs, Left(), None, 1.0)) == 5
    for one in jobs[6:8]:
        end(one, "NODE_FAIL")
    assert len(news.lines(jobs, Left(), None, 10.0)) == 2
    for one in jobs[8:20]:
        end(one, "NODE_FAIL")
    assert len(news.lines(jobs, Left(), None, 11.0)) == 5


def test_a_script_that_has_ended_counts_as_ended(jobs: list[Waiting]) -> None:
    run(jobs[0])
    jobs[0].script.markers["end"] = {}
    assert summary(jobs, Left(), None, 1.0, 1.0).startswith("1 of 100 jobs ended, 99 pending")


def test_the_end_is_not_told_while_jobs_are_to_be_submitted(jobs: list[Waiting]) -> None:
    news = ManyNews(30.0, 0.0)
    for one in jobs:
        end(one)
    assert news.lines(jobs, Left(1), None, 1.0) == []
    assert news.lines(jobs, Left(), None, 2.0) == ["100 of 100 jobs ended"]
