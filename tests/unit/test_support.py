# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The table of docs/support.md says what the matrix came to; a cell of which nothing is recorded was not run."""

from __future__ import annotations

import json
import re

import pytest

from tests.matrix import cells, checks, support

CELLS = cells.read()


def line(cell: cells.Cell, verdict: str = "pass", why: str = "", **versions: str) -> support.Json:
    """What is recorded of a cell that came to this."""
    done = dict.fromkeys(support.CHECKS[cell.group], "yes") if verdict == "pass" else {}
    return {"verdict": verdict, "why": why, "date": "2026-01-31", "seconds": 1, "versions": versions, "checks": done}


def test_the_page_s_table_is_what_the_recorded_result_renders() -> None:
    page = support.PAGE.read_text(encoding="utf-8")
    assert support.renewed(page, CELLS, support.read()) == page


def test_no_cell_is_recorded_that_there_is_not() -> None:
    assert set(support.read()) <= {cell.id for cell in CELLS}


def test_a_recorded_pass_has_every_check_and_the_versions_of_its_cell() -> None:
    recorded = support.read()
    for cell in [cell for cell in CELLS if cell.id in recorded]:
        told = recorded[cell.id]
        if told["verdict"] != "pass":
            assert told["why"], cell.id
            continue
        assert set(told["checks"]) == set(support.CHECKS[cell.group]), cell.id
        assert told["versions"]["slurm"].startswith(f"{cell.slurm}."), cell.id
        assert ("slurmdbd" in told["versions"]) is cell.slurmdbd, cell.id
        if cell.group != "slurm":
            python = told["versions"]["node_python" if cell.group == "node" else "python"]
            assert python.startswith(f"{cell.python}."), cell.id


def test_the_record_names_no_path() -> None:
    assert not re.search(r"(?<![\w<])/\w+/", json.dumps(support.read()))


def test_the_matrix_has_the_releases_and_pythons_that_are_promised() -> None:
    slurm = {(cell.slurm, cell.slurmdbd) for cell in CELLS if cell.group == "slurm"}
    assert slurm == {(release, dbd) for release in ("22.05", "24.11", "26.05") for dbd in (True, False)}
    assert {cell.python for cell in CELLS if cell.group == "node"} == {f"3.{minor}" for minor in range(9, 15)}
    assert {(cell.python, cell.packages) for cell in CELLS if cell.group == "controller"} >= {
        ("3.11", "oldest"),
        ("3.13", "newest"),
    }
    assert set(checks.GROUPS) == set(cells.GROUPS) == set(support.CHECKS) == set(support.HEADINGS)


@pytest.mark.parametrize(("verdict", "why"), [("fail", "what is well does not pass"), ("not run", "no Python 3.9")])
def test_what_did_not_pass_reads_so(verdict: str, why: str) -> None:
    cell = next(cell for cell in CELLS if cell.id == "node-python3.9")
    row = next(row for row in support.table(CELLS, {cell.id: line(cell, verdict, why)}).splitlines() if why in row)
    assert f"**{verdict}**: {why}" in row
    assert "yes" not in row


def test_a_check_that_came_out_before_the_failure_is_shown_and_nothing_after_it() -> None:
    cell = next(cell for cell in CELLS if cell.group == "slurm")
    told = {**line(cell, "fail", "why", slurm="22.05.8"), "checks": {"training passes": "yes"}}
    assert "| 22.05.8 | yes | yes | **fail**: why | - |" in support.table(CELLS, {cell.id: told})


def test_a_cell_that_nothing_is_recorded_of_is_not_run() -> None:
    cell = CELLS[0]
    assert f"| {cell.slurm} | yes | **not run** | - | - |" in support.table(CELLS, {})


def test_a_page_without_the_markers_is_refused() -> None:
    with pytest.raises(ValueError, match="has not both lines"):
        support.renewed(f"text\n{support.BEGIN}\n", CELLS, {})


def test_a_cell_of_an_unknown_group_or_twice_is_refused(tmp_path) -> None:
    path = tmp_path / "matrix.yml"
    for text in ("slurm: []\ncontroller: []\nnode: []\nother: []", "slurm: [{x}, {x}]\ncontroller: []\nnode: []"):
        path.write_text(text.replace("{x}", '{slurm: "24.11", slurmdbd: true}'))
        with pytest.raises(ValueError, match="unknown group, or one cell twice"):
            cells.read(path)


def test_the_largest_group_of_one_cluster_comes_first() -> None:
    groups = cells.by_cluster(CELLS)
    assert sorted(cell.id for group in groups for cell in group) == sorted(cell.id for cell in CELLS)
    assert [len(group) for group in groups] == sorted((len(group) for group in groups), reverse=True)
    assert all(len({cell.cluster for cell in group}) == 1 for group in groups)
