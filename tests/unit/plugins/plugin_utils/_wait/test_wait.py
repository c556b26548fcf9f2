# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The waiting state machine against a job's life, with time handed in: how often it asks, and how each wait ends."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.mlops.hpc_validation.plugins.module_utils._slurm.job import from_row
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._wait.limits import (
    CONFIRM_SPACING,
    MANY_SPACING,
    QUEUE_LEAST,
    Limits,
)
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._wait.wait import Wait
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._wait.waiting import Queued, Waiting

MARKERS = {"begin": "/m/%j.begin.json", "end": "/m/%j.end.json"}


def told(state: str = "RUNNING", **values: object) -> dict[str, Any]:
    """A job as slurm_job_info tells it."""
    row = {
        "job_id": "1",
        "attempt": 0,
        "name": "train",
        "user": "admin",
        "state": state,
        "flags": [],
        "exit_code": 0,
        "signal": 0,
        "derived_exit_code": 0,
        "reason": "None",
        "nodes": [] if state == "PENDING" else ["n1"],
        "gpus": 1,
        "partition": "gpu",
        "submitted": 1000.0,
        "started": None if state == "PENDING" else 1000.0,
        "ended": None,
        "time_limit_seconds": 600,
        "stdout": "/o",
        "stderr": "/e",
        "comment": "c",
        **values,
    }
    return from_row(row, "squeue", 1000.0)


def answer(*jobs: dict[str, Any], markers: dict[str, Any] | None = None, **values: object) -> dict[str, Any]:
    return {
        "asked": bool(jobs) or "controller" in values,
        "controller": "up",
        "error": "",
        "accounting": "up",
        "jobs": list(jobs),
        "markers": markers or {},
        "blocked": {},
        **values,
    }


class Life:
    """A wait whose world is a function of time: at(seconds) → (state, kinds of markers there)."""

    def __init__(
        self, at: Any, patterns: dict[str, str] | None = None, limits: Limits | None = None, **waiting: Any
    ) -> None:
        one = Waiting("1", "train", "c", ours=True, patterns=MARKERS if patterns is None else patterns, **waiting)
        self.one = one
        self.at = at
        self.now = 0.0
        self.queries = 0
        self.wait = Wait([one], limits or Limits(), 0.0)
        self.lines: list[str] = []

    def run(self, most: float = 4000.0) -> Life:
        while self.wait.open and self.now < most:
            request = self.wait.request(self.now)
            end = self.now + float(str(request["hold"]))
            asked = bool(request["query"])
            while self.now < end:
                self.now = min(end, self.now + 0.2)
                new = self.at(self.now)[1] - set(self.one.script.markers)
                if new:
                    asked = "end" in new
                    self.now += float(str(request["settle"])) if asked else 0
                    break
            state, kinds = self.at(self.now)
            markers = {"1": {kind: {"attempt": 0} for kind in kinds}}
            self.queries += asked
            job = {**(state if isinstance(state, dict) else told(state)), "run_seconds": None}
            self.wait.observe(answer(*([job] if asked else []), markers=markers), request, self.now)
            self.lines += self.wait.take_lines()
            self.now += 0.4  # what one module costs over ssh
        return self


def runs(start: float, seconds: float, *, marked: bool = True, cleans: float = 0.1) -> Any:
    """A job that starts, runs that long, and ends so many seconds after its end marker."""

    def at(now: float) -> tuple[str, set[str]]:
        kinds = (
            {kind for kind, when in (("begin", start), ("end", start + seconds)) if now >= when} if marked else set()
        )
        if now < start:
            return "PENDING", kinds
        return ("COMPLETED" if now >= start + seconds + cleans else "RUNNING"), kinds

    return at


@pytest.mark.parametrize(("seconds", "queries"), [(5, 1), (120, 7), (600, 22), (3600, 75)])
def test_the_end_is_noticed_within_a_second_and_at_little_cost(seconds: float, queries: int) -> None:
    life = Life(runs(1.0, seconds)).run(5000)
    assert life.one.outcome == "ended"
    assert life.now - (1.0 + seconds + 0.1) <= 1
    assert life.queries <= queries


def test_a_short_job_with_markers_is_asked_about_once() -> None:
    assert Life(runs(1.0, 5)).run().queries == 1


