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
from ansible_collections.mlops.hpc_validation.plugins.module_utils import _slurm_markers as markers
from ansible_collections.mlops.hpc_validation.plugins.module_utils._slurm_cli import Result
from ansible_collections.mlops.hpc_validation.plugins.module_utils._slurm_observe import (
    Request,
    Watched,
    World,
    observe,
)
from ansible_collections.mlops.hpc_validation.plugins.module_utils._slurm_query import Wanted, ask

from tests.unit.plugins.module_utils.slurm_fake import FakeSlurm, sacct_row

SCHEMA = json.loads((Path(__file__).resolve().parents[4] / "files/schemas/job.json").read_text())
OURS = "hpc_validation:0123456789abcdef"


@pytest.fixture
def slurm() -> FakeSlurm:
    return FakeSlurm()


def look(slurm: FakeSlurm, *wanted: Wanted) -> Any:
    answer = ask(slurm, list(wanted), "admin", now=slurm.now, sleep=slurm.sleep)
    for job in answer.jobs.values():
        jsonschema.validate(job, SCHEMA)
    return answer


def test_one_squeue_for_all_jobs(slurm: FakeSlurm) -> None:
    slurm.jobs = {str(number): {"Comment": OURS} for number in range(1, 40)}
    answer = look(slurm, *(Wanted(str(number), OURS) for number in range(1, 40)))
    assert {job["state"] for job in answer.jobs.values()} == {"PENDING"}
    assert [call[0] for call in slurm.calls] == ["squeue"]
    assert "--user=admin" in slurm.calls[0]


def test_steps_come_from_accounting(slurm: FakeSlurm) -> None:
    slurm.jobs = {"1": {"Comment": OURS, "State": "COMPLETED", "NodeList": "n1", "StartTime": 1001, "EndTime": 1006}}
    slurm.accounting = {"1": sacct_row("1", "COMPLETED") + sacct_row("1.0", "OUT_OF_MEMORY", ExitCode="0:125")}
    job = look(slurm, Wanted("1", OURS)).jobs["1"]
    assert job["steps"] == [{"id": "0", "state": "OUT_OF_MEMORY", "exit_code": 0, "signal": 125}]
    assert (job["queued_seconds"], job["run_seconds"]) == (1.0, 5.0)


def test_without_accounting_steps_are_null_and_the_job_stands(slurm: FakeSlurm) -> None:
    slurm.jobs = {"1": {"Comment": OURS, "State": "COMPLETED"}}
    slurm.accounting = None
    answer = look(slurm, Wanted("1", OURS))
    assert (answer.jobs["1"]["state"], answer.jobs["1"]["steps"], answer.accounting) == ("COMPLETED", None, "down")
    assert slurm.count("sacct") == 1


def test_accounting_that_lags_gives_no_steps_rather_than_too_few(slurm: FakeSlurm) -> None:
    slurm.jobs = {"1": {"Comment": OURS, "State": "COMPLETED"}}
    slurm.accounting = {"1": sacct_row("1", "RUNNING") + sacct_row("1.batch", "RUNNING")}
    assert look(slurm, Wanted("1", OURS)).jobs["1"]["steps"] is None


def test_a_purged_job_is_asked_of_accounting(slurm: FakeSlurm) -> None:
    slurm.accounting = {"1": sacct_row("1", "FAILED", ExitCode="3:0") + sacct_row("1.batch", "FAILED", ExitCode="3:0")}
    job = look(slurm, Wanted("1", OURS)).jobs["1"]
    assert (job["state"], job["exit_code"], job["source"]) == ("FAILED", 3, "sacct")


@pytest.mark.parametrize("state", ["RUNNING", "PENDING", "REQUEUED", "NONSENSE"])
def test_a_job_that_only_accounting_calls_live_is_unknown(slurm: FakeSlurm, state: str) -> None:
    slurm.accounting = {"1": sacct_row("1", state)}
    assert look(slurm, Wanted("1", OURS)).jobs["1"]["state"] == "UNKNOWN"


def test_nobody_knows_it(slurm: FakeSlurm) -> None:
    for accounting in ({}, None):
        slurm.accounting = accounting
        job = look(slurm, Wanted("1", OURS)).jobs["1"]
        assert (job["state"], job["source"]) == ("UNKNOWN", "none")


