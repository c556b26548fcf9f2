# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Submitting, attaching and cancelling against a Slurm in memory: never twice, honest where the outcome is unknown."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from ansible_collections.mlops.hpc_validation.plugins.module_utils._slurm.cancel import cancel, journal_comments
from ansible_collections.mlops.hpc_validation.plugins.module_utils._slurm.cli import Result, SlurmError, run
from ansible_collections.mlops.hpc_validation.plugins.module_utils._slurm.journal import Journal
from ansible_collections.mlops.hpc_validation.plugins.module_utils._slurm.script import prepare
from ansible_collections.mlops.hpc_validation.plugins.module_utils._slurm.submit import (
    Context,
    Queue,
    RefusedError,
    Room,
    last_script,
    parse_job_id,
    submit_all,
    test_only,
)

from tests.unit.plugins.module_utils._slurm.slurm_fake import TIMED_OUT, FakeSlurm

SCRIPT = "#!/bin/bash\ntrue\n"
test_only.__test__ = False


@pytest.fixture
def slurm() -> FakeSlurm:
    return FakeSlurm()


@pytest.fixture
def context(slurm: FakeSlurm, tmp_path: Path) -> Context:
    return Context(slurm, Journal(str(tmp_path / "journal")), "admin", "token1", slurm.now, slurm.sleep)


@pytest.fixture
def one() -> list:
    return [prepare({"script": SCRIPT}, "admin")]


def another(context: Context, token: str) -> Context:
    """The same world as another task sees it."""
    return replace(context, token=token)


def lose_before_job_id(context: Context, one: list) -> None:
    """Leave what a task leaves that dies between sbatch and the journal: a live job, and "submitting"."""
    submit_all(context, one)
    context.journal.write({**entry(context), "state": "submitting", "job_id": None})


def entry(context: Context) -> dict:
    (found,) = context.journal.entries()
    return found


def test_submits_once_and_attaches_afterwards(context: Context, slurm: FakeSlurm, one: list) -> None:
    (first,) = submit_all(context, one)
    (second,) = submit_all(another(context, "token2"), one)
    assert (first.job_id, first.attached) == ("1", False)
    assert (second.job_id, second.attached) == ("1", True)
    assert slurm.count("sbatch") == 1
    assert entry(context)["state"] == "submitted"
    assert entry(context)["script"] == SCRIPT
    assert last_script(context.journal, one[0], "admin") == SCRIPT


def test_what_has_ended_is_submitted_again(context: Context, slurm: FakeSlurm, one: list) -> None:
    submit_all(context, one)
    slurm.jobs["1"]["State"] = "COMPLETED"
    (again,) = submit_all(another(context, "token2"), one)
    assert (again.job_id, again.attached) == ("2", False)


def test_the_same_twice_in_one_task_is_one_job(context: Context, slurm: FakeSlurm, one: list) -> None:
    done = submit_all(context, one * 2)
    assert [(each.job_id, each.attached) for each in done] == [("1", False), ("1", True)]
    assert slurm.count("sbatch") == 1


def test_the_journal_is_written_before_sbatch(context: Context, slurm: FakeSlurm, one: list) -> None:
    seen = []
    original = slurm._sbatch
    slurm._sbatch = lambda argv: (seen.append(entry(context)["state"]), original(argv))[1]
    submit_all(context, one)
    assert seen == ["submitting"]


def test_a_journal_that_cannot_be_written_submits_nothing(slurm: FakeSlurm, tmp_path: Path, one: list) -> None:
    context = Context(slurm, Journal(str(tmp_path / "no" / "journal")), "admin", "t", slurm.now, slurm.sleep)
    with pytest.raises(SlurmError, match=r"journal .* cannot be written"):
        submit_all(context, one)
    assert slurm.count("sbatch") == 0


def test_a_timed_out_sbatch_that_submitted_is_found_by_its_comment(
    context: Context, slurm: FakeSlurm, one: list
) -> None:
    slurm.sbatch = TIMED_OUT
    (done,) = submit_all(context, one)
    assert (done.job_id, done.attached) == ("1", False)
    assert slurm.count("sbatch") == 1


