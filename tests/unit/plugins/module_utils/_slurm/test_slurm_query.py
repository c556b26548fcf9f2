# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Looking at jobs: slurmctld first, accounting for what it forgot, nothing out of absence; markers as hints."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from ansible_collections.mlops.hpc_validation.plugins.module_utils._slurm import markers
from ansible_collections.mlops.hpc_validation.plugins.module_utils._slurm.cli import Result
from ansible_collections.mlops.hpc_validation.plugins.module_utils._slurm.identity import Identity
from ansible_collections.mlops.hpc_validation.plugins.module_utils._slurm.observe import (
    Request,
    Watched,
    World,
    observe,
)
from ansible_collections.mlops.hpc_validation.plugins.module_utils._slurm.query import ask

from tests.unit.plugins.module_utils._slurm.slurm_fake import DOWN, FakeSlurm, record, sacct_row

SCHEMA = json.loads((Path(__file__).resolve().parents[5] / "files/schemas/job.json").read_text())
OURS = "hpc_validation:0123456789abcdef"


@pytest.fixture
def slurm() -> FakeSlurm:
    return FakeSlurm()


def look(slurm: FakeSlurm, *wanted: Identity) -> Any:
    answer = ask(slurm, list(wanted), "admin", now=slurm.now, sleep=slurm.sleep)
    for job in answer.jobs.values():
        jsonschema.validate(job, SCHEMA)
    return answer


def test_one_squeue_for_all_jobs(slurm: FakeSlurm) -> None:
    slurm.jobs = {str(number): {"Comment": OURS} for number in range(1, 40)}
    answer = look(slurm, *(Identity(str(number), OURS) for number in range(1, 40)))
    assert {job["state"] for job in answer.jobs.values()} == {"PENDING"}
    assert [call[0] for call in slurm.calls] == ["squeue"]
    assert "--user=admin" in slurm.calls[0]


def test_steps_come_from_accounting(slurm: FakeSlurm) -> None:
    slurm.jobs = {"1": {"Comment": OURS, "State": "COMPLETED", "NodeList": "n1", "StartTime": 1001, "EndTime": 1006}}
    slurm.accounting = {"1": sacct_row("1", "COMPLETED") + sacct_row("1.0", "OUT_OF_MEMORY", ExitCode="0:125")}
    job = look(slurm, Identity("1", OURS)).jobs["1"]
    assert job["steps"] == [{"id": "0", "state": "OUT_OF_MEMORY", "exit_code": 0, "signal": 125}]
    assert (job["queued_seconds"], job["run_seconds"]) == (1.0, 5.0)


def test_without_accounting_steps_are_null_and_the_job_stands(slurm: FakeSlurm) -> None:
    slurm.jobs = {"1": {"Comment": OURS, "State": "COMPLETED"}}
    slurm.accounting = None
    answer = look(slurm, Identity("1", OURS))
    assert (answer.jobs["1"]["state"], answer.jobs["1"]["steps"], answer.accounting) == ("COMPLETED", None, "down")
    assert slurm.count("sacct") == 1


def test_accounting_that_lags_gives_no_steps_rather_than_too_few(slurm: FakeSlurm) -> None:
    slurm.jobs = {"1": {"Comment": OURS, "State": "COMPLETED"}}
    slurm.accounting = {"1": sacct_row("1", "RUNNING") + sacct_row("1.batch", "RUNNING")}
    assert look(slurm, Identity("1", OURS)).jobs["1"]["steps"] is None
    assert slurm.count("sacct") == 12
    assert slurm.now() == pytest.approx(1000 + 11 * 0.4)


def test_a_purged_job_is_asked_of_accounting(slurm: FakeSlurm) -> None:
    slurm.accounting = {"1": sacct_row("1", "FAILED", ExitCode="3:0") + sacct_row("1.batch", "FAILED", ExitCode="3:0")}
    job = look(slurm, Identity("1", OURS)).jobs["1"]
    assert (job["state"], job["exit_code"], job["source"]) == ("FAILED", 3, "sacct")