def test_another_job_of_the_same_id_is_not_this_one(slurm: FakeSlurm) -> None:
    slurm.jobs = {"1": {"Comment": "hpc_validation:ffffffffffffffff", "State": "COMPLETED"}}
    assert look(slurm, Wanted("1", OURS)).jobs["1"]["state"] == "UNKNOWN"
    slurm.jobs = {"1": {"SubmitTime": 5000, "State": "COMPLETED"}}
    assert look(slurm, Wanted("1", submitted=1000.0)).jobs["1"]["state"] == "UNKNOWN"
    slurm.jobs["1"]["RestartCnt"] = 1
    assert look(slurm, Wanted("1", submitted=1000.0)).jobs["1"]["state"] == "COMPLETED"
    slurm.jobs, slurm.accounting = {}, {"1": sacct_row("1", "COMPLETED", Submit="1000")}
    assert look(slurm, Wanted("1", OURS, 9000.0)).jobs["1"]["state"] == "UNKNOWN"
    assert look(slurm, Wanted("1", OURS, 1001.0)).jobs["1"]["state"] == "UNKNOWN"


def test_a_later_job_of_the_same_id_is_not_this_one(slurm: FakeSlurm) -> None:
    """Slurm lost its state and began to count anew: accounting tells the newest job of an id."""
    slurm.jobs = {"1": {"Comment": "", "State": "COMPLETED"}}
    slurm.accounting = {"1": sacct_row("1", "COMPLETED", Submit="1003")}
    assert look(slurm, Wanted("1", OURS, 1000.0)).jobs["1"]["state"] == "UNKNOWN"
    assert look(slurm, Wanted("1", OURS)).jobs["1"]["state"] == "UNKNOWN"
    slurm.accounting = {"1": sacct_row("1", "COMPLETED", Submit="1000")}
    assert look(slurm, Wanted("1", OURS, 1000.0)).jobs["1"]["state"] == "COMPLETED"


@pytest.mark.parametrize(
    ("by", "state"),
    [(1000.0, "COMPLETED"), (1100.0, "COMPLETED"), (999.6, "COMPLETED"), (999.5, "UNKNOWN"), (1121.0, "UNKNOWN")],
)
def test_a_job_that_was_never_looked_at_was_submitted_when_sbatch_returned(
    slurm: FakeSlurm, by: float, state: str
) -> None:
    slurm.accounting = {"1": sacct_row("1", "COMPLETED", Submit="1000")}
    assert look(slurm, Wanted("1", OURS, by=by)).jobs["1"]["state"] == state
    assert look(slurm, Wanted("1", OURS, 1000.0, by=by)).jobs["1"]["state"] == "COMPLETED"


@pytest.mark.parametrize("out", [b"garbage\n", b"x" * 100, b"\xff\xfe"])
def test_unreadable_output_is_no_answer(out: bytes) -> None:
    answer = ask(lambda _argv, **_options: Result(0, out), [Wanted("1", OURS)], "admin")
    assert (answer.controller, answer.jobs) == ("unreachable", {})


def test_gpus_are_counted_where_no_tres_counts_them(slurm: FakeSlurm) -> None:
    slurm.texts = {"job": "JobId=1 JobName=JOB_GRES=gpu:9 UserId=admin(1) JobState=COMPLETED JOB_GRES=gpu:h200:2 GRES="}
    slurm.jobs = {"1": {"Comment": OURS, "State": "COMPLETED", "NodeList": "n1", "tres_per_node": "gres:gpu:2"}}
    assert look(slurm, Wanted("1", OURS)).jobs["1"]["gpus"] == 2
    slurm.jobs["1"]["tres_per_node"] = "N/A"
    assert look(slurm, Wanted("1", OURS)).jobs["1"]["gpus"] is None
    assert slurm.count("scontrol") == 1


def test_completing_is_not_the_end(slurm: FakeSlurm) -> None:
    slurm.jobs = {"1": {"Comment": OURS, "State": "COMPLETING", "exit_code": "5:0"}}
    job = look(slurm, Wanted("1", OURS)).jobs["1"]
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
    mark(tmp_path, "progress", epoch=2, epochs=5, loss=float("nan"), step="x", host="a\x1b[31mb")
    marker = markers.read(str(tmp_path / "1.progress.json"), "1", None)
    assert marker == {"attempt": 0, "time": 1005.0, "epoch": 2, "epochs": 5, "host": "ab"}


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
