# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""squeue and sacct as recorded from real releases, and against garbage."""

from __future__ import annotations

from pathlib import Path

import pytest
from ansible_collections.mlops.hpc_validation.plugins.module_utils._slurm import sacct, squeue
from ansible_collections.mlops.hpc_validation.plugins.module_utils._slurm.job import from_row, has_ended
from ansible_collections.mlops.hpc_validation.plugins.module_utils._slurm.states import TERMINAL, split_state
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.plugins.module_utils._slurm.slurm_fake import record

FIXTURES = Path(__file__).resolve().parents[4] / "fixtures"
RELEASES = sorted(path.name for path in FIXTURES.glob("slurm-*") if (path / "squeue.bin").exists())
NOW = 1795233030.0


def jobs(release: str) -> dict[str, dict]:
    """Jobs by name."""
    rows = squeue.parse((FIXTURES / release / "squeue.bin").read_bytes())
    return {str(row["name"]): from_row(row, "squeue", NOW) for row in rows.values()}


def test_there_are_recorded_releases() -> None:
    assert "slurm-24.11.5" in RELEASES


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize(
    ("name", "state", "code", "signal", "derived"),
    [
        ("ok", "COMPLETED", 0, 0, 0),
        ("exit3", "FAILED", 3, 0, 0),
        ("exit130", "FAILED", 130, 0, 0),
        ("kill9", "FAILED", 0, 9, 0),
        ("step7", "COMPLETED", 0, 0, 7),
        ("cancelled", "CANCELLED", 0, 15, 0),
        ("cancelpending", "CANCELLED", 0, 0, 0),
        ("running", "RUNNING", None, None, None),
        ("toolong", "PENDING", None, None, None),
    ],
)
def test_states_and_exit_codes(
    release: str, name: str, state: str, code: int | None, signal: int | None, derived: int | None
) -> None:
    job = jobs(release)[name]
    assert (job["state"], job["exit_code"], job["signal"], job["derived_exit_code"]) == (state, code, signal, derived)
    assert has_ended(job) == (state in TERMINAL)


@pytest.mark.parametrize("release", RELEASES)
def test_fields(release: str) -> None:
    found = jobs(release)
    ok, running, broken = found["ok"], found["running"], found["line break ü"]
    assert ok["comment"] == "hpc_validation:0123456789abcdef"
    assert ok["gpus"] == 2
    assert ok["user"] == "admin"
    assert ok["partition"] == "gpu"
    assert ok["run_seconds"] is not None
    assert ok["run_seconds"] >= 0
    assert ok["stdout"] == f"/tmp/slurm-{ok['job_id']}.out" == ok["stderr"]
    assert running["nodes"] == ["compute01", "compute02"]
    assert running["stderr"] == f"/tmp/err-{running['job_id']}.txt"
    assert running["ended"] is None
    assert running["time_limit_seconds"] == 1800
    assert broken["stdout"] == f"/tmp/line\nbreak ü-{broken['job_id']}.out"


@pytest.mark.parametrize("release", RELEASES)
def test_a_job_that_never_ran_has_no_start(release: str) -> None:
    job = jobs(release)["cancelpending"]
    assert job["started"] is None
    assert job["run_seconds"] is None
    assert job["nodes"] == []


@pytest.mark.parametrize("release", RELEASES)
def test_a_requeued_job_is_another_attempt(release: str) -> None:
    job = jobs(release)["requeued"]
    assert (job["state"], job["attempt"]) == ("PENDING", 1)


@pytest.mark.parametrize("release", RELEASES)
def test_reasons_are_in_words(release: str) -> None:
    assert jobs(release)["toolong"]["reason_text"] == "its time limit is longer than its partition allows"


@pytest.mark.parametrize("release", RELEASES)
def test_accounting(release: str) -> None:
    known = jobs(release)
    asked = [job["job_id"] for job in known.values()]
    told = sacct.parse((FIXTURES / release / "sacct.txt").read_text(), asked)
    assert not any(told.unread_of(job_id) for job_id in asked)
    rows = told.rows
    step7 = rows[known["step7"]["job_id"]]
    assert step7["state"] == "COMPLETED"
    assert step7["derived_exit_code"] == 7
    assert {"id": "0", "state": "FAILED", "exit_code": 7, "signal": 0} in step7["steps"]
    assert rows[known["cancelled"]["job_id"]]["state"] == "CANCELLED"
    assert rows[known["ok"]["job_id"]]["gpus"] == 2
    assert rows[known["running"]["job_id"]]["state"] == "RUNNING"


def test_empty_answers_are_no_jobs() -> None:
    assert squeue.parse(b"") == {}
    assert sacct.parse("", ["1"]).rows == {}


