# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What each rank leaves of itself, and which one failed first."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from kit.ranks import state as ranks_state


@pytest.fixture(autouse=True)
def job(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLURM_JOB_ID", "12")
    monkeypatch.setenv("SLURMD_NODENAME", "compute01")
    monkeypatch.delenv("HPC_VALIDATION_ATTEMPT", raising=False)
    monkeypatch.delenv("SLURM_RESTART_COUNT", raising=False)


def state(output: Path, rank: int, *, time: float | None = None, **changes: object) -> None:
    """Leave a rank's state as RankState does, but for the changes."""
    ranks_state.RankState(output, rank, f"GPU-{rank}").phase("training")
    path = output / "ranks" / f"rank-{rank}.json"
    written = json.loads(path.read_text())
    path.write_text(json.dumps({**written, **changes, **({} if time is None else {"time": time})}))


def test_a_state_names_job_node_gpu_phase_and_step(tmp_path: Path) -> None:
    mine = ranks_state.RankState(tmp_path, 1)
    mine.gpu("GPU-b")
    mine.phase("joining")
    mine.phase("training")
    written = json.loads((tmp_path / "ranks/rank-1.json").read_text())
    assert {key: written[key] for key in ("job_id", "attempt", "rank", "node", "gpu", "phase", "step", "error")} == {
        "job_id": "12",
        "attempt": 0,
        "rank": 1,
        "node": "compute01",
        "gpu": "GPU-b",
        "phase": "training",
        "step": None,
        "error": None,
    }
    assert mine.current == "training"


def test_steps_are_written_at_most_once_a_second(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [100.0]
    monkeypatch.setattr(ranks_state.time, "monotonic", lambda: clock[0])
    mine = ranks_state.RankState(tmp_path, 0)
    mine.phase("training")
    seen = []
    for number, moment in ((1, 100.5), (2, 100.9), (3, 101.0), (4, 101.9), (5, 102.0)):
        clock[0] = moment
        mine.step(number)
        seen.append(json.loads((tmp_path / "ranks/rank-0.json").read_text())["step"])
    assert seen == [None, None, 3, 3, 5]


def test_what_is_raised_in_a_phase_is_the_failure_of_the_phase_that_it_was_in(tmp_path: Path) -> None:
    mine = ranks_state.RankState(tmp_path, 0)

    def train() -> None:
        with mine.during("reading settings"):
            assert mine.current == "reading settings"
            mine.phase("training")
            raise ValueError("no such\n step " + 400 * "x")

    with pytest.raises(ValueError, match="no such"):
        train()
    written = json.loads((tmp_path / "ranks/rank-0.json").read_text())
    assert written["phase"] == "failed in training"
    assert written["error"].startswith("ValueError: no such step xx")
    assert len(written["error"]) == ranks_state.LONGEST


def test_a_phase_in_which_nothing_is_raised_did_not_fail(tmp_path: Path) -> None:
    mine = ranks_state.RankState(tmp_path, 0)
    with mine.during("reading settings"):
        pass
    assert json.loads((tmp_path / "ranks/rank-0.json").read_text())["phase"] == "reading settings"


def test_states_are_read_by_label(tmp_path: Path) -> None:
    state(tmp_path, 0, phase="ended", step=60)
    state(tmp_path, 1, phase="training", step=20)
    found = ranks_state.read(tmp_path, 2)
    assert {name: item["last"] for name, item in found.items()} == {
        "rank 0 (compute01 GPU-0)": "ended",
        "rank 1 (compute01 GPU-1)": "training, step 20",
    }


def test_an_error_is_part_of_the_last_words(tmp_path: Path) -> None:
    state(tmp_path, 0, phase="failed in joining", error="DistStoreError: 1/2 joined")
    assert ranks_state.read(tmp_path, 1)["rank 0 (compute01 GPU-0)"]["last"] == (
        "failed in joining: DistStoreError: 1/2 joined"
    )


@pytest.mark.parametrize("content", [None, "", "{", "[]", "[1]", "3", "null", '"x"', "{}"])
def test_a_rank_that_left_nothing_readable_never_started(tmp_path: Path, content: str | None) -> None:
    state(tmp_path, 0, phase="ended")
    if content is not None:
        (tmp_path / "ranks/rank-1.json").write_text(content)
    found = ranks_state.read(tmp_path, 2)
    assert list(found) == ["rank 0 (compute01 GPU-0)", "rank 1"]
    assert found["rank 1"]["last"] == "never started"


def test_a_state_cannot_pose_as_another_rank(tmp_path: Path) -> None:
    state(tmp_path, 0)
    path = tmp_path / "ranks/rank-0.json"
    path.write_text(path.read_text().replace('"rank": 0', '"rank": 1'))
    assert list(ranks_state.read(tmp_path, 1)) == ["rank 0 (compute01 GPU-0)"]


def failure(output: Path, codes: dict[int, int]) -> str | None:
    ranks_state.write_exit_codes(output, codes)
    return ranks_state.first_failure(output, ranks_state.read(output, 2))


def test_without_exit_codes_nobody_failed(tmp_path: Path) -> None:
    state(tmp_path, 0)
    assert ranks_state.first_failure(tmp_path, ranks_state.read(tmp_path, 2)) is None


def test_a_killed_rank_is_to_blame_and_not_the_one_that_lost_it(tmp_path: Path) -> None:
    state(tmp_path, 0, phase="failed in training", error="RuntimeError: Connection closed by peer", time=1.0)
    state(tmp_path, 1, phase="training", step=20, time=5.0)
    assert failure(tmp_path, {0: 1, 1: -9}) == (
        "rank 1 (compute01 GPU-1): killed by SIGKILL, last in training, step 20"
    )


def test_a_rank_that_the_launcher_ended_is_not_to_blame(tmp_path: Path) -> None:
    state(tmp_path, 0, phase="training", step=20, time=1.0)
    state(tmp_path, 1, phase="failed in training", step=20, error="KitError: x", time=2.0)
    for codes in ({0: -15, 1: 1}, {1: 1}):
        assert failure(tmp_path, codes) == (
            "rank 1 (compute01 GPU-1): ended with exit code 1, failed in training, step 20: KitError: x"
        )


@pytest.mark.parametrize("codes", [{0: -6}, {0: -6, 1: -15}])
def test_a_rank_that_another_gave_up_waiting_for_is_to_blame(tmp_path: Path, codes: dict[int, int]) -> None:
    state(tmp_path, 0, phase="training", step=30, time=1.0)
    state(tmp_path, 1, phase="training", step=20, time=5.0)
    assert failure(tmp_path, codes) == (
        "rank 1 (compute01 GPU-1): rank 0 gave up waiting for it, last in training, step 20"
    )


def test_ranks_that_all_gave_up_are_told_by_the_first(tmp_path: Path) -> None:
    state(tmp_path, 0, phase="training", step=30, time=2.0)
    state(tmp_path, 1, phase="training", step=30, time=1.0)
    assert failure(tmp_path, {0: -6, 1: -6}) == "rank 1 (compute01 GPU-1): killed by SIGABRT, last in training, step 30"


@pytest.mark.parametrize("codes", [{0: 71}, {0: 71, 1: -15}, {0: 71, 1: -9}])
def test_a_rank_that_gave_up_on_another_is_not_to_blame(tmp_path: Path, codes: dict[int, int]) -> None:
    state(tmp_path, 0, phase="failed in training", step=30, error="no step for 60 s, waiting for other ranks", time=9.0)
    state(tmp_path, 1, phase="training", step=30, time=5.0)
    assert failure(tmp_path, codes) == (
        "rank 1 (compute01 GPU-1): rank 0 gave up waiting for it, last in training, step 30"
    )


def test_of_ranks_that_all_gave_up_the_one_that_waited_for_none_is_to_blame(tmp_path: Path) -> None:
    state(tmp_path, 0, phase="failed in training", step=30, error="no step for 60 s, waiting for other ranks", time=1.0)
    state(tmp_path, 1, phase="failed in training", step=30, error="no step for 61 s, at a.py", time=2.0)
    assert failure(tmp_path, {0: 71, 1: 71}) == (
        "rank 1 (compute01 GPU-1): it stood still, failed in training, step 30: no step for 61 s, at a.py"
    )


def test_ranks_that_all_waited_are_told_by_the_first(tmp_path: Path) -> None:
    for rank in (0, 1):
        error = "no step for 60 s, waiting for other ranks"
        state(tmp_path, rank, phase="failed in training", step=30, error=error, time=2.0 - rank)
    assert failure(tmp_path, {0: 71, 1: 71}).startswith("rank 1 (compute01 GPU-1): ended with exit code 71")


def test_of_ranks_that_ended_themselves_the_first_is_to_blame(tmp_path: Path) -> None:
    state(tmp_path, 0, phase="failed in training", error="peer", time=2.0)
    state(tmp_path, 1, phase="failed in training", error="own", time=1.5)
    assert failure(tmp_path, {0: 1, 1: 3}) == (
        "rank 1 (compute01 GPU-1): ended with exit code 3, failed in training: own"
    )


def test_a_signal_without_a_name_is_a_number(tmp_path: Path) -> None:
    assert failure(tmp_path, {1: -99}) == "rank 1: killed by signal 99, never started"


@pytest.mark.parametrize("content", ["", "{}", '{"exit_codes": 3}', '{"exit_codes": {"x": 1}}', "[]"])
def test_an_unreadable_record_of_exit_codes_is_no_good_news(tmp_path: Path, content: str) -> None:
    ranks_state.write_exit_codes(tmp_path, {0: 1})
    (tmp_path / "ranks/exit-codes-compute01.json").write_text(content)
    assert "exit-codes-compute01.json cannot be read" in str(ranks_state.first_failure(tmp_path, {}))


def test_a_nodes_name_does_not_lead_out_of_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLURMD_NODENAME", "../../evil")
    ranks_state.write_exit_codes(tmp_path, {0: 1})
    assert [path.name for path in (tmp_path / "ranks").iterdir()] == ["exit-codes-.._.._evil.json"]


def test_nodes_that_did_not_meet_are_named_first_the_one_that_called(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ranks_state.write_apart(tmp_path, "compute01 waited at compute01:4000 for 2 nodes in vain: timeout")
    monkeypatch.setenv("SLURMD_NODENAME", "compute02")
    ranks_state.write_apart(tmp_path, "compute02 (eth0 10.0.0.2) did not reach compute01:4000: timeout")
    assert ranks_state.first_failure(tmp_path, {}) == (
        "compute02 (eth0 10.0.0.2) did not reach compute01:4000: timeout; "
        "compute01 waited at compute01:4000 for 2 nodes in vain: timeout"
    )


@pytest.mark.parametrize("content", ["", "{", "[]", "{}"])
def test_what_a_node_said_and_cannot_be_read_is_no_silence(tmp_path: Path, content: str) -> None:
    ranks_state.write_apart(tmp_path, "in vain")
    (tmp_path / "ranks/apart-compute01.json").write_text(content)
    assert "apart-compute01.json cannot be read" in str(ranks_state.first_failure(tmp_path, {}))