@pytest.mark.parametrize("state", ["RUNNING", "PENDING", "REQUEUED", "NONSENSE"])
def test_a_job_that_only_accounting_calls_live_is_unknown(slurm: FakeSlurm, state: str) -> None:
    slurm.accounting = {"1": sacct_row("1", state)}
    assert look(slurm, Identity("1", OURS)).jobs["1"]["state"] == "UNKNOWN"


def test_nobody_knows_it(slurm: FakeSlurm) -> None:
    for accounting in ({}, None):
        slurm.accounting = accounting
        job = look(slurm, Identity("1", OURS)).jobs["1"]
        assert (job["state"], job["source"]) == ("UNKNOWN", "none")


def test_another_job_of_the_same_id_is_not_this_one(slurm: FakeSlurm) -> None:
    slurm.jobs = {"1": {"Comment": "hpc_validation:ffffffffffffffff", "State": "COMPLETED"}}
    assert look(slurm, Identity("1", OURS)).jobs["1"]["state"] == "UNKNOWN"
    slurm.jobs = {"1": {"SubmitTime": 5000, "State": "COMPLETED"}}
    assert look(slurm, Identity("1", submitted=1000.0)).jobs["1"]["state"] == "UNKNOWN"
    slurm.jobs["1"]["RestartCnt"] = 1
    assert look(slurm, Identity("1", submitted=1000.0)).jobs["1"]["state"] == "COMPLETED"
    slurm.jobs, slurm.accounting = {}, {"1": sacct_row("1", "COMPLETED", Submit="1000")}
    assert look(slurm, Identity("1", OURS, 9000.0)).jobs["1"]["state"] == "UNKNOWN"
    assert look(slurm, Identity("1", OURS, 1001.0)).jobs["1"]["state"] == "UNKNOWN"


def test_a_later_job_of_the_same_id_is_not_this_one(slurm: FakeSlurm) -> None:
    """Slurm lost its state and began to count anew: accounting tells the newest job of an id."""
    slurm.jobs = {"1": {"Comment": "", "State": "COMPLETED"}}
    slurm.accounting = {"1": sacct_row("1", "COMPLETED", Submit="1003")}
    assert look(slurm, Identity("1", OURS, 1000.0)).jobs["1"]["state"] == "UNKNOWN"
    assert look(slurm, Identity("1", OURS)).jobs["1"]["state"] == "UNKNOWN"
    slurm.accounting = {"1": sacct_row("1", "COMPLETED", Submit="1000")}
    assert look(slurm, Identity("1", OURS, 1000.0)).jobs["1"]["state"] == "COMPLETED"


@pytest.mark.parametrize(
    ("by", "state"),
    [
        (1000.0, "COMPLETED"),
        (1119.9, "COMPLETED"),
        (999.6, "COMPLETED"),
        (999.5, "UNKNOWN"),
        (1120.0, "UNKNOWN"),
    ],
)
def test_a_job_that_was_never_looked_at_was_submitted_when_sbatch_returned(
    slurm: FakeSlurm, by: float, state: str
) -> None:
    slurm.accounting = {"1": sacct_row("1", "COMPLETED", Submit="1000")}
    assert look(slurm, Identity("1", OURS, by=by)).jobs["1"]["state"] == state
    assert look(slurm, Identity("1", OURS, 1000.0, by=by)).jobs["1"]["state"] == "COMPLETED"


@pytest.mark.parametrize(
    ("told", "state"), [(1000, "RUNNING"), (1001, "UNKNOWN"), (999, "UNKNOWN"), ("N/A", "UNKNOWN")]
)
def test_a_job_without_a_mark_is_known_by_its_time(slurm: FakeSlurm, told: object, state: str) -> None:
    slurm.jobs = {"1": {"SubmitTime": told, "State": "RUNNING"}}
    assert look(slurm, Identity("1", submitted=1000.0)).jobs["1"]["state"] == state
    assert look(slurm, Identity("1")).jobs["1"]["state"] == "RUNNING"


