# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is staged is whole, checked, and put in place at once; what is there is not staged again."""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
import socket
import subprocess
import sys
import threading
import time
import typing as t
from contextlib import nullcontext
from pathlib import Path

import pytest
from kit.errors import KitError
from kit.process import locks
from kit.staging import asset as staging_asset
from kit.staging.hub import Source

from tests.unit.kit.fake_hub import COMMIT, OLD_COMMIT, FakeHub
from tests.unit.kit.model_files import fill

FILES = {"data.bin.txt": b"some data", "other.json": b"{}"}
HELD = "2 files"


def prepare(folder: Path) -> tuple[staging_asset.Contents, staging_asset.Facts]:
    """Both files as they are, and one made from them."""
    for name in FILES:
        if not (folder / name).is_file():
            raise KitError(f"{name} is missing")
        if (folder / name).read_bytes() == b"bad":
            raise KitError(f"{name} is bad")
    joined = b"".join((folder / name).read_bytes() for name in FILES)
    return {**{name: folder / name for name in FILES}, "joined.txt": joined}, {"count": 2, "holds": HELD}


def make_stand_in(folder: Path) -> None:
    fill(folder, FILES)


ASSET = staging_asset.Asset(
    name="some_data",
    source=Source("dataset", "some/data", tuple(FILES)),
    descriptions={"download": "the data", "path": "a site's data", "stand-in": "stand-in for the data"},
    recipe={"seed": 0, "shape": (1, 2)},
    make_stand_in=make_stand_in,
    prepare=prepare,
)


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HF_TOKEN", "HF_ENDPOINT", "HF_HOME", "HF_HUB_DISABLE_PROGRESS_BARS", "HF_HUB_DISABLE_TELEMETRY"):
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> FakeHub:
    module = FakeHub(dict(FILES))
    monkeypatch.setitem(sys.modules, "huggingface_hub", module)
    return module


@pytest.fixture
def target(tmp_path: Path) -> Path:
    return tmp_path / "a share; 'x'" / "some [data]"


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return fill(tmp_path / "given", FILES)


def run(target: Path, source: str = "stand-in", **options: t.Any) -> dict[str, t.Any]:
    return staging_asset.stage(ASSET, target, source, **options)


def beside(target: Path) -> list[str]:
    """What lies beside the target, but the lock."""
    return sorted(path.name for path in target.parent.iterdir() if path != target and path.suffix != ".lock")


def provenance(target: Path) -> dict[str, t.Any]:
    return t.cast("dict[str, t.Any]", json.loads((target / "provenance.json").read_text()))


def test_a_stand_in_is_staged_once_and_named(target: Path) -> None:
    first, second = run(target), run(target)
    assert (first["changed"], second["changed"]) == (True, False)
    assert {**first, "changed": False} == second
    assert first["description"] == "stand-in for the data, 2 files"
    assert (first["path"], first["source"], first["revision"], first["count"]) == (str(target), "stand-in", None, 2)
    assert {path.name for path in target.iterdir()} == {*FILES, "joined.txt", "provenance.json"}
    assert (target / "joined.txt").read_bytes() == b"some data{}"
    said = provenance(target)
    assert (said["name"], said["recipe"]) == ("some_data", {"seed": 0, "shape": [1, 2]})
    assert said["files"]["other.json"]["size"] == 2
    assert beside(target) == []


def test_a_folder_is_copied_and_left_as_it_was(target: Path, source: Path) -> None:
    first, second = run(target, "path", folder=source), run(target, "path", folder=source)
    assert (first["changed"], second["changed"], first["source"]) == (True, False, "path")
    assert {path.name: path.read_bytes() for path in source.iterdir()} == FILES
    assert first["sha256"] == run(target)["sha256"]  # the same files, whatever they came from


@pytest.mark.parametrize("revision", [None, "main", COMMIT])
def test_a_download_is_pinned_to_its_commit(target: Path, fake: FakeHub, revision: str | None) -> None:
    first = run(target, "download")
    assert first["revision"] == COMMIT
    assert first["description"] == f"the data at commit {COMMIT[:12]}, 2 files"
    assert beside(target) == []
    fake.calls.clear()
    fake.revisions["main"] = OLD_COMMIT  # the branch moves on
    assert run(target, "download", revision=revision)["changed"] is False
    assert not fake.calls


def test_a_spoiled_download_comes_again_from_the_same_commit(target: Path, fake: FakeHub) -> None:
    run(target, "download")
    fake.revisions["main"] = OLD_COMMIT
    (target / "other.json").write_bytes(b"{ }")
    assert run(target, "download")["revision"] == COMMIT


