# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A chain of jobs against a Slurm in memory: one of a name, submitted once, link after link, found, stopped."""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.mlops.hpc_validation.plugins.module_utils._slurm import chain, chain_folder
from ansible_collections.mlops.hpc_validation.plugins.module_utils._slurm.cancel import journal_comments
from ansible_collections.mlops.hpc_validation.plugins.module_utils._slurm.cli import Result, SlurmError
from ansible_collections.mlops.hpc_validation.plugins.module_utils._slurm.journal import Journal
from ansible_collections.mlops.hpc_validation.plugins.module_utils._slurm.submit import Context

from tests.unit.plugins.module_utils._slurm.slurm_fake import TIMED_OUT, FakeSlurm, sacct_row

SCRIPT = "#!/bin/bash\n#SBATCH --job-name=chain-x\ntrue\n"
WHAT = {"profile": "full", "settings": "{}"}
PARTITIONS = (
    "PartitionName=gpu Default=YES MaxTime=1-00:00:00 State=UP Nodes=compute[01-02]\n"
    "PartitionName=short Default=NO MaxTime=00:30:00 State=UP Nodes=compute[01-02]\n"
    "PartitionName=free Default=NO MaxTime=UNLIMITED State=UP Nodes=compute[01-02]\n"
)


@dataclass
class Cluster(FakeSlurm):
    """It also tells its partitions and its limit, and cancels by state."""

    partitions: str = PARTITIONS
    most_jobs: int | None = None
    association: str = ""
    seconds_of_sbatch: float = 0.0

    def __call__(self, argv: list[str], **options: object) -> Result:
        assert len(self.calls) < 1000, "it goes round and round"
        return super().__call__(argv, **options)

    def _sbatch(self, argv: list[str]) -> Result:
        self.time += self.seconds_of_sbatch
        return super()._sbatch(argv)

    def _sacctmgr(self, argv: list[str]) -> Result:
        return Result(0, self.association.encode() if "withassoc" in argv else b"")

    def _scontrol(self, argv: list[str]) -> Result:
        if "partition" in argv:
            return Result(0, self.partitions.encode()) if self.partitions else Result(1, b"", "no answer")
        if "config" in argv:
            enforced = "AccountingStorageEnforce = limits\n" if self.association else ""
            most = "" if self.most_jobs is None else f"MaxJobCount = {self.most_jobs}\n"
            return Result(0, (enforced + most).encode())
        return super()._scontrol(argv)

    def _scancel(self, argv: list[str]) -> Result:
        only = [word for word in argv[1:] if self.jobs.get(word, {}).get("State", "PENDING") == "PENDING"]
        return super()._scancel(["scancel", *only] if "--state=PENDING" in argv else argv)

    def end(self, job_id: str, state: str = "COMPLETED") -> None:
        self.jobs[job_id]["State"] = state

    def submissions(self) -> list[list[str]]:
        return [call for call in self.calls if call[0] == "sbatch"]


@pytest.fixture
def slurm() -> Cluster:
    return Cluster()


@pytest.fixture
def folder(tmp_path: Path) -> str:
    return str(tmp_path / "models/chain-x")


@pytest.fixture
def context(slurm: Cluster, folder: str) -> Context:
    return Context(slurm, Journal(f"{folder}/.journal"), "admin", "", slurm.now, slurm.sleep)


def wanted(**changes: Any) -> chain.Wanted:
    return replace(chain.Wanted("x", {"script": SCRIPT}, WHAT, links=3), **changes)


def record(folder: str) -> dict[str, Any]:
    found = chain_folder.read_record(folder)
    assert found is not None
    return found


def begun(folder: str, job_id: str, **facts: Any) -> None:
    """Leave what the kit leaves when a link begins."""
    place = Path(folder, "links")
    place.mkdir(exist_ok=True)
    (place / f"{job_id}.json").write_text(json.dumps({"job_id": job_id, "from_step": 0, "outcome": "running", **facts}))


