# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a training's folder tells of it, whole, incomplete and damaged."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest
from kit.errors import KitError
from kit.pretraining import observed
from kit.pretraining.observed import Checkpoint, Observed, active_leg, find, job_of, number, observe, tail, whole

from tests.unit.kit.training_folder import SETTINGS, checkpoint, gpu_row, rank_state, training, write, write_lines
from tests.unit.kit.training_rows import BEGAN, step_rows

NOW = BEGAN + 4004


@pytest.fixture
def folder(tmp_path) -> Path:
    return training(tmp_path)


def test_a_job_is_found_by_its_number_and_of_its_attempts_the_last(tmp_path, folder):
    share = str(tmp_path)
    assert find("12", share) == folder
    for name in ("job-120", "job-1", "job-12.replaced-20270115"):
        (folder.parent / name).mkdir()
        assert find("12", share) == folder
    for name in ("job-12.2", "job-12.10", "job-12.9"):
        (folder.parent / name).mkdir()
    assert find("12", share) == folder.parent / "job-12.10"
    assert find("120", share) == folder.parent / "job-120"
    assert find(str(folder), None) == folder
    assert find(str(folder), share) == folder


def test_a_job_that_is_not_found_is_refused_with_where_it_was_looked_for(tmp_path, folder):
    with pytest.raises(KitError, match=r"job-pretraining.* no such folder; expected a Slurm job's number"):
        find(str(tmp_path / "job-pretraining"), None)
    with pytest.raises(KitError, match=r"where is job 12\? Set --share or HPC_VALIDATION_SHARE"):
        find("12", None)
    with pytest.raises(KitError, match=r"models/gpt-pretraining has no folder of job 7: .*squeue -j 7.* not its share"):
        find("7", str(tmp_path))
    shutil.rmtree(folder.parent)
    with pytest.raises(KitError, match="has no folder of job 12"):
        find("12", str(tmp_path))


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("job-12", ("12", 0)),
        ("job-12.3", ("12", 3)),
        ("job-12.replaced-1", ("unknown", 0)),
        ("job-", ("unknown", 0)),
        ("xjob-12", ("unknown", 0)),
        ("job-12.", ("unknown", 0)),
    ],
)
def test_a_folders_name_tells_job_and_attempt(name, found):
    assert job_of(Path("share") / name) == found


def test_a_whole_folder_tells_everything(tmp_path, folder):
    seen = observe(folder, NOW)
    assert (seen.folder, seen.leg, seen.job, seen.now) == (folder, None, "12", NOW)
    assert seen.settings == SETTINGS
    assert [row["step"] for row in seen.rows] == list(range(1, 401))
    assert not seen.cut
    assert [row["step"] for row in seen.performance] == list(range(20, 401, 20))
    assert [state["rank"] for state in seen.ranks] == [0, 1, 2, 3]
    assert set(seen.gpus) == {"GPU-0", "GPU-1", "GPU-2", "GPU-3"}
    assert seen.checkpoint == Checkpoint("checkpoint_step_400", 400, BEGAN + 4000)
    assert list(seen.damaged) == []
    assert (seen.began, seen.ended, seen.exit_code) == (BEGAN - 500, None, None)
    assert seen.missing == []
    write(tmp_path / "jobs/.markers/12.end.json", {"job_id": "12", "attempt": 0, "exit_code": 3, "time": BEGAN + 5000})
    seen = observe(folder, NOW)
    assert (seen.ended, seen.exit_code) == (BEGAN + 5000, 3)


def test_before_anything_is_read_nothing_is_known():
    seen = Observed(Path("job-12"), NOW, "12")
    assert (seen.cut, seen.leg, seen.checkpoint, seen.began, seen.ended, seen.exit_code) == (False, *[None] * 5)


def test_the_time_is_now_unless_it_is_given(folder):
    assert observe(folder).now > 1.7e9