@pytest.mark.parametrize(("cleans", "late", "queries"), [(0.5, 1.0, 2), (1.5, 1.3, 3), (8, 4, 6)])
def test_the_end_of_a_job_that_slurm_cleans_up_after_is_noticed_a_little_later(
    cleans: float, late: float, queries: int
) -> None:
    life = Life(runs(1.0, 5, cleans=cleans)).run()
    assert life.one.outcome == "ended"
    assert life.now - (1.0 + 5 + cleans) <= late
    assert life.queries <= queries


@pytest.mark.parametrize(("seconds", "late"), [(5, 3), (120, 3.5), (600, 13), (3600, 31)])
def test_without_markers_the_end_is_noticed_in_proportion(seconds: float, late: float) -> None:
    life = Life(runs(1.0, seconds, marked=False), patterns={}).run(5000)
    assert life.one.outcome == "ended"
    assert life.now - (1.0 + seconds + 0.1) <= late


def test_a_long_queue_is_asked_about_rarely() -> None:
    life = Life(runs(3000, 5), queue_timeout=3600).run(5000)
    assert life.one.outcome == "ended"
    assert life.queries < 70


def test_a_job_killed_without_an_end_marker_is_noticed_within_a_minute() -> None:
    life = Life(lambda now: ("FAILED" if now > 300 else "RUNNING", {"begin"} if now > 1 else set())).run()
    assert life.one.outcome == "ended"
    assert life.now < 362


def test_it_is_asked_for_right_after_its_time_limit() -> None:
    life = Life(lambda now: ("TIMEOUT" if now > 600.5 else "RUNNING", {"begin"})).run()
    assert life.now < 606


def test_the_queue_clock() -> None:
    life = Life(lambda _now: (told("PENDING", reason="Resources"), set()), queue_timeout=20).run()
    assert life.one.outcome == "queue_timeout"
    assert 20 <= life.now < 23
    assert "waiting for nodes to become free" in life.one.why


def test_the_run_clock() -> None:
    life = Life(lambda now: ("RUNNING", {"begin"} if now > 1 else set()), run_timeout=30).run()
    assert life.one.outcome == "run_timeout"
    assert 30 <= life.now < 35


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        ("PartitionTimeLimit", "longer than its partition allows"),
        ("PartitionConfig", "more than its partition allows"),
        ("PartitionNodeLimit", "nodes than its partition allows"),
        ("PartitionDown", "partition is down"),
        ("DependencyNeverSatisfied", "did not end as required"),
        ("JobHeldUser", "held by its owner"),
        ("JobHeldAdmin", "held by an administrator"),
        ("BadConstraints", "no node can ever meet"),
        ("AssocMaxWallDurationPerJobLimit", "allows a job"),
        ("QOSMaxGRESPerJob", "allows a job"),
        ("InvalidAccount", "account is not valid"),
        ("InvalidQOS", "QOS is not valid"),
        ("job requeued in held state", "is held"),
    ],
)
def test_a_job_that_can_never_start_is_given_up_at_once(reason: str, words: str) -> None:
    life = Life(lambda _now: (told("PENDING", reason=reason), set())).run()
    assert life.one.outcome == "never_starts"
    assert words in life.one.why
    assert life.one.remedy
    assert "{" not in life.one.remedy
    assert life.now < 6


@pytest.mark.parametrize("reason", ["Resources", "Priority", "None", "AssocGrpGRES", "QOSMaxJobsPerUserLimit", "New"])
def test_a_job_that_only_waits_is_waited_for(reason: str) -> None:
    def at(now: float) -> Any:
        return (told("PENDING", reason=reason), set()) if now < 100 else ("COMPLETED", {"begin", "end"})

    assert Life(at).run().one.outcome == "ended"


def test_drained_nodes_are_looked_at_once_and_again_later() -> None:
    one = Waiting("1", ours=True, queue_timeout=600)
    wait = Wait([one], Limits(), 0.0)
    request = wait.request(0.0)
    assert request["nodes"] == []
    wait.observe(answer(told("PENDING", reason="ReqNodeNotAvail, UnavailableNodes:n1")), request, 0.5)
    request = wait.request(0.5)
    assert request["nodes"] == ["1"]
    pending = told("PENDING", reason="ReqNodeNotAvail, UnavailableNodes:n1")
    wait.observe(answer(pending), request, 3.0)
    assert wait.request(3.0)["nodes"] == []
    wait.observe(answer(pending, blocked={"1": "n1 is down"}), {**request, "nodes": ["1"]}, 70.0)
    assert (one.outcome, one.why) == ("never_starts", "n1 is down")
    assert "State=RESUME" in one.remedy


