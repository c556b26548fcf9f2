# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The controller's half: how often it asks again where the asking itself fails, and what it returns."""

from __future__ import annotations

from unittest import mock

import pytest
from ansible.errors import AnsibleActionFail, AnsibleConnectionFailure
from ansible_collections.mlops.hpc_validation.plugins.action import slurm_job
from ansible_collections.mlops.hpc_validation.plugins.module_utils._slurm.job import empty
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._wait.window import Window

CALL_SECONDS = 0.35  # what a call of a module takes that fails at once


class Clock:
    def __init__(self):
        self.now = 1000.0

    def monotonic(self):
        return self.now

    def sleep(self, seconds):
        self.now += seconds


@pytest.fixture
def action(monkeypatch):
    """An action whose calls of slurm_job_info are answered by `action.answer`, and whose clock is its own."""
    made = object.__new__(slurm_job.ActionModule)
    made.clock, made.calls, made.lines = Clock(), 0, []
    made._args = {"controller_timeout": 300.0, "progress_interval": 30.0, "tail": 20, "node_grace": None}
    made._cancelled = set()
    made._connection = mock.MagicMock()
    made._say = made.lines.append
    monkeypatch.setattr(slurm_job, "time", made.clock)

    def call(_name, _arguments):
        made.calls += 1
        made.clock.now += CALL_SECONDS
        if isinstance(made.answer, Exception):
            raise made.answer
        return dict(made.answer)

    made._module = call
    return made


@pytest.mark.parametrize(
    "answer",
    [
        {"failed": True, "msg": "MODULE FAILURE: No space left on device"},
        {"failed": True},
        {"changed": False},
        AnsibleConnectionFailure("Connection refused"),
    ],
)
def test_what_fails_at_once_is_asked_again_after_a_pause(action, answer):
    action.answer = answer
    window = Window([{"job_id": "7"}], 200)
    assert action._wait(window) is None
    (one,) = window.jobs
    assert (one.outcome, one.state) == ("undetermined", "UNKNOWN")
    assert action.clock.now - 1000.0 >= 300.0
    assert 10 <= action.calls <= 300 / slurm_job._RETRY_PAUSE + 1
    assert action.lines[0].startswith("Slurm does not answer: ")


def test_nothing_is_waited_for_once_it_has_given_up(action):
    action.answer = {"failed": True, "msg": "no"}
    action._args["controller_timeout"] = 0.0
    action._wait(Window([{"job_id": "7"}], 200))
    assert (action.calls, action.clock.now) == (1, 1000.0 + CALL_SECONDS)


@pytest.fixture
def run(monkeypatch):
    """(what slurm_job and slurm_job_info answer, options) → what the task returns."""

    def run(answers, **arguments):
        task = mock.MagicMock(args=arguments, async_val=0, check_mode=False)
        action = slurm_job.ActionModule(task, mock.MagicMock(), mock.MagicMock(), None, None, None)
        action._execute_module = lambda module_name, **_other: dict(answers[module_name.rpartition(".")[2]])
        monkeypatch.setattr(slurm_job, "display", mock.MagicMock())
        return action.run(task_vars={})

    return run


def submitted(job_id, **values):
    made = {"refused": None, "job_id": job_id, "attached": False, "name": "n", "comment": "c"}
    return {**made, "script_sha256": "0" * 64, "submitted_by": 5.0, **values}


def done(job_id):
    values = {"state": "COMPLETED", "source": "squeue", "exit_code": 0, "name": "n", "comment": "c"}
    return {**empty(job_id), **values}


@pytest.mark.parametrize(("count", "lines"), [(1, 1), (8, 8), (9, 9), (1000, 9)])
def test_what_would_be_submitted_is_a_handful_of_lines(monkeypatch, count, lines):
    plans = [{"name": f"n{number}", "plan": "would submit: x", "attached": number > 990} for number in range(count)]
    task = mock.MagicMock(args={"path": "/a"}, async_val=0, check_mode=True)
    action = slurm_job.ActionModule(task, mock.MagicMock(), mock.MagicMock(), None, None, None)
    action._execute_module = lambda **_other: {"changed": True, "submitted": plans}
    screen = mock.MagicMock()
    monkeypatch.setattr(slurm_job, "display", screen)
    assert action.run(task_vars={})["submitted"] == plans
    said = [call.args[0] for call in screen.display.call_args_list]
    assert len(said) == lines
    assert said[:8] == [f"slurm_job: n{number}: would submit: x" for number in range(min(count, 8))]
    if count == 1000:
        assert said[-1] == "slurm_job: 992 more: would submit 983, attach to 9"


ASKED = {"asked": True, "controller": "up", "accounting": "up", "blocked": {}, "markers": {}}


