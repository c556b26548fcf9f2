# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""edge01's board: what files/edge/sensors.py reads from it, and what each word of `cluster edge` makes of that."""

from __future__ import annotations

import os
import stat
import sys

import pytest
from hpcval_cluster import edge_board, edge_words

from tests.unit.conftest import ROOT

sys.path.insert(0, str(ROOT / "files/edge"))  # its modules are imported as they import each other
import sensors
import summary


@pytest.fixture
def board(tmp_path):
    """A healthy board's root."""
    edge_board.create(tmp_path)
    return tmp_path


def put(board, *words):
    """Carry out what words make of the board."""
    change = edge_words.parse(list(words))
    edge_board.write(board, change.texts, change.modes)


def snapshot(board):
    """Text and mode of each file."""
    files = [path for path in board.rglob("*") if path.is_file() and not path.is_symlink()]
    return {path.relative_to(board): (path.read_text(), stat.S_IMODE(path.stat().st_mode)) for path in files}


def closed(board):
    """Remove what nobody may read: root, as whom these tests may run, reads it all the same."""
    for path in list(snapshot(board)):
        if not stat.S_IMODE((board / path).stat().st_mode):
            (board / path).unlink()
    return board


def soak(board, first=None):
    """What comes of two rows of the board a second apart: the one given, or one as now, and one now."""
    now = sensors.row(board)
    rows = [{**(first or now), "time": now["time"] - 1}, now]
    return summary.summary(rows, sensors.whole_board(now, sensors.board(board), None), 1)


def test_a_healthy_board_is_read_as_an_orin(board):
    assert "Simulated" in sensors.board(board)
    now = sensors.row(board)
    chosen = sensors.whole_board(now, sensors.board(board), None)
    assert chosen == {"rails": ["VDD_GPU_SOC", "VDD_CPU_CV", "VIN_SYS_5V0"], "error": None}
    rails = {name: round(each["watts"], 3) for name, each in now["rails"].items()}
    assert rails == {"VDD_GPU_SOC": 3.36, "VDD_CPU_CV": 0.48, "VIN_SYS_5V0": 4.869, "VDDQ_VDD2_1V8AO": 0.397}
    assert now["zones"]["tj-thermal"]["celsius"] == 47.25
    assert "celsius" not in now["zones"].get("cv0-thermal", {})
    assert {name: each["count"] for name, each in now["counters"].items()} == {
        "soctherm oc1": 0,
        "soctherm oc2": 0,
        "soctherm oc3": 0,
    }
    assert set(now["throttling"]) == {"cpu-throttle-alert", "gpu-throttle-alert", "soc012-throttle-alert"}
    assert not any(each["state"] for each in now["throttling"].values())
    assert {each["khz"] for each in now["clocks"].values()} == {2201600}
    assert list(now["energy"]) == ["package-0"]
    assert sensors.power_mode(board) == "MAXN"
    found = soak(board)
    assert not any(found[what]["error"] for what in ("temperature", "throttle", "power"))
    assert found["throttle"]["events"] == 0


def test_links_lead_to_files_of_the_board(board):
    assert edge_board.links()
    for path in edge_board.links():
        assert board in (board / path).resolve(strict=True).parents


def test_everybody_may_look_into_its_folders_whatever_the_umask(tmp_path):
    before = os.umask(0o077)
    try:
        edge_board.create(tmp_path / "board")
    finally:
        os.umask(before)
    folders = [path for path in (tmp_path / "board").rglob("*") if path.is_dir() and not path.is_symlink()]
    assert {stat.S_IMODE(path.stat().st_mode) for path in [tmp_path / "board", *folders]} == {0o755}
    (model,) = (tmp_path / "board").rglob("model")
    assert stat.S_IMODE(model.stat().st_mode) == edge_board.READABLE


def test_the_energy_counter_is_for_root(board):
    assert stat.S_IMODE((board / edge_board.ENERGY).stat().st_mode) == edge_board.ROOT_ONLY


@pytest.mark.parametrize(
    ("words", "what", "key", "value"),
    [
        (["hot=86000"], "temperature", "highest", 86.0),
        (["power=x2"], "power", "mean", 2 * 8.709),
        (["power=x2", "power=x1"], "power", "mean", 8.709),
        (["power=x2", "healthy"], "power", "mean", 8.709),
    ],
)
def test_a_word_changes_what_a_soak_reads(board, words, what, key, value):
    put(board, *words)
    assert soak(board)[what][key] == pytest.approx(value, abs=0.001)


def test_a_power_mode_is_read_by_its_name(board):
    put(board, "mode=30W")
    assert sensors.power_mode(board) == "30W"


def test_events_are_counted_where_the_sensors_look(board):
    first = sensors.row(board)
    edge_board.write(board, {edge_board.EVENTS: "3\n"}, {})
    assert soak(board, first)["throttle"]["events"] == 3


@pytest.mark.parametrize(
    ("word", "without", "with_"),
    [
        ("thermal", ["temperature"], ["power"]),
        ("power", ["power"], ["temperature"]),
        ("all", ["temperature", "power", "throttle"], []),
    ],
)
def test_what_is_unreadable_is_an_error_by_its_name(board, word, without, with_):
    put(board, f"unreadable={word}")
    found = soak(closed(board))
    assert all(found[what]["error"] for what in without)
    assert not any(found[what]["error"] for what in with_)
    assert sensors.power_mode(board) == "MAXN"


def test_unreadable_says_all_that_is_unreadable_and_stays_so(board):
    before = snapshot(board)
    put(board, "unreadable=power", "unreadable=thermal", "hot=86000")
    after = snapshot(board)
    assert {path.name for path, (_text, mode) in after.items() if mode == edge_board.UNREADABLE} == {"temp"}
    put(board, "unreadable=none", "hot=47250")
    assert snapshot(board) == before


def test_healthy_undoes_every_word(board):
    before = snapshot(board)
    put(board, "hot=86000", "power=x2", "mode=15W", "unreadable=all")
    edge_board.write(board, {edge_board.EVENTS: "3\n"}, {})
    assert snapshot(board) != before
    put(board, "healthy")
    assert snapshot(board) == before