def leave_lost(folder: str) -> None:
    """Leave the record as a controller that died between sbatch and the record leaves it."""
    left = record(folder)
    left["links"][-1].update(state="submitting", job_id=None)
    chain_folder.write_record(folder, left)


def options(call: list[str], name: str) -> list[str]:
    return [word.partition("=")[2] for word in call if word.startswith(f"--{name}=")]


def test_all_links_are_submitted_ahead_one_after_the_other(context: Context, slurm: Cluster, folder: str) -> None:
    found, submitted = chain.extend(context, folder, wanted())
    assert submitted == ["1", "2", "3"]
    assert [options(call, "dependency") for call in slurm.submissions()] == [
        ["singleton"],
        ["afterany:1,singleton"],
        ["afterany:2,singleton"],
    ]
    assert found is not None
    assert [(link["number"], link["job_id"], link["slurm"]) for link in found.links] == [
        (1, "1", "PENDING"),
        (2, "2", "PENDING"),
        (3, "3", "PENDING"),
    ]
    assert [link["job_id"] for link in record(folder)["links"]] == ["1", "2", "3"]
    assert len({job["Comment"] for job in slurm.jobs.values()}) == 3
    assert [options(call, "comment") for call in slurm.submissions()] == [
        [job["Comment"]] for job in slurm.jobs.values()
    ]


def test_others_can_look_into_its_folder(context: Context, folder: str) -> None:
    before = os.umask(0o022)
    try:
        chain.extend(context, folder, wanted(links=1))
    finally:
        os.umask(before)
    assert Path(folder).stat().st_mode & 0o777 == 0o755


def test_a_folder_that_cannot_be_made_is_an_error(context: Context, slurm: Cluster, folder: str) -> None:
    Path(folder).parent.symlink_to("not-mounted")
    with pytest.raises(SlurmError, match="cannot be made"):
        chain.extend(context, folder, wanted())
    assert slurm.count("sbatch") == 0


def test_the_links_of_two_chains_are_told_apart(context: Context, slurm: Cluster, folder: str) -> None:
    other = f"{folder}-2"
    chain.extend(context, folder, wanted())
    _found, submitted = chain.extend(replace(context, journal=Journal(f"{other}/.journal")), other, wanted())
    assert submitted == ["4", "5", "6"]
    assert len({job["Comment"] for job in slurm.jobs.values()}) == 6


def test_a_link_that_waits_says_why(context: Context, slurm: Cluster, folder: str) -> None:
    chain.extend(context, folder, wanted(links=1))
    slurm.jobs["1"]["Reason"] = "Dependency"
    found = chain.look_at(context, folder)
    assert found is not None
    assert "depend" in found.links[0]["reason"]


def test_the_record_is_written_before_each_submission(context: Context, slurm: Cluster, folder: str) -> None:
    seen = []
    original = slurm._sbatch
    slurm._sbatch = lambda argv: (seen.append(record(folder)["links"][-1]), original(argv))[1]  # type: ignore[method-assign]
    chain.extend(context, folder, wanted())
    assert [(link["number"], link["state"], link["job_id"]) for link in seen] == [
        (number, "submitting", None) for number in (1, 2, 3)
    ]


def test_run_again_it_is_found_and_nothing_is_submitted(context: Context, slurm: Cluster, folder: str) -> None:
    chain.extend(context, folder, wanted())
    before = record(folder)
    found, submitted = chain.extend(context, folder, wanted(script={"script": SCRIPT + "# newer\n"}))
    assert submitted == []
    assert found is not None
    assert record(folder) == before
    assert slurm.count("sbatch") == 3


