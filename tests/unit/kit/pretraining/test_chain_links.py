# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The links of a chain, as the job script asks them: who trains, who has nothing to do, what never begins again."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from kit.commands import link
from kit.errors import KitError
from kit.job import Job
from kit.pretraining import chain, checkpoints


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A chain's folder as the login node leaves it."""
    folder = tmp_path / "chain-x"
    folder.mkdir()
    (folder / "chain.json").write_text('{"round": 1}')
    return folder


def save(place: Path, step: int) -> Path:
    """Leave a whole checkpoint."""
    folder = place / "checkpoints"
    begun = checkpoints.begin(folder, checkpoints.name_of(step), 4)
    file = begun / checkpoints.rank_file(0, 1)
    file.write_bytes(b"data")
    return checkpoints.finish(begun, {"step": step, "ranks": 1}, [checkpoints.describe(file)])


def begin(place: Path, job_id: str) -> chain.Decision:
    """Begin a link as its job does."""
    output = place.parent / f"job-{job_id}"
    output.mkdir()
    return chain.begin(place, output, Job(job_id, 0))


def entry(place: Path, job_id: str) -> dict[str, Any]:
    found = json.loads((place / "links" / f"{job_id}.json").read_text())
    assert isinstance(found, dict)
    return found


def test_the_first_link_trains_from_the_beginning(place: Path) -> None:
    assert begin(place, "1") == chain.Decision(True, 0)
    began = {"schema": 1, "job_id": "1", "round": 1, "from_step": 0, "outcome": "running"}
    assert entry(place, "1").items() >= began.items()


def test_each_goes_on_from_the_newest_whole_checkpoint(place: Path) -> None:
    begin(place, "1")
    save(place, 9)
    save(place, 10)
    assert begin(place, "2") == chain.Decision(True, 10)
    (save(place, 11) / checkpoints.rank_file(0, 1)).write_bytes(b"dat")
    assert begin(place, "3") == chain.Decision(True, 10)
    (save(place, 12) / checkpoints.rank_file(0, 1)).write_bytes(b"DATA")
    assert chain.newest_step(place) == 12  # of the same size: the training itself compares the content


def test_a_jobs_folder_has_the_chains_checkpoints(place: Path) -> None:
    begin(place, "1")
    way = place.parent / "job-1/checkpoints"
    assert way.is_dir()
    assert os.readlink(way) == "../chain-x/checkpoints"
    save(place, 10)
    assert [path.name for path in checkpoints.listed(way)] == ["checkpoint_step_10"]
    chain.begin(place, place.parent / "job-1", Job("1", 1))  # the same job, requeued


def test_after_two_links_without_progress_the_others_end_at_once(place: Path) -> None:
    save(place, 10)
    for job_id in ("1", "2"):
        assert begin(place, job_id).trains
    third = begin(place, "3")
    assert not third.trains
    assert third.why == "the two links before it, jobs 1 and 2, made no progress beyond step 10; read their logs"
    assert not begin(place, "4").trains  # though the one before it did not train
    assert entry(place, "4").items() >= {"outcome": "idle", "why": third.why}.items()
    (place / "chain.json").write_text('{"round": 2}')
    assert begin(place, "5").trains


def test_a_job_that_is_requeued_is_no_link_before_itself(place: Path) -> None:
    save(place, 10)
    for job_id in ("1", "2"):
        begin(place, job_id)
    assert chain.begin(place, place.parent / "job-2", Job("2", 1)).trains


def test_one_without_progress_is_no_reason_to_end(place: Path) -> None:
    begin(place, "1")
    begin(place, "2")
    save(place, 10)
    assert begin(place, "3").trains
    assert begin(place, "4").trains
    save(place, 20)
    assert begin(place, "5").trains


def test_links_are_in_the_order_in_which_they_began(place: Path) -> None:
    for job_id in ("9", "10", "8"):
        begin(place, job_id)
    chain.begin(place, place.parent / "job-10", Job("10", 1))
    assert [(each["job_id"], each["turn"]) for each in chain.read(place)] == [("9", 1), ("8", 3), ("10", 4)]