@pytest.mark.parametrize(
    ("wanted", "state"),
    [
        (Identity("1", OURS, 1000.0), "UNKNOWN"),
        (Identity("1", OURS, by=1000.0), "UNKNOWN"),
        (Identity("1", OURS), "COMPLETED"),
    ],
)
def test_accounting_that_does_not_tell_when_may_speak_of_another_job(
    slurm: FakeSlurm, wanted: Identity, state: str
) -> None:
    slurm.accounting = {"1": sacct_row("1", "COMPLETED", Submit="Unknown")}
    assert look(slurm, wanted).jobs["1"]["state"] == state


def test_a_controller_that_does_not_answer_is_told_from_a_missing_command() -> None:
    down = ask(lambda _argv, **_options: DOWN, [Identity("1")], "admin")
    assert (down.controller, down.jobs) == ("unreachable", {})
    missing = ask(lambda _argv, **_options: Result(None, b"", "squeue was not found on x"), [Identity("1")], "admin")
    assert (missing.controller, missing.jobs) == ("missing", {})


def test_a_controller_that_does_not_answer_is_asked_once(slurm: FakeSlurm) -> None:
    slurm.down = True
    assert look(slurm, Identity("1")).controller == "unreachable"
    assert slurm.count("squeue") == 1


def test_gpus_are_asked_for_only_where_they_are_not_known_of_a_job_that_has_ended(slurm: FakeSlurm) -> None:
    job = {"Comment": OURS, "State": "COMPLETED", "NodeList": "n1", "tres_per_node": "gres:gpu:2"}
    slurm.jobs = {"1": {**job, "tres_alloc": "gres/gpu=2"}, "2": {**job, "State": "RUNNING"}}
    found = look(slurm, Identity("1", OURS), Identity("2", OURS)).jobs
    assert (found["1"]["gpus"], found["2"]["gpus"], slurm.count("scontrol")) == (2, None, 0)


def test_steps_are_asked_for_only_where_they_are_wanted(slurm: FakeSlurm) -> None:
    slurm.jobs = {"1": {"Comment": OURS, "State": "COMPLETED"}}
    slurm.accounting = {"1": sacct_row("1", "COMPLETED") + sacct_row("1.0", "COMPLETED")}
    wanted = [Identity("1", OURS, 1000.0)]
    answer = ask(slurm, wanted, "admin", steps=False, now=slurm.now, sleep=slurm.sleep)
    assert (answer.jobs["1"]["steps"], answer.accounting, slurm.count("sacct")) == (None, "not_asked", 0)
    answer = ask(slurm, wanted, "admin", now=slurm.now, sleep=slurm.sleep)
    assert ([step["id"] for step in answer.jobs["1"]["steps"]], answer.jobs["1"]["source"]) == (["0"], "squeue")


@pytest.mark.parametrize("first", ["", sacct_row("1", "RUNNING"), sacct_row("1", "COMPLETED") + "cut"])
def test_accounting_that_lags_is_asked_until_it_has_caught_up(slurm: FakeSlurm, first: str) -> None:
    slurm.jobs = {"1": {"Comment": OURS, "State": "COMPLETED"}}
    slurm.accounting = {"1": first}
    whole = sacct_row("1", "COMPLETED") + sacct_row("1.batch", "COMPLETED")

    def later(seconds: float) -> None:
        slurm.sleep(seconds)
        slurm.accounting = {"1": whole}

    answer = ask(slurm, [Identity("1", OURS)], "admin", now=slurm.now, sleep=later)
    assert [step["id"] for step in answer.jobs["1"]["steps"]] == ["batch"]
    assert slurm.count("sacct") == 2


