# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The phases of one job: each way from one to the next, and that none leads back from the end."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.mlops.hpc_validation.plugins.module_utils._slurm.job import from_row
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._wait import pace, transitions
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._wait.waiting import (
    Completing,
    Doomed,
    Missing,
    Over,
    Queued,
    Running,
    Waiting,
)

ALONE = pace.Others(one_runs=False, one_goes_on=False)
BEHIND = pace.Others(one_runs=True, one_goes_on=True)
PHASES = [Queued(10.0, 5.0), Doomed(10.0, 5.0), Running(10.0), Completing(10.0, 20.0)]


def told(state: str = "RUNNING", flags: str = "", **values: object) -> dict[str, Any]:
    """A job as slurm_job_info tells it, with nothing but what a transition looks at."""
    row = {"job_id": "1", "state": state, "flags": [flags] if flags else [], "nodes": ["n1"], "started": 1.0}
    return {**from_row(row, "squeue", 100.0), "run_seconds": None, "reason": "Resources", **values}


def waiting(phase: Queued | Running | Over, **given: Any) -> Waiting:
    """A job in that phase, which Slurm has told before."""
    one = Waiting("1", **given)
    one.phase, one.job = phase, told("PENDING" if isinstance(phase, Queued) else "RUNNING")
    return one


def after(phase: Queued | Running, job: dict[str, Any], blocked: str = "", **given: Any) -> Any:
    one = waiting(phase, **given)
    transitions.take_job(one, job, blocked, 50.0)
    return one.phase


HELD = {"reason": "JobHeldUser"}


@pytest.mark.parametrize(
    ("phase", "job", "then"),
    [
        (Queued(10.0, 5.0), told("PENDING"), Queued(10.0, 5.0)),
        (Queued(10.0, 5.0), told("PENDING", **HELD), Doomed(10.0, 5.0)),
        (Doomed(10.0, 5.0), told("PENDING"), Queued(10.0, 5.0)),
        (Queued(10.0, 5.0), told(), Running(50.0)),
        (Doomed(10.0, 5.0), told(), Running(50.0)),
        (Queued(10.0), told(run_seconds=8.0), Running(42.0)),
        (Running(10.0), told(), Running(10.0)),
        (Running(10.0), told(run_seconds=8.0), Running(42.0)),
        (Running(10.0), told("SUSPENDED"), Running(10.0)),
        (Running(10.0), told(flags="COMPLETING"), Completing(10.0, 50.0)),
        (Queued(10.0), told(flags="COMPLETING"), Completing(50.0, 50.0)),
        (Completing(10.0, 20.0), told(flags="COMPLETING"), Completing(10.0, 20.0)),
        (Completing(10.0, 20.0), told(), Running(10.0)),
        (Running(10.0), told("PENDING"), Queued(50.0)),
        (Running(10.0), told("PENDING", **HELD), Doomed(50.0)),
        (Completing(10.0, 20.0), told("PENDING"), Queued(50.0)),
        (Doomed(10.0, 5.0), told("PENDING", attempt=1, **HELD), Doomed(50.0)),  # in its new attempt, for the first time
        (Running(10.0), told(attempt=1), Running(50.0)),
    ],
)
def test_slurms_word_leads_from_phase_to_phase(phase: Any, job: dict[str, Any], then: Any) -> None:
    assert after(phase, job) == then


@pytest.mark.parametrize("phase", PHASES)
@pytest.mark.parametrize("state", ["COMPLETED", "FAILED", "CANCELLED", "TIMEOUT"])
def test_a_final_word_ends_the_wait_from_every_phase(phase: Any, state: str) -> None:
    assert after(phase, told(state)) == Over("ended", "", "", phase)


@pytest.mark.parametrize(
    ("job", "outcome"),
    [
        (told("FAILED", started=None, reason="PartitionConfig"), "never_starts"),
        (told("FAILED", reason="PartitionConfig"), "ended"),
        (told("CANCELLED", started=None, reason="PartitionConfig"), "ended"),
        (told("FAILED", started=None), "ended"),
    ],
)
def test_a_job_that_failed_without_a_start_for_such_a_reason_never_starts(job: dict[str, Any], outcome: str) -> None:
    assert after(Queued(10.0), job).outcome == outcome


def test_what_never_starts_says_why_and_what_to_do() -> None:
    doomed = after(Doomed(10.0), told("PENDING", reason="PartitionDown", partition="gpu"))
    assert (doomed.outcome, doomed.why) == ("never_starts", "its partition is down")
    assert doomed.remedy.endswith("PartitionName=gpu State=UP")
    blocked = after(Queued(10.0), told("PENDING"), blocked="n1 is down")
    assert (blocked.outcome, blocked.why) == ("never_starts", "n1 is down")