def test_a_requeued_job_is_waited_for_again() -> None:
    def at(now: float) -> Any:
        if now < 20:
            return told("RUNNING"), set()
        if now < 140:
            return told("PENDING", attempt=1, reason="BeginTime"), set()
        return told("RUNNING" if now < 150 else "COMPLETED", attempt=1), set()

    life = Life(at, patterns={}, queue_timeout=200).run()
    assert life.one.outcome == "ended"
    assert life.one.job["attempt"] == 1
    assert any("attempt 1" in line for line in life.lines)


def test_completing_is_waited_for_but_not_for_ever() -> None:
    def ends(now: float) -> Any:
        return told("RUNNING", flags=["COMPLETING"]) if now < 30 else told("COMPLETED"), {"begin", "end"}

    assert Life(ends).run().one.outcome == "ended"
    life = Life(lambda _now: (told("RUNNING", flags=["COMPLETING"]), {"begin", "end"})).run()
    assert (life.one.outcome, life.one.state) == ("undetermined", "UNKNOWN")
    assert life.now < 330


def test_a_job_that_nobody_knows_is_lost_after_half_a_minute() -> None:
    life = Life(lambda now: (told("RUNNING") if now < 10 else told("UNKNOWN"), set()), patterns={}).run()
    assert (life.one.outcome, life.one.state) == ("lost", "UNKNOWN")
    assert life.now >= 40
    assert life.one.job["stderr"] == "/e"


def failing(wait: Wait, until: float) -> float:
    now = 0.0
    while wait.open and now < until:
        request = wait.request(now)
        now += float(str(request["hold"])) + 1.0
        if request["query"]:
            wait.observe(answer(controller="unreachable", error="connect failure"), request, now)
    return now


def test_a_controller_that_comes_back_is_forgiven() -> None:
    one = Waiting("1", ours=True)
    wait = Wait([one], Limits(controller_timeout=300), 0.0)
    now = failing(wait, 200)
    assert one.outcome == ""
    assert any("does not answer" in line for line in wait.take_lines())
    wait.observe(answer(told("COMPLETED")), wait.request(now), now)
    assert one.outcome == "ended"
    assert any("answers again" in line for line in wait.take_lines())


def test_a_controller_that_stays_away_leaves_the_state_unknown() -> None:
    one = Waiting("1", ours=True)
    wait = Wait([one], Limits(controller_timeout=60), 0.0)
    wait.observe(answer(told("RUNNING")), wait.request(0.0), 0.5)
    now = failing(wait, 400)
    assert (one.outcome, one.state, one.job["exit_code"]) == ("undetermined", "UNKNOWN", None)
    assert 60 <= now < 100
    assert "connect failure" in one.why


def test_a_controller_that_was_away_for_one_look_answers_again() -> None:
    wait = Wait([Waiting("1", ours=True)], Limits(), 0.0)
    wait.observe(answer(controller="unreachable", error="connect failure"), wait.request(0.0), 0.5)
    assert any("does not answer" in line for line in wait.take_lines())
    wait.observe(answer(told("RUNNING")), wait.request(2.0), 2.5)
    assert "slurmctld answers again" in wait.take_lines()
    wait.observe(answer(told("RUNNING")), wait.request(30.0), 30.5)
    assert "slurmctld answers again" not in wait.take_lines()


def test_a_job_that_was_given_up_says_why_it_was_cancelled() -> None:
    one = Waiting("1", ours=True, queue_timeout=5.0)
    wait = Wait([one], Limits(), 0.0)
    wait.observe(answer(told("PENDING")), wait.request(0.0), 6.0)
    one.take_cancelled(told("CANCELLED"))
    assert one.job["state"] == "CANCELLED"
    assert one.job["reason_text"] == "it did not start within 5 s: the scheduler has not looked at it yet"