@pytest.mark.parametrize("first", ["", sacct_row("2", "RUNNING"), sacct_row("2", "COMPLETED") + "2.0|x\n"])
def test_one_job_for_which_accounting_lags_is_waited_for_among_others(slurm: FakeSlurm, first: str) -> None:
    slurm.jobs = {job_id: {"Comment": OURS, "State": "COMPLETED"} for job_id in "12"}
    whole = {job_id: sacct_row(job_id, "COMPLETED") + sacct_row(f"{job_id}.batch", "COMPLETED") for job_id in "12"}
    slurm.accounting = {**whole, "2": first}

    def later(seconds: float) -> None:
        slurm.sleep(seconds)
        slurm.accounting = whole

    answer = ask(slurm, [Identity(job_id, OURS) for job_id in "12"], "admin", now=slurm.now, sleep=later)
    assert [[step["id"] for step in answer.jobs[job_id]["steps"]] for job_id in "12"] == [["batch"], ["batch"]]


@pytest.mark.parametrize(
    ("told", "state", "words"),
    [
        ("1|x\n", "UNKNOWN", "accounting's record of it cannot be read"),
        ("", "UNKNOWN", "neither slurmctld nor accounting knows this job"),
        (sacct_row("1", "COMPLETED") + "1.0|x\n", "COMPLETED", ""),
    ],
)
def test_a_forgotten_job_of_which_accounting_cannot_be_read(
    slurm: FakeSlurm, told: str, state: str, words: str
) -> None:
    slurm.accounting = {"1": told}
    job = look(slurm, Identity("1", OURS)).jobs["1"]
    assert job["state"] == state
    assert words in job["reason_text"]
    assert bool(job["reason_text"]) is bool(words)


class OfOthers:
    """Slurm with one job of this user, 1, and whatever it says of jobs that are asked for by their ids."""

    def __init__(self, of_ids: Result) -> None:
        self.of_ids, self.asked = of_ids, []

    def __call__(self, argv: list[str], **_options: object) -> Result:
        self.asked.append(argv)
        if argv[0] == "squeue":
            return self.of_ids if any(word.startswith("--jobs=") for word in argv) else Result(0, record("1"))
        return Result(1, b"", "no accounting")


def test_a_job_given_by_its_id_alone_may_be_another_users() -> None:
    slurm = OfOthers(Result(0, record("5", State="RUNNING", UserName="eve") + record("6", UserName="eve")))
    answer = ask(slurm, [Identity("5"), Identity("1")], "admin")
    assert {key: job["state"] for key, job in answer.jobs.items()} == {"5": "RUNNING", "1": "PENDING"}
    assert [word for argv in slurm.asked for word in argv if word.startswith("--jobs=")] == ["--jobs=5"]
    assert answer.others == {}


def test_a_job_with_a_mark_of_ours_is_this_users_own() -> None:
    slurm = OfOthers(Result(0, record("5", State="RUNNING")))
    assert ask(slurm, [Identity("5", OURS)], "admin").jobs["5"]["state"] == "UNKNOWN"
    assert [argv[0] for argv in slurm.asked] == ["squeue", "sacct"]


def test_an_id_that_nobody_has_is_no_failure_and_silence_is() -> None:
    slurm = OfOthers(Result(1, b"", "slurm_load_jobs error: Invalid job id specified"))
    answer = ask(slurm, [Identity("5")], "admin")
    assert (answer.controller, answer.jobs["5"]["state"]) == ("up", "UNKNOWN")
    for silent in (Result(1, b"", "Unable to contact slurm controller"), Result(0, b"garbage")):
        answer = ask(OfOthers(silent), [Identity("5")], "admin")
        assert (answer.controller, answer.jobs) == ("unreachable", {})


def test_the_users_other_jobs_are_told_apart() -> None:
    slurm = FakeSlurm(jobs={"1": {"Comment": OURS}, "2": {"Comment": "theirs", "State": "RUNNING"}})
    answer = look(slurm, Identity("1", OURS))
    assert {key: job["state"] for key, job in answer.others.items()} == {"2": "RUNNING"}


def test_an_id_that_another_job_has_now_is_asked_of_accounting_only_with_its_time() -> None:
    slurm = FakeSlurm(jobs={"1": {"Comment": "theirs"}}, accounting={"1": sacct_row("1", "COMPLETED")})
    assert look(slurm, Identity("1", OURS)).jobs["1"]["state"] == "UNKNOWN"
    assert slurm.count("sacct") == 0
    assert look(slurm, Identity("1", OURS, 1000.0)).jobs["1"]["state"] == "COMPLETED"


