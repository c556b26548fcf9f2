# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Checkpoints: whole or not taken, whatever a crash or a disk left of them."""

from __future__ import annotations

import errno
import json
import os
import shutil
import typing as t
from pathlib import Path

import pytest
from kit.errors import KitError
from kit.pretraining import checkpoints

SETTINGS = {"model.n_embd": 128, "training.seed": 42, "data": "abc"}
OWN = ("rank-{:04d}-of-{:04d}.safetensors",)
DEEPSPEED = ("zero_pp_rank_{}_mp_rank_00_model_states.pt", "zero_pp_rank_{}_mp_rank_00_optim_states.pt")
BF16 = (DEEPSPEED[0], f"bf16_{DEEPSPEED[1]}")
Make = t.Callable[..., Path]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """(step, ranks) → a whole checkpoint of files with the step's number in them."""

    def make(step: int, ranks: int = 2, *, final: bool = False, names: t.Any = OWN, **facts: t.Any) -> Path:
        place = checkpoints.begin(tmp_path / "c", checkpoints.name_of(step, final=final), 100)
        files = []
        for rank in range(ranks):
            for name in names:
                path = place / name.format(rank, ranks)
                path.write_text(f"step {step} rank {rank} " + "x" * 40)
                files.append(checkpoints.describe(path))
        known = {"step": step, "updates": step, "ranks": ranks, "settings": SETTINGS, **facts}
        return checkpoints.finish(place, known, files)

    return make


def test_a_checkpoint_is_seen_once_it_is_whole(make: Make, tmp_path: Path) -> None:
    place = checkpoints.begin(tmp_path / "c", checkpoints.name_of(5), 100)
    assert checkpoints.listed(tmp_path / "c") == []
    assert place.name == ".incomplete-checkpoint_step_5"
    path = make(10)
    assert path.name == "checkpoint_step_10"
    manifest = checkpoints.verify(path)
    assert (manifest["schema"], manifest["name"], manifest["step"], manifest["ranks"]) == (1, path.name, 10, 2)
    assert [entry["bytes"] for entry in manifest["files"]] == [55, 55]
    assert not list(path.parent.glob(".incomplete-checkpoint_step_10"))


def test_what_was_left_unfinished_is_begun_anew(tmp_path: Path) -> None:
    (checkpoints.begin(tmp_path / "c", "checkpoint_step_5", 1) / "half").write_text("half")
    assert list(checkpoints.begin(tmp_path / "c", "checkpoint_step_5", 1).iterdir()) == []


def test_what_an_earlier_attempt_left_can_be_kept(tmp_path: Path) -> None:
    folder = tmp_path / "a/b"
    (checkpoints.begin(folder, "checkpoint_step_5", 1) / "half").write_text("half")
    kept = checkpoints.begin(folder, "checkpoint_step_5", 1, keep=True)
    assert [path.name for path in kept.iterdir()] == ["half"]


def test_a_run_that_went_back_replaces_what_is_there(make: Make) -> None:
    make(10)
    assert checkpoints.verify(make(10, ranks=1))["ranks"] == 1


