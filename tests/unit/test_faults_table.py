# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""docs/faults.json and docs/faults.md: what a run of some rows renews, and what the page counts."""

from __future__ import annotations

import json

import pytest

from tests.faults import rows, table

MEASURED = {"date": "2026-11-22", "machine": "2 cores", "slurm": "24.11.5", "ansible": "2.19.14"}
FIRST, SECOND = rows.load()[:2]


@pytest.fixture
def renew(tmp_path):
    """(parts) → the document and the page after them."""
    document, page = tmp_path / "faults.json", tmp_path / "faults.md"

    def run(**parts):
        table.renew(parts, document, page)
        return json.loads(document.read_text()), page.read_text() if page.exists() else ""

    return run


def test_a_run_of_some_rows_renews_only_those(renew):
    renew(measured=MEASURED, rows={row.id: table.result(row, ["wrong"], 1) for row in (FIRST, SECOND)})
    document, page = renew(measured=MEASURED, rows={FIRST.id: table.result(FIRST, [], 1)})
    assert {identity: row["caught"] for identity, row in document["rows"].items()} == {FIRST.id: True, SECOND.id: False}
    assert f"caught with the right name: 1 of {len(rows.load())}\n" in page
    assert "**wrong**" in page


def test_a_row_that_is_no_longer_in_the_table_is_forgotten(renew):
    gone = {"gone": table.result(FIRST, [], 1)}
    document, _page = renew(measured=MEASURED, rows={**gone, FIRST.id: table.result(FIRST, [], 1)})
    assert list(document["rows"]) == [FIRST.id]


def test_a_row_that_was_never_played_counts_as_not_caught(renew):
    every = [*rows.load(), *(row for path in rows.APART.values() for row in rows.load(path))]
    played = {row.id: table.result(row, [], 1) for row in every[1:]}
    _document, page = renew(measured=MEASURED, rows=played)
    assert f"caught with the right name: {len(rows.load()) - 1} of {len(rows.load())}\n" in page
    for group, path in rows.APART.items():
        assert f"of the group {group}: {len(rows.load(path))} of {len(rows.load(path))}\n" in page
    assert f"- never played: {every[0].id}\n" in page
    _document, page = renew(rows={every[0].id: table.result(every[0], [], 1)})
    assert "never played" not in page


def test_the_page_says_how_long_all_rows_took_at_once(renew):
    played = {row.id: table.result(row, [], 1) for row in rows.load()}
    _document, page = renew(measured={**MEASURED, "minutes": 40.2}, rows=played)
    assert f"{len(played)} of {len(played)}, all at once in 40.2 min\n" in page
    _document, page = renew(measured={**MEASURED, "minutes": None}, rows={FIRST.id: table.result(FIRST, [], 1)})
    assert "all at once" not in page


def test_there_is_no_page_before_there_are_rows(renew):
    document, page = renew(clean={"runs": 30, "passed": 30})
    assert (list(document), page) == (["clean"], "")


def test_a_fault_that_must_pass_is_no_miss_of_reframe(renew):
    by_verdict = {row.expect.verdict: row for row in rows.load()}
    chosen = [by_verdict["pass"], by_verdict["fail"]]
    _document, page = renew(
        measured=MEASURED,
        rows={row.id: table.result(row, [], 1) for row in chosen},
        reframe={"version": "4", "rows": {row.id: {"answer": "pass", "says": ""} for row in chosen}},
    )
    assert "of the 1 faults that it can express and that must not pass: 0 fail, 1 pass" in page


def test_every_group_has_rows_that_can_be_played_alone():
    assert {row.group for row in rows.load()} == set(rows.GROUPS)
