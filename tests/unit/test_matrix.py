# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How the matrix ends: 0 only if every chosen cell passed, and no cell is left out without a word."""

from __future__ import annotations

import json
import typing as t

import pytest

from tests.matrix import __main__ as matrix
from tests.matrix import cells, checks, interpreters, scene, support
from tests.matrix.problems import AbsentError, CellError

CELL = "node-python3.9"
Outcome = t.Optional[Exception]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, tmp_path, capsys) -> t.Callable[..., tuple[int, support.Json, str]]:
    """(what the cell comes to, arguments) → exit status, the cell's line, the screen; no cluster is touched."""

    def play(outcome: Outcome, *arguments: str, up: Outcome = None) -> tuple[int, support.Json, str]:
        def tried(*_: t.Any) -> t.Iterator[tuple[str, str]]:
            yield "preflight passes", "yes"
            if outcome:
                raise outcome

        def brought_up(*_: t.Any) -> None:
            if up:
                raise up

        downs: list[str] = []
        monkeypatch.setattr(scene, "RESULTS", tmp_path / "results")
        monkeypatch.setattr(scene, "up", brought_up)
        monkeypatch.setattr(scene, "down", downs.append)
        monkeypatch.setattr(checks, "controller_versions", lambda _: {"ansible": "2.19.4", "python": "3.11.7"})
        monkeypatch.setattr(checks, "cluster_versions", lambda *_: {"slurm": "24.11.5"})
        monkeypatch.setitem(checks.GROUPS, "node", tried)
        monkeypatch.setattr(support, "DOCUMENT", tmp_path / "support.json")
        monkeypatch.setattr(support, "PAGE", tmp_path / "support.md")
        support.PAGE.write_text(f"before\n{support.BEGIN}\n{support.END}\nafter\n")
        monkeypatch.setattr("sys.argv", ["matrix", "--workers", "1", "--name", "test", "--only", CELL, *arguments])
        code = matrix.main()
        assert downs == ["test-1"]
        return code, json.loads(support.DOCUMENT.read_text())[CELL], capsys.readouterr().out

    return play


def test_a_pass_ends_0_and_is_recorded(run) -> None:
    code, line, screen = run(None)
    assert code == 0
    assert (line["verdict"], line["why"], line["checks"]) == ("pass", "", {"preflight passes": "yes"})
    assert line["versions"] == {"ansible": "2.19.4", "python": "3.11.7", "slurm": "24.11.5"}
    assert "1 of 1 cells are well" in screen
    assert support.renewed(support.PAGE.read_text(), cells.read(), {CELL: line}) == support.PAGE.read_text()


@pytest.mark.parametrize(
    ("outcome", "verdict", "why"),
    [
        (CellError("what is well is fail"), "fail", "what is well is fail"),
        (AbsentError("this machine has no Python 3.9"), "not run", "this machine has no Python 3.9"),
        (ZeroDivisionError("/a/path"), "fail", "the cell itself broke: ZeroDivisionError"),
    ],
)
def test_anything_else_ends_1_and_says_why(run, outcome, verdict, why) -> None:
    code, line, screen = run(outcome)
    assert code == 1
    assert (line["verdict"], line["why"]) == (verdict, why)
    assert why in screen


def test_only_a_missing_interpreter_can_be_excused(run) -> None:
    assert run(AbsentError("none"), "--may-miss", CELL)[0] == 0
    assert run(CellError("bad"), "--may-miss", CELL)[0] == 1


def test_cells_of_a_cluster_that_does_not_come_up_fail(run) -> None:
    code, line, _other = run(None, "--may-miss", CELL, up=CellError("cluster up ended with exit code 1"))
    assert (code, line["verdict"], line["why"]) == (1, "fail", "cluster up ended with exit code 1")


def test_an_interpreter_that_no_machine_has_is_absent() -> None:
    with pytest.raises(AbsentError, match=r"no Python 3\.99"):
        interpreters.find("3.99")