def test_a_requeued_job_is_looked_for_by_its_new_submission() -> None:
    wait = Wait([Waiting("1", ours=True)], Limits(), 0.0)
    wait.observe(answer(told("RUNNING", submitted=1000.0)), wait.request(0.0), 0.5)
    assert wait.request(1.0)["jobs"][0]["submitted"] == 1000.0
    wait.observe(answer(told("PENDING", submitted=2000.0, attempt=1)), wait.request(30.0), 30.5)
    assert wait.request(31.0)["jobs"][0]["submitted"] == 2000.0


def test_squeue_that_is_not_there_is_not_waited_for() -> None:
    one = Waiting("1", ours=True)
    wait = Wait([one], Limits(), 0.0)
    wait.observe(answer(controller="missing", error="squeue was not found on login"), wait.request(0.0), 0.5)
    assert (one.outcome, one.state) == ("undetermined", "UNKNOWN")


def test_lines_come_on_change_and_at_the_interval() -> None:
    one = Waiting("1", "train", ours=True, patterns=MARKERS)
    wait = Wait([one], Limits(progress_interval=30), 0.0)
    printed = []
    for now in range(1, 100):
        progress = {
            "1": {
                "begin": {"attempt": 0, "host": "n1"},
                "progress": {"epoch": 2, "epochs": 5, "loss": 0.125, "eta_seconds": 40},
            }
        }
        wait.observe(answer(markers=progress), wait.request(float(now)), float(now))
        printed += wait.take_lines()
    assert len(printed) == 4
    assert printed[0] == "job 1 train: RUNNING for 0 s on n1: epoch 2/5, loss 0.125, about 40 s left"


def test_one_query_serves_many_ends() -> None:
    jobs = [Waiting(str(number), ours=True, patterns=MARKERS) for number in range(1, 21)]
    wait = Wait(jobs, Limits(), 0.0)
    request = wait.request(0.0)
    wait.observe(answer(*(dict(told("RUNNING"), job_id=one.job_id) for one in jobs)), request, 1.0)
    request = wait.request(2.0)
    assert len(request["jobs"]) == 20
    assert float(str(request["confirm_after"])) == MANY_SPACING - 1


def test_markers_of_an_earlier_attempt_do_not_start_the_clock() -> None:
    one = Waiting("1", ours=True, patterns=MARKERS)
    wait = Wait([one], Limits(), 0.0)
    wait.observe(answer(told("PENDING", attempt=1)), wait.request(0.0), 0.5)
    wait.observe(answer(markers={"1": {"begin": {"attempt": 0}}}), wait.request(0.5), 1.0)
    assert one.phase == Queued(0.0)


def two_jobs(first: str, second: str, seconds: float) -> tuple[Wait, Waiting]:
    """The wait for two jobs after that many seconds in which these were their states; the second may queue 60 s."""
    other, one = Waiting("1", "other"), Waiting("2", "one", ours=True, queue_timeout=60)
    wait = Wait([other, one], Limits(), 0.0)
    for now in range(0, int(seconds) + 1, 10):
        if not wait.open:
            break
        told_of = [told(state, job_id=job_id) for job_id, state in (("1", first), ("2", second))]
        wait.observe(answer(*told_of), {"nodes": []}, float(now))
    return wait, one


def test_time_behind_another_job_of_the_task_does_not_count_as_waiting() -> None:
    wait, one = two_jobs("RUNNING", "PENDING", 600)
    assert one.outcome == ""
    for now in range(610, 680, 10):
        wait.observe(answer(told("COMPLETED", job_id="1"), told("PENDING", job_id="2")), {"nodes": []}, float(now))
    assert one.outcome == "queue_timeout"
    assert "it did not start within 60 s, and 10 min 10 s while others of this task ran" in one.why


def test_slurm_is_asked_soon_about_a_job_that_has_queued_long_when_the_one_before_it_has_ended() -> None:
    wait, one = two_jobs("RUNNING", "PENDING", 600)
    wait.jobs[0].patterns = MARKERS
    assert float(str(wait.request(600.0)["hold"])) > 10
    wait.observe(answer(told("COMPLETED", job_id="1"), told("PENDING", job_id="2")), {"nodes": []}, 602.0)
    assert wait.open == [one]
    assert float(str(wait.request(602.0)["hold"])) == QUEUE_LEAST