def test_an_empty_folder_says_what_is_missing(tmp_path):
    (tmp_path / "somewhere").mkdir()
    seen = observe(tmp_path / "somewhere", NOW)
    assert (seen.job, seen.settings, seen.rows, seen.ranks, seen.gpus) == ("unknown", {}, [], [], {})
    assert (seen.checkpoint, seen.began) == (None, None)
    assert seen.missing == [
        "settings.json is not there",
        "training_metrics.jsonl is not there: no step is complete, or it is not a training's folder",
        "performance_metrics.jsonl is not there: no step is complete, or it is not a training's folder",
        "ranks/ has no file of a rank: none has started",
        "gpu.jsonl is not there: the GPUs are not sampled",
        "checkpoints/ has no checkpoint yet",
    ]
    assert observe(tmp_path / "none", NOW).missing == seen.missing


def test_markers_of_another_attempt_or_job_tell_nothing(tmp_path, folder):
    markers = tmp_path / "jobs/.markers"
    for foreign in ({"job_id": "12", "attempt": 1}, {"job_id": "13", "attempt": 0}, {}):
        write(markers / "12.begin.json", {"time": 1.0, **foreign})
        assert observe(folder, NOW).began == BEGAN + 10  # the first step's
    (markers / "12.begin.json").write_text("[1]")
    assert observe(folder, NOW).began == BEGAN + 10
    (markers / "12.begin.json").write_text("{")
    assert observe(folder, NOW).began == BEGAN + 10
    again = folder.rename(folder.with_name("job-12.1"))
    write(markers / "12.begin.json", {"job_id": "12", "attempt": 1, "time": BEGAN - 7})
    write(markers / "12.end.json", {"job_id": "12", "attempt": 1, "time": BEGAN + 9, "exit_code": "none"})
    seen = observe(again, NOW)
    assert (seen.began, seen.ended, seen.exit_code) == (BEGAN - 7, BEGAN + 9, None)


def test_the_leg_that_was_active_last_is_looked_at(folder):
    straight, killed = folder / "straight", folder / "killed"
    write_lines(straight / "training_metrics.jsonl", step_rows(5))
    write(killed / "ranks/rank-0.json", rank_state(0, step=3))
    for path, moment in (
        (folder / "training_metrics.jsonl", 100),
        (folder / "ranks", 100),
        (straight / "training_metrics.jsonl", 200),
        (killed / "ranks", 300),
    ):
        os.utime(path, (moment, moment))
    assert active_leg(folder) == killed
    seen = observe(folder, NOW)
    assert (seen.leg, seen.folder) == ("killed", killed)
    assert [(state["phase"], state["step"]) for state in seen.ranks] == [("training", 3)]
    assert seen.settings == SETTINGS  # the job's own
    assert set(seen.gpus) == {"GPU-0", "GPU-1", "GPU-2", "GPU-3"}
    assert seen.checkpoint == Checkpoint("checkpoint_step_400", 400, BEGAN + 4000)
    assert seen.missing[0].startswith("training_metrics.jsonl is not there")
    (killed / "checkpoints").mkdir()
    assert observe(folder, NOW).checkpoint == seen.checkpoint
    os.utime(straight / "training_metrics.jsonl", (400, 400))
    assert observe(folder, NOW).leg == "straight"
    checkpoint(straight / "checkpoints", "checkpoint_step_5")
    assert observe(folder, NOW).checkpoint.name == "checkpoint_step_5"
    os.utime(folder / "training_metrics.jsonl", (400, 400))
    assert observe(folder, NOW).leg is None


def test_a_leg_has_as_many_ranks_as_it_was_started_with(folder):
    write(folder / "export/ranks/rank-0.json", rank_state(0, phase="ended"))
    for path in (folder / "training_metrics.jsonl", folder / "ranks"):
        os.utime(path, (100, 100))
    phases = {}
    for legs in (None, {}, *({"export": {"ranks": ranks}} for ranks in (1, 2, "x")), {"export": 1}):
        if legs is not None:
            write(folder / "legs.json", legs)
        seen = observe(folder, NOW)
        assert seen.leg == "export"
        phases[json.dumps(legs)] = [state["phase"] for state in seen.ranks]
    assert phases.pop('{"export": {"ranks": 2}}') == ["ended", "never started"]
    assert set(map(tuple, phases.values())) == {("ended",)}