def test_until_the_new_one_is_in_its_place_the_old_one_is_there(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    path = make(10)
    rename = Path.rename

    def cut_off(each: Path, to: Path) -> Path:
        if to == path:
            raise OSError("the node is gone")
        return rename(each, to)

    monkeypatch.setattr(Path, "rename", cut_off)
    with pytest.raises(OSError, match="gone"):
        make(10, ranks=1)
    left = path.parent / ".replaced-checkpoint_step_10"
    assert len(json.loads((left / "manifest.json").read_text())["files"]) == 2
    monkeypatch.undo()
    make(10)
    assert [each.name for each in path.parent.iterdir()] == ["checkpoint_step_10"]
    shutil.copytree(path, left)  # it was cut off before the old one was removed
    assert checkpoints.verify(make(10, ranks=1))["ranks"] == 1
    assert [each.name for each in path.parent.iterdir()] == ["checkpoint_step_10"]


@pytest.mark.parametrize(("step", "name"), [(39, "checkpoint_step_30"), (30, "checkpoint_step_30"), (99, "final_")])
def test_the_newest_that_is_not_beyond_a_step(make: Make, step: int, name: str) -> None:
    for each in (20, 30, 40):
        folder = make(each).parent
    make(40, final=True)
    assert checkpoints.newest_until(folder, step).name.startswith(name)
    with pytest.raises(checkpoints.NoneWholeError, match="has no checkpoint of step 19 or before"):
        checkpoints.newest_until(folder, 19)


@pytest.mark.parametrize(("free", "fits"), [(1049, False), (1050, True)])
def test_a_checkpoint_that_does_not_fit_is_refused_before_it_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, free: int, fits: bool
) -> None:
    monkeypatch.setattr(checkpoints.shutil, "disk_usage", lambda _path: shutil._ntuple_diskusage(9999, 0, free))
    if fits:
        checkpoints.begin(tmp_path / "c", "checkpoint_step_5", 1000)
        return
    with pytest.raises(KitError, match=r"no space for checkpoint_step_5: it takes 1,050 bytes, .* has 1,049 free"):
        checkpoints.begin(tmp_path / "c", "checkpoint_step_5", 1000)
    assert list((tmp_path / "c").iterdir()) == []


def edit(path: Path, **changes: t.Any) -> None:
    """Change a manifest, and its own SHA-256 with it."""
    file = path / "manifest.json"
    known = {**json.loads(file.read_text()), **changes}
    file.write_text(json.dumps({**known, "sha256": checkpoints._digest(known)}))


def truncate(path: Path) -> None:
    file = path / "rank-0001-of-0002.safetensors"
    file.write_bytes(file.read_bytes()[:20])


def flip(path: Path) -> None:
    file = path / "rank-0000-of-0002.safetensors"
    content = bytearray(file.read_bytes())
    content[30] ^= 1
    file.write_bytes(content)


def flip_manifest(path: Path) -> None:
    """Let the optimizer have updated another number of times."""
    file = path / "manifest.json"
    content = file.read_text()
    assert '"updates": 20,' in content
    file.write_text(content.replace('"updates": 20,', '"updates": 28,'))


def flip_key(path: Path) -> None:
    """Let the manifest's own SHA-256 have another name."""
    file = path / "manifest.json"
    before, _key, digest = file.read_text().rpartition('"sha256": ')
    file.write_text(f'{before}"shq256": {digest}')


def mix(path: Path) -> None:
    """Put a rank's file of the step before into it, of the same size."""
    file = path / "rank-0001-of-0002.safetensors"
    file.write_text(file.read_text().replace("step 20", "step 10"))


DAMAGE: dict[str, tuple[t.Callable[[Path], object], str]] = {
    "a file is torn": (truncate, "rank-0001-of-0002.safetensors has 20 bytes, 55 were written"),
    "a bit is flipped": (flip, "rank-0000-of-0002.safetensors is not what was written: its SHA-256 differs"),
    "of two steps": (mix, "rank-0001-of-0002.safetensors is not what was written"),
    "a file is gone": (lambda path: (path / "rank-0000-of-0002.safetensors").unlink(), "cannot be read: No such file"),
    "no manifest": (lambda path: (path / "manifest.json").unlink(), "has no manifest.json: it was not finished"),
    "half a manifest": (
        lambda path: (path / "manifest.json").write_text('{"name": "check'),
        "manifest.json cannot be read",
    ),
    "a manifest of another": (lambda path: edit(path, step=10), "is of checkpoint_step_20, step 10"),
    "renamed": (lambda path: edit(path, name="checkpoint_step_10"), "is of checkpoint_step_10, step 20"),
    "fewer files": (
        lambda path: edit(path, files=json.loads((path / "manifest.json").read_text())["files"][:1]),
        "has 1 files, not those of 2 ranks",
    ),
    "no ranks": (lambda path: edit(path, ranks=0, files=[]), "has 0 files, not those of 0 ranks"),
    "of a later version": (lambda path: edit(path, format="other"), "is of the format 'other', which is not known"),
    "of another format": (lambda path: edit(path, format="deepspeed"), "has 2 files, not those of 2 ranks"),
    "not a number": (lambda path: edit(path, step="x"), "manifest.json is damaged"),
    "no finite number": (lambda path: edit(path, step=float("inf")), "manifest.json is damaged"),
    "more ranks than there can be": (lambda path: edit(path, ranks=10**12), "has 2 files, not those of"),
    "nested": (lambda path: (path / "manifest.json").write_text("[" * 99999), "manifest.json cannot be read"),
    "a list": (lambda path: (path / "manifest.json").write_text("[]"), "manifest.json cannot be read: .* found list"),
    "a folder": (
        lambda path: ((path / "manifest.json").unlink(), (path / "manifest.json").mkdir()),
        "manifest.json cannot be read: .*directory",
    ),
    "a flipped bit in the manifest": (flip_manifest, "manifest.json is not what was written: its SHA-256 differs"),
    "a flipped bit in its last key": (flip_key, "manifest.json is not what was written: its SHA-256 differs"),
    "no list": (lambda path: edit(path, files=None), "manifest.json is damaged"),
}


