# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""alpaca-cleaned is staged as the hub has it, once it was seen to be that; whatever is wrong is told with its row."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import typing as t
from pathlib import Path

import pytest
from kit.errors import KitError

from tests.unit.conftest import ROOT
from tests.unit.kit.model_files import HTML_PAGE, LFS_POINTER
from tests.unit.scripts import load

alpaca = load(ROOT / "files/datasets/alpaca_cleaned/stage.py")
ROW = {"instruction": "Say hello.", "input": "", "output": "Hello."}


def write(folder: Path, rows: t.Any, name: str = alpaca.FILE) -> Path:
    folder.mkdir(exist_ok=True)
    content = rows if isinstance(rows, bytes) else json.dumps(rows).encode()
    (folder / name).write_bytes(content)
    return folder


def test_the_file_is_staged_unchanged(tmp_path: Path) -> None:
    folder, target = write(tmp_path / "so'urce; x", [ROW] * 2048), tmp_path / "target"
    first, second = (alpaca.asset.stage(alpaca.ASSET, target, "path", folder=folder) for _each in range(2))
    assert (first["changed"], second["changed"], first["rows"]) == (True, False, {"train": 2048})
    assert (target / "train.json").read_bytes() == (folder / alpaca.FILE).read_bytes()
    assert {path.name for path in target.iterdir()} == {"train.json", "provenance.json"}


def test_what_was_staged_elsewhere_can_be_given(tmp_path: Path) -> None:
    assert alpaca.prepare(write(tmp_path, [ROW] * 2048, "train.json"))[1]["rows"] == {"train": 2048}


def test_the_stand_in_has_rows_with_and_without_input_and_no_two_alike(tmp_path: Path) -> None:
    rows = alpaca.stand_in_rows()
    assert rows == alpaca.stand_in_rows()
    assert len({(row["instruction"], row["input"]) for row in rows}) == len(rows) == 2500
    assert 500 < sum(not row["input"] for row in rows) < 2000
    alpaca.make_stand_in(tmp_path)
    contents, facts = alpaca.prepare(tmp_path)
    assert (contents, facts["holds"]) == ({"train.json": tmp_path / alpaca.FILE}, "2,500 rows")


@pytest.mark.parametrize(
    ("rows", "told"),
    [
        (b"", "is an empty file"),
        (LFS_POINTER, "is a Git LFS pointer"),
        (HTML_PAGE, "is an HTML"),
        (b"PAR1abc", "is not JSON"),
        (b'[{"instruction": "x"', "is not JSON"),
        (b"[" * 200000, "is not JSON"),
        (b'["\xff"]', "is not JSON"),
        ({"train": [ROW]}, "holds dict, expected a list of instruction, input, output"),
        ([], "has 0 rows, at least 2048"),
        ([ROW] * 2047, "has 2047 rows, at least 2048"),
        ([ROW, "x"], "row 2 is str, expected an object"),
        (
            [ROW, {"text": "x", "output": "y"}],
            "row 2 has no 'instruction': it has text, output, expected instruction, ",
        ),
        ([ROW, ROW, {**ROW, "output": None}], "row 3: output is NoneType, expected text"),
        ([{**ROW, "input": 1}], "row 1: input is int, expected text"),
        ([{**ROW, "instruction": ["x"]}], "row 1: instruction is list, expected text"),
        (
            [ROW] * 2048 + [{**ROW, "output": " "}] * 50,
            "50 of 2098 rows have an empty instruction or output, at most 1%",
        ),
    ],
)
def test_what_is_wrong_is_told(tmp_path: Path, rows: t.Any, told: str) -> None:
    with pytest.raises(KitError, match=told) as error:
        alpaca.prepare(write(tmp_path, rows))
    assert alpaca.FILE in str(error.value)


def test_a_few_empty_answers_are_the_datasets_own(tmp_path: Path) -> None:
    assert alpaca.prepare(write(tmp_path, [ROW] * 2048 + [{**ROW, "output": ""}] * 5))[1]["rows"] == {"train": 2053}


def test_a_folder_without_it_is_told(tmp_path: Path) -> None:
    with pytest.raises(KitError, match=r"the split train is missing: expected the file alpaca_data_cleaned\.json"):
        alpaca.prepare(tmp_path)


def test_a_file_that_is_far_too_large_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(alpaca, "MAX_BYTES", 10)
    with pytest.raises(KitError, match="expected at most 10"):
        alpaca.prepare(write(tmp_path, [ROW]))


def test_only_the_one_file_is_fetched() -> None:
    names = [alpaca.FILE, "alpaca_data.json", "README.md", "alpaca.py"]
    assert [name for name in names if alpaca.ASSET.source.admits(name)] == [alpaca.FILE]


def command(*arguments: str) -> subprocess.CompletedProcess[str]:
    script = str(ROOT / "files/datasets/alpaca_cleaned/stage.py")
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "files"), "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(
        [sys.executable, script, *arguments], env=environment, capture_output=True, text=True, check=False
    )


def test_the_command_line_stages_the_stand_in_by_a_bare_python(tmp_path: Path) -> None:
    done = command("--target", str(tmp_path / "target"), "--source", "stand-in")
    answer = json.loads(done.stdout)
    assert (done.returncode, done.stderr, answer["changed"]) == (0, "", True)
    assert answer["description"].startswith("stand-in for alpaca-cleaned")


def test_a_problem_is_one_line_on_stderr(tmp_path: Path) -> None:
    done = command("--target", str(tmp_path / "target"), "--source", "path", "--from", str(tmp_path / "none"))
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
    assert done.stderr.startswith("stage alpaca_cleaned: ")