def test_links_that_have_ended_are_replaced(context: Context, slurm: Cluster, folder: str) -> None:
    chain.extend(context, folder, wanted())
    slurm.end("1", "TIMEOUT")
    begun(folder, "1", outcome="the job's time limit comes")
    _found, submitted = chain.extend(context, folder, wanted())
    assert submitted == ["4"]
    assert slurm.count("sacct") == 0  # which may be slow, and slurmctld knows them all
    assert options(slurm.submissions()[-1], "dependency") == ["afterany:3,singleton"]
    for job_id in ("2", "3", "4"):
        slurm.end(job_id, "TIMEOUT")
    chain.extend(context, folder, wanted(links=1))
    assert options(slurm.submissions()[-1], "dependency") == ["singleton"]


def test_another_user_is_shown_it(context: Context, slurm: Cluster, folder: str) -> None:
    chain.extend(context, folder, wanted())
    other = replace(context, user="other")
    found, submitted = chain.extend(other, folder, wanted())
    assert submitted == []
    assert found is not None
    assert found.record["user"] == "admin"
    assert any("belongs to admin" in note for note in found.notes)
    assert slurm.count("sbatch") == 3
    with pytest.raises(SlurmError, match="belongs to admin"):
        chain.stop(other, folder, "/out/job-%j", 0)


def test_a_lost_answer_is_found_again(context: Context, slurm: Cluster, folder: str) -> None:
    slurm.sbatch = TIMED_OUT
    _found, submitted = chain.extend(context, folder, wanted(links=1))
    assert submitted == ["1"]
    assert slurm.count("sbatch") == 1


def test_a_controller_that_dies_between_sbatch_and_the_record_leaves_no_second_job(
    context: Context, slurm: Cluster, folder: str
) -> None:
    chain.extend(context, folder, wanted(links=2))
    leave_lost(folder)
    found = chain.look_at(context, folder)
    assert found is not None
    assert [(link["slurm"], link["said"]) for link in found.links] == [("PENDING", {}), ("UNKNOWN", {})]
    _found, submitted = chain.extend(context, folder, wanted(links=2))
    assert submitted == ["2"]
    assert slurm.count("sbatch") == 2
    # Even if it has ended meanwhile: the chain's journal has it.
    slurm.end("2")
    leave_lost(folder)
    _found, submitted = chain.extend(context, folder, wanted(links=1))
    assert submitted == ["2"]
    assert slurm.count("sbatch") == 2


def test_a_lost_link_that_has_ended_does_not_count(context: Context, slurm: Cluster, folder: str) -> None:
    chain.extend(context, folder, wanted(links=1))
    leave_lost(folder)
    slurm.end("1")
    _found, submitted = chain.extend(context, folder, wanted(links=2))
    assert submitted == ["1", "2", "3"]
    # slurmctld may have forgotten the first.
    assert [options(call, "dependency") for call in slurm.submissions()[1:]] == [
        ["singleton"],
        ["afterany:2,singleton"],
    ]


def test_a_submission_that_never_happened_is_made(context: Context, slurm: Cluster, folder: str) -> None:
    slurm.down = True
    with pytest.raises(SlurmError):
        chain.extend(context, folder, wanted(links=1))
    assert record(folder)["links"] == []
    slurm.down, slurm.sbatch, slurm.sbatch_submits = False, Result(1, b"", "sbatch: error: Invalid account"), False
    with pytest.raises(SlurmError, match="Invalid account"):
        chain.extend(context, folder, wanted(links=1))
    assert [link["state"] for link in record(folder)["links"]] == ["submitting"]
    slurm.sbatch, slurm.sbatch_submits = None, True
    _found, submitted = chain.extend(context, folder, wanted(links=1))
    assert submitted == ["1"]
    assert [link["number"] for link in record(folder)["links"]] == [1]