@pytest.mark.parametrize("phase", PHASES)
def test_a_job_is_lost_after_three_looks_and_half_a_minute(phase: Any) -> None:
    one = waiting(phase)
    one.job.update(stderr="/e", attempt=0)
    for now, looks in ((50.0, 1), (60.0, 2), (79.9, 3)):
        transitions.take_job(one, told("UNKNOWN"), "", now)
        assert (one.missing, one.phase) == (Missing(50.0, looks), phase)
    transitions.take_job(one, told("UNKNOWN", reason_text="gone"), "", 80.0)
    assert (one.phase, one.job["stderr"]) == (Over("lost", "gone", "", phase), "/e")


def test_two_looks_are_too_few_however_far_apart() -> None:
    one = waiting(Running(10.0))
    for now in (50.0, 500.0):
        transitions.take_job(one, told("UNKNOWN"), "", now)
    assert one.phase == Running(10.0)
    transitions.take_job(one, told(), "", 510.0)
    assert one.missing is None


@pytest.mark.parametrize("phase", [Queued(10.0, 5.0), Doomed(10.0, 5.0)])
def test_a_begin_marker_of_this_attempt_starts_the_run_clock(phase: Any) -> None:
    for attempt, then in ((0, Running(50.0)), (1, phase)):
        one = waiting(phase)
        transitions.take_markers(one, {"begin": {"attempt": attempt}}, 50.0)
        assert (one.phase, one.script.has_begun) == (then, True)


def test_a_begin_marker_counts_once_and_an_end_marker_ends_nothing() -> None:
    one = waiting(Running(10.0))
    transitions.take_markers(one, {"begin": {"attempt": 0}, "end": {"attempt": 0}}, 50.0)
    assert one.phase == Running(10.0)
    assert one.script.has_ended


def test_a_job_that_says_it_began_is_not_taken_for_requeued() -> None:
    for phase, then in ((Running(10.0), Running(10.0)), (Completing(10.0, 20.0), Running(10.0))):
        one = waiting(phase)
        one.script.markers["begin"] = {"attempt": 0}
        transitions.take_job(one, told("PENDING", **HELD), "n1 is down", 50.0)
        assert one.phase == then


def test_looks_without_an_end_are_counted_and_a_requeue_forgets_them() -> None:
    one = waiting(Running(10.0))
    transitions.take_job(one, told(), "", 50.0)
    one.script.markers["end"] = {"attempt": 0}
    for _look in range(2):
        transitions.take_job(one, told(), "", 50.0)
    assert one.script.unconfirmed == 2
    transitions.take_job(one, told("PENDING", attempt=1), "", 60.0)
    assert (one.script.unconfirmed, one.script.markers) == (0, {})


@pytest.mark.parametrize(
    ("phase", "now", "outcome"),
    [
        (Queued(10.0, 5.0), 74.9, ""),
        (Queued(10.0, 5.0), 75.0, "queue_timeout"),
        (Doomed(10.0), 70.0, "queue_timeout"),
        (Running(10.0), 39.9, ""),
        (Running(10.0), 40.0, "run_timeout"),
        (Completing(10.0, 20.0), 320.0, ""),  # the run clock stands still
        (Completing(10.0, 20.0), 320.1, "undetermined"),
    ],
)
def test_each_phase_has_its_clock(phase: Any, now: float, outcome: str) -> None:
    one = waiting(phase, queue_timeout=60.0, run_timeout=30.0)
    transitions.check_clocks(one, now)
    assert one.outcome == outcome
    unlimited = waiting(phase)
    transitions.check_clocks(unlimited, now)
    assert unlimited.outcome == ("undetermined" if outcome == "undetermined" else "")


def test_only_a_job_that_slurm_calls_pending_was_not_started() -> None:
    one = Waiting("1", queue_timeout=60.0)
    one.phase = Queued(10.0)
    transitions.check_clocks(one, 1000.0)
    assert one.outcome == ""


def test_nothing_leads_back_from_the_end() -> None:
    one = waiting(Over("lost", "gone", "look", Running(10.0)), queue_timeout=1.0, run_timeout=1.0)
    transitions.take_markers(one, {"begin": {"attempt": 0}}, 50.0)
    transitions.check_clocks(one, 5000.0)
    one.give_up("ended")
    assert (one.outcome, one.why, one.remedy, one.has_run) == ("lost", "gone", "look", True)
    one.add_reason("; and it stayed")
    assert one.why == "gone; and it stayed"
    assert one.deadline == float("inf")


ENDS = {"begin": "/b", "end": "/e"}


