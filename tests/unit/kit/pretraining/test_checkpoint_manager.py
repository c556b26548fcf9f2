# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Checkpoints in a folder and in a store: what is there, fetched and uploaded whole, or told."""

from __future__ import annotations

import argparse
import json
import threading
import typing as t
from pathlib import Path

import pytest
from kit.commands import checkpoints as command
from kit.errors import KitError
from kit.pretraining import checkpoint_manager, checkpoints
from kit.pretraining.attempts import UNREACHABLE
from kit.pretraining.checkpoint_manager import CheckpointManager, Uploader, not_uploaded
from kit.pretraining.store import StoreError

Make = t.Callable[..., Path]
PATIENCE = 10.0  # seconds for what takes milliseconds


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """(step) → a whole checkpoint in the folder `here`."""

    def make(step: int, *, final: bool = False) -> Path:
        place = checkpoints.begin(tmp_path / "here", checkpoints.name_of(step, final=final), 100)
        files = []
        for rank in range(2):
            path = place / checkpoints.rank_file(rank, 2)
            path.write_text(f"step {step} rank {rank}" * 3)
            files.append(checkpoints.describe(path))
        return checkpoints.finish(place, {"step": step, "ranks": 2, "settings": {}}, files)

    return make


@pytest.fixture
def manager(tmp_path: Path) -> CheckpointManager:
    """The checkpoints `here`, and in a store that is a folder."""
    return CheckpointManager(tmp_path / "here", str(tmp_path / "bucket/"), "/run-3/")


def names(listed: list[dict[str, t.Any]]) -> list[str]:
    return [each["name"] for each in listed]


def test_what_is_here_and_there_is_listed_newest_first(make: Make, manager: CheckpointManager, tmp_path: Path) -> None:
    for step in (5, 40, 10):
        make(step)
    stored = sum(path.stat().st_size for path in (tmp_path / "here/checkpoint_step_5").iterdir())
    make(40, final=True)
    manager.upload("checkpoint_step_10")
    manager.upload("checkpoint_step_5")
    assert sorted(path.name for path in (tmp_path / "bucket/run-3").iterdir()) == [
        "checkpoint_step_10",
        "checkpoint_step_5",
    ]
    (tmp_path / "here/checkpoint_step_10/rank-0000-of-0002.safetensors").write_text("torn")
    for path in (tmp_path / "here/checkpoint_step_5").iterdir():
        path.unlink()
    (tmp_path / "here/checkpoint_step_5").rmdir()
    listed = manager.list_checkpoints()
    assert [(each["name"], each["metadata"]["global_step"], each["local"], each["remote"]) for each in listed] == [
        ("final_checkpoint_step_40", 40, True, False),
        ("checkpoint_step_40", 40, True, False),
        ("checkpoint_step_10", 10, True, True),
        ("checkpoint_step_5", 5, False, True),
    ]
    assert listed[0]["bytes"] == 2 * len("step 40 rank 0" * 3)
    assert listed[0]["problem"] is None
    assert listed[2]["bytes"] is None
    assert "has 4 bytes" in listed[2]["problem"]
    assert (listed[3]["bytes"], listed[3]["problem"]) == (stored, None)


def test_without_a_bucket_there_is_what_is_here(make: Make, tmp_path: Path) -> None:
    make(5)
    alone = CheckpointManager(tmp_path / "here")
    assert names(alone.list_checkpoints()) == ["checkpoint_step_5"]
    assert alone.verify("checkpoint_step_5")["step"] == 5
    assert alone.latest_good().path.name == "checkpoint_step_5"
    for ask in (alone.download_checkpoint, lambda: alone.upload("checkpoint_step_5"), lambda: alone.retain(2)):
        with pytest.raises(KitError, match="here: no bucket is given to fetch from or to store in"):
            ask()


def test_of_a_bucket_without_a_name_nothing_is_made(tmp_path: Path) -> None:
    with pytest.raises(StoreError):
        CheckpointManager(tmp_path / "here", "")


