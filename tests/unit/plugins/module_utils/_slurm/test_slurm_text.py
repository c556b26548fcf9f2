# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Cleaning and reading of what Slurm's commands print."""

from __future__ import annotations

import pytest
from ansible_collections.mlops.hpc_validation.plugins.module_utils._slurm import text
from hypothesis import given
from hypothesis import strategies as st


@pytest.mark.parametrize(
    ("printed", "expected"),
    [
        ("30:00", 1800),
        ("1:00:00", 3600),
        ("2-00:00:00", 172800),
        ("00:00", 0),
        ("UNLIMITED", None),
        ("N/A", None),
        ("", None),
        ("1:2:3:4", None),
        ("-5:00", None),
    ],
)
def test_duration(printed: str, expected: int | None) -> None:
    assert text.duration(printed) == expected


@pytest.mark.parametrize(
    ("printed", "expected"),
    [
        ("0", (0, 0)),
        ("256", (1, 0)),
        ("9", (0, 9)),
        ("253", (0, 125)),
        ("33280", (130, 0)),
        ("0:9", (0, 9)),
        ("130:0", (130, 0)),
        ("", (None, None)),
        ("70000", (None, None)),
        ("x:1", (None, None)),
        ("-1", (None, None)),
    ],
)
def test_exit_codes_of_all_releases(printed: str, expected: tuple[int | None, int | None]) -> None:
    assert text.wait_status(printed) == expected


@pytest.mark.parametrize(
    ("gres", "expected"),
    [
        ("gpu:2", {"gpu": 2}),
        ("gpu:h200:2(S:0-1),shard:4", {"gpu": 2, "shard": 4}),
        ("gres/gpu:1", {"gpu": 1}),
        ("gpu:a100:1,gpu:h100:3", {"gpu": 4}),
        ("gpu", {"gpu": 1}),
        ("(null)", {}),
        ("", {}),
        ("mem:4K", {"mem": 4096}),
    ],
)
def test_gres(gres: str, expected: dict[str, int]) -> None:
    assert text.gres_counts(gres) == expected


@pytest.mark.parametrize(
    ("tres", "expected"),
    [
        ("cpu=1,mem=100M,gres/gpu=2", 2),
        ("cpu=1,gres/gpu:h200=2,gres/gpu=2", 2),
        ("cpu=1,gres/gpu:h200=2", 2),
        ("cpu=1,mem=100M", None),
        ("", None),
        ("gres/gpu=x", None),
    ],
)
def test_allocated_gpus(tres: str, expected: int | None) -> None:
    assert text.tres_count(tres) == expected


def test_clean_strips_escapes_and_controls() -> None:
    dirty = "a\x1b[31mred\x1b[0m\x1b]0;title\x07 \x00\x08b\r\nc\u202e"
    assert text.clean(dirty) == "ared b c"
    assert text.clean("x" * 500, 10) == "x" * 9 + "…"


@given(st.text())
def test_clean_is_always_one_printable_line(dirty: str) -> None:
    line = text.clean(dirty)
    assert "\n" not in line
    assert "\x1b" not in line
    assert all(ord(char) >= 32 and not 0x7F <= ord(char) <= 0x9F for char in line)


def test_free_text_cannot_set_a_key() -> None:
    line = "NodeName=n1 State=DOWN Reason=fan State=IDLE [root@2026]"
    assert text.key_values(line)["State"] == "DOWN"


@pytest.mark.parametrize(
    ("printed", "value"),
    [
        ("0", 0),
        (" 12 ", 12),
        ("9" * 18, int("9" * 18)),
        ("9" * 19, None),
        ("٣", None),
        ("1\u2028", None),
        ("-1", None),
        ("", None),
    ],
)
def test_a_number_is_decimal_and_of_bounded_length(printed: str, value: int | None) -> None:
    assert text.number(printed) == value


def test_seconds_are_added() -> None:
    assert text.duration("1-02:03:04") == 93784


def test_a_raw_wait_status_has_sixteen_bits() -> None:
    assert text.wait_status("65280") == (255, 0)
    assert text.wait_status("65535") == (0, 127)
    assert text.wait_status("65536") == (None, None)
    assert text.wait_status("267") == (0, 11)


def test_a_line_is_cut_only_where_it_is_longer() -> None:
    assert text.clean("x" * 10, 10) == "x" * 10
    assert text.clean("x" * 11, 10) == "x" * 9 + "…"


def test_a_line_is_cut_at_400_characters_unless_told_otherwise() -> None:
    for length in (400, 401):
        line = "x" * 400 if length == 400 else "x" * 399 + "…"
        assert text.clean("x" * length) == line
        assert text.clean_lines("x" * length, 1) == [line]


def test_the_last_lines_that_say_something() -> None:
    assert text.clean_lines("a\n\n \nb\rc\n", 2) == ["b", "c"]
    assert text.clean_lines("a\nb", 1) == ["b"]
    assert text.clean_lines("a\nb", 0) == []
    assert text.clean_lines("a\nb", 9) == ["a", "b"]


def test_counts_of_resources_without_a_number_count_nothing_or_one() -> None:
    assert text.tres_count("gres/gpu:a=x,gres/gpu:b=2") == 2
    assert text.gres_counts("gpu:h200") == {"gpu": 1}
    assert text.gres_counts("gpu,gpu:x:2,") == {"gpu": 3}
    assert text.gres_types("gpu:h200:2,gpu:4,shard:x:1,gpu,gpu:a100") == ["a100", "h200"]
