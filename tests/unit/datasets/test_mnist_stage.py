# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Staging MNIST from a folder: checked, atomic, and only when something differs."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
import typing as t
from pathlib import Path

import idx
import pytest
import stage
from kit.errors import KitError

from .test_mnist_idx import contents


def fill(folder: Path, packed: bool = False, **changes: bytes) -> Path:
    folder.mkdir(parents=True)
    for name, content in {**contents(), **changes}.items():
        (folder / f"{name}.gz").write_bytes(gzip.compress(content)) if packed else (folder / name).write_bytes(content)
    return folder


def run(target: Path, folder: Path, check: bool = False) -> dict[str, t.Any]:
    return stage.stage(target, "path", folder, {}, check)


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("below", ["", "raw", "MNIST/raw"])
def test_a_folder_is_staged_once(tmp_path: Path, packed: bool, below: str) -> None:
    source, target = tmp_path / "so'urce; x", tmp_path / "tar get"
    fill(source / below, packed)
    first, second = run(target, source), run(target, source)
    assert (first["changed"], second["changed"]) == (True, False)
    assert (first["train"], first["test"], first["source"]) == (20, 20, "path")
    assert first["description"]
    assert idx.check(idx.read(target / "MNIST" / "raw")) == {"train": 20, "test": 20}
    provenance = json.loads((target / "provenance.json").read_text())
    assert provenance["files"].keys() == set(idx.FILES)
    assert provenance["name"] == "mnist"
    assert sorted(path.name for path in (target / "MNIST" / "raw").iterdir()) == sorted(idx.FILES)


def damage(target: Path) -> None:
    (target / "MNIST/raw/t10k-labels-idx1-ubyte").write_bytes(b"x")


def remove(target: Path) -> None:
    (target / "MNIST/raw/train-images-idx3-ubyte").unlink()


def forget(target: Path) -> None:
    (target / "provenance.json").write_text('{"name": "mnist", "files": ')


def misname(target: Path) -> None:
    (target / "provenance.json").write_text('["not", "an", "object"]')


@pytest.mark.parametrize("spoil", [damage, remove, forget, misname])
def test_what_was_spoiled_is_staged_again(tmp_path: Path, spoil: t.Callable[[Path], None]) -> None:
    source, target = fill(tmp_path / "source"), tmp_path / "target"
    run(target, source)
    spoil(target)
    assert run(target, source)["changed"] is True
    assert run(target, source)["changed"] is False


def test_other_data_replaces_what_is_there(tmp_path: Path) -> None:
    source, target = fill(tmp_path / "source"), tmp_path / "target"
    run(target, source)
    other = fill(tmp_path / "other", **{"t10k-images-idx3-ubyte": idx.encode_images(bytes([9]) * 784 * 20)})
    assert run(target, other)["changed"] is True


def test_a_damaged_source_changes_nothing(tmp_path: Path) -> None:
    source, target = fill(tmp_path / "source"), tmp_path / "target"
    run(target, source)
    before = (target / "provenance.json").read_bytes()
    broken = fill(tmp_path / "broken", **{"train-labels-idx1-ubyte": b"short"})
    with pytest.raises(KitError, match="not staged: train-labels-idx1-ubyte"):
        run(target, broken)
    assert (target / "provenance.json").read_bytes() == before
    assert run(target, source)["changed"] is False


def test_a_truncated_gzip_is_told(tmp_path: Path) -> None:
    source = fill(tmp_path / "source", packed=True)
    packed = source / "train-images-idx3-ubyte.gz"
    packed.write_bytes(packed.read_bytes()[:-9])
    with pytest.raises(KitError, match="cannot read MNIST"):
        run(tmp_path / "target", source)
    assert not (tmp_path / "target").exists()


def test_an_incomplete_folder_is_told(tmp_path: Path) -> None:
    source = fill(tmp_path / "source")
    (source / "t10k-images-idx3-ubyte").unlink()
    with pytest.raises(KitError, match="does not hold MNIST"):
        run(tmp_path / "target", source)


def test_shuffled_labels_are_told() -> None:
    wanted = {"source": "stand-in", "recipe": {"shuffle_labels": True}}
    assert "SHUFFLED" in stage.describe(wanted)
    assert "SHUFFLED" not in stage.describe({**wanted, "recipe": {"shuffle_labels": False}})


def test_check_writes_nothing(tmp_path: Path) -> None:
    source, target = fill(tmp_path / "source"), tmp_path / "target"
    assert run(target, source, check=True)["changed"] is True
    assert not target.exists()


def command(root: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    script = str(root / "files" / "datasets" / "mnist" / "stage.py")
    environment = {**os.environ, "PYTHONPATH": str(root / "files")}
    return subprocess.run(
        [sys.executable, script, *arguments], env=environment, capture_output=True, text=True, check=False
    )


def test_the_command_line_answers_in_json(tmp_path: Path, root: Path) -> None:
    source = fill(tmp_path / "source")
    done = command(root, "--target", str(tmp_path / "target"), "--source", "path", "--from", str(source))
    assert (done.returncode, json.loads(done.stdout)["changed"]) == (0, True)


def test_a_problem_is_one_line_on_stderr(tmp_path: Path, root: Path) -> None:
    done = command(root, "--target", str(tmp_path / "target"), "--source", "path", "--from", str(tmp_path / "none"))
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("stage mnist: ")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    "arguments", [["--source", "path"], ["--source", "stand-in", "--from", "/x"], ["--source", "other"]]
)
def test_wrong_usage_is_refused(tmp_path: Path, root: Path, arguments: list[str]) -> None:
    assert command(root, "--target", str(tmp_path), *arguments).returncode == 2