def test_another_revision_is_downloaded(target: Path, fake: FakeHub) -> None:
    run(target, "download")
    assert run(target, "download", revision=OLD_COMMIT)["revision"] == OLD_COMMIT
    fake.revisions["v1"] = COMMIT
    again = [run(target, "download", revision="v1") for _each in range(2)]
    assert [(each["changed"], each["revision"]) for each in again] == [(True, COMMIT), (False, COMMIT)]


def test_a_stand_ins_revision_pins_no_download(target: Path, fake: FakeHub) -> None:
    run(target)
    assert run(target, "download")["revision"] == COMMIT
    assert fake.calls[0][1]["revision"] == "main"


def test_a_download_from_elsewhere_than_the_hub_is_staged_once_and_leaves_nothing_else(target: Path) -> None:
    asset = dataclasses.replace(ASSET, source=make_stand_in)
    first, second = (staging_asset.stage(asset, target, "download") for _each in range(2))
    assert (first["changed"], second["changed"], first["revision"]) == (True, False, None)
    assert (first["source"], first["description"]) == ("download", "the data, 2 files")
    assert beside(target) == []


@pytest.mark.parametrize(("content", "told"), [(b"bad", "is bad"), (None, "no answer")])
def test_a_download_from_elsewhere_that_fails_changes_nothing(target: Path, content: bytes | None, told: str) -> None:
    def fetch(folder: Path) -> None:
        fill(folder, {**FILES, "other.json": content or b""})
        if content is None:
            raise KitError("no answer")

    run(target)
    with pytest.raises(KitError, match=told):
        staging_asset.stage(dataclasses.replace(ASSET, source=fetch), target, "download")
    assert provenance(target)["source"] == "stand-in"
    assert beside(target) == []


def test_an_interrupted_download_continues_and_nothing_is_in_place_before(target: Path, fake: FakeHub) -> None:
    fake.stop_after = 1
    with pytest.raises(KitError, match="Run it again"):
        run(target, "download")
    assert not target.exists()
    fake.stop_after = None
    assert run(target, "download")["changed"] is True
    assert fake.fetched == ["data.bin.txt", "other.json"]
    assert beside(target) == []


def test_what_the_hub_serves_badly_is_not_put_in_place(target: Path, fake: FakeHub) -> None:
    fake.files["other.json"] = b"bad"
    with pytest.raises(KitError, match=r"other\.json is bad"):
        run(target, "download")
    assert not target.exists()


def grow(target: Path) -> None:
    (target / "other.json").write_bytes(b"{ }")


def remove(target: Path) -> None:
    (target / "other.json").unlink()


def add(target: Path) -> None:
    (target / "pytorch_model.bin").write_bytes(b"x")


def change_with_another_time(target: Path) -> None:
    (target / "other.json").write_bytes(b"[]")
    os.utime(target / "other.json", (1, 1))


def forget(target: Path) -> None:
    (target / "provenance.json").write_text('{"name": "some_data", "files": ')


def empty(target: Path) -> None:
    said = provenance(target)
    for name in said["files"]:
        (target / name).unlink()
    (target / "provenance.json").write_text(json.dumps({**said, "files": {}}))


def misname(target: Path) -> None:
    (target / "provenance.json").write_text('["not", "an", "object"]')


def make_a_file(target: Path) -> None:
    shutil.rmtree(target)
    target.write_bytes(b"x")


@pytest.mark.parametrize(
    "spoil", [grow, remove, add, change_with_another_time, forget, empty, misname, make_a_file, shutil.rmtree]
)
def test_what_was_spoiled_is_staged_again(target: Path, spoil: t.Callable[[Path], None]) -> None:
    run(target)
    spoil(target)
    assert run(target)["changed"] is True
    assert run(target, verify=True)["changed"] is False
    assert beside(target) == []


def change_unseen(target: Path) -> None:
    said = (target / "other.json").stat()
    (target / "other.json").write_bytes(b"[]")
    os.utime(target / "other.json", (said.st_atime, said.st_mtime))


def test_a_change_that_leaves_size_and_time_is_found_by_verify(target: Path) -> None:
    run(target)
    change_unseen(target)
    assert run(target)["changed"] is False
    assert run(target, verify=True)["changed"] is True
    assert (target / "other.json").read_bytes() == b"{}"


