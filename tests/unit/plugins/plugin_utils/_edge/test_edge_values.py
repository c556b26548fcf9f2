# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Values for a card: a number, or a text that says why there is none, from whatever was written."""

from __future__ import annotations

import typing as t

import pytest
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._edge import values


@pytest.mark.parametrize(
    ("document", "found", "part"),
    [
        ({"a": {"b": 1}}, 1, {}),
        ({"a": {"b": {"c": 2}}}, {"c": 2}, {"c": 2}),
        ({"a": [1]}, None, {}),
        ({}, None, {}),
        (None, None, {}),
        ([{"a": 1}], None, {}),
    ],
)
def test_a_path_leads_to_a_value_or_to_nothing(document: t.Any, found: t.Any, part: t.Any) -> None:
    assert values.at(document, "a", "b") == found
    assert values.part(document, "a", "b") == part


def test_what_is_no_list_has_no_entries() -> None:
    assert values.entries([1, 2]) == [1, 2]
    assert values.entries({"a": 1}) == values.entries("ab") == values.entries(None) == []


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (0, 0),
        (1.5, 1.5),
        (None, "lacking"),
        ("", "lacking"),
        ("no sensor", "no sensor"),
        ("NaN", "expected a number, found NaN"),
        (float("inf"), "expected a number, found inf"),
        (True, "expected a number, found true, a boolean"),
        ([], "expected a number, found an empty list"),
    ],
)
def test_what_is_no_number_says_why(value: t.Any, expected: t.Any) -> None:
    assert values.measured(value, "lacking") == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, None),
        ("", None),
        (0, "0"),
        (False, "false"),
        ("a\nb", "a b"),
        ("x" * 5, "xxxxx"),
        ("x" * 6, "xxxx…"),
        (123456, "1234…"),
    ],
)
def test_words_are_a_line_of_bounded_length(value: t.Any, expected: str | None) -> None:
    assert values.words(value, 5) == expected


@pytest.mark.parametrize("value", [None, 5, "", "0" * 63, "0" * 65, "G" * 64, "A" * 64, f"{'0' * 64}\n"])
def test_what_is_no_sha256_is_no_digest(value: t.Any) -> None:
    assert values.digest(value) is None
    assert values.digest("0a" * 32) == "0a" * 32