def test_other_things_in_the_bucket_are_no_checkpoints(make: Make, manager: CheckpointManager, tmp_path: Path) -> None:
    make(5)
    manager.upload("checkpoint_step_5")
    other = tmp_path / "bucket/run-3/zebra"
    other.mkdir()
    (other / "manifest.json").write_text("{}")
    assert names(manager.list_checkpoints()) == ["checkpoint_step_5"]
    assert manager.download_checkpoint().name == "checkpoint_step_5"


def test_files_are_read_only_where_their_content_is_asked_for(
    make: Make, manager: CheckpointManager, tmp_path: Path
) -> None:
    file = make(5) / "rank-0000-of-0002.safetensors"
    file.write_bytes(b"X" + file.read_bytes()[1:])
    assert [each["problem"] for each in manager.list_checkpoints()] == [None]
    manager.upload("checkpoint_step_5")  # which compares it with the copy only
    with pytest.raises(checkpoints.DamagedError, match="SHA-256 differs"):
        manager.verify("checkpoint_step_5")
    other = CheckpointManager(tmp_path / "other", str(tmp_path / "bucket/run-3"))
    with pytest.raises(StoreError, match="the object is damaged"):
        other.download_checkpoint("checkpoint_step_5")


def test_one_whose_manifest_is_not_there_is_not_there(make: Make, manager: CheckpointManager, tmp_path: Path) -> None:
    make(5)
    manager.upload("checkpoint_step_5")
    (tmp_path / "bucket/run-3/checkpoint_step_5/manifest.json").unlink()
    assert [each["remote"] for each in manager.list_checkpoints()] == [False]
    with pytest.raises(checkpoints.NoneWholeError, match="bucket/run-3 has no checkpoint"):
        CheckpointManager(tmp_path / "other", str(tmp_path / "bucket"), "run-3").download_checkpoint()


def test_the_newest_is_fetched_and_is_the_same(make: Make, manager: CheckpointManager, tmp_path: Path) -> None:
    for step in (5, 10):
        make(step)
        manager.upload(f"checkpoint_step_{step}")
    other = CheckpointManager(tmp_path / "other", str(tmp_path / "bucket"), "run-3")
    path = other.download_checkpoint()
    assert path == tmp_path / "other/checkpoint_step_10"
    assert {each.name: each.read_bytes() for each in path.iterdir()} == {
        each.name: each.read_bytes() for each in (tmp_path / "here/checkpoint_step_10").iterdir()
    }
    assert checkpoints.verify(path)["step"] == 10
    assert other.download_checkpoint("checkpoint_step_5").name == "checkpoint_step_5"


def test_a_download_that_was_cut_off_goes_on(make: Make, manager: CheckpointManager, tmp_path: Path) -> None:
    make(5)
    manager.upload("checkpoint_step_5")
    there = tmp_path / "bucket/run-3/checkpoint_step_5"
    second = (there / "rank-0001-of-0002.safetensors").read_bytes()
    (there / "rank-0001-of-0002.safetensors").unlink()
    other = CheckpointManager(tmp_path / "other", str(tmp_path / "bucket"), "run-3")
    with pytest.raises(StoreError, match=r"rank-0001-of-0002\.safetensors: there is no such object"):
        other.download_checkpoint("checkpoint_step_5")
    assert checkpoints.listed(tmp_path / "other") == []
    (there / "rank-0001-of-0002.safetensors").write_bytes(second)
    (there / "rank-0000-of-0002.safetensors").unlink()  # what is here whole is not fetched again
    assert checkpoints.verify(other.download_checkpoint())["step"] == 5


def test_what_was_damaged_there_does_not_arrive(make: Make, manager: CheckpointManager, tmp_path: Path) -> None:
    make(5)
    manager.upload("checkpoint_step_5")
    file = tmp_path / "bucket/run-3/checkpoint_step_5/rank-0001-of-0002.safetensors"
    file.write_bytes(b"X" + file.read_bytes()[1:])
    other = CheckpointManager(tmp_path / "other", str(tmp_path / "bucket"), "run-3")
    with pytest.raises(checkpoints.NoneWholeError, match=r"run-3 has no whole checkpoint: .*the object is damaged"):
        other.download_checkpoint()
    assert checkpoints.listed(tmp_path / "other") == []