def test_no_more_than_the_site_allows(context: Context, slurm: Cluster, folder: str) -> None:
    slurm.most_jobs = 2
    found, submitted = chain.extend(context, folder, wanted())
    assert submitted == ["1", "2"]
    assert found is not None
    assert found.notes == ["there is room for 2 of 3 links (MaxJobCount is 2); the next call adds the others"]
    slurm.most_jobs = 1
    found, submitted = chain.extend(context, folder, wanted())
    assert submitted == ["3"]
    assert found is not None
    assert found.notes == []


def test_limits_of_jobs_that_run_are_none_of_a_chain(context: Context, slurm: Cluster, folder: str) -> None:
    slurm.association = "physics|physics||1|||5|\n"  # MaxJobs 1, GrpSubmit 5
    _found, submitted = chain.extend(context, folder, wanted())
    assert submitted == ["1", "2", "3"]


def test_a_lost_link_that_was_found_counts_once_against_a_limit(context: Context, slurm: Cluster, folder: str) -> None:
    chain.extend(context, folder, wanted(links=1))
    leave_lost(folder)
    slurm.association = "physics|physics|||||3|\n"  # GrpSubmit 3
    found, submitted = chain.extend(context, folder, wanted())
    assert submitted == ["1", "2", "3"]
    assert found is not None
    assert found.notes == []


def test_one_call_submits_for_a_minute(context: Context, slurm: Cluster, folder: str) -> None:
    slurm.seconds_of_sbatch = 20.0
    found, submitted = chain.extend(context, folder, wanted(links=8))
    assert submitted == ["1", "2", "3", "4"]
    assert found is not None
    assert found.notes == ["60 s have passed: the next call adds the others"]


def test_a_job_that_is_refused_for_now_is_for_the_next_call(context: Context, slurm: Cluster, folder: str) -> None:
    chain.extend(context, folder, wanted(links=1))
    full = "sbatch: error: AssocMaxSubmitJobLimit\nsbatch: error: Batch job submission failed: Job violates accounting"
    slurm.sbatch, slurm.sbatch_submits = Result(1, b"", full), False
    found, submitted = chain.extend(context, folder, wanted())
    assert submitted == []
    assert found is not None
    assert any("Slurm takes no more jobs for now" in note and "AssocMaxSubmit" in note for note in found.notes)
    again, submitted = chain.extend(context, folder, wanted())
    assert submitted == []
    assert again is not None
    assert again.notes == found.notes
    assert len(record(folder)["links"]) == 2
    slurm.sbatch, slurm.sbatch_submits = None, True
    _found, submitted = chain.extend(context, folder, wanted())
    assert submitted == ["2", "3"]
    assert [link["number"] for link in record(folder)["links"]] == [1, 2, 3]


@pytest.mark.parametrize(
    ("partition", "asked", "time"),
    [
        ("", None, "1-00:00:00"),
        ("short", None, "00:30:00"),
        ("free", None, "1-00:00:00"),
        ("short,gpu", None, "00:30:00"),
        ("", "00:02:00", "00:02:00"),
        ("", "90", "01:30:00"),
        ("", "1", "00:01:00"),
        ("short", "00:30:00", "00:30:00"),
        ("free", "2-00:00:00", "2-00:00:00"),
    ],
)
def test_a_link_asks_for_the_partitions_time(
    context: Context, slurm: Cluster, folder: str, partition: str, asked: str | None, time: str
) -> None:
    script = {"script": SCRIPT, "options": {"partition": partition or None}}
    chain.extend(context, folder, wanted(script=script, links=1, time=asked))
    assert options(slurm.submissions()[0], "time") == [time]


@pytest.mark.parametrize(
    ("asked", "says"),
    [("2-00:00:00", "gives a job 1-00:00:00 at most"), ("soon", "expected"), ("00:00:30", "a minute at least")],
)
def test_a_time_that_the_partition_does_not_give_is_refused(
    context: Context, slurm: Cluster, folder: str, asked: str, says: str
) -> None:
    with pytest.raises(SlurmError, match=re.escape(says)):
        chain.extend(context, folder, wanted(time=asked))
    assert slurm.count("sbatch") == 0


