# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rows that a training writes, read while it runs."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from kit.errors import KitError
from kit.pretraining import rows


def test_rows_come_in_order_and_a_file_that_is_not_there_has_none(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    assert list(rows.read(path)) == []
    path.write_text('{"step": 1}\n{"step": 2}\n')
    assert list(rows.read(path)) == [{"step": 1}, {"step": 2}]


def test_a_line_that_is_still_being_written_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text('{"step": 1}\n{"st')
    assert list(rows.read(path)) == [{"step": 1}]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("{", "line 2: "),
        ("[1]", "line 2: expected an object, found list"),
        ('{"step": 1, "step": 2}', 'line 2: the key "step" appears twice'),
        ("", "line 2: "),
        ("[" * 60_000, "line 2: "),
    ],
)
def test_a_line_that_is_no_row_is_named(tmp_path: Path, line: str, said: str) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text(f'{{"step": 1}}\n{line}\n')
    with pytest.raises(KitError) as refused:
        list(rows.read(path))
    assert f"{path}, {said}" in str(refused.value)


def test_a_line_has_a_longest_length(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    longest = '{"a": "' + "x" * (65_536 - 10) + '"}\n'
    assert len(longest) == 65_536
    path.write_text(longest)
    assert len(list(rows.read(path))) == 1
    path.write_text(longest.replace("x", "xx", 1))
    with pytest.raises(KitError, match=r"line 1: expected at most 65536 bytes a line and 268435456 in all"):
        list(rows.read(path))


def test_a_file_has_a_largest_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text('{"step": 1}\n' * 3)
    monkeypatch.setattr(rows, "MOST", 36)
    assert len(list(rows.read(path))) == 3
    monkeypatch.setattr(rows, "MOST", 35)
    with pytest.raises(KitError, match=r"line 3: "):
        list(rows.read(path))


def test_a_link_and_a_pipe_are_refused(tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_text('{"step": 1}\n')
    (tmp_path / "link").symlink_to(tmp_path / "rows.jsonl")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(KitError, match="link: "):
        list(rows.read(tmp_path / "link"))
    with pytest.raises(KitError, match="pipe: expected a regular file"):
        list(rows.read(tmp_path / "pipe"))