@pytest.mark.parametrize("damage", ["a bit", "a file", "the manifest", "a size", "no size"])
def test_what_is_damaged_there_is_refused_and_the_one_before_it_is_fetched(
    make: Make, manager: CheckpointManager, tmp_path: Path, damage: str
) -> None:
    for step in (5, 10):
        make(step)
        manager.upload(f"checkpoint_step_{step}")
    file = tmp_path / "bucket/run-3/checkpoint_step_10/rank-0001-of-0002.safetensors"
    if damage == "a bit":
        file.write_bytes(b"X" + file.read_bytes()[1:])
    elif damage == "a file":
        file.unlink()
    elif damage == "the manifest":
        file.with_name("manifest.json").write_text("{")
    else:
        manifest = file.with_name("manifest.json")
        known = f'"bytes": {file.stat().st_size},'
        assert known in manifest.read_text()
        size = "9999999999999999" if damage == "a size" else "Infinity"
        manifest.write_text(manifest.read_text().replace(known, f'"bytes": {size},'))
    taken = CheckpointManager(tmp_path / "other", str(tmp_path / "bucket"), "run-3").download_newest()
    assert (taken.path, taken.manifest["step"]) == (tmp_path / "other/checkpoint_step_5", 5)
    assert list(taken.refused) == ["checkpoint_step_10"]
    assert "checkpoint_step_10" in taken.refused["checkpoint_step_10"]


def test_a_store_that_does_not_answer_is_no_damage(make: Make, manager: CheckpointManager) -> None:
    make(5)
    manager.upload("checkpoint_step_5")

    def get(name: str, *_other: t.Any, **_options: t.Any) -> bool:
        raise StoreError(f"{name}: 503", UNREACHABLE)

    manager.required_store().get = get  # type: ignore[method-assign]
    with pytest.raises(StoreError, match="503"):
        manager.download_newest()


def test_of_a_bucket_with_trainings_one_must_be_named(make: Make, manager: CheckpointManager, tmp_path: Path) -> None:
    make(5)
    manager.upload("checkpoint_step_5")
    CheckpointManager(tmp_path / "here", str(tmp_path / "bucket"), "chain-x").upload("checkpoint_step_5")
    (tmp_path / "bucket/tokens").mkdir()
    (tmp_path / "bucket/tokens/manifest.json").write_text("{}")
    with pytest.raises(checkpoints.NoneWholeError) as told:
        CheckpointManager(tmp_path / "other", str(tmp_path / "bucket")).download_checkpoint()
    expected = "has no checkpoint; name one of those below it that have some: chain-x, run-3"
    assert str(told.value) == f"{tmp_path}/bucket {expected}"


def put_into(bucket: Path, *files: str) -> None:
    """Make these files below the bucket."""
    for name in files:
        (bucket / name).parent.mkdir(parents=True, exist_ok=True)
        (bucket / name).write_text("x")


def test_only_a_folder_with_checkpoints_is_a_training(tmp_path: Path) -> None:
    put_into(
        tmp_path / "bucket", "notes/step/file", "flat/checkpoint_step_5", "deep/in/checkpoint_step_5/file", "alone"
    )
    with pytest.raises(checkpoints.NoneWholeError) as told:
        CheckpointManager(tmp_path / "here", str(tmp_path / "bucket")).download_checkpoint()
    assert str(told.value) == f"{tmp_path}/bucket has no checkpoint"


def test_of_many_trainings_the_first_ten_are_named(tmp_path: Path) -> None:
    names_of_all = [f"job-{number:02}" for number in range(12)]
    put_into(tmp_path / "bucket", *(f"{name}/checkpoint_step_5/file" for name in names_of_all))
    with pytest.raises(checkpoints.NoneWholeError) as told:
        CheckpointManager(tmp_path / "here", str(tmp_path / "bucket")).download_checkpoint()
    assert str(told.value).rpartition(": ")[2] == ", ".join(names_of_all[:10])