def test_time_beside_another_job_that_waits_too_counts() -> None:
    assert two_jobs("PENDING", "PENDING", 60)[1].outcome == "queue_timeout"


# -- many jobs


def fleet(count: int, **given: Any) -> list[Waiting]:
    return [Waiting(str(number), ours=True, patterns=MARKERS, **given) for number in range(1, count + 1)]


def test_slurm_is_asked_three_times_a_minute_at_most_about_many_jobs() -> None:
    wait = Wait(fleet(200), Limits(progress_interval=10), 0.0)
    now, asked = 0.0, []
    while now < 300:
        request = wait.request(now)
        now += float(str(request["hold"])) + 0.5
        begun = {str(number): {"begin": {"attempt": 0}} for number in range(1, 1 + int(now * 0.7) % 200)}
        if request["query"]:
            asked.append(now)
            wait.observe(answer(*(told(job_id=one.job_id) for one in wait.open), markers=begun), request, now)
        else:
            wait.observe(answer(markers=begun), request, now)
    assert 2 <= len([at for at in asked if 60 < at <= 120]) <= 3
    assert min(after - before for before, after in zip(asked[1:], asked[2:])) >= MANY_SPACING


def test_of_many_jobs_one_without_an_end_marker_is_not_left_for_half_a_minute_after_its_end() -> None:
    jobs = fleet(20)
    wait = Wait(jobs, Limits(progress_interval=60), 0.0)
    states = [told("RUNNING", job_id=one.job_id) for one in jobs]
    wait.observe(answer(*states), wait.request(0.0), 10.0)
    assert float(str(wait.request(10.0)["confirm_after"])) == MANY_SPACING
    jobs[7].patterns = {"begin": MARKERS["begin"]}
    request = wait.request(10.0)
    assert (request["hold"], request["query"]) == (CONFIRM_SPACING, True)
    assert float(str(request["confirm_after"])) == CONFIRM_SPACING


@pytest.mark.parametrize(("asked", "due"), [(50.0, 12.0), (40.0, 20.0), (20.0, 26.0)])
def test_of_many_jobs_a_node_that_may_be_gone_is_looked_at_sooner(asked: float, due: float) -> None:
    """The grace ends at 60 s: at once, but 12 s after the last query; the routine query comes first at 46 s."""
    jobs = fleet(20)
    jobs[7].needs = "n8"
    wait = Wait(jobs, Limits(node_grace=60, progress_interval=60), 0.0)
    begun = {str(number): {"begin": {"attempt": 0}} for number in range(1, 21) if number != 8}
    states = [told("PENDING" if one.job_id == "8" else "RUNNING", job_id=one.job_id) for one in jobs]
    wait.observe(answer(*states, markers=begun), wait.request(0.0), asked)
    now, request = asked, wait.request(asked)
    while not request["query"]:
        now += float(str(request["hold"]))
        request = wait.request(now)
    assert now + float(str(request["hold"])) - asked == pytest.approx(due, abs=0.1)


def test_when_the_last_script_has_ended_slurm_is_asked_at_once() -> None:
    jobs = fleet(20)
    wait = Wait(jobs, Limits(), 0.0)
    wait.observe(answer(*(told(job_id=one.job_id) for one in jobs)), wait.request(0.0), 1.0)
    for one in jobs:
        one.script.markers["end"] = {}
    request = wait.request(2.0)
    assert (request["hold"], request["query"], request["confirm_after"]) == (0.0, True, 0.0)


def test_of_many_jobs_markers_are_gathered_and_little_is_kept_of_each() -> None:
    few, many = Wait(fleet(8), Limits(), 0.0).request(0.0), Wait(fleet(9), Limits(), 0.0).request(0.0)
    assert (few["gather"], few["tail"]) == (0.0, 20)
    assert (many["gather"], many["tail"]) == (3.0, 5)


def test_jobs_that_are_to_be_submitted_count_as_many() -> None:
    wait = Wait(fleet(2), Limits(), 0.0, 100)
    assert wait.many
    wait.add([Waiting("3", ours=True)], 50.0)
    assert [one.phase for one in wait.open] == [Queued(0.0), Queued(0.0), Queued(50.0)]


