# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What of the rows of a training is to be sent, and how far it has been."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from kit.errors import KitError
from kit.trackers import outbox
from kit.trackers.mlflow import Point
from kit.trackers.outbox import Rows, State


def line(step: int, **values: object) -> bytes:
    return json.dumps({"step": step, "time": step + 0.5, "loss": 1.0, **values}).encode() + b"\n"


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    path = tmp_path / outbox.ROWS
    path.write_bytes(line(1) + line(2) + line(3))
    return path


def steps(found: Rows) -> list[int]:
    return [point.step for point in found.points]


LENGTH = len(line(1))


def test_of_a_row_the_figures_are_points():
    row = {"attempt": 0, "job_id": 12, "step": 3, "steps": 9, "time": "1.5", "eta_seconds": 4}
    row |= {"loss": 0.5, "n": 2, "best": True, "text": "x", "none": None, "list": [1], "0": 0}
    assert outbox.points_of(row) == (
        [Point("loss", 0.5, 3, 1500), Point("n", 2.0, 3, 1500), Point("0", 0.0, 3, 1500)],
        0,
    )


@pytest.mark.parametrize("value", ["NaN", "Infinity", "-Infinity", float("inf"), float("nan")])
def test_what_is_not_finite_is_counted(value):
    points, others = outbox.points_of({"step": 1, "time": 2, "loss": value, "lr": 0.1})
    assert ([point.name for point in points], others) == (["lr"], 1)


def test_all_rows_are_read_from_where_they_were_sent_to(rows):
    found = outbox.read_rows(rows, 0)
    assert (steps(found), found.not_finite, found.unreadable, found.offset) == ([1, 2, 3], 0, 0, 3 * LENGTH)
    assert steps(outbox.read_rows(rows, LENGTH)) == [2, 3]
    assert outbox.read_rows(rows, 3 * LENGTH) == Rows([], 0, 0, 3 * LENGTH)


def test_rows_that_have_become_fewer_are_of_another_training(rows):
    with pytest.raises(KitError, match=f"has {3 * LENGTH} bytes, and {3 * LENGTH + 1} were sent"):
        outbox.read_rows(rows, 3 * LENGTH + 1)


@pytest.mark.parametrize(("at_once", "longest"), [(5, 4 * LENGTH), (5, LENGTH), (LENGTH - 1, 4 * LENGTH)])
@pytest.mark.parametrize(("begin", "end"), [(0, LENGTH), (LENGTH, 2 * LENGTH), (LENGTH, 2 * LENGTH + 1)])
def test_a_row_longer_than_what_is_read_at_once_is_read_to_its_end_and_not_beyond(
    rows, monkeypatch, at_once, longest, begin, end
):
    monkeypatch.setattr(outbox, "AT_ONCE", at_once)
    monkeypatch.setattr(outbox, "LONGEST", longest)
    row = 1 + begin // LENGTH
    assert steps(outbox.read_rows(rows, begin, end)) == [row]
    assert outbox.read_rows(rows, begin, begin + LENGTH - 1) == Rows([], 0, 0, begin)


def test_of_rows_up_to_within_one_that_one_is_not_counted(rows):
    assert [outbox.count(rows, end) for end in (0, LENGTH - 1, LENGTH, LENGTH + 1, 3 * LENGTH)] == [0, 0, 1, 1, 3]


@pytest.mark.parametrize(("end", "found"), [(LENGTH, [1]), (2 * LENGTH, [1, 2])])
def test_nothing_is_read_beyond_the_end(rows, end, found):
    assert steps(outbox.read_rows(rows, 0, end)) == found
    assert outbox.count(rows, end) == len(found)
    assert steps(outbox.read_rows(rows, LENGTH, end + LENGTH)) == [step + 1 for step in found]


def test_no_more_is_read_at_once_than_is_sent_at_once(rows, monkeypatch):
    monkeypatch.setattr(outbox, "AT_ONCE", 2 * LENGTH)
    assert steps(outbox.read_rows(rows, 0)) == steps(outbox.read_rows(rows, 0, 3 * LENGTH)) == [1, 2]
    assert outbox.count(rows) == 3
    monkeypatch.setattr(outbox, "AT_ONCE", LENGTH - 1)
    assert outbox.count(rows) == 3  # each row is read to its end