def test_truncated_output_is_refused() -> None:
    whole = (FIXTURES / "slurm-24.11.5" / "squeue.bin").read_bytes()
    for cut in (whole[:-1], whole[: squeue.RECORD], whole[:7], whole[7:] + whole[:7], whole + b"\n"):
        with pytest.raises(squeue.UnreadableError, match="of another length"):
            squeue.parse(cut)


def test_a_job_without_an_exit_code_hides_no_other() -> None:
    """Recorded: squeue leaves out the column of an exit code that slurmctld does not have."""
    recorded = FIXTURES / "slurm-24.11.5" / "squeue-without-exit-code.bin"
    rows = squeue.parse(recorded.read_bytes()).values()
    assert [(row["job_id"], row["state"], row["exit_code"], row["derived_exit_code"]) for row in rows] == [
        ("3", "CANCELLED", None, None),
        ("2", "CANCELLED", 0, 0),
        ("1", "COMPLETED", 0, 0),
    ]


@pytest.mark.parametrize("codes", [{"exit_code": None}, {"DerivedEC": None}, {"exit_code": None, "DerivedEC": None}])
def test_of_one_exit_code_alone_nothing_is_known(codes: dict[str, None]) -> None:
    known = {"State": "FAILED", "exit_code": "3:0", "DerivedEC": "4:0"}
    whole = record("8", **known)
    rows = squeue.parse(whole + record("7", Name="x\n", **{**known, **codes}) + whole.replace(b"8", b"9", 1))
    assert list(rows) == ["8", "7", "9"]
    keys = ("exit_code", "signal", "derived_exit_code")
    assert [tuple(rows[job][key] for key in keys) for job in rows] == [(3, 0, 4), (None, None, None), (3, 0, 4)]
    assert rows["7"]["name"] == from_row(rows["7"], "squeue", NOW)["name"]
    assert has_ended(from_row(rows["7"], "squeue", NOW))


def test_the_command_asks_for_a_users_jobs_or_for_those_named() -> None:
    first = ["squeue", "--local", "--states=all", "--noheader"]
    fields = "--Format=" + ",".join(f"{field}:{width}" for field, width in (*squeue.FIELDS, *squeue.CODES))
    assert squeue.argv(user="admin") == [*first, fields, "--user=admin"]
    assert squeue.argv(job_ids=["1", "2"]) == [*first, fields, "--jobs=1,2"]


WIDTH = dict(squeue.FIELDS)


def row(**values: object) -> dict[str, object]:
    """The one row of a record with these fields."""
    found = list(squeue.parse(record("7", **values)).values())
    assert len(found) == 1
    return found[0]


def test_every_field_is_read() -> None:
    assert row(
        State="CANCELLED by 0",
        Reason="NonZeroExitCode",
        exit_code="3:9",
        DerivedEC="4:0",
        RestartCnt=2,
        StartTime=1010,
        EndTime=1030,
        tres_alloc="cpu=4,gres/gpu=2",
        tres_per_node="gres:gpu:2",
        NodeList="n[1-2]",
        Comment="ours",
        STDERR="/tmp/%x-%j.err",
        Name="canary",
    ) == {
        "job_id": "7",
        "attempt": 2,
        "name": "canary",
        "user": "admin",
        "state": "CANCELLED",
        "flags": [],
        "exit_code": 3,
        "signal": 9,
        "derived_exit_code": 4,
        "reason": "NonZeroExitCode",
        "nodes": ["n1", "n2"],
        "gpus": 2,
        "asks_gpus": True,
        "partition": "gpu",
        "submitted": 1000.0,
        "started": 1010.0,
        "ended": 1030.0,
        "time_limit_seconds": 1800,
        "stdout": "/tmp/slurm-7.out",
        "stderr": "/tmp/canary-7.err",
        "comment": "ours",
    }


@pytest.mark.parametrize("number", ["x", "", "1" * 24])
def test_a_job_id_that_is_none_is_refused(number: str) -> None:
    with pytest.raises(squeue.UnreadableError, match="where a job ID was expected"):
        squeue.parse(record(number))


@pytest.mark.parametrize("change", [{"exit_code": "x"}, {"RestartCnt": "x"}, {"RestartCnt": ""}])
def test_an_exit_code_or_a_count_that_is_none_is_refused(change: dict[str, str]) -> None:
    with pytest.raises(squeue.UnreadableError, match="for job 7"):
        row(**change)


@pytest.mark.parametrize(("told", "code"), [("0:9", 137), ("7:0", 7), ("0:0", 0), ("x", None)])
def test_the_derived_exit_code_of_a_signal_is_that_of_a_shell(told: str, code: int | None) -> None:
    assert row(DerivedEC=told)["derived_exit_code"] == code