@pytest.mark.parametrize(
    ("phase", "given", "others", "asked", "due"),
    [
        (Queued(10.0), {}, ALONE, 10.0, 12.0),
        (Queued(10.0), {}, ALONE, 40.0, 70.0),
        (Queued(10.0), {}, ALONE, 400.0, 460.0),
        (Queued(10.0), {}, BEHIND, 10.0, 20.0),
        (Doomed(10.0), {}, ALONE, 400.0, 402.0),
        (Completing(10.0, 20.0), {}, ALONE, 20.5, 21.5),
        (Completing(10.0, 20.0), {}, ALONE, 25.0, 30.0),
        (Completing(10.0, 20.0), {}, ALONE, 50.0, 60.0),
        (Running(10.0), {}, ALONE, 20.0, 21.5),
        (Running(10.0), {}, ALONE, 210.0, 214.0),
        (Running(10.0), {}, ALONE, 5010.0, 5040.0),
        (Running(10.0), {"patterns": ENDS}, ALONE, 20.0, 40.0),
        (Running(10.0), {"patterns": ENDS}, ALONE, 310.0, 340.0),
        (Running(10.0), {"patterns": ENDS}, ALONE, 2010.0, 2070.0),
    ],
)
def test_each_phase_has_its_pace(phase: Any, given: Any, others: pace.Others, asked: float, due: float) -> None:
    one = waiting(phase, **given)
    assert pace.due(one, 0.0, asked, others) == pytest.approx(due)
    one.missing = Missing(5.0, 1)
    assert pace.due(one, 0.0, asked, others) == asked + 5.0


@pytest.mark.parametrize(("asked", "due"), [(590.0, 612.0), (611.0, 612.0), (612.0, 672.0)])
def test_a_marked_job_is_asked_about_right_after_its_time_limit(asked: float, due: float) -> None:
    one = waiting(Running(10.0), patterns=ENDS)
    one.job["time_limit_seconds"] = 600
    assert pace.due(one, 0.0, asked, ALONE) == pytest.approx(due)


@pytest.mark.parametrize(("looks", "alone", "beside"), [(0, 0.0, 2.2), (2, 1.0, 2.2), (5, 5.0, 5.0), (9, 10.0, 10.0)])
def test_an_end_is_confirmed_soon_then_more_slowly(looks: int, alone: float, beside: float) -> None:
    one = waiting(Running(10.0), patterns=ENDS)
    one.script.markers, one.script.unconfirmed = {"end": {}}, looks
    one.missing = Missing(5.0, 1)
    assert pace.due(one, 0.0, 20.0, ALONE) == 20.0 + alone
    assert pace.due(one, 0.0, 20.0, BEHIND) == 20.0 + beside


@pytest.mark.parametrize(("patterns", "due"), [({}, 3.0), ({"end": "/e"}, 3.0), (ENDS, 4.5)])
def test_a_begin_marker_may_come_before_slurm_is_asked_at_all(patterns: Any, due: float) -> None:
    assert pace.due(waiting(Queued(3.0), patterns=patterns), 3.0, None, ALONE) == due


def test_silence_is_broken_ever_more_rarely() -> None:
    assert [pace.Silence(0.0, 100.0, failures).due for failures in (1, 2, 4, 5, 60)] == [102, 104, 116, 120, 120]


@pytest.mark.parametrize(
    ("reason", "now", "others", "asked", "wants"),
    [
        ("Resources", 25.0, ALONE, None, False),
        ("Resources", 25.1, ALONE, None, True),
        ("Resources", 25.1, BEHIND, None, False),  # it waits for the other, as far as anybody can tell
        ("ReqNodeNotAvail, Unavailable", 10.0, BEHIND, None, True),
        ("Nodes required for job are DOWN", 10.0, BEHIND, None, True),
        ("BeginTime", 500.0, ALONE, None, False),
        ("ReqNodeNotAvail", 100.0, ALONE, 40.1, False),
        ("ReqNodeNotAvail", 100.0, ALONE, 40.0, True),
    ],
)
def test_the_nodes_are_looked_at_for_reason_and_rarely(
    reason: str, now: float, others: pace.Others, asked: float | None, wants: bool
) -> None:
    one = waiting(Queued(10.0))
    one.job["reason"], one.nodes_asked = reason, asked
    assert pace.wants_nodes(one, now, others) is wants
    one.phase = Running(10.0)
    assert not pace.wants_nodes(one, now, others)


def test_what_the_others_do() -> None:
    queued, running, ended = waiting(Queued(1.0)), waiting(Running(1.0)), waiting(Completing(1.0, 2.0))
    ended.script.markers["end"] = {}
    assert pace.Others.of([queued]) == pace.Others(one_runs=False, one_goes_on=True)
    assert pace.Others.of([ended]) == pace.Others(one_runs=True, one_goes_on=False)
    assert pace.Others.of([running, ended]) == pace.Others(one_runs=True, one_goes_on=True)
