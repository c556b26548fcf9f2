# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import math
import os
import threading

import pytest
from kit.profiles import document
from kit.profiles.document import UnreadableError, parse


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1", 1),
        ("-3", -3),
        ("1e-3", 1e-3),
        ("1.0e-3", 1e-3),
        (".5", 0.5),
        ("5.", 5.0),
        ("1E5", 1e5),
        ("true", True),
        ("True", True),
        ("TRUE", True),
        ("null", None),
        ("Null", None),
        ("NULL", None),
        ("~", None),
        ("", None),
        ("2.1.0", "2.1.0"),
        ('"yes"', "yes"),
        ("'010'", "010"),
        ('"48:00:00"', "48:00:00"),
        ("[1, 2.5, a]", [1, 2.5, "a"]),
        ("{a: 1}", {"a": 1}),
        (".inf", math.inf),
        ("+.inf", math.inf),
        ("-.inf", -math.inf),
        ("false", False),
        ("False", False),
        ("FALSE", False),
    ],
)
def test_a_scalar_is_what_everybody_takes_it_for(text, value):
    read = parse(f"key: {text}\n")
    assert (read.value, read.findings) == ({"key": value}, [])
    assert type(read.value["key"]) is type(value)


@pytest.mark.parametrize(
    "text",
    [
        "yes",
        "No",
        "on",
        "Off",
        "010",
        "0x1F",
        "0b11",
        "1:30",
        "48:00:00",
        "1_000",
        "017",
        "08",
        "2026-01-31",
        "1:30.5",
        "1_000.5",
        "=",
        "08.5_1",
        "0x_",
        "1_" + "0" * 6000,
    ],
)
def test_what_readers_of_yaml_1_1_take_for_something_else_is_refused(text):
    (refused,) = parse(f"a: 1\nkey: {text}\n").findings
    assert (refused.place, refused.line) == (("key",), 2)


@pytest.mark.parametrize(
    ("text", "line", "place"),
    [
        ("a: 1\nb: 2\na: 3\n", 3, ("a",)),
        ("s:\n  a: 1\n  a: 2\n", 3, ("s", "a")),
        ("a: 1\n---\nb: 2\n", 2, ()),
        ("a: 1\n---\n", 2, ()),
        ("", 1, ()),
        ("# nothing\n", 1, ()),
        ("- a\n", 1, ()),
        ("a: &x 1\n", 1, ("a",)),
        ("a: !!python/name:os.system 1\n", 1, ("a",)),
        ("a: !!str 1\n", 1, ("a",)),
        ("a: 1\n<<: {b: 1}\n", 2, ()),
        ("[1]: 2\n", 1, ()),
    ],
)
def test_what_is_dropped_or_expanded_elsewhere_is_refused_on_its_line(text, line, place):
    assert (line, place) in [(each.line, each.place) for each in parse(text).findings]


def test_of_a_key_that_is_there_twice_the_first_counts_and_its_line():
    read = parse("a: 1\na: 2\n")
    assert (read.value, read.line(("a",))) == ({"a": 1}, 1)


@pytest.mark.parametrize("text", [".nan", ".NaN"])
def test_what_is_no_number_is_none(text):
    read = parse(f"key: {text}\n")
    assert (math.isnan(read.value["key"]), read.findings) == (True, [])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("yes", 'yes is True for most readers of YAML; write true, or "yes" if it is a text'),
        ("OFF", 'OFF is False for most readers of YAML; write false, or "OFF" if it is a text'),
        ("0x10", '0x10 is 16 for most readers of YAML; write 16, or "0x10" if it is a text'),
        ("1:30.5", '1:30.5 is 90.5 for most readers of YAML; write "1:30.5"'),
        ("48:00:00", '48:00:00 is 172800 for most readers of YAML; write "48:00:00"'),
        ("1_000.5", '1_000.5 is 1000.5 for most readers of YAML; write 1000.5, or "1_000.5" if it is a text'),
        ("2026-01-31", '2026-01-31 is a date for most readers of YAML; write "2026-01-31"'),
        ("0x_", '0x_ is no number that can be read; write "0x_" if it is a text'),
    ],
)
def test_what_most_readers_take_it_for_is_told(text, said):
    (refused,) = parse(f"key: {text}\n").findings
    assert refused.text == said