def test_without_the_partitions_limits_nothing_is_submitted(context: Context, slurm: Cluster, folder: str) -> None:
    slurm.partitions = ""
    with pytest.raises(SlurmError, match="time limits") as raised:
        chain.extend(context, folder, wanted())
    assert raised.value.details["retry"] is True
    assert slurm.count("sbatch") == 0


def test_another_training_is_not_added_to_the_chain(context: Context, slurm: Cluster, folder: str) -> None:
    chain.extend(context, folder, wanted(links=1))
    with pytest.raises(SlurmError, match=r"settings is other, the chain has \{\}"):
        chain.extend(context, folder, wanted(what={**WHAT, "settings": "other"}))
    with pytest.raises(SlurmError, match=r"while links of it wait or run \(number 1\)"):
        chain.extend(context, folder, wanted(what={**WHAT, "settings": "other"}, go_on=True))
    slurm.end("1")
    found, submitted = chain.extend(context, folder, wanted(what={**WHAT, "settings": "other"}, go_on=True))
    assert submitted == ["2", "3", "4"]
    assert found is not None
    assert found.notes == ["it goes on", "it differs from now on: settings is other, the chain has {}"]
    assert (record(folder)["what"]["settings"], record(folder)["round"]) == ("other", 2)


def test_told_to_go_on_a_chain_that_goes_is_only_filled(context: Context, folder: str) -> None:
    chain.extend(context, folder, wanted(links=1))
    _found, submitted = chain.extend(context, folder, wanted(go_on=True))
    assert submitted == ["2", "3"]
    assert record(folder)["round"] == 1


def test_a_stopped_chain_that_cannot_be_told_to_go_on_does_not(context: Context, slurm: Cluster, folder: str) -> None:
    chain.extend(context, folder, wanted(links=1))
    chain.stop(context, folder, "/out/job-%j", 0)
    Path(folder, "stop").unlink()
    Path(folder, "stop").mkdir()
    with pytest.raises(SlurmError, match="cannot be told to go on"):
        chain.extend(context, folder, wanted(go_on=True))
    assert record(folder)["state"] == "stopped"
    assert slurm.count("sbatch") == 1


def test_a_complete_chain_is_not_added_to(context: Context, slurm: Cluster, folder: str) -> None:
    chain.extend(context, folder, wanted())
    for job_id in ("1", "2", "3"):
        slurm.end(job_id)
    Path(folder, "complete.json").write_text('{"step": 40, "export": "/x"}')
    found, submitted = chain.extend(context, folder, wanted())
    assert submitted == []
    assert found is not None
    assert found.notes == ["the training is complete: nothing was submitted"]
    _found, submitted = chain.extend(context, folder, wanted(go_on=True, links=1))
    assert submitted == ["4"]
    assert sorted(path.name for path in Path(folder).glob("complete*")) == ["complete-1.json"]


def test_a_chain_without_progress_is_not_added_to(context: Context, slurm: Cluster, folder: str) -> None:
    chain.extend(context, folder, wanted())
    begun(folder, "1")
    begun(folder, "2")
    begun(folder, "3", outcome="idle", why="the two links before it made no progress")
    for job_id in ("1", "2", "3"):
        slurm.end(job_id)
    found, submitted = chain.extend(context, folder, wanted())
    assert submitted == []
    assert found is not None
    assert "made no progress" in found.notes[0]
    _found, submitted = chain.extend(context, folder, wanted(go_on=True))
    assert submitted == ["4", "5", "6"]


def test_a_damaged_record_is_no_leave_for_a_second_chain(context: Context, slurm: Cluster, folder: str) -> None:
    chain.extend(context, folder, wanted(links=1))
    Path(folder, "chain.json").write_text("{}")
    for act in (
        lambda: chain.extend(context, folder, wanted()),
        lambda: chain.stop(context, folder, "/out/job-%j", 0),
        lambda: chain.look_at(context, folder),
    ):
        with pytest.raises(SlurmError, match="cannot be read"):
            act()
    assert slurm.count("sbatch") == 1
    assert slurm.count("scancel") == 0