@pytest.mark.parametrize("wait", [True, False])
@pytest.mark.parametrize("jobs", [["8", "9"], ["9", "8"]])
def test_jobs_are_returned_under_their_keys(run, wait, jobs):
    entries = [submitted("9"), submitted("", refused="sbatch refused it")]
    result = run(
        {
            "slurm_job": {"changed": True, "submitted": entries},
            "slurm_job_info": {**ASKED, "jobs": [done(job_id) for job_id in jobs]},
        },
        jobs=[{"key": "b", "path": "/b"}, {"key": "c", "path": "/c"}, {"key": "a", "job_id": "8"}],
        wait=wait,
        on_refusal="go_on",
        fail_on_state=False,
    )
    assert {key: job["job_id"] for key, job in result["jobs_by_key"].items()} == {"b": "9", "c": "0", "a": "8"}
    assert [job["key"] for job in result["jobs"]] == ["b", "c", "a"]
    assert [job["state"] for job in result["jobs"]] == ["COMPLETED", "UNKNOWN", "COMPLETED"]
    assert (result["job"], result["failed"], result["msg"]) == (result["jobs"][0], False, "sbatch refused it")
    assert (result["attached"], result["changed"]) == (False, True)


@pytest.mark.parametrize("wait", [True, False])
def test_where_all_are_refused_slurm_is_not_asked(run, wait):
    answers = {"slurm_job": {"changed": True, "submitted": [submitted("", refused="no")]}}
    result = run(answers, key="a", path="/a", wait=wait, on_refusal="go_on")
    assert (result["jobs_by_key"]["a"]["reason_text"], result["failed"]) == ("no", True)


def test_what_failed_before_it_was_submitted_has_no_jobs(run):
    result = run({"slurm_job": {"failed": True, "msg": "no", "changed": False}}, key="a", path="/a")
    assert (result["jobs"], result["jobs_by_key"], result["job"], result["failed"]) == ([], {}, None, True)


def test_two_jobs_of_one_key_are_refused(run):
    with pytest.raises(AnsibleActionFail, match="'a' appears twice"):
        run({}, jobs=[{"key": "a", "path": "/a"}, {"key": "a", "path": "/b"}])


# -- a window of jobs


class Site:
    """slurm_job and slurm_job_info on a site that takes `most` jobs at once, each of which runs for `seconds`."""

    def __init__(self, clock, most=10**6, seconds=5.0, dead=()):
        self.clock, self.most, self.seconds, self.dead = clock, most, seconds, dead
        self.started, self.ended, self.calls, self.cancelled, self.peak = {}, set(), [], [], 0
        self.fail_at = None

    def __call__(self, name, args):
        self.clock.now += 0.5
        kind = name.rpartition(".")[2]
        self.calls.append((kind, args))
        return getattr(self, kind)(args)

    def live(self):
        now = self.clock.now
        return [
            job_id
            for job_id, (begun, key) in self.started.items()
            if job_id not in self.cancelled and (key in self.dead or now < begun + self.seconds)
        ]

    def slurm_job(self, args):
        if args.get("state") == "absent":
            ids = [job["job_id"] for job in args.get("jobs", [])] or self.live()
            self.cancelled += ids
            return {"cancelled": ids, "jobs": [{**done(job_id), "state": "CANCELLED"} for job_id in ids]}
        if self.fail_at is not None and len(self.started) >= self.fail_at:
            return {"failed": True, "msg": "the journal cannot be written"}
        entries = []
        room = 4 if args.get("looked") is None and args.get("wait", True) else 10**6
        for job in args["jobs"]:
            if len(self.live()) >= self.most:
                entries.append(submitted("", later="AssocMaxSubmitJobLimit"))
                room = 0
            elif room <= 0:
                entries.append(submitted("", later=""))
            else:
                job_id = str(len(self.started) + 1)
                self.started[job_id] = (self.clock.now, job["key"])
                entries.append(submitted(job_id, name=job["key"], later=None))
                room -= 1
        self.peak = max(self.peak, len(self.live()))
        first = {"window": 4, "window_why": "MaxJobs is 4", "looked": 1.0} if args.get("looked") is None else {}
        return {"changed": True, "submitted": entries, **first}

    def slurm_job_info(self, args):
        self.clock.now += args["hold"]
        jobs, stuck = [], {}
        for job in args["jobs"]:
            job_id, dead = job["job_id"], self.started[job["job_id"]][1] in self.dead
            over = job_id not in self.live()
            ran = self.seconds if over else self.clock.now - self.started[job_id][0]
            state = "COMPLETED" if over else "RUNNING"
            jobs.append({**done(job_id), "name": "n", "state": state, "run_seconds": ran})
            if dead and job["stuck_after"] is not None and args["hold"] >= job["stuck_after"]:
                stuck[job_id] = "n7 is not responding"
        return {**ASKED, "jobs": jobs if args["query"] else [], "asked": args["query"], "stuck": stuck}