def test_of_a_job_that_ended_well_the_training_is_shown_and_otherwise_the_leg_that_was_last(tmp_path, folder):
    write(folder / "export/ranks/rank-0.json", rank_state(0, phase="ended"))
    for path in (folder / "training_metrics.jsonl", folder / "ranks"):
        os.utime(path, (100, 100))
    assert observe(folder, NOW).leg == "export"
    for code, leg in ((0, None), (1, "export"), (None, "export"), ("0", "export")):
        end = {"job_id": "12", "attempt": 0, "exit_code": code, "time": BEGAN + 4003}
        write(tmp_path / "jobs/.markers/12.end.json", end)
        seen = observe(folder, NOW)
        assert (seen.leg, bool(seen.rows), len(seen.ranks)) == (leg, leg is None, 4 if leg is None else 1)


def test_a_link_is_no_leg(folder, tmp_path):
    write_lines(tmp_path / "elsewhere/training_metrics.jsonl", step_rows(5))
    for path in (folder / "training_metrics.jsonl", folder / "ranks"):
        os.utime(path, (100, 100))
    (folder / "linked").symlink_to(tmp_path / "elsewhere")
    assert active_leg(folder) == folder


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"{", "cannot be read: "),
        (b"[1]", "cannot be read: is no object"),
        (b'{"a": 1, "a": 2}', 'cannot be read: the key "a" appears twice'),
        (b"[" * 100_000, "cannot be read: is nested too deeply"),
        (b"\xff", "cannot be read: "),
        (b"{}" + b" " * observed.LONGEST, f"cannot be read: is longer than {observed.LONGEST} bytes"),
    ],
)
def test_settings_that_cannot_be_read_are_named(folder, content, why):
    (folder / "settings.json").write_bytes(content)
    seen = observe(folder, NOW)
    assert seen.settings == {}
    (missing,) = seen.missing
    assert missing.startswith(f"settings.json {why}")


def test_a_document_as_long_as_may_be_is_read(folder):
    (folder / "settings.json").write_bytes(b'{"a": 1}' + b" " * (observed.LONGEST - 8))
    assert observe(folder, NOW).settings == {"a": 1}


def test_a_link_is_not_followed(folder, tmp_path):
    for name in ("settings.json", "training_metrics.jsonl"):
        elsewhere = (folder / name).rename(tmp_path / name)
        (folder / name).symlink_to(elsewhere)
    seen = observe(folder, NOW)
    assert (seen.settings, seen.rows) == ({}, [])
    assert seen.missing == [
        "settings.json cannot be read: Too many levels of symbolic links",
        "training_metrics.jsonl cannot be read: Too many levels of symbolic links",
    ]


def test_only_the_end_of_a_file_is_read(tmp_path):
    rows = [{"step": each} for each in range(100)]
    path = write_lines(tmp_path / "rows", rows)
    length = path.stat().st_size
    assert tail(path) == rows
    assert tail(path, length) == rows
    assert tail(path, length - 1) == rows[1:]
    assert tail(path, 30) == rows[-2:]  # a third is cut
    assert tail(path, 26) == rows[-1:]


def test_lines_that_are_no_rows_are_left_out(tmp_path):
    path = tmp_path / "rows"
    path.write_bytes(b'{"step": 1}\n\n[1]\n{"step":\n' + b"[" * 5000 + b'\n\xff\n{"step": 2}\n{"ste')
    assert tail(path) == [{"step": 1}, {"step": 2}]
    path.write_bytes(b"")
    assert tail(path) == []


