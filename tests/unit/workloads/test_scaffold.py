# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The folder of a new workload passes as it is, with either of its scripts, and each of its criteria can fail."""

from __future__ import annotations

import os
import typing as t
from pathlib import Path

import pytest
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._workloads import checking, scaffold

from tests.unit.workloads.own_job import OwnJob

SCRIPTS = ("train.py", "train_standard_library.py")


def made(folder: Path, name: str = "triad") -> scaffold.Scaffold:
    new = scaffold.plan(name, str(folder))
    scaffold.make(new)
    return new


def replaced(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert text.count(old) == 1, f"{old!r} in {path.name}"
    path.write_text(text.replace(old, new))


@pytest.fixture
def job(tmp_path: Path) -> t.Callable[..., OwnJob]:
    """(script, what is replaced in it by what) → a job of such a workload, with fewer points."""

    def run(script: str = "train.py", *changes: tuple[str, str]) -> OwnJob:
        folder = made(tmp_path / "workloads").folder
        if script != "train.py":
            replaced(folder / "workload.yml", "[python, train.py]", f"[python, {script}]")
        for old, new in (("200_000", "2_000"), *changes):
            replaced(folder / script, old, new)
        return OwnJob(folder, tmp_path / "share").run()

    return run


def test_the_folder_holds_what_the_manifest_names_and_has_no_fault(tmp_path: Path) -> None:
    new = made(tmp_path / "workloads")
    assert new.id == "TRIAD-1"
    assert sorted(path.name for path in new.folder.iterdir()) == [*SCRIPTS, "workload.yml"]
    assert new.folder.stat().st_mode & 0o777 == 0o755
    assert checking.check(new.folder / "workload.yml") == []
    assert [path.name for path in (tmp_path / "workloads").iterdir()] == ["triad"]


@pytest.mark.parametrize("script", SCRIPTS)
def test_it_passes_as_it_is(job: t.Callable[..., OwnJob], script: str) -> None:
    ran = job(script)
    assert ran.exit_code == 0, (ran.output.parent / "err").read_text()
    verdicts = {name: (each["verdict"], each["why"]) for name, each in ran.judged().items()}
    assert [name for name, (verdict, _why) in verdicts.items() if verdict != "pass"] == [], verdicts
    assert sorted(verdicts) == [f"C-{number}" for number in range(1, 7)]


@pytest.mark.parametrize(
    ("script", "change", "criterion", "verdict", "says"),
    [
        ("train.py", ("RATE = 50, 2_000, 0.5", "RATE = 50, 2_000, 0.1"), "C-3", "fail", "is not < 0.01"),
        ("train.py", ("RATE = 50, 2_000, 0.5", "RATE = 50, 2_000, 0.0"), "C-2", "fail", "the fitted line goes from"),
        ("train.py", ('"seconds": time.monotonic() - started', '"seconds": 241.5'), "C-4", "fail", "is not 0 to 240"),
        ("train.py", ('"model.json"', '"weights.json"'), "C-5", "fail", "model.json does not exist"),
        (
            "train.py",
            ('"metrics.json"', '"results.json"'),
            "C-3",
            "undetermined",
            "holds model.json, progress.jsonl, results",
        ),
        ("train.py", ('"error": error', '"error": float("nan")'), "C-3", "undetermined", "NaN"),
        (
            "train.py",
            ("started = ", "raise SystemError\nstarted = "),
            "C-6",
            "fail",
            "Traceback (most recent call last)",
        ),
        (
            "train_standard_library.py",
            ('os.environ["SLURM_JOB_ID"]', '"8"'),
            "C-3",
            "undetermined",
            'written by job "8"',
        ),
    ],
)
def test_each_criterion_can_be_seen_to_fail(
    job: t.Callable[..., OwnJob], script: str, change: tuple[str, str], criterion: str, verdict: str, says: str
) -> None:
    judged = job(script, change).judged()[criterion]
    assert judged["verdict"] == verdict
    assert says in judged["why"]


def test_the_first_free_id_is_taken(tmp_path: Path) -> None:
    made(tmp_path, "my_net")
    assert made(tmp_path, "my__net_").id == "MY-NET-2"
    assert made(tmp_path, "a1").id == "A1-1"


@pytest.mark.parametrize("name", ["", "Triad", "1triad", "tri-ad", "../triad", "tri ad", "t" * 64, "triad\n", "_x"])
def test_a_name_that_cannot_be_one_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(scaffold.ScaffoldError, match=r"my_training"):
        scaffold.plan(name, str(tmp_path))


@pytest.mark.parametrize(
    ("name", "says"), [("kit", "scripts/kit of the collection itself"), ("mnist_single_gpu", "is taken by /")]
)
def test_a_name_that_is_taken_is_refused(tmp_path: Path, name: str, says: str) -> None:
    with pytest.raises(scaffold.ScaffoldError, match=f"^name: {name} is taken by") as caught:
        scaffold.plan(name, str(tmp_path))
    assert says in str(caught.value)


def test_what_is_there_is_left_alone(tmp_path: Path) -> None:
    for make in (lambda path: path.mkdir(), lambda path: path.symlink_to("nowhere"), lambda path: path.touch()):
        make(tmp_path / "triad")
        with pytest.raises(scaffold.ScaffoldError, match="already exists; nothing was changed"):
            scaffold.plan("triad", str(tmp_path))
        path = tmp_path / "triad"
        path.rmdir() if path.is_dir() else path.unlink()


def test_a_folder_that_cannot_be_made_leaves_nothing(tmp_path: Path) -> None:
    new = scaffold.plan("triad", str(tmp_path))
    (tmp_path / "triad").mkdir()  # by somebody else, meanwhile
    (tmp_path / "triad/theirs").touch()
    with pytest.raises(scaffold.ScaffoldError, match=r"triad cannot be created: Directory not empty"):
        scaffold.make(new)
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["theirs", "triad"]
    (tmp_path / "file").touch()
    with pytest.raises(scaffold.ScaffoldError, match=r"cannot be created: (Not a directory|File exists)"):
        scaffold.make(scaffold.plan("other", str(tmp_path / "file")))


def test_templates_that_are_not_whole_are_refused(tmp_path: Path) -> None:
    templates = tmp_path / "templates"
    for text in ("$nobody", "costs 5 $"):
        templates.mkdir(exist_ok=True)
        (templates / "workload.yml").write_text(text)
        with pytest.raises(scaffold.ScaffoldError, match="is the collection installed completely"):
            scaffold.plan("triad", str(tmp_path), templates)
    with pytest.raises(scaffold.ScaffoldError, match="is the collection installed completely"):
        scaffold.plan("triad", str(tmp_path), tmp_path / "nowhere")


def test_what_comes_next_can_be_copied_into_a_shell(tmp_path: Path) -> None:
    plain, blank = (scaffold.plan("triad", str(tmp_path / folder)) for folder in ("w", "my work"))
    told = "\n".join(scaffold.what_next(plain))
    assert f"check_workload -e folder={tmp_path}/w/triad" in told
    assert f"""--tags TRIAD-1 -e '{{"hpc_validation_workload_folders": ["{tmp_path}/w"]}}'""" in told
    assert f"""check_workload -e '{{"folder": "{tmp_path}/my work/triad"}}'""" in "\n".join(scaffold.what_next(blank))


def test_the_destination_may_be_relative_or_at_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(os.environ, "HOME", "/home/me")
    assert scaffold.plan("triad", "workloads").folder == tmp_path / "workloads/triad"
    assert scaffold.plan("triad", "~/w").folder == Path("/home/me/w/triad")