def test_a_timed_out_sbatch_that_is_not_found_is_unknown_and_not_repeated(
    context: Context, slurm: FakeSlurm, one: list
) -> None:
    slurm.sbatch, slurm.sbatch_submits = TIMED_OUT, False
    begun = slurm.time
    with pytest.raises(SlurmError, match="not known whether") as error:
        submit_all(context, one)
    assert error.value.details["state"] == "UNKNOWN"
    assert one[0].comment in str(error.value)
    assert slurm.count("sbatch") == 1
    assert slurm.time - begun >= 30
    assert entry(context)["state"] == "submitting"


def test_the_next_run_attaches_to_what_an_interrupted_one_left(context: Context, slurm: FakeSlurm, one: list) -> None:
    context.journal.prepare()
    context.journal.write(
        {"hash": one[0].content_hash, "state": "submitting", "written": slurm.time - 5, "user": "admin"}
    )
    original, looks = slurm._squeue, []

    def late(argv: list[str]) -> Result:
        looks.append(1)
        if len(looks) == 3:
            slurm.jobs["77"] = {"Comment": one[0].comment, "SubmitTime": 990}
        return original(argv)

    slurm._squeue = late
    (done,) = submit_all(context, one)
    assert (done.job_id, done.attached) == ("77", True)
    assert slurm.count("sbatch") == 0


@pytest.mark.parametrize("lose", [submit_all, lose_before_job_id], ids=["submitted", "submitting"])
def test_a_retry_after_a_lost_answer_owns_its_job(
    context: Context, slurm: FakeSlurm, one: list, lose: Callable[[Context, list], object]
) -> None:
    lose(context, one)
    (retried,) = submit_all(context, one)
    assert (retried.job_id, retried.attached) == ("1", False)
    assert slurm.count("sbatch") == 1
    assert (entry(context)["state"], entry(context)["job_id"], entry(context)["token"]) == ("submitted", "1", "token1")
    gone, _other = cancel(context, [], journal_comments(context, "token1"))
    assert [job["job_id"] for job in gone] == ["1"]


@pytest.mark.parametrize("state", ["COMPLETED", "FAILED", "purged"])
def test_a_retry_after_a_lost_answer_finds_its_job_though_it_has_ended(
    context: Context, slurm: FakeSlurm, one: list, state: str
) -> None:
    submit_all(context, one)
    if state == "purged":
        del slurm.jobs["1"]
    else:
        slurm.jobs["1"]["State"] = state
    (retried,) = submit_all(context, one)
    assert (retried.job_id, retried.attached) == ("1", False)
    assert slurm.count("sbatch") == 1
    (later,) = submit_all(another(context, "token2"), one)
    assert later.job_id == "2"


@pytest.mark.parametrize("lose", [submit_all, lose_before_job_id], ids=["submitted", "submitting"])
@pytest.mark.parametrize("token", ["token2", ""])
def test_another_task_attaches_and_leaves_the_job_to_its_submitter(
    context: Context, slurm: FakeSlurm, one: list, lose: Callable[[Context, list], object], token: str
) -> None:
    lose(context, one)
    (other,) = submit_all(another(context, token), one)
    assert (other.job_id, other.attached) == ("1", True)
    assert (entry(context)["job_id"], entry(context)["token"]) == ("1", "token1")
    (retried,) = submit_all(context, one)
    assert (retried.job_id, retried.attached) == ("1", False)
    assert slurm.count("sbatch") == 1


@pytest.mark.parametrize("lose", [submit_all, lose_before_job_id], ids=["submitted", "submitting"])
def test_an_empty_token_owns_nothing(
    context: Context, slurm: FakeSlurm, one: list, lose: Callable[[Context, list], object]
) -> None:
    nobody = another(context, "")
    lose(nobody, one)
    (again,) = submit_all(nobody, one)
    assert (again.job_id, again.attached) == ("1", True)
    assert slurm.count("sbatch") == 1