def test_a_first_row_that_is_none_tells_no_time(tmp_path, folder):
    (tmp_path / "jobs/.markers/12.begin.json").unlink()
    (folder / "training_metrics.jsonl").write_text('{"ste\n{"step": 1}\n')
    seen = observe(folder, NOW)
    assert (seen.began, list(seen.rows), seen.cut) == (None, [{"step": 1}], True)


def test_rows_without_a_step_are_none(folder):
    write_lines(folder / "training_metrics.jsonl", [{"step": None}, {"step": "1"}, {"step": True}, {}])
    seen = observe(folder, NOW)
    assert list(seen.rows) == []
    assert seen.missing == ["training_metrics.jsonl has no row yet"]


def test_a_long_training_is_known_to_have_earlier_rows(folder, monkeypatch):
    monkeypatch.setattr(observed, "TAIL", 5000)
    monkeypatch.setattr(observed.tail, "__defaults__", (5000,))
    seen = observe(folder, NOW)
    assert 1 < len(seen.rows) < 400
    assert seen.rows[-1]["step"] == 400
    assert seen.cut


def test_ranks_that_never_started_are_ranks(folder):
    for rank in (1, 3):
        (folder / f"ranks/rank-{rank}.json").unlink()
    (folder / "ranks/rank-²x.json").write_text("{}")
    states = observe(folder, NOW).ranks
    assert [(state["rank"], state["phase"]) for state in states] == [
        (0, "training"),
        (1, "never started"),
        (2, "training"),
        (3, "never started"),
    ]
    write(folder / "settings.json", {"batch": {"ranks": "many"}})
    assert [state["rank"] for state in observe(folder, NOW).ranks] == [0, 1, 2]
    write(folder / "settings.json", {"batch": 1})
    assert [state["rank"] for state in observe(folder, NOW).ranks] == [0, 1, 2]
    write(folder / "settings.json", {"batch": {"ranks": 1e9}})
    assert len(observe(folder, NOW).ranks) == observed.MOST_RANKS


def test_a_rank_that_is_nested_too_deeply_is_said_so(folder):
    (folder / "ranks/rank-1.json").write_text("[" * 100_000)
    seen = observe(folder, NOW)
    assert (list(seen.ranks), seen.missing) == ([], ["ranks/ has a file that is nested too deeply"])


def test_the_last_sample_of_each_gpu_counts(folder):
    write_lines(
        folder / "nodes/compute01/gpu.jsonl",
        [
            gpu_row(0, BEGAN + 3, util=3),
            gpu_row(0, BEGAN + 1, util=1),
            gpu_row(1, BEGAN + 2, util=5),
            gpu_row(1, BEGAN + 2, util=6),
            {"uuid": None, "time": BEGAN},
            {"uuid": "GPU-0"},
        ],
    )
    write_lines(folder / "gpu.jsonl", [gpu_row(0, BEGAN + 2, util=2)])
    gpus = observe(folder, NOW).gpus
    assert (gpus["GPU-0"]["util"], gpus["GPU-1"]["util"], gpus["GPU-2"]["util"]) == (3, 6, 97)


def test_without_gpus_it_is_said_why(folder):
    shutil.rmtree(folder / "nodes")
    assert observe(folder, NOW).missing == ["gpu.jsonl is not there: the GPUs are not sampled"]
    write_lines(folder / "gpu.jsonl", [{"uuid": None, "time": BEGAN, "error": "none"}])
    assert observe(folder, NOW).missing == ["gpu.jsonl names no GPU: this job has none, or NVML does not answer"]