@pytest.mark.parametrize("out", [b"garbage\n", b"x" * 100, b"\xff\xfe"])
def test_unreadable_output_is_no_answer(out: bytes) -> None:
    answer = ask(lambda _argv, **_options: Result(0, out), [Identity("1", OURS)], "admin")
    assert (answer.controller, answer.jobs) == ("unreachable", {})


def test_gpus_are_counted_where_no_tres_counts_them(slurm: FakeSlurm) -> None:
    slurm.texts = {"job": "JobId=1 JobName=JOB_GRES=gpu:9 UserId=admin(1) JobState=COMPLETED JOB_GRES=gpu:h200:2 GRES="}
    slurm.jobs = {"1": {"Comment": OURS, "State": "COMPLETED", "NodeList": "n1", "tres_per_node": "gres:gpu:2"}}
    assert look(slurm, Identity("1", OURS)).jobs["1"]["gpus"] == 2
    slurm.jobs["1"]["tres_per_node"] = "N/A"
    assert look(slurm, Identity("1", OURS)).jobs["1"]["gpus"] is None
    assert slurm.count("scontrol") == 1


def test_completing_is_not_the_end(slurm: FakeSlurm) -> None:
    slurm.jobs = {"1": {"Comment": OURS, "State": "COMPLETING", "exit_code": "5:0"}}
    job = look(slurm, Identity("1", OURS)).jobs["1"]
    assert (job["state"], job["flags"], job["exit_code"]) == ("RUNNING", ["COMPLETING"], None)


# -- the bounded look


def watched(folder: Path, job_id: str = "1", seen: list[str] | None = None) -> Watched:
    spec = {"job_id": job_id, "comment": OURS, "submitted": 1000.0, "seen": seen or []}
    return Watched.of({**spec, **{f"{kind}_marker": f"{folder}/%j.{kind}.json" for kind in markers.KINDS}})


def mark(folder: Path, kind: str, job_id: str = "1", **values: object) -> None:
    document = {"job_id": job_id, "attempt": 0, "time": 1005.0, **values}
    (folder / f"{job_id}.{kind}.json").write_text(json.dumps(document))


class Hands:
    """A world whose clock moves by sleeping, and in which something happens at a given second."""

    def __init__(self, slurm: FakeSlurm, happens: dict[float, Any] | None = None) -> None:
        self.slurm, self.happens, self.begun = slurm, dict(happens or {}), slurm.time
        self.world = World(slurm, slurm.now, slurm.now, self.sleep)

    def sleep(self, seconds: float) -> None:
        self.slurm.time += seconds
        for at in [at for at in self.happens if self.slurm.time - self.begun >= at]:
            self.happens.pop(at)()

    @property
    def elapsed(self) -> float:
        return self.slurm.time - self.begun


def test_holds_without_asking(slurm: FakeSlurm, tmp_path: Path) -> None:
    hands = Hands(slurm)
    result = observe(Request([watched(tmp_path)], "admin", hold=20, query=False), hands.world)
    assert hands.elapsed == pytest.approx(20, abs=0.1)
    assert (result["asked"], slurm.calls) == (False, [])


def test_a_begin_marker_ends_the_hold_without_asking(slurm: FakeSlurm, tmp_path: Path) -> None:
    hands = Hands(slurm, {3.0: lambda: mark(tmp_path, "begin", host="compute01")})
    result = observe(Request([watched(tmp_path)], "admin", hold=20, query=True), hands.world)
    assert hands.elapsed < 4
    assert result["asked"] is False
    assert result["markers"]["1"]["begin"]["host"] == "compute01"