@pytest.mark.parametrize("state", ["submitted", "refused"])
def test_a_live_job_that_the_entry_does_not_name_is_not_owned(
    context: Context, slurm: FakeSlurm, one: list, state: str
) -> None:
    submit_all(context, one)
    slurm.jobs["1"]["State"] = "COMPLETED"
    slurm.jobs["9"] = {"Comment": one[0].comment, "SubmitTime": 990}
    context.journal.write({**entry(context), "state": state, "job_id": "1" if state == "submitted" else None})
    (done,) = submit_all(context, one)
    assert (done.job_id, done.attached) == ("9", True)
    assert entry(context)["token"] == ""
    assert cancel(context, [], journal_comments(context, "token1")) == ([], [])


def test_a_refusal_says_what_to_do(context: Context, slurm: FakeSlurm, one: list) -> None:
    slurm.sbatch, slurm.sbatch_submits = Result(1, b"", "sbatch: error: invalid partition specified: nope"), False
    with pytest.raises(SlurmError, match="sinfo --summarize") as error:
        submit_all(context, one)
    assert "retry" not in error.value.details
    assert entry(context)["state"] == "refused"


def test_one_that_is_refused_need_not_keep_the_others_back(context: Context, slurm: FakeSlurm, one: list) -> None:
    two = [*one, prepare({"script": SCRIPT + "# another\n"}, "admin")]
    slurm.sbatch, slurm.sbatch_submits = Result(1, b"", "sbatch: error: invalid partition specified: nope"), False
    refused = submit_all(context, two, go_on=True)
    assert [(each.job_id, "nope" in str(each.refused)) for each in refused] == [("", True), ("", True)]
    slurm.down = True
    slurm.sbatch = None
    with pytest.raises(SlurmError, match="does not answer"):
        submit_all(context, two, go_on=True)


def test_a_controller_that_is_down_may_be_tried_again(context: Context, slurm: FakeSlurm, one: list) -> None:
    slurm.down = True
    with pytest.raises(SlurmError, match="does not answer") as error:
        submit_all(context, one)
    assert error.value.details["retry"] is True
    assert slurm.count("sbatch") == 0


def test_what_was_submitted_before_a_failure_is_told(context: Context, slurm: FakeSlurm, one: list) -> None:
    second = prepare({"script": SCRIPT, "options": {"partition": "nope"}}, "admin")
    original = slurm._sbatch
    slurm._sbatch = lambda argv: (
        Result(1, b"", "Invalid partition name") if "--partition=nope" in argv else original(argv)
    )
    with pytest.raises(SlurmError) as error:
        submit_all(context, [*one, second])
    assert [each["job_id"] for each in error.value.details["submitted"]] == ["1"]


def test_an_interrupted_task_submits_no_more(context: Context, slurm: FakeSlurm, one: list) -> None:
    context.journal.prepare()
    assert journal_comments(context, "token1") == set()
    with pytest.raises(SlurmError, match="interrupted"):
        submit_all(context, one)
    assert slurm.count("sbatch") == 0


@pytest.mark.parametrize(
    ("result", "job_id"),
    [
        (Result(0, b"12\n"), "12"),
        (Result(0, b"12;cluster\n"), "12"),
        (Result(0, b"Submitted batch job 12\n"), None),
        (Result(0, b""), None),
        (Result(1, b"12\n"), None),
        (Result(None, b"12\n"), None),
    ],
)
def test_job_ids(result: Result, job_id: str | None) -> None:
    assert parse_job_id(result) == job_id