def test_what_was_compared_while_it_arrived_is_not_read_again(
    make: Make, manager: CheckpointManager, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(5)
    manager.upload("checkpoint_step_5")
    verify, seen = checkpoints.verify, []
    monkeypatch.setattr(
        checkpoints, "verify", lambda path, **options: (seen.append(options), verify(path, **options))[1]
    )
    CheckpointManager(tmp_path / "other", str(tmp_path / "bucket"), "run-3").download_newest()
    assert seen == [{"hashed": False}]


def test_a_file_that_cannot_be_stored_takes_no_other_away(make: Make, manager: CheckpointManager) -> None:
    make(5)
    store, removed = manager.required_store(), []

    def put(_path: Path, name: str) -> None:
        raise StoreError(f"{name}: 503", UNREACHABLE)

    store.put = put  # type: ignore[method-assign]
    store.delete = removed.append  # type: ignore[method-assign]
    with pytest.raises(StoreError, match="503"):
        manager.upload("checkpoint_step_5")
    assert removed == []


@pytest.mark.parametrize("content", ["{", "[]"])
def test_a_manifest_that_cannot_be_read_is_told(manager: CheckpointManager, tmp_path: Path, content: str) -> None:
    folder = tmp_path / "bucket/run-3/checkpoint_step_5"
    folder.mkdir(parents=True)
    (folder / "manifest.json").write_text(content)
    with pytest.raises(checkpoints.DamagedError, match=r"checkpoint_step_5/manifest\.json cannot be read"):
        manager.download_checkpoint("checkpoint_step_5")


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"name": "checkpoint_step_10"}, r"manifest\.json is of checkpoint_step_10, step 5"),
        ({"step": 10}, r"manifest\.json is of checkpoint_step_5, step 10"),
        ({"ranks": 3}, "has 2 files, not those of 3 ranks"),
        ({"files": [{"name": "../a", "bytes": 1, "sha256": "b"}]}, "has 1 files, not those of 2 ranks"),
        ({"files": [{"name": "a"}]}, r"manifest\.json is damaged: KeyError"),
        ({"files": 3}, r"manifest\.json is damaged: TypeError"),
    ],
)
def test_a_mixed_one_replaces_nothing(
    make: Make, manager: CheckpointManager, tmp_path: Path, changes: dict[str, t.Any], why: str
) -> None:
    make(5)
    manager.upload("checkpoint_step_5")
    file = tmp_path / "bucket/run-3/checkpoint_step_5/manifest.json"
    known = {**json.loads(file.read_text()), **changes}
    file.write_text(json.dumps({**known, "sha256": checkpoints._digest(known)}))
    with pytest.raises(checkpoints.DamagedError, match=f"bucket/run-3/checkpoint_step_5.*{why}"):
        manager.download_checkpoint("checkpoint_step_5")
    assert manager.verify("checkpoint_step_5")["step"] == 5


def test_only_checkpoints_are_fetched(manager: CheckpointManager) -> None:
    with pytest.raises(KitError, match=r"'../other' is not the name of a checkpoint, expected checkpoint_step_N"):
        manager.download_checkpoint("../other")


def test_the_manifest_is_uploaded_last(make: Make, manager: CheckpointManager) -> None:
    make(5)
    store, order = manager.store, []
    assert store is not None
    put, write = store.put, store.write
    store.put = lambda path, name: (order.append(name), put(path, name))  # type: ignore[method-assign]
    store.write = lambda name, content: (order.append(name), write(name, content))  # type: ignore[method-assign]
    digest = manager.upload("checkpoint_step_5")
    assert [name.rpartition("/")[2] for name in order][-1] == "manifest.json"
    assert len(order) == 3
    assert digest == checkpoint_manager.hashlib.sha256(store.read("checkpoint_step_5/manifest.json")).hexdigest()