def test_without_change_nothing_happens(context: Context, slurm: Cluster, folder: str) -> None:
    assert chain.extend(context, folder, wanted(), change=False) == (None, [])
    assert not os.path.exists(folder)
    chain.extend(context, folder, wanted(links=1))
    found, submitted = chain.extend(context, folder, wanted(), change=False)
    assert found is not None
    assert submitted == []
    # But what would hinder it is told, before anything is deployed that the links read.
    before = record(folder)
    for go_on, says in ((False, "is another training"), (True, "while links of it wait or run")):
        with pytest.raises(SlurmError, match=says):
            chain.extend(context, folder, wanted(what={}, go_on=go_on), change=False)
    slurm.end("1")
    chain.extend(context, folder, wanted(what={}, go_on=True), change=False)
    assert record(folder) == before
    assert slurm.count("sbatch") == 1


def test_data_that_check_mode_does_not_know_is_no_other_training(context: Context, folder: str) -> None:
    chain.extend(context, folder, wanted(what={**WHAT, "data tokens": "d1"}))
    unknown = {**WHAT, "data tokens": chain.NOT_KNOWN}
    found, _submitted = chain.extend(context, folder, wanted(what=unknown), change=False)
    assert found is not None
    with pytest.raises(SlurmError, match="data tokens is d2"):
        chain.extend(context, folder, wanted(what={**WHAT, "data tokens": "d2"}), change=False)


def test_only_one_at_a_time(context: Context, slurm: Cluster, folder: str) -> None:
    chain.extend(context, folder, wanted(links=1))
    with context.journal.lock("chain"), pytest.raises(SlurmError, match="Another task"):
        chain.extend(context, folder, wanted())
    assert slurm.count("sbatch") == 1


def test_stopped_it_waits_for_what_runs_and_cancels_what_waits(
    context: Context, slurm: Cluster, folder: str, tmp_path: Path
) -> None:
    chain.extend(context, folder, wanted())
    slurm.jobs["1"].update(State="RUNNING", StartTime=1001)
    slurm.jobs["9"] = {"Comment": "hpc_validation:other", "State": "PENDING"}
    output = tmp_path / "job-1"
    output.mkdir()
    original = slurm.sleep

    def sleep(seconds: float) -> None:
        if (output / "stop").exists():
            slurm.end("1")
        original(seconds)

    began = slurm.time
    found, running = chain.stop(replace(context, sleep=sleep), folder, str(tmp_path / "job-%j"), 60)
    assert running == []
    assert slurm.time < began + 10
    assert [link["slurm"] for link in found.links] == ["COMPLETED", "CANCELLED", "CANCELLED"]
    assert slurm.jobs["9"]["State"] == "PENDING"
    assert Path(folder, "stop").exists()
    assert record(folder)["state"] == "stopped"
    again, submitted = chain.extend(context, folder, wanted())
    assert submitted == []
    assert again is not None
    assert again.notes == ["it was stopped: nothing was submitted. Go on with: -e go_on=true"]
    _found, submitted = chain.extend(context, folder, wanted(go_on=True))
    assert len(submitted) == 3
    assert not Path(folder, "stop").exists()
    assert (record(folder)["state"], record(folder)["round"]) == ("going", 2)


def test_a_link_that_runs_on_is_named(context: Context, slurm: Cluster, folder: str) -> None:
    chain.extend(context, folder, wanted())
    slurm.jobs["1"].update(State="RUNNING", StartTime=1001)
    for seconds in (10, 0):
        began = slurm.time
        _found, running = chain.stop(context, folder, "/out/job-%j", seconds)
        assert running == ["1"]
        assert slurm.time == began + seconds
    assert slurm.jobs["1"]["State"] == "RUNNING"
    assert slurm.count("scancel") == 1


