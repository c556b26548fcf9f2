# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The screen of 1,000 nodes is what the collection prints, and as short as for two."""

from __future__ import annotations

from tests.docs import screens
from tests.docs.pages import ROOT


def test_the_screen_of_a_thousand_nodes_is_as_the_page_shows_it_and_short() -> None:
    screen = screens.thousand()
    assert screen in (ROOT / "docs/verdicts.md").read_text(encoding="utf-8"), "run make pages"
    lines = screen.split("\n")
    assert len(lines) <= 60
    assert max(map(len, lines)) <= 120