def test_a_damaged_one_is_not_uploaded(make: Make, manager: CheckpointManager, tmp_path: Path) -> None:
    (make(5) / "rank-0000-of-0002.safetensors").write_text("torn")
    with pytest.raises(checkpoints.DamagedError):
        manager.upload("checkpoint_step_5")
    assert not (tmp_path / "bucket").exists()


def test_two_trainings_in_one_bucket_leave_each_other_alone(make: Make, tmp_path: Path) -> None:
    one, other = (CheckpointManager(tmp_path / "here", str(tmp_path / "bucket"), name) for name in ("job-1", "job-2"))
    for step in (4, 8, 12):
        make(step)
        one.upload(f"checkpoint_step_{step}")
    make(4)  # with another manifest
    other.upload("checkpoint_step_4")
    assert other.retain(1) == []
    assert names(other.list_checkpoints())[-1] == "checkpoint_step_4"
    assert one.retain(2) == ["checkpoint_step_4"]
    assert [each["remote"] for each in other.list_checkpoints()] == [False, False, True]


def test_a_training_that_went_back_replaces_what_it_had_uploaded(
    make: Make, manager: CheckpointManager, tmp_path: Path
) -> None:
    first = make(10)
    manager.upload("checkpoint_step_10")
    there = tmp_path / "bucket/run-3/checkpoint_step_10"
    (there / "rank-0002-of-0003.safetensors").write_text("of more ranks")
    again = make(10)  # at another time
    file = again / checkpoints.rank_file(1, 2)
    file.write_text("trained again")
    entries = [checkpoints.describe(again / checkpoints.rank_file(rank, 2)) for rank in range(2)]
    (again / "manifest.json").unlink()
    again.rename(again.parent / ".incomplete-checkpoint_step_10")
    checkpoints.finish(again.parent / ".incomplete-checkpoint_step_10", {"step": 10, "ranks": 2}, entries)
    store, order = manager.required_store(), []
    delete = store.delete
    store.delete = lambda name: (order.append(name), delete(name))  # type: ignore[method-assign]
    manager.upload("checkpoint_step_10")
    assert order == [
        f"checkpoint_step_10/{name}"
        for name in ("manifest.json", "rank-0002-of-0003.safetensors", "rank-0001-of-0002.safetensors")
    ]
    assert {each.name: each.read_bytes() for each in there.iterdir()} == {
        each.name: each.read_bytes() for each in first.iterdir()
    }


def test_what_is_there_already_is_not_sent_again(make: Make, manager: CheckpointManager) -> None:
    make(10)
    digest = manager.upload("checkpoint_step_10")
    store = manager.required_store()
    store.put = store.write = None  # type: ignore[assignment, method-assign]
    assert manager.upload("checkpoint_step_10") == digest


def test_what_was_uploaded_in_part_is_removed_once_a_newer_one_is_there(
    make: Make, manager: CheckpointManager, tmp_path: Path
) -> None:
    for step in (10, 20, 30):
        make(step)
        manager.upload(f"checkpoint_step_{step}")
    for step in (10, 30):
        (tmp_path / f"bucket/run-3/checkpoint_step_{step}/manifest.json").unlink()
    manager.required_store().write("notes/manifest.json", b"not ours")
    assert manager.retain(5) == ["checkpoint_step_10"]
    left = {each.name.partition("/")[0] for each in manager.required_store().list()}
    assert left == {"checkpoint_step_20", "checkpoint_step_30", "notes"}
    (tmp_path / "bucket/run-3/checkpoint_step_20/manifest.json").unlink()
    assert manager.retain(5) == []  # the first of all is perhaps on its way