def test_only_one_of_many_tasks_submits(tmp_path: Path, one: list) -> None:
    slurm = FakeSlurm()
    guard = threading.Lock()

    def locked(argv: list[str], **options: object) -> Result:
        with guard:
            return slurm(argv, **options)

    done = []

    def task(number: int) -> None:
        context = Context(locked, Journal(str(tmp_path / "journal")), "admin", f"token{number}", slurm.now)
        done.extend(submit_all(context, one))

    threads = [threading.Thread(target=task, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert slurm.count("sbatch") == 1
    assert sorted(each.attached for each in done) == [False] + [True] * 5


def test_cancels_only_what_the_token_submitted(context: Context, slurm: FakeSlurm, one: list) -> None:
    submit_all(context, one)
    other = Context(slurm, context.journal, "admin", "token2", slurm.now, slurm.sleep)
    submit_all(other, [prepare({"script": SCRIPT + "#2"}, "admin")])
    slurm.jobs["50"] = {"Comment": "(null)"}
    gone, left = cancel(context, [], journal_comments(context, "token1"))
    assert [job["job_id"] for job in gone] == ["1"]
    assert left == []
    assert [call for call in slurm.calls if call[0] == "scancel"] == [["scancel", "1"]]
    assert {str(each["state"]) for each in context.journal.entries()} == {"cancelled", "submitted"}


def test_an_attached_job_is_not_cancelled(context: Context, slurm: FakeSlurm, one: list) -> None:
    submit_all(context, one)
    second = Context(slurm, context.journal, "admin", "token2", slurm.now, slurm.sleep)
    submit_all(second, one)
    assert cancel(second, [], journal_comments(second, "token2")) == ([], [])
    assert slurm.count("scancel") == 0


def test_the_whole_journal_is_cancelled_for_its_own_user_only(context: Context, slurm: FakeSlurm, one: list) -> None:
    submit_all(context, one)
    stranger = Context(slurm, context.journal, "other", "", slurm.now, slurm.sleep)
    assert journal_comments(stranger, "") == set()
    gone, _other = cancel(context, [], journal_comments(context, ""))
    assert [job["job_id"] for job in gone] == ["1"]


def test_a_job_that_does_not_go_is_told(context: Context, slurm: FakeSlurm, one: list) -> None:
    submit_all(context, one)
    slurm.deaf = True
    gone, left = cancel(context, ["1"], set())
    assert gone == []
    assert [job["job_id"] for job in left] == ["1"]


def test_check_mode_submits_nothing(context: Context, slurm: FakeSlurm, one: list) -> None:
    plan = test_only(context, one[0], Queue(context))
    assert plan["plan"].startswith("would submit: ")
    assert slurm.jobs == {}
    assert not os.path.exists(context.journal.directory)


def test_sbatch_that_is_not_there_says_where_it_looked(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, one: list
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    context = Context(run, Journal(str(tmp_path / "journal")), "admin")
    with pytest.raises(SlurmError, match=f"not found on .*PATH={tmp_path}") as error:
        submit_all(context, one)
    assert error.value.details["retry"] is False


def test_a_command_that_hangs_is_ended(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    program = tmp_path / "squeue"
    program.write_text("#!/bin/sh\nexec sleep 60\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    result = run(["squeue"], seconds=0.2)
    assert result.rc is None
    assert "did not answer within" in result.err


def test_a_torn_journal_entry_is_no_entry(context: Context, one: list) -> None:
    context.journal.prepare()
    Path(context.journal.path(one[0].content_hash)).write_text('{"hash": ')
    (done,) = submit_all(context, one)
    assert done.attached is False
    assert json.loads(Path(context.journal.path(one[0].content_hash)).read_text())["job_id"] == "1"


# -- many jobs

FULL = Result(1, b"", "sbatch: error: AssocMaxSubmitJobLimit sbatch: error: Job violates accounting/QOS policy")


@pytest.fixture
def ten() -> list:
    return [prepare({"script": SCRIPT + f"#{number}"}, "admin") for number in range(10)]


def test_only_as_many_are_submitted_as_there_is_room_for(context: Context, slurm: FakeSlurm, ten: list) -> None:
    done = submit_all(context, ten, room=Room(4, 60.0))
    assert [each.later for each in done] == [None] * 4 + [""] * 6
    assert (slurm.count("sbatch"), slurm.count("squeue")) == (4, 1)


def test_live_jobs_are_attached_to_and_take_their_part_of_the_room(
    context: Context, slurm: FakeSlurm, ten: list
) -> None:
    submit_all(context, ten[7:])
    done = submit_all(another(context, "token2"), ten, room=Room(4, 60.0))
    assert [each.attached for each in done] == [False] * 7 + [True] * 3
    assert [each.later for each in done] == [None] + [""] * 6 + [None] * 3
    assert slurm.count("sbatch") == 4


def test_a_call_ends_after_its_time(context: Context, slurm: FakeSlurm, ten: list) -> None:
    def slow(argv: list[str], **options: object) -> Result:
        slurm.time += 3.0 if argv[0] == "sbatch" else 0.0
        return slurm(argv, **options)

    done = submit_all(replace(context, run=slow), ten, room=Room(10, 8.0))
    assert [each.later for each in done] == [None] * 3 + [""] * 7


def test_a_job_that_is_refused_for_now_is_held_back_with_all_after_it(
    context: Context, slurm: FakeSlurm, ten: list
) -> None:
    submit_all(context, ten[:2])
    slurm.sbatch, slurm.sbatch_submits = FULL, False
    done = submit_all(context, ten[2:], room=Room(8, 60.0), queue=Queue(context, slurm.time))
    assert "AssocMaxSubmitJobLimit" in done[0].later
    assert [each.later for each in done[1:]] == [""] * 7
    assert slurm.count("sbatch") == 3
    slurm.sbatch, slurm.sbatch_submits = None, True
    queries = slurm.count("squeue")
    done = submit_all(context, ten[2:], room=Room(8, 60.0), queue=Queue(context, slurm.time - 60))
    assert [each.later for each in done] == [None] * 8
    assert slurm.count("squeue") == queries


def test_without_a_window_it_is_refused(context: Context, slurm: FakeSlurm, one: list) -> None:
    slurm.sbatch, slurm.sbatch_submits = FULL, False
    with pytest.raises(RefusedError, match="AssocMaxSubmitJobLimit"):
        submit_all(context, one)
    assert submit_all(context, one, go_on=True)[0].refused


def test_sbatch_that_retries_at_a_full_queue_until_it_is_killed_is_held_back_and_submitted_once(
    context: Context, slurm: FakeSlurm, one: list
) -> None:
    said = "sbatch did not answer within 120 s: sbatch: error: Slurm temporarily unable to accept job, sleeping"
    slurm.sbatch, slurm.sbatch_submits = Result(None, b"", said), False
    (held,) = submit_all(context, one, room=Room(1, 60.0))
    assert "temporarily unable" in held.later
    assert entry(context)["state"] == "submitting"
    slurm.sbatch = None
    slurm.jobs["9"] = {"Comment": one[0].comment, "SubmitTime": int(slurm.time)}  # it had been accepted after all
    (found,) = submit_all(context, one, room=Room(1, 60.0), queue=Queue(context, slurm.time - 60))
    assert (found.job_id, found.attached) == ("9", False)
    assert slurm.count("sbatch") == 1


def test_after_the_first_call_slurm_is_not_asked_again(context: Context, slurm: FakeSlurm, ten: list) -> None:
    looked = slurm.time
    submit_all(context, ten[:5])
    queries = slurm.count("squeue")
    slurm.time += 30
    submit_all(context, ten[5:], queue=Queue(context, looked))
    assert (slurm.count("squeue"), slurm.count("sbatch")) == (queries, 10)


def test_what_another_task_has_submitted_meanwhile_is_attached_to(
    context: Context, slurm: FakeSlurm, one: list
) -> None:
    looked = slurm.time
    submit_all(another(context, "token2"), one)
    (done,) = submit_all(context, one, queue=Queue(context, looked))
    assert (done.job_id, done.attached) == ("1", True)
    assert slurm.count("sbatch") == 1


def test_all_are_cancelled_with_one_command(context: Context, slurm: FakeSlurm, ten: list) -> None:
    submit_all(context, ten)
    gone, left = cancel(context, [], journal_comments(context, "token1"))
    assert (len(gone), left, slurm.count("scancel")) == (10, [], 1)


def test_a_command_line_takes_so_many_ids(
    context: Context, slurm: FakeSlurm, ten: list, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ansible_collections.mlops.hpc_validation.plugins.module_utils._slurm.cancel._MOST_IDS", 4)
    submit_all(context, ten)
    cancel(context, [], journal_comments(context, "token1"))
    assert [len(call) - 1 for call in slurm.calls if call[0] == "scancel"] == [4, 4, 2]


def test_a_job_that_stays_completing_is_kept_in_the_journal(context: Context, slurm: FakeSlurm, one: list) -> None:
    submit_all(context, one)
    slurm.jobs["1"]["State"] = "COMPLETING"
    slurm.deaf = True
    gone, left = cancel(context, ["1"], set())
    assert ([job["state"] for job in gone], left) == (["CANCELLED"], [])
    assert entry(context)["state"] == "submitted"
    assert journal_comments(context, "token1") == {one[0].comment}