def test_a_job_added_later_that_was_refused_is_over() -> None:
    wait = Wait([], Limits(), 0.0, 1)
    one = Waiting("0")
    one.refuse("no")
    wait.add([one], 5.0)
    assert wait.open == []


# -- nodes that do not begin their job


def graced(**given: Any) -> tuple[Waiting, Wait]:
    one = Waiting("1", "look", "c", ours=True, patterns=MARKERS, needs="n042", **given)
    return one, Wait([one], Limits(node_grace=60.0), 0.0)


def test_a_job_is_looked_at_when_the_grace_ends() -> None:
    one, wait = graced()
    wait.observe(answer(told("PENDING", reason="ReqNodeNotAvail, UnavailableNodes:n042")), wait.request(0.0), 50.0)
    request = wait.request(50.0)
    (spec,) = request["jobs"]
    assert (spec["needs"], spec["stuck_after"], request["nodes"]) == ("n042", 9.9, [])
    assert (request["hold"], request["query"]) == (10.0, True)
    wait.observe(answer(told("PENDING"), stuck={"1": "n042 is down"}, nodes_looked=["1"]), request, 60.5)
    assert (one.outcome, one.why, one.job["reason_text"]) == ("node_unavailable", "n042 is down", "n042 is down")
    assert "State=RESUME" in one.remedy


def test_a_node_that_is_down_is_named_where_the_job_may_queue_for_less_than_the_grace() -> None:
    one, wait = graced(queue_timeout=10.0)
    request = wait.request(0.0)
    assert request["jobs"][0]["stuck_after"] == 9.9
    wait.observe(answer(told("PENDING"), stuck={"1": "n042 is down"}, nodes_looked=["1"]), request, 10.5)
    assert (one.outcome, one.why) == ("node_unavailable", "n042 is down")


def test_a_busy_node_is_waited_for_and_looked_at_again_every_minute() -> None:
    one, wait = graced(queue_timeout=600)
    wait.observe(answer(told("PENDING"), nodes_looked=["1"]), wait.request(0.0), 61.0)
    assert one.outcome == ""
    assert wait.request(62.0)["jobs"][0]["stuck_after"] == 58.9
    wait.observe(answer(told("PENDING"), nodes_looked=["1"]), wait.request(62.0), 121.0)
    assert wait.request(121.0)["jobs"][0]["stuck_after"] == 59.9


@pytest.mark.parametrize(
    ("markers", "state", "stuck"),
    [
        ({}, "RUNNING", True),
        ({"begin": {"attempt": 0}}, "RUNNING", False),
        ({"end": {"attempt": 0}}, "COMPLETED", False),
    ],
)
def test_a_job_that_has_begun_is_not_stuck(markers: dict[str, Any], state: str, stuck: bool) -> None:
    one, wait = graced()
    told_of = answer(told(state), markers={"1": markers}, stuck={"1": "n042 has not begun it"})
    wait.observe(told_of, wait.request(0.0), 61.0)
    assert (one.outcome == "node_unavailable") is stuck


@pytest.mark.parametrize("change", [{"patterns": {"end": "/m/%j"}}, {"needs": ""}])
def test_without_a_begin_marker_or_a_node_of_its_own_a_running_job_has_no_grace(change: dict[str, Any]) -> None:
    one, wait = graced()
    wait.observe(answer(told("RUNNING")), wait.request(0.0), 1.0)
    assert wait.request(1.0)["jobs"][0]["stuck_after"] is not None
    for name, value in change.items():
        setattr(one, name, value)
    assert wait.request(1.0)["jobs"][0]["stuck_after"] is None


def test_a_job_that_cleans_up_has_no_grace() -> None:
    one, wait = graced()
    wait.observe(answer(told("RUNNING", flags=["COMPLETING"])), wait.request(0.0), 1.0)
    assert one.grace_ends(60.0, 60.0) == float("inf")


def test_without_a_grace_nodes_are_looked_at_as_ever() -> None:
    one = Waiting("1", ours=True, needs="n1")
    wait = Wait([one], Limits(), 0.0)
    wait.observe(answer(told("PENDING", reason="ReqNodeNotAvail")), wait.request(0.0), 0.5)
    request = wait.request(0.5)
    assert (request["nodes"], request["jobs"][0]["needs"]) == (["1"], None)