def test_sizes_and_times_are_enough_and_nothing_is_read(target: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run(target)
    read: list[Path] = []
    monkeypatch.setattr(staging_asset, "sha256", lambda path: read.append(path) or "")
    assert run(target)["changed"] is False
    assert not read


def test_another_time_alone_is_no_change(target: Path, source: Path) -> None:
    run(target, "path", folder=source)
    os.utime(target / "other.json", (1, 1))
    os.utime(source / "data.bin.txt", (1, 1))
    assert run(target, "path", folder=source)["changed"] is False


def test_hidden_files_are_nobodys_business(target: Path) -> None:
    run(target)
    (target / ".nfs0001").write_bytes(b"x")
    assert run(target)["changed"] is False


def test_what_the_site_changed_is_staged(target: Path, source: Path) -> None:
    run(target, "path", folder=source)
    (source / "other.json").write_bytes(b"[1]")
    assert run(target, "path", folder=source)["changed"] is True
    assert (target / "joined.txt").read_bytes() == b"some data[1]"


def test_another_source_or_recipe_or_asset_replaces_what_is_there(target: Path, source: Path) -> None:
    run(target)
    assert run(target, "path", folder=source)["changed"] is True
    assert run(target)["changed"] is True
    for other in (dataclasses.replace(ASSET, recipe={"seed": 1}), dataclasses.replace(ASSET, name="other")):
        assert staging_asset.stage(other, target, "stand-in")["changed"] is True


def test_check_says_what_would_happen_and_does_nothing(target: Path) -> None:
    assert run(target, check=True)["changed"] is True
    assert not target.parent.exists()
    run(target)
    before = {path: path.stat().st_mtime_ns for path in target.iterdir()}
    assert run(target, check=True)["changed"] is False
    (target / "other.json").unlink()
    answer = run(target, check=True)
    assert (answer["changed"], answer["description"]) == (True, "stand-in for the data")
    assert not (target / "other.json").exists()
    assert before.keys() >= set(target.iterdir())


@pytest.mark.parametrize(("content", "told"), [(b"bad", "is bad"), (None, "is missing")])
def test_a_bad_source_changes_nothing(target: Path, source: Path, content: bytes | None, told: str) -> None:
    run(target, "path", folder=source)
    before = {path.name: path.read_bytes() for path in target.iterdir()}
    (source / "other.json").unlink()
    if content:
        (source / "other.json").write_bytes(content)
    with pytest.raises(KitError, match=told):
        run(target, "path", folder=source)
    assert {path.name: path.read_bytes() for path in target.iterdir()} == before


def test_a_stand_in_that_cannot_be_made_changes_nothing(target: Path, source: Path) -> None:
    run(target, "path", folder=source)

    def fail(folder: Path) -> None:
        (folder / "other.json").write_bytes(b"{}")
        raise ImportError("No module named 'torch'")

    with pytest.raises(ImportError, match="torch"):
        staging_asset.stage(dataclasses.replace(ASSET, make_stand_in=fail), target, "stand-in")
    assert provenance(target)["source"] == "path"
    assert beside(target) == []


def test_a_full_share_is_told_and_what_is_there_stays(
    target: Path, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(target)

    def full(*_arguments: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(shutil, "copyfileobj", full)
    with pytest.raises(KitError, match=r"cannot write to .*No space left.*is the share mounted"):
        run(target, "path", folder=source)
    assert provenance(target)["source"] == "stand-in"
    assert beside(target) == []


def test_what_dead_processes_left_is_removed_and_a_living_ones_elsewhere_is_not(target: Path) -> None:
    prefix = f".building-{target.name}"
    names = (
        f"{prefix}-{socket.gethostname()}-1",
        f"{prefix}-elsewhere-1",
        f"{prefix}-elsewhere-2",
        ".building-other-x-1",
    )
    for name in names:
        fill(target.parent / name, FILES)
    long_ago = time.time() - staging_asset.unfinished.ABANDONED_AFTER - 1
    os.utime(target.parent / names[1], (long_ago, long_ago))
    run(target)
    assert beside(target) == sorted(names[2:])


def test_a_link_is_replaced_and_what_it_leads_to_stays(target: Path, source: Path) -> None:
    target.parent.mkdir()
    target.symlink_to(source)
    run(target)
    assert not target.is_symlink()
    assert {path.name: path.read_bytes() for path in source.iterdir()} == FILES
    assert beside(target) == []


def test_nobody_else_may_write_to_it_and_everybody_may_read_it(target: Path, source: Path, fake: FakeHub) -> None:
    for path in source.iterdir():
        path.chmod(0o600)
    assert fake.files
    for kind, folder in (("stand-in", None), ("path", source), ("download", None)):
        run(target, kind, folder=folder)
        assert {path.stat().st_mode & 0o777 for path in target.iterdir()} == {0o644}
        assert target.stat().st_mode & 0o777 == 0o755


def test_where_locks_do_not_reach_the_first_rename_wins(target: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = staging_asset._fill
    others: list[dict[str, t.Any]] = []

    def overtaken(building: Path, *arguments: t.Any) -> t.Any:
        if not others:
            others.append({})
            monkeypatch.setattr(os, "getpid", lambda: 4711)  # another node's process
            with monkeypatch.context() as patch:
                patch.setattr(staging_asset.unfinished, "remove_beside", lambda _target: None)
                patch.setattr(staging_asset, "sole", lambda *_arguments: nullcontext())
                others[0] = run(target)
        return real(building, *arguments)

    monkeypatch.setattr(staging_asset, "_fill", overtaken)
    assert run(target)["changed"] is True
    assert others[0]["changed"] is True
    monkeypatch.setattr(staging_asset, "_fill", real)
    assert run(target, verify=True)["changed"] is False
    assert beside(target) == []


def test_a_target_that_another_put_there_meanwhile_is_accepted_if_it_is_the_same(
    target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(target)
    building = fill(target.parent / ".building-x", FILES)
    monkeypatch.setattr(os.path, "lexists", lambda _path: False)
    wanted = {"name": "some_data", "source": "stand-in"}
    staging_asset._put_in_place(building, target, wanted)
    with pytest.raises(KitError, match=r"cannot put .* in place"):
        staging_asset._put_in_place(building, target, {**wanted, "source": "path"})


def test_a_second_process_waits_and_does_nothing(target: Path) -> None:
    started, go_on = threading.Event(), threading.Event()

    def slowly(folder: Path) -> None:
        started.set()
        assert go_on.wait(10)
        make_stand_in(folder)

    slow = dataclasses.replace(ASSET, make_stand_in=slowly)
    answers: list[bool] = []
    first = threading.Thread(target=lambda: answers.append(staging_asset.stage(slow, target, "stand-in")["changed"]))
    first.start()
    assert started.wait(10)
    second = threading.Thread(target=lambda: answers.append(run(target)["changed"]))
    second.start()
    time.sleep(0.1)
    assert not target.exists()
    go_on.set()
    first.join(10)
    second.join(10)
    assert answers == [True, False]


def test_waiting_for_another_process_ends(tmp_path: Path) -> None:
    with (
        locks.sole(tmp_path / ".lock", "staging x"),
        pytest.raises(KitError, match="another process has been staging x for 0 s"),
        locks.sole(tmp_path / ".lock", "staging x", patience=0),
    ):
        pass


def test_a_file_system_without_locks_is_no_hindrance(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_arguments: object) -> None:
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(locks.fcntl, "flock", refuse)
    with locks.sole(tmp_path / ".lock", "staging x"):
        assert (tmp_path / ".lock").exists()


@pytest.mark.parametrize("source", ["path", "upload"])
def test_a_source_that_is_none_is_refused(target: Path, source: str) -> None:
    with pytest.raises(ValueError, match="expected one of"):
        run(target, source)
    assert not target.exists()


def command(*arguments: str) -> int:
    return staging_asset.main(ASSET, "what it is for", arguments)


def test_the_command_line_answers_in_json(target: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = os.umask(0o077)
    try:
        assert command("--target", str(target), "--source", "stand-in") == 0
    finally:
        os.umask(before)
    answer = json.loads(capsys.readouterr().out)
    assert (answer["changed"], answer["path"]) == (True, str(target))
    assert target.stat().st_mode & 0o777 == 0o755


def test_a_problem_is_one_line_on_stderr(target: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert command("--target", str(target), "--source", "path", "--from", str(tmp_path / "no\nwhere")) == 1
    said = capsys.readouterr()
    assert (said.out, said.err) == ("", "stage some_data: data.bin.txt is missing\n")


@pytest.mark.parametrize(
    "arguments",
    [
        ["--source", "path"],
        ["--source", "stand-in", "--from", "/x"],
        ["--source", "stand-in", "--revision", "main"],
        ["--source", "other"],
        [],
    ],
)
def test_wrong_usage_is_refused(target: Path, arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        command("--target", str(target), *arguments)
    assert ended.value.code == 2
    assert "usage" in capsys.readouterr().err


def test_a_revision_is_refused_where_the_download_is_not_from_the_hub(
    target: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asset = dataclasses.replace(ASSET, source=make_stand_in)
    with pytest.raises(SystemExit):
        staging_asset.main(asset, None, ["--target", str(target), "--source", "download", "--revision", "main"])
    assert "--revision requires --source download from the Hugging Face hub" in capsys.readouterr().err


def test_stagings_at_once_make_one(tmp_path: Path, root: Path) -> None:
    script = str(root / "files/datasets/alpaca_cleaned/stage.py")
    options = ["--target", str(tmp_path / "data"), "--source", "stand-in"]
    environment = {**os.environ, "PYTHONPATH": str(root / "files"), "PYTHONDONTWRITEBYTECODE": "1"}
    running = [
        subprocess.Popen([sys.executable, script, *options], env=environment, stdout=subprocess.PIPE)
        for _each in range(3)
    ]
    answers = [json.loads(process.communicate(timeout=60)[0]) for process in running]
    assert sorted(answer["changed"] for answer in answers) == [False, False, True]
    assert len({answer["sha256"] for answer in answers}) == 1
    assert beside(tmp_path / "data") == []