def test_what_was_cut_is_not_known() -> None:
    long = "/" + "x" * (WIDTH["STDOUT"] - 1)
    assert (row(STDOUT=long)["stdout"], row(STDOUT=long, STDERR="/e")["stderr"]) == ("", "/e")
    assert row(STDERR=long)["stderr"] == "/tmp/slurm-7.out"
    assert row(NodeList="n" * WIDTH["NodeList"])["nodes"] == []
    assert row(NodeList="n" * (WIDTH["NodeList"] - 1))["nodes"] != []
    assert row(STDOUT="a.out", WorkDir="/w")["stdout"] == "/w/a.out"
    assert row(STDOUT="a.out", WorkDir=long)["stdout"] == ""


@pytest.mark.parametrize(
    ("change", "gpus", "asks"),
    [
        ({"State": "PENDING", "tres_alloc": "gres/gpu=2"}, None, False),
        ({"State": "RUNNING", "tres_alloc": "gres/gpu=2"}, 2, False),
        ({"State": "RUNNING", "tres_alloc": "cpu=1"}, None, False),
        *(({f"tres_per_{what}": "gres:gpu:1"}, None, True) for what in ("job", "node", "socket", "task")),
        ({"Name": "gpu", "Partition": "gpu"}, None, False),
    ],
)
def test_gpus_that_a_job_has_and_asks_for(change: dict[str, str], gpus: int | None, asks: bool) -> None:
    found = row(**change)
    assert (found["gpus"], found["asks_gpus"]) == (gpus, asks)


@pytest.mark.parametrize(
    ("pattern", "directory", "path"),
    [
        ("", "/w", ""),
        ("(null)", "/w", ""),
        ("a.out", "/w", "/w/a.out"),
        ("../a.out", "/w/x", "/w/a.out"),
        ("/l/a.out", "", "/l/a.out"),
        ("/l/a.out", "/w", "/l/a.out"),
        ("a.out", "", ""),
        ("a.out", "w", ""),
        ("%j-%A-%x-%u", "/w", "/w/7-7-canary-admin"),
        ("%4j-%12A", "/w", "/w/0007-000000000007"),
        ("%%j-%y", "/w", "/w/%j-%y"),
    ],
)
def test_paths_of_logs(pattern: str, directory: str, path: str) -> None:
    names = {"job_id": "7", "name": "canary", "user": "admin"}
    assert squeue.output_path(pattern, directory, names) == path


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("COMPLETED", ("COMPLETED", [])),
        ("CANCELLED by 0", ("CANCELLED", [])),
        ("COMPLETING", ("RUNNING", ["COMPLETING"])),
        ("REQUEUED", ("PENDING", ["REQUEUED"])),
        ("SPECIAL_EXIT", ("PENDING", ["SPECIAL_EXIT"])),
        ("COMPLETED+", ("UNKNOWN", [])),
        ("COMPLETED or so", ("UNKNOWN", [])),
        ("completed", ("UNKNOWN", [])),
        ("NEWSTATE", ("UNKNOWN", [])),
        ("", ("UNKNOWN", [])),
    ],
)
def test_states(word: str, expected: tuple[str, list[str]]) -> None:
    assert split_state(word) == expected


@given(st.binary(max_size=3 * (squeue.RECORD + 33)))
def test_squeue_garbage_is_refused_or_empty(out: bytes) -> None:
    try:
        rows = squeue.parse(out)
    except squeue.UnreadableError:
        return
    assert not any(row["state"] == "COMPLETED" for row in rows.values())


WHOLE = (FIXTURES / "slurm-24.11.5" / "squeue.bin").read_bytes()[: squeue.RECORD + 33]


@given(st.integers(0, squeue.RECORD + 32), st.binary(min_size=1, max_size=400))
def test_no_damaged_record_becomes_completed(at: int, noise: bytes) -> None:
    """WHOLE is a job that was cancelled: no damage may turn it into a success."""
    damaged = (WHOLE[:at] + noise + WHOLE[at + len(noise) :])[: len(WHOLE)]
    try:
        rows = squeue.parse(damaged)
    except squeue.UnreadableError:
        return
    for row in rows.values():
        assert row["state"] != "COMPLETED" or b"COMPLETED" in noise


@given(st.text(alphabet="0123456789|.:COMPLETED\n ,=/", max_size=300))
def test_accounting_garbage_never_raises(out: str) -> None:
    for row in sacct.parse(out, ["1"]).rows.values():
        assert row["state"] != "COMPLETED" or "COMPLETED" in out
