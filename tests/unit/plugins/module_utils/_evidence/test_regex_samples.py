# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Lines made from a regular expression."""

from __future__ import annotations

import re

import pytest
from ansible_collections.mlops.hpc_validation.plugins.module_utils._evidence import regex_samples


@pytest.mark.parametrize(
    ("regex", "made"),
    [
        ("abc", [b"abc"]),
        ("a.c", [b"axc"]),
        ("a|bc", [b"a", b"bc"]),
        ("(?:ab|cd)(ef|gh)", [b"abef", b"abgh", b"cdef", b"cdgh"]),
        ("[Ee]rror", [b"error"]),
        ("[^x]", [b"X"]),
        ("[^xX1 ]", [b"0"]),
        (r"[\d-]", [b"1"]),
        (r"[^\w\s]", [b"!"]),
        (r"\d\D\s\S\w\W", [b"1x xx "]),
        ("[B-D]", [b"B"]),
        ("[W-X]", [b"X"]),
        ("[w-x]", [b"x"]),
        (r"[\x80-\xff]", [b"\x80"]),
        ("a{2,9}b*c+?d?", [b"aac"]),
        ("(?:ab){3}", [b"ababab"]),
        (r"^a\b$", [b"a"]),
        ("a(?=b)", [b"a", b"ab"]),
        ("a(?!b)", [b"a"]),
        ("(?<=a)b", [b"b", b"ab"]),
        ("é", ["é".encode()]),
        (r"(a)\1", []),
        (r"(a)(?:\1)*b", [b"ab"]),
        ("a{4096}", [b"a" * 4096]),
        (r"[^\w\W]", []),
        ("a{5000}", []),
        ("(?:a{4096})b", []),
    ],
)
def test_a_line_is_made_of_each_alternative(regex, made):
    assert sorted(regex_samples.samples(regex)) == sorted(made)


def test_the_lines_are_few_and_short_however_many_alternatives_there_are():
    made = regex_samples.samples("(?:ab|cd)" * 30 + "|" + "(?:(?:x{1000}){1000}){1000}")
    assert len(made) == regex_samples.MAX_SAMPLES
    assert max(map(len, made)) <= regex_samples.MAX_LENGTH
    assert all(re.fullmatch(rb"[abcd]{60}", line) for line in made)
