# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""no_robots as jobs read it: turns of user and assistant, counted; whatever is wrong is told with file and row.

PyArrow is not there: the parquet files of these tests hold JSON between parquet's marks. tests/workloads/oumi reads
real ones.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import types
import typing as t
from pathlib import Path

import pytest
from kit.errors import KitError

from tests.unit.conftest import ROOT
from tests.unit.kit.model_files import HTML_PAGE, LFS_POINTER
from tests.unit.scripts import load

no_robots = load(ROOT / "files/datasets/no_robots/stage.py")
TRAIN, TEST = (f"{split}-00000-of-00001.parquet" for split in ("train", "test"))
Rows = list[dict[str, t.Any]]


class ArrowError(Exception):
    """PyArrow's ArrowException."""


class Table:
    """As much of PyArrow's table as is used."""

    def __init__(self, rows: Rows) -> None:
        self.rows = rows
        self.column_names = list(rows[0]) if rows else list(no_robots.COLUMNS)

    def select(self, columns: list[str]) -> Table:
        return Table([{name: row[name] for name in columns} for row in self.rows])

    def to_pylist(self) -> Rows:
        return self.rows


def read_table(path: Path) -> Table:
    content = path.read_bytes()
    if not content.endswith(b"PAR1"):
        raise ArrowError("Parquet magic bytes not found in footer")
    return Table(json.loads(content[4:-4]))


@pytest.fixture(autouse=True)
def pyarrow(monkeypatch: pytest.MonkeyPatch) -> None:
    module = types.ModuleType("pyarrow")
    parquet = types.SimpleNamespace(read_table=read_table)
    module.__dict__.update(ArrowException=ArrowError, parquet=parquet)
    monkeypatch.setitem(sys.modules, "pyarrow", module)


def encode(rows: Rows) -> bytes:
    return b"PAR1" + json.dumps(rows).encode() + b"PAR1"


def turns(*pairs: tuple[t.Any, t.Any]) -> list[dict[str, t.Any]]:
    return [{"content": content, "role": role} for role, content in pairs]


def row(messages: t.Any) -> dict[str, t.Any]:
    return {"prompt": "p", "prompt_id": "0", "messages": messages, "category": "Chat"}


PAIR = turns(("user", "Hello?"), ("assistant", "Hello."))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The stand-in's rows, as the hub serves a dataset."""
    place = tmp_path / "so'urce; x"
    (place / "data").mkdir(parents=True)
    for split, name in (("train", TRAIN), ("test", TEST)):
        (place / "data" / name).write_bytes(encode(no_robots.stand_in_rows()[split]))
    return place


def lines(content: bytes) -> list[t.Any]:
    return [json.loads(line) for line in content.splitlines()]


