# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Markdown of what a job reported."""

from __future__ import annotations

from typing import Any

import pytest
from kit.pretraining import markdown


@pytest.mark.parametrize(
    ("value", "line"),
    [
        (None, "not known"),
        ("plain text 1.5", "plain text 1.5"),
        (7, "7"),
        ("a|b", "a\\|b"),
        ("`x` *y* _z_ [a](b) #1 ~c~ !d", "\\`x\\` \\*y\\* \\_z\\_ \\[a\\]\\(b\\) \\#1 \\~c\\~ \\!d"),
        ("{a}+\\", "\\{a\\}\\+\\\\"),
        ("<b>&@$", "&lt;b&gt;&amp;&#64;&#36;"),
        ("gs://bucket", "gs:&#47;/bucket"),
        ("one\ntwo\x1b[31m\u202e", "one two \\[31m "),
        ("x" * 201, "x" * 200),
    ],
)
def test_text_is_plain_and_on_one_line(value: Any, line: str) -> None:
    assert markdown.text(value) == line


def test_a_table() -> None:
    assert markdown.table(("A", "B"), [("1", "2"), ("3", "4")]) == [
        "| A | B |",
        "| --- | --- |",
        "| 1 | 2 |",
        "| 3 | 4 |",
    ]
