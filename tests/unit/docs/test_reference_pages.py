# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The reference pages hold every criterion and every check of a preflight, as their sources have them."""

from __future__ import annotations

import re

import pytest
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._preflight.checks import TITLES

from tests.docs import criteria, pages, preflight
from tests.docs.__main__ import PAGES, stale


@pytest.mark.parametrize("page", [name for name in PAGES if name.startswith("docs/reference/")])
def test_the_page_is_what_its_sources_generate(page):
    assert not stale(page), "run make pages"


def test_every_file_of_common_criteria_is_on_the_page(root):
    assert {path.stem for path in root.glob("files/criteria/*.yml")} == set(criteria.COMMON)


@pytest.mark.parametrize(
    ("criterion", "cells"),
    [
        (
            {"id": "C-1", "title": "Time", "query": "a|b", "lt": 3, "unit": "s", "remedy": "See <node>, `<id>`"},
            ["`C-1`", "Time", "`< 3 s`", "`a\\|b`", "everywhere", "See &lt;node>, `<id>`"],
        ),
        (
            {
                "id": "C-2",
                "title": "T",
                "each": {"over": "gpu", "query": "lost", "count": 2, "eq": 0},
                "severity": "record",
                "applies_when": {"locked": [True], "accelerator": ["cuda", "cpu"]},
            },
            [
                "`C-2`",
                "T",
                "`each of 2: = 0`; only recorded",
                "`lost` of each of `gpu`",
                "locked: true; accelerator: cuda or cpu",
                "-",
            ],
        ),
        (
            {"id": "C-3", "title": "T", "log": ["stdout", "stderr"], "absent": "oom"},
            ["`C-3`", "T", "`no oom`", "log stdout and stderr", "everywhere", "-"],
        ),
        (
            {"id": "C-4", "title": "T", "artifact": "m.pt", "exists": True},
            ["`C-4`", "T", "`exists and is not empty`", "artifact `m.pt`", "everywhere", "-"],
        ),
    ],
)
def test_a_criterion_in_a_row(criterion, cells):
    assert criteria.row(criterion) == cells


def test_every_check_with_a_remedy_has_a_title():
    remedies = preflight.read_remedies()
    lone = {name for name in remedies if re.fullmatch(r"[a-z]+\.[a-z_]+", name)} - set(TITLES)
    assert lone == {"gpu.unread", "gpu.unsupported", "node.busy", "step.failed"}  # symptoms, not checks


def test_every_check_is_on_the_page_with_its_title():
    page = preflight.tables()
    assert [name for name, title in TITLES.items() if f"| `{name}` | {pages.prose(title)} |" not in page] == []


def test_a_page_without_its_markers_is_refused():
    with pytest.raises(ValueError, match="does not have both lines"):
        pages.renewed("text", "layers", "new")


def test_only_what_is_between_the_markers_is_renewed():
    begin, end = pages.BEGIN.format(name="x"), pages.END.format(name="x")
    assert pages.renewed(f"a\n{begin}\nold\n{end}\nb\n", "x", "new\n") == f"a\n{begin}\nnew\n{end}\nb\n"