def test_what_is_cancelled_does_not_run_on(context: Context, slurm: Cluster, folder: str) -> None:
    chain.extend(context, folder, wanted(links=2))
    slurm.jobs["1"].update(State="RUNNING", StartTime=1001)
    _found, running = chain.stop(context, folder, "/out/job-%j", 0)
    assert slurm.jobs["2"]["State"] == "CANCELLED"
    assert running == ["1"]


def test_what_another_adds_meanwhile_is_stopped_too(context: Context, slurm: Cluster, folder: str) -> None:
    chain.extend(context, folder, wanted(links=1))
    held = context.journal.lock("chain")

    def sleep(seconds: float) -> None:
        slurm.sleep(seconds)
        held.__exit__(None, None, None)
        chain.extend(context, folder, wanted(links=2))

    with held:
        chain.stop(replace(context, sleep=sleep), folder, "/out/job-%j", 0)
    assert [job["State"] for job in slurm.jobs.values()] == ["CANCELLED", "CANCELLED"]
    assert len(record(folder)["links"]) == 2


def test_links_that_could_not_be_cancelled_are_told(context: Context, slurm: Cluster, folder: str) -> None:
    chain.extend(context, folder, wanted())
    slurm._scancel = lambda _argv: Result(1, b"", "scancel: error: Kill job error")  # type: ignore[method-assign]
    with pytest.raises(SlurmError, match=r"did not cancel the links that wait: .*Kill job error") as raised:
        chain.stop(context, folder, "/out/job-%j", 0)
    assert raised.value.details["retry"] is True


@pytest.mark.parametrize("place", ["{folder}", "{jobs}/job-1"])
def test_word_to_stop_that_cannot_be_left_is_an_error(
    context: Context, slurm: Cluster, folder: str, tmp_path: Path, place: str
) -> None:
    chain.extend(context, folder, wanted(links=1))
    slurm.jobs["1"].update(State="RUNNING", StartTime=1001)
    Path(place.format(folder=folder, jobs=tmp_path), "stop").mkdir(parents=True)
    with pytest.raises(SlurmError, match="stop could not be written"):
        chain.stop(context, folder, str(tmp_path / "job-%j"), 0)


def test_there_must_be_a_chain_to_stop(context: Context, folder: str) -> None:
    with pytest.raises(SlurmError, match="no chain"):
        chain.stop(context, folder, "/out/job-%j", 0)
    assert chain.look_at(context, folder) is None
    assert not os.path.exists(folder)


def test_the_clean_up_does_not_know_the_chain(context: Context, folder: str, tmp_path: Path) -> None:
    chain.extend(context, folder, wanted())
    jobs = replace(context, journal=Journal(str(tmp_path / "jobs/.journal")))
    assert journal_comments(jobs, "") == set()


def test_what_slurm_has_forgotten_accounting_tells(context: Context, slurm: Cluster, folder: str) -> None:
    chain.extend(context, folder, wanted(links=2))
    del slurm.jobs["1"]
    assert slurm.accounting is not None
    slurm.accounting["1"] = sacct_row("1", "TIMEOUT")
    found = chain.look_at(context, folder)
    assert found is not None
    assert [link["slurm"] for link in found.links] == ["TIMEOUT", "PENDING"]
    slurm.down = True
    with pytest.raises(SlurmError, match="does not answer") as raised:
        chain.look_at(context, folder)
    assert raised.value.details["retry"] is True


@pytest.mark.parametrize(
    ("seconds", "text"), [(60, "00:01:00"), (86400, "1-00:00:00"), (90061, "1-01:01:01"), (3599, "00:59:59")]
)
def test_times(seconds: int, text: str) -> None:
    assert chain.as_time(seconds) == text
    assert chain.seconds_of(text) == seconds