def test_an_end_marker_makes_it_ask_once_things_have_settled(slurm: FakeSlurm, tmp_path: Path) -> None:
    slurm.jobs = {"1": {"Comment": OURS, "State": "COMPLETED"}}
    hands = Hands(slurm, {3.0: lambda: mark(tmp_path, "end", exit_code=0)})
    result = observe(Request([watched(tmp_path, seen=["begin"])], "admin", hold=20, query=False), hands.world)
    assert 3.5 < hands.elapsed < 9  # accounting, which knows nothing of it, is asked for some seconds
    assert result["asked"] is True
    assert result["jobs"][0]["state"] == "COMPLETED"


def test_an_end_marker_does_not_ask_before_its_time(slurm: FakeSlurm, tmp_path: Path) -> None:
    mark(tmp_path, "end")
    hands = Hands(slurm)
    result = observe(Request([watched(tmp_path)], "admin", hold=1, query=False, confirm_after=5), hands.world)
    assert (result["asked"], slurm.calls) == (False, [])


@pytest.mark.parametrize(
    "values",
    [{"time": 10.0}, {"job_id": "2"}, {"attempt": 0}],
    ids=["of an earlier job of this id", "of another job", "of an earlier attempt"],
)
def test_foreign_markers_are_ignored(slurm: FakeSlurm, tmp_path: Path, values: dict[str, object]) -> None:
    document = {"job_id": "1", "attempt": 1, "time": 1005.0, **values}
    (tmp_path / "1.end.json").write_text(json.dumps(document))
    hands = Hands(slurm)
    requeued = replace(watched(tmp_path), attempt=1)
    result = observe(Request([requeued], "admin", hold=5, query=False), hands.world)
    assert hands.elapsed == pytest.approx(5, abs=0.1)
    assert result["markers"]["1"] == {}
    assert result["asked"] is False


def test_markers_that_an_earlier_job_of_the_id_left_are_ignored_before_slurm_was_ever_asked(
    slurm: FakeSlurm, tmp_path: Path
) -> None:
    mark(tmp_path, "end", time=900.0)
    spec = {"job_id": "1", "comment": OURS, "submitted_by": 1000.0, "end_marker": f"{tmp_path}/%j.end.json"}
    hands = Hands(slurm)
    result = observe(Request([Watched.of(spec)], "admin", hold=5, query=False), hands.world)
    assert (result["markers"]["1"], result["asked"]) == ({}, False)
    mark(tmp_path, "end", time=999.0)  # the job began before sbatch had returned
    assert observe(Request([Watched.of(spec)], "admin"), hands.world)["markers"]["1"]["end"]["time"] == 999.0


@pytest.mark.parametrize("content", [b"", b"{", b"[1]", b"\xff" * 10, b'{"job_id": 1}' + b" " * 70000])
def test_damaged_markers_do_not_raise(slurm: FakeSlurm, tmp_path: Path, content: bytes) -> None:
    (tmp_path / "1.end.json").write_bytes(content)
    result = observe(Request([watched(tmp_path)], "admin", hold=0, query=True), Hands(slurm).world)
    assert result["asked"] is True


def test_progress_is_cleaned(tmp_path: Path) -> None:
    mark(tmp_path, "progress", epoch=2, epochs=5, loss=float("nan"), step="x", host="a\x1b[31mb", leg="re\x1b[0msumed")
    marker = markers.read(str(tmp_path / "1.progress.json"), Identity("1"))
    assert marker == {"attempt": 0, "time": 1005.0, "epoch": 2, "epochs": 5, "host": "ab", "leg": "resumed"}