@pytest.mark.parametrize("kind", DAMAGE)
def test_what_is_damaged_is_refused_by_name_and_the_one_before_is_taken(make: Make, kind: str) -> None:
    make(10)
    path = make(20)
    damage, why = DAMAGE[kind]
    damage(path)
    with pytest.raises(checkpoints.DamagedError, match=why):
        checkpoints.verify(path)
    taken = checkpoints.newest(path.parent)
    assert (taken.path.name, list(taken.refused)) == ("checkpoint_step_10", ["checkpoint_step_20"])
    assert why.split(":", maxsplit=1)[0] in taken.refused["checkpoint_step_20"]


@pytest.mark.parametrize("names", [DEEPSPEED, BF16])
def test_deepspeeds_files_are_verified_as_the_own_are(make: Make, names: tuple[str, ...]) -> None:
    path = make(20, names=names, format="deepspeed")
    manifest = checkpoints.verify(path)
    assert checkpoints.format_of(manifest) == "deepspeed"
    assert len(manifest["files"]) == 4
    file = path / names[1].format(1)
    file.write_text(file.read_text().replace("step 20", "step 10"))
    with pytest.raises(checkpoints.DamagedError, match=f"{file.name} is not what was written: its SHA-256 differs"):
        checkpoints.verify(path)


@pytest.mark.parametrize(
    ("ranks", "names", "why"),
    [
        (2, DEEPSPEED[:1], "has 2 files, not those of 2 ranks"),
        (3, DEEPSPEED, "has 6 files, not those of 2 ranks"),
        (2, (*BF16, DEEPSPEED[1]), "has 6 files, not those of 2 ranks"),
        (2, OWN, "has 2 files, not those of 2 ranks"),
    ],
)
def test_each_rank_has_its_two_files_in_deepspeeds_format(
    make: Make, ranks: int, names: tuple[str, ...], why: str
) -> None:
    path = make(20, ranks, names=names, format="deepspeed")
    edit(path, ranks=2)
    with pytest.raises(checkpoints.DamagedError, match=why):
        checkpoints.verify(path)


def test_a_file_that_deepspeed_would_read_and_the_manifest_does_not_know_is_refused(make: Make) -> None:
    path = make(20, names=DEEPSPEED, format="deepspeed")
    (path / "notes.txt").write_text("nobody reads it")
    checkpoints.verify(path)
    (path / "zero_pp_rank_2_mp_rank_00_optim_states.pt").write_text("of another step")
    with pytest.raises(checkpoints.DamagedError, match=r"zero_pp_rank_2_.*_optim_states.pt is not in its manifest"):
        checkpoints.verify(path)


def test_ranks_verify_a_part_each(make: Make) -> None:
    path = make(20)
    flip(path)
    with pytest.raises(checkpoints.DamagedError, match="rank-0000"):
        checkpoints.verify(path, rank=0, ranks=2)
    assert checkpoints.verify(path, rank=1, ranks=2)["step"] == 20
    assert checkpoints.verify(path, hashed=False)["step"] == 20


