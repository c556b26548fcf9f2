# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""squeue and sacct as recorded from real releases, and against garbage."""

from __future__ import annotations

from pathlib import Path

import pytest
from ansible_collections.mlops.hpc_validation.plugins.module_utils import _slurm_sacct, _slurm_squeue
from ansible_collections.mlops.hpc_validation.plugins.module_utils._slurm_job import from_row, has_ended
from ansible_collections.mlops.hpc_validation.plugins.module_utils._slurm_state import TERMINAL, split_state
from hypothesis import given
from hypothesis import strategies as st

FIXTURES = Path(__file__).resolve().parents[3] / "fixtures"
RELEASES = sorted(path.name for path in FIXTURES.glob("slurm-*") if (path / "squeue.bin").exists())
NOW = 1795233030.0


def jobs(release: str) -> dict[str, dict]:
    """Jobs by name."""
    rows = _slurm_squeue.parse((FIXTURES / release / "squeue.bin").read_bytes())
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
    told = _slurm_sacct.parse((FIXTURES / release / "sacct.txt").read_text(), asked)
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
    assert _slurm_squeue.parse(b"") == {}
    assert _slurm_sacct.parse("", ["1"]).rows == {}


def test_truncated_output_is_refused() -> None:
    whole = (FIXTURES / "slurm-24.11.5" / "squeue.bin").read_bytes()
    with pytest.raises(_slurm_squeue.UnreadableError):
        _slurm_squeue.parse(whole[:-1])
    with pytest.raises(_slurm_squeue.UnreadableError):
        _slurm_squeue.parse(whole[7:] + whole[:7])


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


@given(st.binary(max_size=3 * (_slurm_squeue.RECORD + 1)))
def test_squeue_garbage_is_refused_or_empty(out: bytes) -> None:
    try:
        rows = _slurm_squeue.parse(out)
    except _slurm_squeue.UnreadableError:
        return
    assert not any(row["state"] == "COMPLETED" for row in rows.values())


WHOLE = (FIXTURES / "slurm-24.11.5" / "squeue.bin").read_bytes()[: _slurm_squeue.RECORD + 1]


@given(st.integers(0, _slurm_squeue.RECORD), st.binary(min_size=1, max_size=400))
def test_no_damaged_record_becomes_completed(at: int, noise: bytes) -> None:
    """WHOLE is a job that was cancelled: no damage may turn it into a success."""
    damaged = (WHOLE[:at] + noise + WHOLE[at + len(noise) :])[: len(WHOLE)]
    try:
        rows = _slurm_squeue.parse(damaged)
    except _slurm_squeue.UnreadableError:
        return
    for row in rows.values():
        assert row["state"] != "COMPLETED" or b"COMPLETED" in noise


@given(st.text(alphabet="0123456789|.:COMPLETED\n ,=/", max_size=300))
def test_accounting_garbage_never_raises(out: str) -> None:
    for row in _slurm_sacct.parse(out, ["1"]).rows.values():
        assert row["state"] != "COMPLETED" or "COMPLETED" in out