def test_a_word_of_more_than_forty_characters_is_not_shown():
    shown, hidden = f"0x{'1' * 38}", f"0x{'1' * 39}"
    (one,), (other,) = parse(f"key: {shown}\n").findings, parse(f"key: {hidden}\n").findings
    assert one.text.startswith(f"{shown} is ")
    assert other.text == "most readers of YAML take it for something else (int); write it in quotes if it is a text"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a: 1\n---\nb: 2\n", {"a": 1}),
        ("[1, 2]: 3\nb: 4\n", {"b": 4}),
        ("a: 1\n<<: {b: 1}\n", {"a": 1}),
    ],
)
def test_what_is_refused_is_not_taken_and_all_else_is(text, value):
    assert parse(text).value == value


def test_an_empty_file_is_called_one():
    (refused,) = parse("").findings
    assert refused.text == "an empty file, expected a profile"


def test_twenty_levels_are_not_too_many():
    assert parse("[" * 20 + "1" + "]" * 20).value
    with pytest.raises(UnreadableError, match=r"^1: error: nested deeper than 20 levels"):
        parse("[" * 21 + "1" + "]" * 21)


def test_what_is_known_of_no_line_is_on_the_first():
    assert document.Document({}, "", {}).line(("a", "b")) == 1


@pytest.mark.parametrize("text", ["\nx\x85", "\nx\x07"])
def test_the_first_line_may_be_empty(text):
    with pytest.raises(UnreadableError, match=r"^2: error: "):
        parse(text)


def test_why_it_is_not_yaml_is_told_without_where_it_began():
    with pytest.raises(UnreadableError, match=r"^2: error: not YAML: did not find expected ',' or '\]'$"):
        parse("a: [1\n")


def test_an_alias_is_not_followed():
    read = parse("a: &x {b: 1}\nc: *x\n")
    assert read.value == {"a": {"b": 1}, "c": None}
    assert {each.place for each in read.findings} == {("a",), ("c",)}


def test_lines_are_known_of_what_is_there_and_of_what_is_not():
    read = parse("a:\n  b:\n    - 1\n    - 2\n")
    assert [read.line(place) for place in (("a", "b", 1), ("a", "b", 7), ("a", "c"), ("x",))] == [4, 2, 1, 1]


@pytest.mark.parametrize(
    ("text", "line"), [("a: 1\n\tb: 2\n", 2), ("a: [1\n", 2), ("a: 1\nb: 'x\n", 3), ("a: " + "[" * 50 + "]" * 50, 1)]
)
def test_what_is_not_yaml_names_its_line(text, line):
    with pytest.raises(UnreadableError, match=rf"^{line}: error: "):
        parse(text)


def test_a_file_that_is_missing_too_long_or_no_text_cannot_be_read(tmp_path):
    with pytest.raises(UnreadableError, match=r"^cannot be read: No such file or directory$"):
        document.read(tmp_path / "none")
    (tmp_path / "long").write_bytes(b"#" * 1_048_576)
    assert document.read(tmp_path / "long").value is None
    (tmp_path / "long").write_bytes(b"#" * 1_048_577)
    with pytest.raises(UnreadableError, match=r"^has more than 1,048,576 bytes; a profile has some thousands$"):
        document.read(tmp_path / "long")
    (tmp_path / "bytes").write_bytes(b"a: 1\nb: \xff\n")
    with pytest.raises(UnreadableError, match=r"^2: error: byte 8 is not UTF-8"):
        document.read(tmp_path / "bytes")