def test_the_tail_of_a_failed_job(slurm: FakeSlurm, tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_bytes(b"x" * 100000 + b"\n" + b"\x1b[31mTraceback\x1b[0m\nline \xff\n")
    slurm.jobs = {"1": {"Comment": OURS, "State": "FAILED", "exit_code": "1:0", "STDERR": str(log)}}
    result = observe(Request([watched(tmp_path)], "admin", tail=2), Hands(slurm).world)
    assert result["jobs"][0]["tail"] == ["Traceback", "line \ufffd"]


def test_blocked_nodes_are_found(slurm: FakeSlurm, tmp_path: Path) -> None:
    slurm.jobs = {"1": {"Comment": OURS, "Reason": "Resources"}}
    slurm.texts = {
        "job": "JobId=1 JobName=x UserId=a(1) Partition=gpu ReqNodeList=(null) NumNodes=1-1 TresPerNode=gres/gpu:1",
        "node": "NodeName=n1 Gres=gpu:2 State=IDLE+DRAIN Partitions=gpu Reason=fan [root@2026]",
    }
    result = observe(Request([watched(tmp_path)], "admin", nodes=["1"]), Hands(slurm).world)
    assert "n1 is idle+drain (fan)" in result["blocked"]["1"]
    slurm.texts["node"] = slurm.texts["node"].replace("IDLE+DRAIN", "ALLOCATED")
    result = observe(Request([watched(tmp_path)], "admin", nodes=["1"]), Hands(slurm).world)
    assert result["blocked"] == {}


# -- many jobs


def pinned(folder: Path, job_id: str = "1", after: float | None = 0.0, seen: list[str] | None = None) -> Watched:
    return replace(watched(folder, job_id, seen), needs=f"n{int(job_id):03d}", stuck_after=after)


def stuck(slurm: FakeSlurm, *jobs: Watched, hold: float = 0.0) -> dict[str, Any]:
    slurm.texts["node"] = "NodeName=n001 State=DOWN*\nNodeName=n002 State=DOWN*\n"
    return observe(Request(list(jobs), "admin", hold=hold), Hands(slurm).world)


def test_the_nodes_of_all_jobs_that_have_not_begun_cost_one_query(slurm: FakeSlurm, tmp_path: Path) -> None:
    slurm.jobs = {"1": {"Comment": OURS}, "2": {"Comment": OURS, "State": "RUNNING"}}
    result = stuck(slurm, pinned(tmp_path), pinned(tmp_path, "2"))
    assert result["stuck"] == {"1": "n001 is not responding", "2": "n002 is not responding"}
    assert result["nodes_looked"] == ["1", "2"]
    assert [call[-1] for call in slurm.calls if call[0] == "scontrol"] == ["n[001-002]"]


@pytest.mark.parametrize(
    ("values", "after", "seen", "looked"),
    [
        ({}, 0.0, [], True),
        ({}, 5.0, [], False),
        ({}, None, [], False),
        ({"State": "RUNNING"}, 0.0, [], True),
        ({"State": "RUNNING"}, 0.0, ["begin"], False),
        ({"State": "COMPLETING"}, 0.0, [], False),
        ({"State": "COMPLETING", "RestartCnt": 1}, 5.0, [], True),
        ({"State": "COMPLETING", "RestartCnt": 1}, 5.0, ["begin"], False),
        ({"State": "RUNNING", "RestartCnt": 1}, 5.0, [], False),
        ({"RestartCnt": 1, "Reason": "BeginTime"}, 5.0, [], True),
        ({"RestartCnt": 1, "Reason": "BeginTime"}, None, [], True),
        ({"State": "COMPLETED"}, 0.0, [], False),
    ],
)
def test_nodes_are_looked_at_only_where_a_job_should_have_begun(
    slurm: FakeSlurm, tmp_path: Path, values: dict[str, Any], after: float | None, seen: list[str], looked: bool
) -> None:
    slurm.jobs = {"1": {"Comment": OURS, **values}}
    assert (stuck(slurm, pinned(tmp_path, after=after, seen=seen))["nodes_looked"] == ["1"]) is looked


def test_the_time_of_the_look_itself_counts(slurm: FakeSlurm, tmp_path: Path) -> None:
    slurm.jobs = {"1": {"Comment": OURS}}
    assert stuck(slurm, pinned(tmp_path, after=5.0), hold=5.5)["nodes_looked"] == ["1"]


def test_without_its_begin_marker_nothing_tells_that_a_job_has_not_begun(slurm: FakeSlurm, tmp_path: Path) -> None:
    slurm.jobs = {"1": {"Comment": OURS, "State": "RUNNING"}}
    one = replace(pinned(tmp_path), paths={"end": str(tmp_path / "1.end.json")})
    assert stuck(slurm, one)["nodes_looked"] == []


def test_a_node_that_slurm_does_not_show_is_no_reason(slurm: FakeSlurm, tmp_path: Path) -> None:
    slurm.jobs = {"3": {"Comment": OURS}}
    result = stuck(slurm, pinned(tmp_path, "3"))
    assert (result["stuck"], result["nodes_looked"]) == ({}, ["3"])


def many(folder: Path) -> list[Watched]:
    return [watched(folder, str(number)) for number in range(1, 41)]


def test_markers_are_gathered_for_a_while(slurm: FakeSlurm, tmp_path: Path) -> None:
    hands = Hands(
        slurm,
        {
            2.0: lambda: mark(tmp_path, "begin", "1"),
            4.0: lambda: mark(tmp_path, "begin", "2"),
            9.0: lambda: mark(tmp_path, "begin", "3"),
        },
    )
    result = observe(Request(many(tmp_path), "admin", hold=20, gather=3.0), hands.world)
    assert {job_id for job_id, found in result["markers"].items() if found} == {"1", "2"}
    assert 4.5 < hands.elapsed < 7
    assert slurm.calls == []


def test_gathering_ends_with_the_last_marker(slurm: FakeSlurm, tmp_path: Path) -> None:
    slurm.jobs = {"1": {"Comment": OURS, "State": "COMPLETED"}}
    hands = Hands(slurm, {2.0: lambda: mark(tmp_path, "begin"), 3.0: lambda: mark(tmp_path, "end")})
    result = observe(Request([watched(tmp_path)], "admin", hold=20, gather=3.0, steps=False), hands.world)
    assert hands.elapsed < 4.2
    assert result["asked"]


def test_a_stream_of_markers_does_not_put_off_a_query_that_is_due(slurm: FakeSlurm, tmp_path: Path) -> None:
    slurm.jobs = {"1": {"Comment": OURS, "State": "RUNNING"}}
    mark(tmp_path, "begin")
    assert observe(Request([watched(tmp_path)], "admin"), Hands(slurm).world)["asked"]


def test_an_end_is_told_at_once_where_slurm_may_not_be_asked_for_long(slurm: FakeSlurm, tmp_path: Path) -> None:
    hands = Hands(slurm, {1.0: lambda: mark(tmp_path, "end")})
    result = observe(Request(many(tmp_path), "admin", hold=10, confirm_after=8.0), hands.world)
    assert (result["asked"], slurm.calls) == (False, [])
    assert hands.elapsed < 2.5


def test_markers_that_were_seen_are_not_read_again(slurm: FakeSlurm, tmp_path: Path) -> None:
    for kind in ("begin", "progress"):
        mark(tmp_path, kind)
    result = observe(Request([watched(tmp_path, seen=["begin"])], "admin", query=False), Hands(slurm).world)
    assert set(result["markers"]["1"]) == {"progress"}


@pytest.mark.parametrize("count", [3, 400])
def test_what_is_there_is_found_one_by_one_and_in_a_listing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    paths = [str(tmp_path / f"{number}.end.json") for number in range(count)]
    (tmp_path / "1.end.json").touch()
    (tmp_path / "other").touch()
    lists = []
    real = markers.os.listdir
    monkeypatch.setattr(markers.os, "listdir", lambda folder: lists.append(folder) or real(folder))
    assert markers.present(paths) == {paths[1]}
    assert lists == ([str(tmp_path)] if count > 16 else [])
    assert markers.present([f"{path}/x" for path in paths]) == set()


def test_watching_a_slow_file_system_takes_a_tenth_of_the_time() -> None:
    now, looks = [0.0], []

    def changed() -> bool:
        looks.append(now[0])
        now[0] += 0.4
        return False

    def sleep(seconds: float) -> None:
        now[0] += seconds

    markers.watch(changed, 20.0, 1, clock=lambda: now[0], sleep=sleep)
    assert len(looks) <= 6