def test_a_half_written_row_waits(rows):
    with rows.open("ab") as stream:
        stream.write(line(4)[:-1])
    assert outbox.read_rows(rows, 0).offset == 3 * LENGTH
    assert outbox.read_rows(rows, 3 * LENGTH) == Rows([], 0, 0, 3 * LENGTH)


def test_a_row_without_end_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(outbox, "AT_ONCE", 10)
    monkeypatch.setattr(outbox, "LONGEST", 40)
    path = tmp_path / "rows"
    path.write_bytes(b"x" * 40)
    assert outbox.read_rows(path, 0) == Rows([], 0, 0, 0)
    path.write_bytes(b"x" * 41)
    with pytest.raises(KitError, match="a row has more than 40 bytes"):
        outbox.read_rows(path, 0)


def test_many_short_rows_may_be_longer_together(rows, monkeypatch):
    monkeypatch.setattr(outbox, "LONGEST", LENGTH)
    assert steps(outbox.read_rows(rows, 0)) == [1, 2, 3]


def test_lines_that_are_no_rows_are_counted(tmp_path):
    path = tmp_path / "rows"
    path.write_bytes(b"no JSON\n[]\n7\n{}\n" + line(1, loss="NaN", lr=0.1) + b'{"step": null, "time": 1}\n')
    found = outbox.read_rows(path, 0)
    assert (steps(found), found.not_finite, found.unreadable) == ([1], 1, 5)


def test_without_a_file_there_are_no_rows(tmp_path):
    assert outbox.read_rows(tmp_path / "none", 7) == Rows([], 0, 0, 7)
    assert outbox.count(tmp_path / "none") == 0
    with pytest.raises(KitError, match="cannot be read: Is a directory"):
        outbox.read_rows(tmp_path, 0)


def test_a_state_is_kept_and_is_a_beginning_before(tmp_path):
    first = outbox.read_state(tmp_path)
    assert first == State(first.identity)
    assert (first.offset, first.points, first.not_finite, first.unreadable, first.refused) == (0, 0, 0, 0, 0)
    assert (first.parameters, first.ended, first.run, first.gap) == (False, False, None, None)
    state = State("a", "http://h", 7, 2, 1, 1, "3", "run", True, True, 4, "403")
    outbox.write_state(tmp_path, state)
    assert outbox.read_state(tmp_path) == state
    assert json.loads((tmp_path / outbox.STATE).read_text())["schema"] == 2


@pytest.mark.parametrize("content", ["{", "{}", "[]"])
def test_a_damaged_state_says_what_removing_it_does(tmp_path, content):
    (tmp_path / outbox.STATE).write_text(content)
    with pytest.raises(KitError, match=r"is damaged: .*; remove it, and all rows are sent to a run of their own"):
        outbox.read_state(tmp_path)


def test_what_was_never_sent_needs_no_rewinding(rows):
    outbox.rewind(rows.parent)
    assert not (rows.parent / outbox.STATE).exists()


@pytest.mark.parametrize(
    ("left", "offset", "points"), [(3, 3 * LENGTH, 3), (2, 2 * LENGTH, 2), (0, 0, 0), (None, 0, 0), (5, 3 * LENGTH, 3)]
)
def test_after_rows_were_cut_off_what_is_left_has_been_sent(rows, left, offset, points):
    state = State("a", offset=3 * LENGTH, points=3, run="run", ended=True)
    outbox.write_state(rows.parent, state)
    if left is None:
        rows.unlink()
    else:
        rows.write_bytes(b"".join(line(step) for step in range(1, left + 1)))
    outbox.rewind(rows.parent)
    assert outbox.read_state(rows.parent) == replace(state, offset=offset, points=points, ended=False)


def test_a_state_moves_on_with_what_was_sent():
    before = State("a", offset=1, points=2, not_finite=3, unreadable=4, gap="was down", refused=1)
    after = outbox.moved_on(before, Rows([Point("loss", 1.0, 1, 1)] * 5, 6, 7, 80))
    assert after == State("a", offset=80, points=7, not_finite=9, unreadable=11, refused=1)