@pytest.mark.parametrize("text", ["y", "N", "tRue", "nULL", "00:20:00", "08:30:00", "1.2.3"])
def test_what_all_readers_take_for_text_is_text(text):
    found = parse(f"key: {text}\n")
    assert (found.value, found.findings) == ({"key": text}, [])


@pytest.mark.parametrize("mark", ["\x85", "\u2028", "\u2029"])
def test_a_line_break_that_few_know_is_refused_on_its_line(mark):
    with pytest.raises(UnreadableError, match=rf"^2: error: the line break U\+{ord(mark):04X}"):
        parse(f"a: 1\n# x{mark}y\nb: 2\n")


@pytest.mark.parametrize("end", ["\r\n", "\r"])
def test_lines_are_the_same_however_they_end(end):
    found = parse(f"a: 1{end}b:{end}  c: 010{end}")
    assert (found.lines[("b", "c")], [each.line for each in found.findings]) == (3, [3])


@pytest.mark.parametrize("loader", [document.yaml.SafeLoader, document._Loader])
def test_a_character_that_is_not_allowed_is_told_with_its_line_whatever_stands_before(monkeypatch, loader):
    monkeypatch.setattr(document, "_Loader", loader)
    with pytest.raises(UnreadableError, match=r"^2: error: not YAML: a character that it does not allow: U\+0001$"):
        parse("# " + "\xfc" * 300 + "\na: x # \x01\nb: 2\nc: 3\n")


def test_a_pipe_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    writer = os.open(tmp_path / "pipe", os.O_RDWR)  # else the test would wait without end where this is reverted
    os.write(writer, b"#" * 1000)
    threading.Timer(5, os.close, [writer]).start()
    with pytest.raises(UnreadableError, match=r"^is a pipe; expected a file$"):
        document.read(tmp_path / "pipe")


@pytest.mark.parametrize("text", ["a: !Winter2026 x", "a: !<Winter2026> x", "a: !!Winter2026 x"])
def test_a_tag_is_not_shown_as_it_may_be_a_secret_that_is_not_in_quotes(text):
    (refused,) = parse(text).findings
    assert refused.text == "a tag (!name) is used; a profile has none: write a text that begins with ! in quotes"


def test_what_pyyaml_quotes_of_the_file_is_not_shown(monkeypatch):
    monkeypatch.setattr(document, "_Loader", document.yaml.SafeLoader)
    with pytest.raises(UnreadableError) as refused:
        parse("a: 1\npassword: !hunter2hunter2!x y\n")
    assert str(refused.value) == "2: error: not YAML: found undefined tag handle (not shown)"


@pytest.mark.parametrize(
    "problem",
    ["did not find expected ',' or ']'", "expected <block end>, but found '<scalar>'", 'found "\'"', "it's so"],
)
def test_what_pyyaml_quotes_of_its_own_is_shown(problem):
    assert document._unquoted(problem) == problem


def test_both_kinds_of_quotes_are_emptied():
    assert document._unquoted("found \"it's\", not 'ab'") == "found (not shown), not (not shown)"


def test_a_character_that_is_not_allowed_is_told_with_its_line():
    with pytest.raises(UnreadableError, match=r"^3: error: not YAML: a character"):
        parse("a: 1\nb: 2\nc: x\x07\n")


@pytest.mark.parametrize("key", ["!!binary epochs", "&anchor epochs"])
def test_a_key_has_no_tag_and_no_anchor(key):
    (refused,) = parse(f"{key}: 100\n").findings
    assert refused.text == "a tag or an anchor at a key is used; a profile has none"


def test_sections_as_keys_are_no_way_to_nest_without_end():
    with pytest.raises(UnreadableError, match="nested deeper than 20 levels"):
        parse("{" * 600 + "}: 1" * 600)


@pytest.mark.parametrize("value", ["0x1234567890abcdef", "012345670123"])
def test_a_number_under_a_credentials_key_is_not_shown(value):
    (refused,) = parse(f"token: {value}\n").findings
    assert value not in str(refused)
    assert "85968" not in str(refused)