@pytest.mark.parametrize(("keep", "left"), [(1, [30]), (2, [30, 20]), (9, [30, 20, 10]), (0, [30])])
def test_the_oldest_are_removed_there(make: Make, manager: CheckpointManager, keep: int, left: list[int]) -> None:
    for step in (10, 30, 20):
        make(step)
        manager.upload(f"checkpoint_step_{step}")
    removed = manager.retain(keep)
    remote = [each["metadata"]["global_step"] for each in manager.list_checkpoints() if each["remote"]]
    assert remote == left
    assert sorted(removed) == sorted(f"checkpoint_step_{step}" for step in (10, 20, 30) if step not in left)
    store = manager.store
    assert store is not None
    assert {each.name.partition("/")[0] for each in store.list()} == {f"checkpoint_step_{step}" for step in left}


def test_a_removal_begins_with_the_manifest(make: Make, manager: CheckpointManager) -> None:
    for step in (10, 20):
        make(step)
        manager.upload(f"checkpoint_step_{step}")
    store, order = manager.required_store(), []
    delete, listing = store.delete, store.list
    store.list = lambda prefix="": listing(prefix)[::-1]  # type: ignore[method-assign]
    store.delete = lambda name: (order.append(name), delete(name))  # type: ignore[method-assign]
    manager.retain(1)
    assert order[0] == "checkpoint_step_10/manifest.json"
    assert len(order) == 3


def test_uploads_go_on_in_the_background_and_end_in_order(make: Make, manager: CheckpointManager) -> None:
    uploader = Uploader(manager, keep=1)
    for step in (10, 20):
        make(step)
        uploader.add(f"checkpoint_step_{step}")
    done = uploader.close(PATIENCE)
    assert {name: (each["uploaded"], each["why"], len(each["sha256"])) for name, each in done.items()} == {
        "checkpoint_step_10": (True, None, 64),
        "checkpoint_step_20": (True, None, 64),
    }
    assert [each["name"] for each in manager.list_checkpoints() if each["remote"]] == ["checkpoint_step_20"]
    assert not manager.required_store().patience.stopped.is_set()


def test_an_upload_that_fails_is_told_and_the_next_is_done(make: Make, manager: CheckpointManager) -> None:
    make(20)
    uploader = Uploader(manager, keep=2)
    uploader.add("checkpoint_step_10")
    uploader.add("checkpoint_step_20")
    done = uploader.close(PATIENCE)
    why = "checkpoint_step_10 has no manifest.json: it was not finished"
    assert done["checkpoint_step_10"] == {"uploaded": False, "why": why, "sha256": None, "url": None}
    assert done["checkpoint_step_20"]["uploaded"] is True
    assert done["checkpoint_step_20"]["url"] == f"{manager.required_store().url}/checkpoint_step_20"


def test_what_earlier_jobs_left_over_is_uploaded_the_oldest_first(
    make: Make, manager: CheckpointManager, tmp_path: Path
) -> None:
    for step in (10, 20, 30, 40, 50):
        make(step)
    manager.upload("checkpoint_step_20")
    (tmp_path / "here/checkpoint_step_40/manifest.json").unlink()
    uploader = Uploader(manager, keep=2)
    uploader.catch_up(refused=["checkpoint_step_50"])
    assert list(uploader.close(PATIENCE)) == ["checkpoint_step_20", "checkpoint_step_30"]
    there = [each["name"] for each in manager.list_checkpoints() if each["remote"]]
    assert there == ["checkpoint_step_30", "checkpoint_step_20"]


def test_a_checkpoint_without_its_copy_is_named_with_the_reason() -> None:
    well, failed = {"uploaded": True, "why": None}, {"uploaded": False, "why": "503"}
    kept = ("final_checkpoint_step_30", "checkpoint_step_20")
    assert not_uploaded(kept, dict.fromkeys(kept, well)) == "none"
    # That of step 10 was removed meanwhile: newer ones have replaced it.
    assert not_uploaded(kept, {**dict.fromkeys(kept, well), "checkpoint_step_10": failed}) == "none"
    assert not_uploaded(kept, {kept[0]: well, kept[1]: failed}) == "checkpoint_step_20: 503"
    assert not_uploaded(kept, dict.fromkeys(kept, failed)) == "checkpoint_step_20: 503"
    assert not_uploaded(kept, {kept[1]: well}).startswith("final_checkpoint_step_30: ")