def test_the_newest_is_by_step_and_the_final_one_comes_first(make: Make) -> None:
    for step in (9, 100, 20):
        make(step)
    folder = make(100, final=True).parent
    (folder / "checkpoint_step_x").mkdir()
    (folder / "other").mkdir()
    names = [path.name for path in checkpoints.listed(folder)]
    assert names == ["final_checkpoint_step_100", "checkpoint_step_100", "checkpoint_step_20", "checkpoint_step_9"]
    assert checkpoints.newest(folder).path.name == names[0]
    assert checkpoints.newest(folder).refused == {}


def test_with_only_damaged_ones_there_is_no_start_from_scratch(make: Make) -> None:
    truncate(make(10))
    path = make(20)
    flip(path)
    with pytest.raises(checkpoints.NoneWholeError, match=r"^no whole checkpoint: .*SHA-256 differs; .*20 byte.* \(in"):
        checkpoints.newest(path.parent)


def test_without_any_there_is_none(tmp_path: Path) -> None:
    with pytest.raises(checkpoints.NoneWholeError, match="there is none"):
        checkpoints.newest(tmp_path / "nowhere")
    assert checkpoints.NONE_WHOLE == 4  # the exit code that a training then has


@pytest.mark.parametrize(
    ("made", "why"),
    [
        ({"settings": {**SETTINGS, "training.seed": 1}}, "was made with training.seed 1, this training has 42"),
        ({"settings": {**SETTINGS, "more": 1}}, "was made with more 1, this training has nothing"),
        ({"settings": {"model.n_embd": 128, "data": "abc"}}, "made with training.seed nothing, this training has 42"),
        ({"settings": {**SETTINGS, "data": "xyz"}}, "was made with data 'xyz', this training has 'abc'"),
        ({"settings": None}, "does not say with which settings"),
    ],
)
def test_one_of_another_training_is_refused_by_the_settings_name(make: Make, made: dict[str, t.Any], why: str) -> None:
    make(10)
    folder = make(20, **made).parent
    taken = checkpoints.newest(folder, SETTINGS)
    assert taken.path.name == "checkpoint_step_10"
    assert why in taken.refused["checkpoint_step_20"]
    assert checkpoints.newest(folder).path.name == "checkpoint_step_20"


def test_ranks_can_check_together(make: Make) -> None:
    make(10)
    folder = make(20).parent
    asked = []

    def check(path: Path) -> dict[str, t.Any]:
        asked.append(path.name)
        if path.name == "checkpoint_step_20":
            raise checkpoints.DamagedError("another rank says so")
        return {"step": 10}

    taken = checkpoints.newest(folder, check=check)
    assert (taken.manifest, taken.refused) == ({"step": 10}, {"checkpoint_step_20": "another rank says so"})
    assert asked == ["checkpoint_step_20", "checkpoint_step_10"]


@pytest.mark.parametrize(
    ("keep", "damaged", "left"),
    [
        (2, (), [40, 30]),
        (3, (), [40, 30, 20]),
        (0, (), [40]),
        (9, (), [40, 30, 20, 10]),
        (1, (40,), [40, 30]),
        (2, (40, 30), [40, 30, 20]),
        (1, (40, 30, 20, 10), [40]),
    ],
)
def test_the_oldest_are_removed_but_never_the_newest_whole_one(
    make: Make, keep: int, damaged: tuple[int, ...], left: list[int]
) -> None:
    paths = {step: make(step) for step in (10, 20, 30, 40)}
    for step in damaged:
        truncate(paths[step])
    folder = paths[10].parent
    removed = checkpoints.retain(folder, keep)
    assert [checkpoints.step_of(path.name) for path in checkpoints.listed(folder)] == left
    assert sorted(removed) == sorted(f"checkpoint_step_{step}" for step in paths if step not in left)


def test_what_cannot_be_removed_stays_and_ends_nothing(make: Make, tmp_path: Path) -> None:
    paths = {step: make(step) for step in (10, 20, 30, 40)}
    folder = paths[10].parent
    paths[10].rename(tmp_path / "elsewhere")
    paths[10].symlink_to(tmp_path / "elsewhere")
    (folder / "checkpoint_step_5").write_text("a file")
    assert checkpoints.retain(folder, 2) == ["checkpoint_step_20"]
    left = ["checkpoint_step_40", "checkpoint_step_30", "checkpoint_step_10", "checkpoint_step_5"]
    assert [path.name for path in checkpoints.listed(folder)] == left