def test_checkpoints_that_are_not_whole_are_named_and_the_one_before_is_taken(folder):
    place = folder / "checkpoints"
    (checkpoint(place, "checkpoint_step_450") / "manifest.json").unlink()
    (checkpoint(place, "checkpoint_step_500") / "rank-0000-of-0001.safetensors").write_bytes(b"x")
    (checkpoint(place, "final_checkpoint_step_500") / "rank-0000-of-0001.safetensors").unlink()
    checkpoint(place, "checkpoint_step_550", step=540)
    checkpoint(place, "checkpoint_step_600", name="checkpoint_step_500")
    checkpoint(place, "checkpoint_step_650", files=[])
    checkpoint(place, "checkpoint_step_700", files=None)
    (place / ".incomplete-checkpoint_step_800").mkdir()
    (place / "checkpoint_step_900x").mkdir()
    seen = observe(folder, NOW)
    assert seen.checkpoint == Checkpoint("checkpoint_step_400", 400, BEGAN + 4000)
    assert list(seen.damaged) == [
        "checkpoint_step_700: the manifest names no files",
        "checkpoint_step_650: the manifest names no files",
        "checkpoint_step_600: the manifest is another checkpoint's",
        "checkpoint_step_550: the manifest is another checkpoint's",
        "final_checkpoint_step_500: No such file or directory",
        "checkpoint_step_500: rank-0000-of-0001.safetensors has 1 of 100 bytes",
        "checkpoint_step_450: No such file or directory",
    ]
    assert seen.missing == []
    checkpoint(place, "checkpoint_step_750", step="750")
    assert observe(folder, NOW).checkpoint.step == 750


def test_what_is_no_checkpoint_by_its_name_is_none(folder):
    for path in (folder / "checkpoints").iterdir():
        path.rename(path.with_name(f".incomplete-{path.name}"))
    seen = observe(folder, NOW)
    assert (seen.checkpoint, list(seen.damaged)) == (None, [])
    assert seen.missing == ["checkpoints/ has no checkpoint yet"]


def test_a_final_checkpoint_comes_after_the_one_of_its_step(folder):
    checkpoint(folder / "checkpoints", "final_checkpoint_step_400", time=None)
    assert observe(folder, NOW).checkpoint == Checkpoint("final_checkpoint_step_400", 400, None)


def test_a_manifest_leads_to_no_file_elsewhere(tmp_path):
    (tmp_path / "secret").write_bytes(b"x" * 100)
    path = checkpoint(tmp_path / "checkpoints", "checkpoint_step_1", files=[{"name": "../../secret", "bytes": 100}])
    with pytest.raises(FileNotFoundError):
        whole(path)


def test_checkpoints_may_lie_elsewhere(folder, tmp_path):
    checkpoint(tmp_path / "elsewhere", "checkpoint_step_9")
    write(folder / "settings.json", {**SETTINGS, "checkpoint": {"every": 50, "folder": str(tmp_path / "elsewhere")}})
    assert observe(folder, NOW).checkpoint.name == "checkpoint_step_9"
    write(folder / "settings.json", {**SETTINGS, "checkpoint": {"every": 50, "folder": str(tmp_path / "none")}})
    assert observe(folder, NOW).missing == ["checkpoints/ has no checkpoint yet"]


@pytest.mark.parametrize(
    ("value", "found"),
    [
        (1, 1),
        (0.5, 0.5),
        (-9e14, -9e14),
        (1e15, None),
        (-1e15, None),
        (10**400, None),
        (True, None),
        ("1", None),
        (None, None),
        (float("inf"), None),
        (float("nan"), None),
    ],
)
def test_a_number_is_finite(value, found):
    assert number(value) == found


def test_a_damaged_folder_never_makes_it_fail(folder):
    """Every file of it replaced by something else, one at a time."""
    for name in ("training_metrics.jsonl", "performance_metrics.jsonl"):  # fewer rows are read faster
        (folder / name).write_text((folder / name).read_text().splitlines(keepends=True)[0])
    files = [path for path in folder.rglob("*") if path.is_file()]
    for path in files:
        whole_content = path.read_bytes()
        for content in (
            b"",
            b"null",
            b"[]",
            b'{"time": "x"}',
            b"\x00\xff",
            json.dumps({"rank": [], "phase": 1}).encode(),
        ):
            path.write_bytes(content)
            observe(folder, NOW)
        path.write_bytes(whole_content)
        path.unlink()
        path.mkdir()
        observe(folder, NOW)
        path.rmdir()
        path.write_bytes(whole_content)