@pytest.fixture
def fleet(monkeypatch):
    """(site, options) → what the task returns for twelve jobs in a window of four, and the lines it printed."""

    def play(site_options=None, fail_at=None, **arguments):
        clock = Clock()
        site = Site(clock, **(site_options or {}))
        site.fail_at = fail_at
        jobs = [{"key": f"n{number}", "path": "/x", "options": {"nodelist": f"n{number}"}} for number in range(12)]
        given = {"jobs": jobs, "fail_on_state": False, "begin_marker": "/m/%j", "progress_interval": 10, **arguments}
        task = mock.MagicMock(args=given, async_val=0, check_mode=False)
        action = slurm_job.ActionModule(task, mock.MagicMock(), mock.MagicMock(), None, None, None)
        action._execute_module = lambda module_name, module_args, **_other: site(module_name, module_args)
        shown = mock.MagicMock()
        monkeypatch.setattr(slurm_job, "display", shown)
        monkeypatch.setattr(slurm_job, "time", clock)
        result = action.run(task_vars={})
        return result, site, [call.args[0] for call in shown.display.call_args_list]

    return play


def test_jobs_go_through_a_window(fleet):
    result, site, lines = fleet()
    assert [job["key"] for job in result["jobs"]] == [f"n{number}" for number in range(12)]
    assert {job["state"] for job in result["jobs"]} == {"COMPLETED"}
    assert site.peak == 4
    assert any("8 more are submitted as these end, at most 4 at a time (MaxJobs is 4)" in line for line in lines)
    later = [args for kind, args in site.calls if kind == "slurm_job"][1:]
    assert {args["looked"] for args in later} == {1.0}
    assert [job["key"] for args in later for job in args["jobs"]] == [f"n{number}" for number in range(4, 12)]
    assert all(len(line) <= 120 for whole in lines for line in whole.split("\n"))


def test_what_the_site_refuses_for_now_is_submitted_later(fleet):
    result, site, lines = fleet({"most": 2})
    assert {job["state"] for job in result["jobs"]} == {"COMPLETED"}
    assert (site.peak, len(site.started)) == (2, 12)
    assert sum("held back" in line and "AssocMaxSubmitJobLimit" in line for line in lines) >= 1


def test_what_the_site_never_takes_is_refused_after_the_time_it_may_queue(fleet):
    result, site, _lines = fleet({"most": 0}, queue_timeout=60, on_refusal="go_on")
    assert {(job["job_id"], job["state"]) for job in result["jobs"]} == {("0", "UNKNOWN")}
    assert "AssocMaxSubmitJobLimit" in result["jobs_by_key"]["n3"]["reason_text"]
    assert site.clock.now - 1000.0 < 60 + 30
    assert site.started == {}


def test_a_dead_node_costs_its_own_job_and_little_more_than_the_grace(fleet):
    result, site, lines = fleet({"dead": ("n7",)}, node_grace=60)
    outcomes = {result["outcomes"][job["job_id"]]["outcome"] for job in result["jobs"] if job["key"] != "n7"}
    dead = result["jobs_by_key"]["n7"]
    assert (outcomes, result["outcomes"][dead["job_id"]]["outcome"]) == ({"ended"}, "node_unavailable")
    assert (dead["state"], dead["reason_text"]) == ("CANCELLED", "n7 is not responding")
    assert (site.cancelled, result["cancelled"]) == ([dead["job_id"]], [dead["job_id"]])
    assert site.clock.now - site.started[dead["job_id"]][0] <= 60 + 15
    assert any("n7 is not responding" in line for line in lines)


def test_a_submission_that_fails_later_leaves_no_job_behind(fleet):
    result, site, _lines = fleet(fail_at=4)
    assert (result["failed"], result["msg"]) == (True, "the journal cannot be written")
    assert result["jobs"] == []
    assert site.live() == []


def test_without_waiting_there_is_no_window(fleet):
    result, site, _lines = fleet(wait=False)
    assert (len(result["jobs"]), len(site.started)) == (12, 12)
    assert [kind for kind, _args in site.calls].count("slurm_job") == 1


@pytest.mark.parametrize("window", [0, -1])
def test_a_window_for_no_job_is_refused_before_anything_is_submitted(run, window):
    with pytest.raises(AnsibleActionFail, match="window must be at least 1"):
        run({}, path="/a", window=window)