def test_refused_ones_do_not_count_and_go_once_there_are_enough_others(make: Make) -> None:
    paths = {step: make(step) for step in (10, 20, 30, 40)}
    for step in (30, 40):
        flip(paths[step])
    folder = paths[10].parent
    refused = checkpoints.newest(folder).refused
    assert set(refused) == {"checkpoint_step_30", "checkpoint_step_40"}
    make(25)  # the training has gone back to 20
    assert checkpoints.retain(folder, 4, refused) == []
    assert checkpoints.retain(folder, 3, refused) == ["checkpoint_step_40", "checkpoint_step_30"]
    assert checkpoints.retain(folder, 2, refused) == ["checkpoint_step_10"]
    assert [path.name for path in checkpoints.listed(folder)] == ["checkpoint_step_25", "checkpoint_step_20"]


def test_the_only_whole_ones_stay_behind_many_that_were_refused(make: Make) -> None:
    folder = make(10).parent
    refused = {make(step).name for step in (20, 30, 40, 50, 60)}
    make(15)
    assert checkpoints.retain(folder, 5, refused) == []
    assert checkpoints.newest(folder, check=lambda path: _unless(path, refused)).path.name == "checkpoint_step_15"


def _unless(path: Path, refused: set[str]) -> dict[str, t.Any]:
    if path.name in refused:
        raise checkpoints.DamagedError("refused")
    return checkpoints.verify(path)


def test_no_file_is_read_to_remove_others(make: Make) -> None:
    make(10)
    flip(make(20))
    folder = make(30).parent
    truncate(folder / "checkpoint_step_30")
    assert checkpoints.retain(folder, 1) == ["checkpoint_step_10"]


def test_files_are_on_the_disk_before_the_manifest_and_that_before_the_name(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = []
    monkeypatch.setattr(checkpoints.os, "fsync", lambda _descriptor: done.append("file"))
    monkeypatch.setattr(checkpoints, "sync_directory", lambda path: done.append(Path(path).name))
    write, rename = checkpoints.write_atomic, Path.rename
    monkeypatch.setattr(checkpoints, "write_atomic", lambda *given: (done.append("manifest"), write(*given)))
    monkeypatch.setattr(Path, "rename", lambda path, to: (done.append("rename"), rename(path, to)))
    make(10)
    wanted = ["file", "file", ".incomplete-checkpoint_step_10", "manifest", "rename", "c"]
    assert [each for each in done if each in wanted][: len(wanted) + 1][:3] == wanted[:3]
    assert done.index("manifest") < done.index("rename") < done.index("c")


def test_names_have_a_step_and_nothing_else() -> None:
    names = [
        "checkpoint_step_7",
        "final_checkpoint_step_70",
        "checkpoint_step_",
        "xcheckpoint_step_7",
        "checkpoint_step_7x",
    ]
    assert [checkpoints.step_of(name) for name in names] == [7, 70, None, None, None]
    assert checkpoints.rank_file(3, 16) == "rank-0003-of-0016.safetensors"


def test_a_file_that_does_not_reach_the_disk_is_not_described(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(_descriptor: int) -> None:
        raise OSError(errno.EIO, "the disk is gone")

    (tmp_path / "written").write_bytes(b"tensors")
    monkeypatch.setattr(checkpoints.os, "fsync", fails)
    with pytest.raises(OSError, match="the disk is gone"):
        checkpoints.describe(tmp_path / "written")


def test_a_file_that_is_not_there_is_not_described(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        checkpoints.describe(tmp_path / "gone")
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    ("first", "last", "keep", "due"),
    [(1, 12, 5, 3), (1, 12, 2, 2), (9, 12, 5, 1), (5, 12, 5, 2), (4, 12, 5, 3), (13, 12, 5, 0)],
)
def test_how_many_checkpoints_are_due(first: int, last: int, keep: int, due: int) -> None:
    assert checkpoints.due(first, last, 4, keep) == due
