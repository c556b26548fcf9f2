# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What slurm_job returns: every job in its place and under its key, whatever became of it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from ansible_collections.mlops.hpc_validation.plugins.module_utils._slurm.job import empty
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._common import schema
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._wait import results
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._wait.limits import Limits
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._wait.wait import Wait
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._wait.waiting import Waiting


def entry(job_id: str = "7", **values: Any) -> dict[str, Any]:
    """What became of a submission, as the module tells it."""
    made = {"refused": None, "job_id": job_id, "attached": False, "name": "train", "comment": "c"}
    return {**made, "script_sha256": "0" * 64, "submitted_by": 5.0, **values}


def refused(key: str | None = None) -> Waiting:
    return results.waiting_for({"key": key, "path": "/x"}, entry("", refused="sbatch refused it"))


def ended(job_id: str, key: str | None = None, state: str = "COMPLETED") -> Waiting:
    one = results.waiting_for({"key": key, "path": "/x"}, entry(job_id))
    one.job["state"] = state
    one.give_up("ended")
    return one


def test_a_submitted_job_is_waited_for_by_what_the_task_said_of_it() -> None:
    spec = {"key": "a", "path": "/x", "run_timeout": 9.0, "begin_marker": "/b", "end_marker": None}
    made = Waiting("7", "train", "c", "0" * 64, True, 600.0, 9.0, {"begin": "/b"}, 5.0, "a")
    assert results.waiting_for(spec, entry()) == made
    assert results.waiting_for({**spec, "queue_timeout": 3.0}, entry()).queue_timeout == 3.0
    assert not results.waiting_for(spec, entry(attached=True)).ours


def test_a_job_given_by_its_id_is_nobodys_to_cancel() -> None:
    assert results.waiting_for({"job_id": "12", "key": "a"}, None) == Waiting("12", queue_timeout=600.0, key="a")


def test_jobs_are_in_the_order_given_and_under_their_keys() -> None:
    found = results.waited_for([ended("9", "b"), ended("7"), ended("8", "a")], set(), True)
    assert [job["job_id"] for job in found["jobs"]] == ["9", "7", "8"]
    assert {key: job["job_id"] for key, job in found["jobs_by_key"].items()} == {"b": "9", "a": "8"}
    assert [job.get("key") for job in found["jobs"]] == ["b", None, "a"]
    assert (found["job"], found["cancelled"]) == (found["jobs"][0], [])
    assert "msg" not in found
    assert "failed" not in found
    assert [schema.problems("job", job) for job in found["jobs"]] == [[], [], []]


def test_two_jobs_of_the_same_content_are_one_of_slurms_and_two_of_the_callers() -> None:
    found = results.waited_for([ended("9", "a"), ended("9", "b")], set(), True)
    assert {key: job["job_id"] for key, job in found["jobs_by_key"].items()} == {"a": "9", "b": "9"}


@pytest.mark.parametrize("fails", [True, False])
def test_a_refused_job_is_told_in_its_place_and_under_its_key(fails: bool) -> None:
    jobs = [refused("a"), ended("7", "b"), refused("c")]
    for found in (results.looked_at(jobs, fails), results.waited_for(jobs, set(), fails)):
        told = {**empty("0"), "name": "train", "reason": "refused", "reason_text": "sbatch refused it"}
        assert found["jobs"] == [{**told, "key": "a"}, {**jobs[1].job, "key": "b"}, {**told, "key": "c"}]
        assert list(found["jobs_by_key"]) == ["a", "b", "c"]
        assert (found["job"], found["failed"]) == (found["jobs"][0], fails)
        assert found["msg"] == "sbatch refused it\nsbatch refused it"
    assert list(results.waited_for(jobs, set(), True)["outcomes"]) == ["7"]


def test_what_was_refused_is_said_before_what_did_not_complete() -> None:
    found = results.waited_for([ended("7", state="FAILED"), refused()], {"10", "9"}, True)
    first, second = found["msg"].split("\n")
    assert first == "sbatch refused it"
    assert second.startswith("Job 7 train: FAILED")
    assert (found["failed"], found["cancelled"]) == (True, ["9", "10"])
    assert found["outcomes"]["7"] == {"outcome": "ended", "why": "", "remedy": "", "cancelled": False}


def test_what_was_cancelled_is_said_so() -> None:
    one = ended("7", state="CANCELLED")
    assert results.waited_for([one], {"7"}, True)["outcomes"]["7"]["cancelled"] is True


def test_of_no_jobs_there_is_none() -> None:
    assert results.looked_at([], True) == {"job": None, "jobs": [], "jobs_by_key": {}, "cancelled": []}


def test_nothing_is_asked_or_said_about_a_refused_job() -> None:
    one, other = refused(), results.waiting_for({"path": "/x"}, entry())
    wait = Wait([one, other], Limits(), 0.0)
    assert wait.open == [other]
    assert [job["job_id"] for job in wait.request(0.0)["jobs"]] == ["7"]
    wait.unreachable("no", 1.0)
    assert wait.take_lines() == ["Slurm does not answer: no. Retrying for 5 min 0 s"]
    assert (one.outcome, one.state) == ("refused", "UNKNOWN")


def test_the_jobs_of_many_are_saved_to_a_file_and_only_counted(tmp_path):
    told = {"jobs_by_key": {"n1": {"key": "n1", "job_id": "7"}}, "outcomes": {"7": {}}}
    large = {"jobs": [told["jobs_by_key"]["n1"]], "job": told["jobs_by_key"]["n1"], "msg": "long"}
    rest = results.saved({**told, **large, "changed": True}, str(tmp_path / "jobs.json"))
    assert rest == {"changed": True, "saved": 1}
    assert json.loads((tmp_path / "jobs.json").read_text()) == told


def test_why_a_submission_failed_is_returned_although_there_is_nothing_to_save(tmp_path):
    rest = results.saved({"failed": True, "msg": "no such partition", "jobs": []}, str(tmp_path / "jobs.json"))
    assert rest == {"failed": True, "msg": "no such partition", "saved": 0}


@pytest.mark.parametrize(
    ("options", "needs"),
    [
        (None, ""),
        ({"gres": "gpu:1"}, ""),
        ({"nodelist": "n042"}, "n042"),
        ({"nodelist": ["n1", "n2", "n4"]}, "n[1-2,4]"),
        ({"nodelist": None}, ""),
    ],
)
def test_a_job_needs_the_nodes_that_its_options_name(options: dict[str, Any] | None, needs: str) -> None:
    assert results.waiting_for({"path": "/x", "options": options}, entry()).needs == needs


def test_the_message_does_not_grow_with_the_jobs_that_were_refused() -> None:
    found = results.waited_for([refused(str(number)) for number in range(1000)], set(), False)
    assert len(found["msg"].splitlines()) == 6
    assert "995 more were refused" in found["msg"]