def test_the_stand_in_fills_both_splits_with_turns(folder: Path) -> None:
    contents, facts = no_robots.prepare(folder)
    assert facts["rows"] == {"train": 1200, "held_out": 100}
    assert facts["dropped"] == {"train": 0, "held_out": 0}
    assert facts["holds"] == "1,200 training and 100 held-out rows"
    train, held_out = lines(contents["train.jsonl"]), lines(contents["held_out.jsonl"])
    assert (len(train), len(held_out)) == (1200, 100)
    for each in (*train, *held_out):
        roles = [message["role"] for message in each["messages"]]
        assert roles == ["user", "assistant"] * (len(roles) // 2)
        assert list(each) == ["messages"]
    assert len({len(each["messages"]) for each in train}) > 1  # some have more than one turn
    asked = [{each["messages"][0]["content"] for each in split} for split in (train, held_out)]
    assert not asked[0] & asked[1]


def test_a_split_may_have_several_files_and_lie_without_a_folder(tmp_path: Path) -> None:
    made = no_robots.stand_in_rows()
    for number in range(2):
        part = made["train"][number * 500 : (number + 1) * 500]
        (tmp_path / f"train-0000{number}-of-00002.parquet").write_bytes(encode(part))
    (tmp_path / TEST).write_bytes(encode(made["test"]))
    assert no_robots.prepare(tmp_path)[1]["rows"]["train"] == 1000


def test_a_system_turn_goes_in_front_of_the_first_users() -> None:
    made = no_robots.convert(row([*turns(("system", "Be brief.")), *PAIR]), "x")
    assert made == [{"role": "user", "content": "Be brief.\n\nHello?"}, {"role": "assistant", "content": "Hello."}]


@pytest.mark.parametrize(
    "messages",
    [
        [],
        turns(("system", "Be brief.")),
        turns(("user", "Hello?")),
        turns(("assistant", "Hello."), ("user", "Hello?")),
        turns(("assistant", "Hello.")),
        [*PAIR, *turns(("user", "And?"))],
        turns(("user", "a"), ("user", "b"), ("assistant", "c"), ("assistant", "d")),
        turns(("user", "a"), ("system", "b"), ("assistant", "c")),
        turns(("user", " "), ("assistant", "c")),
        turns(("user", "a"), ("assistant", "")),
    ],
)
def test_what_is_no_conversation_is_left_out(messages: list[dict[str, str]]) -> None:
    assert no_robots.convert(row(messages), "x") is None


def test_what_is_left_out_is_counted(folder: Path) -> None:
    rows = no_robots.stand_in_rows()["train"] + [row(PAIR[:1])] * 7
    (folder / "data" / TRAIN).write_bytes(encode(rows))
    contents, facts = no_robots.prepare(folder)
    assert (facts["rows"]["train"], facts["dropped"]) == (1200, {"train": 7, "held_out": 0})
    assert len(lines(contents["train.jsonl"])) == 1200


def with_first(first: dict[str, t.Any]) -> bytes:
    return encode([row(PAIR), first, *[row(PAIR)] * 1000])


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (None, r"the split train is missing: expected train-\*\.parquet"),
        (b"", "train-.*is an empty file"),
        (LFS_POINTER, "train-.*is a Git LFS pointer"),
        (HTML_PAGE, "train-.*is an HTML"),
        (b'[{"messages": []}]', "train-.*is not a parquet file: it begins with .*PAR1"),
        (encode([row(PAIR)])[:-3], "train-.*damaged: Parquet magic bytes not found"),
        (encode([{"text": "x", "label": 1}]), "no column 'prompt': its columns are text, label, expected prompt, "),
        (encode([]), "split train has 0 usable rows, at least 1000"),
        (encode([row(PAIR)] * 999), "split train has 999 usable rows, at least 1000"),
        (encode([row(PAIR)] * 1000 + [row([])] * 200), "200 of 1200 rows are not turns .* 10% may be"),
        (with_first(row("Hello?")), "train-.*parquet, row 2: messages is str, expected a list"),
        (with_first(row(None)), "row 2: messages is NoneType, expected a list"),
        (with_first(row({"role": "user"})), "row 2: messages is dict, expected a list"),
        (with_first(row(["Hello?"])), "row 2: message 1 is str, expected role and content"),
        (
            with_first(row(turns(("user", "a"), ("tool", "b")))),
            "row 2: the role of message 2 is 'tool', expected system",
        ),
        (with_first(row(turns((["user"], "a")))), "row 2: the role of message 1 is"),
        (with_first(row([{"content": "a"}])), "row 2: the role of message 1 is None"),
        (with_first(row(turns(("user", 1)))), "row 2: the content of message 1 is int, expected text"),
        (with_first(row([{"role": "user"}])), "row 2: the content of message 1 is NoneType"),
    ],
)
def test_what_is_wrong_is_told(folder: Path, content: bytes | None, told: str) -> None:
    path = folder / "data" / TRAIN
    path.unlink()
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(KitError, match=told):
        no_robots.prepare(folder)


def test_a_missing_held_out_split_is_told(folder: Path) -> None:
    (folder / "data" / TEST).unlink()
    with pytest.raises(KitError, match="the split test is missing"):
        no_robots.prepare(folder)


def test_a_split_that_is_far_too_large_is_told(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(no_robots, "MAX_BYTES", 10)
    with pytest.raises(KitError, match="more than the 10 expected"):
        no_robots.prepare(folder)


def test_only_the_two_splits_are_fetched() -> None:
    source = no_robots.ASSET.source
    wanted = [f"data/{TRAIN}", f"data/{TEST}"]
    others = ["README.md", ".gitattributes", "data/x.pkl", "no_robots.py"]
    assert [name for name in [*wanted, *others] if source.admits(name)] == wanted


def test_it_is_staged_from_a_folder_once(folder: Path, tmp_path: Path) -> None:
    target = tmp_path / "no_robots"
    first, second = (no_robots.asset.stage(no_robots.ASSET, target, "path", folder=folder) for _each in range(2))
    assert (first["changed"], second["changed"]) == (True, False)
    assert {path.name for path in target.iterdir()} == {"train.jsonl", "held_out.jsonl", "provenance.json"}
    provenance = json.loads((target / "provenance.json").read_text())
    expected = {"name", "source", "description", "revision", "recipe", "rows", "dropped", "files"}
    assert expected <= set(provenance)
    assert set(provenance["files"]["train.jsonl"]) == {"size", "sha256"}


def test_the_stand_in_says_that_it_is_one() -> None:
    assert no_robots.ASSET.descriptions["stand-in"].startswith("stand-in for no_robots")


def test_a_problem_is_one_line_on_stderr(tmp_path: Path) -> None:
    script = str(ROOT / "files/datasets/no_robots/stage.py")
    options = ["--target", str(tmp_path / "target"), "--source", "path", "--from", str(tmp_path)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "files"), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [sys.executable, script, *options], env=environment, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
    assert done.stderr.startswith(f"stage no_robots: {tmp_path}: the split train is missing")