def test_those_of_an_older_version_are_in_the_order_of_their_clocks(place: Path) -> None:
    for job_id, began in (("8", 3.0), ("10", 2.0), ("9", 1.0)):
        begin(place, job_id)
        old = {**entry(place, job_id), "began": began}
        del old["turn"]
        (place / f"links/{job_id}.json").write_text(json.dumps(old))
    begin(place, "7")
    turns = [(each["job_id"], each["turn"]) for each in chain.read(place)]
    assert turns == [("9", 0), ("10", 0), ("8", 0), ("7", 1)]


def test_a_clock_that_is_ahead_hides_no_lack_of_progress(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as ahead:
        ahead.setattr(chain.time, "time", lambda: 9e9)
        begin(place, "1")
    save(place, 10)
    assert [begin(place, job_id).trains for job_id in ("2", "3", "4", "5")] == [True, True, False, False]


@pytest.mark.parametrize(
    ("name", "why"), [("stop", "the chain was stopped"), ("complete.json", "the training is complete")]
)
def test_a_chain_that_is_over_has_nothing_to_do(place: Path, name: str, why: str) -> None:
    save(place, 10)
    (place / name).write_text("")
    assert begin(place, "1") == chain.Decision(False, 10, why)


def test_checkpoints_that_are_gone_are_no_reason_to_begin_again(place: Path) -> None:
    save(place, 10)
    begin(place, "1")
    save(place, 20)
    begin(place, "2")
    (place / "checkpoints/checkpoint_step_20/manifest.json").unlink()
    (place / "checkpoints/checkpoint_step_10/manifest.json").unlink()
    with pytest.raises(KitError, match=r"from step 20, and now no .*/pretrain_stop\.yml\), .* go_on=true"):
        begin(place, "3")
    (place / "chain.json").write_text('{"round": 2}')  # as these two leave it
    assert begin(place, "4") == chain.Decision(True, 0)


def test_if_the_newest_is_damaged_after_a_link_went_on_from_it_the_one_before_is_taken(place: Path) -> None:
    save(place, 10)
    begin(place, "1")
    torn = save(place, 20) / checkpoints.rank_file(0, 1)
    begin(place, "2")
    torn.write_bytes(b"dat")
    why = "a link went on from step 20, and the newest whole checkpoint now is of step 10"
    assert begin(place, "3") == chain.Decision(True, 10, why)
    chain.went_on(place, Job("3", 0), 10, {})
    assert entry(place, "3").items() >= {"from_step": 10, "outcome": "running", "why": why}.items()
    assert begin(place, "4").trains
    fifth = begin(place, "5")
    assert (fifth.trains, "jobs 3 and 4, made no progress beyond step 10" in fifth.why) == (False, True)


def test_a_link_says_from_which_checkpoint_it_really_went_on(place: Path) -> None:
    save(place, 10)
    save(place, 20)
    begin(place, "1")
    refused = {"checkpoint_step_20": "its SHA-256 differs"}
    chain.went_on(place, Job("1", 0), 10, refused)
    assert entry(place, "1").items() >= {"from_step": 10, "why": "its SHA-256 differs", "newest_step": 20}.items()
    begin(place, "2")
    chain.went_on(place, Job("2", 0), 15, refused)  # the first had come to 15
    assert begin(place, "3").trains
    chain.went_on(place, Job("3", 0), 15, refused)
    assert begin(place, "4").why.startswith("the two links before it, jobs 2 and 3, made no progress beyond step 15")
    with pytest.raises(KitError, match=r"9\.json cannot be read"):
        chain.went_on(place, Job("9", 0), 10, {})


def test_one_that_goes_on_from_another_job_is_no_link_that_went_back(place: Path) -> None:
    begin(place, "1")
    chain.went_on(place, Job("1", 0), 4000, {})
    assert entry(place, "1").items() >= {"from_step": 4000, "why": ""}.items()
    assert begin(place, "2") == chain.Decision(True, 0)


def test_a_link_of_an_older_version_counts(place: Path) -> None:
    save(place, 10)
    for job_id in ("1", "2"):
        begin(place, job_id)
        old = entry(place, job_id)
        del old["newest_step"]
        (place / f"links/{job_id}.json").write_text(json.dumps(old))
    assert not begin(place, "3").trains


def test_nor_for_the_job_that_went_on_from_them(place: Path) -> None:
    step = save(place, 20)
    begin(place, "1")
    (step / "manifest.json").unlink()
    with pytest.raises(KitError, match="went on from step 20"):
        chain.begin(place, place.parent / "job-1", Job("1", 1))


def test_what_is_no_links_file_is_not_read(place: Path) -> None:
    begin(place, "1")
    (place / "links/.2.json.part").write_text("{")
    assert [each["job_id"] for each in chain.read(place)] == ["1"]


@pytest.mark.parametrize(
    "content", ["", "[]", "{}", '{"round": "x"}', '{"round": null}', '{"round": Infinity}', "[" * 99999]
)
def test_a_record_that_cannot_be_read_ends_the_job(place: Path, content: str) -> None:
    (place / "chain.json").write_text(content)
    with pytest.raises(KitError, match=r"chain\.json"):
        begin(place, "1")


@pytest.mark.parametrize("key", ["job_id", "round", "began", "from_step", "outcome"])
def test_a_damaged_link_ends_the_job(place: Path, key: str) -> None:
    begin(place, "1")
    found = entry(place, "1")
    del found[key]
    (place / "links/1.json").write_text(json.dumps(found))
    with pytest.raises(KitError, match=r"1\.json is damaged"):
        begin(place, "2")


def test_without_a_record_there_is_no_chain(place: Path) -> None:
    (place / "chain.json").unlink()
    with pytest.raises(KitError, match=r"chain\.json cannot be read"):
        begin(place, "1")


def test_a_link_says_how_it_ended(place: Path) -> None:
    begin(place, "1")
    chain.end(place, Job("1", 0), "the job's time limit comes", 30)
    assert entry(place, "1").items() >= {"from_step": 0, "last_step": 30}.items()
    assert entry(place, "1")["outcome"] == "the job's time limit comes"
    with pytest.raises(KitError, match=r"2\.json cannot be read"):
        chain.end(place, Job("2", 0), "complete", 30)
    (place / "links/2.json").write_text("[]")
    with pytest.raises(KitError, match=r"2\.json: expected an object, found list"):
        chain.end(place, Job("2", 0), "complete", 30)


def test_the_last_one_says_that_nothing_is_left(place: Path) -> None:
    begin(place, "1")
    chain.complete(place, Job("1", 0), {"step": 40})
    found = json.loads((place / "complete.json").read_text())
    assert found.items() >= {"schema": 1, "job_id": "1", "step": 40}.items()
    assert not begin(place, "2").trains


def test_the_command_says_what_the_job_will_do(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = type("Arguments", (), {"chain": place, "output": place.parent / "job-7"})
    arguments.output.mkdir()
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    link.run(arguments)  # type: ignore[arg-type]
    assert capsys.readouterr().out == "chain-x: goes on from the beginning\n"
    save(place, 10)
    link.run(arguments)  # type: ignore[arg-type]
    assert capsys.readouterr().out == "chain-x: goes on from the checkpoint of step 10\n"
    torn = save(place, 20)
    link.run(arguments)  # type: ignore[arg-type]
    (torn / "manifest.json").unlink()
    capsys.readouterr()
    link.run(arguments)  # type: ignore[arg-type]
    assert capsys.readouterr().out.startswith(
        "chain-x: goes on from the checkpoint of step 10: a link went on from step"
    )
    (place / "stop").write_text("")
    with pytest.raises(SystemExit) as ended:
        link.run(arguments)  # type: ignore[arg-type]
    assert ended.value.code == link.NOTHING_TO_DO == 3
    assert capsys.readouterr().out == "chain-x: nothing to do: the chain was stopped\n"