def test_a_failed_removal_does_not_undo_an_upload(make: Make, manager: CheckpointManager) -> None:
    make(20)

    def retain(_keep: int) -> list[str]:
        raise KitError("no")

    manager.retain = retain  # type: ignore[method-assign]
    uploader = Uploader(manager, keep=2)
    uploader.add("checkpoint_step_20")
    assert uploader.close(PATIENCE)["checkpoint_step_20"]["uploaded"] is True


def test_nothing_is_uploaded_without_a_store(tmp_path: Path) -> None:
    with pytest.raises(KitError, match="no bucket is given"):
        Uploader(CheckpointManager(tmp_path), keep=2)


def test_what_was_not_done_in_time_is_told_and_not_waited_for(manager: CheckpointManager) -> None:
    begun, free = threading.Event(), threading.Event()

    def upload(_name: str) -> str:
        begun.set()
        free.wait(PATIENCE)
        return "x" * 64

    manager.upload = upload  # type: ignore[method-assign]
    before = set(threading.enumerate())
    uploader = Uploader(manager, keep=2)
    uploader.add("checkpoint_step_10")
    uploader.add("checkpoint_step_20")
    try:
        assert begun.wait(PATIENCE)
        done = uploader.close(0.01)
        assert manager.required_store().patience.stopped.is_set()
        # The training can end: an interpreter waits for no daemon.
        assert [thread.daemon for thread in threading.enumerate() if thread not in before] == [True]
    finally:
        free.set()
    late = {"uploaded": False, "why": "not done after 0 s", "sha256": None, "url": None}
    assert done == {"checkpoint_step_10": late, "checkpoint_step_20": late}


def asked(*words: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    command.add_arguments(parser)
    return parser.parse_args(words)


def test_the_command_lists_verifies_and_fetches(make: Make, manager: CheckpointManager, tmp_path: Path) -> None:
    make(10)
    make(20)
    manager.upload("checkpoint_step_10")
    here, bucket = str(tmp_path / "here"), str(tmp_path / "bucket/run-3")
    listed = command.run(asked("list", here, "--remote", bucket))["checkpoints"]
    assert [(each["name"], each["remote"]) for each in listed] == [
        ("checkpoint_step_20", False),
        ("checkpoint_step_10", True),
    ]
    assert command.run(asked("verify", here)) == {
        "checkpoints": {"checkpoint_step_20": "whole", "checkpoint_step_10": "whole"}
    }
    fetched = command.run(asked("fetch", str(tmp_path / "other"), "--remote", bucket))
    assert fetched == {"path": str(tmp_path / "other/checkpoint_step_10"), "refused": {}}
    named = command.run(asked("fetch", str(tmp_path / "third"), "--remote", bucket, "--name", "checkpoint_step_10"))
    assert named == {"path": str(tmp_path / "third/checkpoint_step_10")}


def test_the_command_ends_with_an_error_if_one_is_damaged(make: Make, tmp_path: Path) -> None:
    make(10)
    (make(20) / "rank-0000-of-0002.safetensors").write_text("torn")
    with pytest.raises(KitError, match="1 of 2 checkpoints are damaged: ") as told:
        command.run(asked("verify", str(tmp_path / "here")))
    said = json.loads(str(told.value).partition(": ")[2])
    assert said["checkpoint_step_10"] == "whole"
    assert "has 4 bytes" in said["checkpoint_step_20"]
    assert command.run(asked("verify", str(tmp_path / "here"), "--name", "checkpoint_step_10"))
    with pytest.raises(KitError, match="has no checkpoint"):
        command.run(asked("verify", str(tmp_path / "nowhere")))
    with pytest.raises(KitError, match="nowhere: no such folder"):
        command.run(asked("list", str(tmp_path / "nowhere")))
    assert command.run(asked("list", str(tmp_path / "nowhere"), "--remote", str(tmp_path))) == {"checkpoints": []}
