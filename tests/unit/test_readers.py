# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Keys that stand twice are refused by the readers of YAML and JSON, and nothing is read past these."""

from __future__ import annotations

import ast
import configparser
import io
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.mlops.hpc_validation.plugins.module_utils._common import strict_json as common_strict_json
from ansible_collections.mlops.hpc_validation.plugins.module_utils._evidence import document, reduce
from ansible_collections.mlops.hpc_validation.plugins.module_utils._evidence.opening import EvidenceError
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._common import json_files, strict_yaml
from kit import strict_json

from tests.unit.conftest import ROOT

# Where json.loads stands, and why it may.
PLAIN = {
    "plugins/module_utils/_common/strict_json.py": "the reader",
    "plugins/module_utils/_beegfs/json_v8.py": "several documents in one text, by the reader's own hook",
    "files/kit/strict_json.py": "the reader",
    "files/edge/strict_json.py": "the reader, on a device",
    "plugins/module_utils/_evidence/rows.py": "many rows at once, by the reader's own hook",
    "files/kit/staging/asset.py": "what it wrote itself a moment before",
    "files/kit/share/mounts.py": "sent alone to a node that cannot read the share; its child's answer",
    "files/kit/share/speed.py": "fio's answer",
    "files/kit/gpu/kernel_log.py": "journalctl's answer",
}


@pytest.mark.parametrize("reader", [common_strict_json, strict_json])
@pytest.mark.parametrize(
    ("text", "key", "lines"),
    [
        ('{"a": 1,\n"b": 2,\n"a": 3}', "a", (1, 3)),
        ('[{"a": 1}, {"a": 1}, {\n"a": 1, "a": 2}]', "a", (2, 2)),
        ('\n{"a": "b",\n"b": 1,\n"a": 2}', "a", (2, 4)),
        ('{"a": 1,\n"a": 2,\n"b": 1,\n"b": 2}', "a", (1, 2)),
        ('{"x": 1, "a": 2, "y": 3,\n"a": 4}', "a", (1, 2)),
        ('{"a": {"b": 1,\n "c": [{}, "b"],\n\n "b": 2}, "a": 3}', "b", (1, 4)),
        ('{"a": "{\\"a\\": 1",\n "\\u0061": 2}', "a", (1, 2)),
        ('{"a": 1, "a" \n\t: 1}', "a", (1, 1)),
        ('{"x": {"a": 1},\n "x": {"a": 2}}', "x", (1, 2)),
    ],
)
def test_json_with_a_key_twice_is_refused_with_both_lines(
    reader: Any, text: str, key: str, lines: tuple[int, int]
) -> None:
    for content in (text, text.encode()):
        with pytest.raises(reader.DuplicateKeyError) as caught:
            reader.parse(content)
        assert (caught.value.key, caught.value.lines) == (key, lines)
        assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize("parse", [common_strict_json.parse, strict_json.parse])
def test_other_json_is_read_as_ever(parse: Callable[..., Any]) -> None:
    assert parse('{"a": {"a": ["a", {"a": "a"}]}, "b": "a"}') == {"a": {"a": ["a", {"a": "a"}]}, "b": "a"}
    assert parse("[1.5, NaN]", parse_float=str, parse_constant=str) == ["1.5", "NaN"]
    for wrong in ("", "{", b"\xff", '{"a": 1} {"a": 1}'):
        with pytest.raises(ValueError, match=r"."):
            parse(wrong)
    with pytest.raises(TypeError):
        parse(None)


def test_files_are_read_so_too(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text('{"a": 1,\n "a": 2}')
    for read in (json_files.read_json, strict_json.read):
        with pytest.raises(ValueError, match="lines 1 and 2"):
            read(path)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("criteria: [1]\nid: x\ncriteria: [2]\n", ["'criteria'", "lines 1 and 3"]),
        ("- {gt: 0.95,\n   gt: 0.05}\n", ["'gt'", "lines 1 and 2"]),
        ("a:\n  b: 1\n  'b': 1\n", ["'b'", "lines 2 and 3"]),
        ("yes: 1\ntrue: 2\n", ["True", "lines 1 and 2"]),
        ("1: 1\n0x1: 2\n", ["1", "lines 1 and 2"]),
        ("a: !!set {x,\n x}\n", ["'x'", "lines 1 and 2"]),
        ("a: &b {c: 1}\nd: *b\n", ["alias", "line 2"]),
        ("a:\n  <<: {b: 1}\n  c: 2\n", ["merge key", "line 2"]),
        ("a:\n  <<: [{b: 1}, {b: 2}]\n", ["merge key", "line 2"]),
        ("? [a]\n: 1\n", ["line 1"]),
        ("a: 1\n--- \na: 2\n", ["line 2"]),
        ("a: 9223372036854775808\n", ["64 bits", "line 1"]),
        ("a: -0x8000000000000000\n", ["64 bits"]),
        ("a: 010\n", ["010 is read as 8; write that, or put it in quotes", "line 1"]),
        ("a: -0_7\n", ["-0_7 is read as -7"]),
        ("a: 00\n", ["00 is read as 0"]),
        ("a: 1:30\n", ["1:30 is read as 90"]),
        ("a: 12:00:00\n", ["12:00:00 is read as 43200"]),
        ("a: 1_000\n", ["1_000 is read as 1000"]),
        ("a: 0x_ff\n", ["0x_ff is read as 255"]),
        ("a: 1:30.5\n", ["1:30.5 is read as 90.5"]),
        ("a: 1_0.5\n", ["1_0.5 is read as 10.5"]),
        ("010: 1\n", ["010 is read as 8"]),
        ("a: !!map x\n", ["expected a mapping node"]),
        ("a: 2026-13-45\n", ["month"]),
        ("[" * 3000, ["recursion"]),
        ("a: \x00\n", ["#x0000"]),
    ],
)
def test_yaml_that_would_drop_or_multiply_something_is_refused(text: str, says: list[str]) -> None:
    with pytest.raises(strict_yaml.YAMLError) as caught:
        strict_yaml.parse(text)
    assert [words for words in says if words not in str(caught.value)] == []


def test_other_yaml_is_read_as_ever(tmp_path: Path) -> None:
    text = "a: {b: [1, x, null, 2026-11-24], c: '<<'}\n'<<': {b: 1}\n1: -9223372036854775807\n2: 9223372036854775807\n"
    value = strict_yaml.parse(text)
    assert (value["a"]["c"], value["<<"], value[1], value[2]) == ("<<", {"b": 1}, -(2**63) + 1, 2**63 - 1)
    path = tmp_path / "x.yml"
    path.write_text(text)
    assert strict_yaml.read(path) == value
    path.write_bytes(b"a: \xff")
    with pytest.raises(strict_yaml.YAMLError, match="byte 3"):
        strict_yaml.read(path)


def test_numbers_that_say_what_they_are_are_read() -> None:
    text = "[0, -1, +10, 0x1F, 0b11, 1.5, 01.5, 0.5, .5, 1.0e+3, .inf, 2026, '010', 1e3, 0o17, 08]"
    expected = [0, -1, 10, 31, 3, 1.5, 1.5, 0.5, 0.5, 1000.0, float("inf"), 2026, "010", "1e3", "0o17", "08"]
    assert strict_yaml.parse(text) == expected


def test_who_writes_yaml_hears_of_everything_that_is_refused_at_once() -> None:
    source = strict_yaml.review(
        "a: &x 1\na: 2\nb: *x\nc:\n  <<: {d: 1}\n  e: 9223372036854775808\n  ? [f]\n  : 1\n  g: {h: 1, h: 2, i: 3}\n"
        "9223372036854775808: 1\n"
    )
    assert [(refusal.line, refusal.why) for refusal in sorted(source.refused, key=lambda each: each.line)] == [
        (2, "the key 'a' appears twice, on lines 1 and 2; keep one of them"),
        (3, "an alias is used; write the value out"),
        (5, "a merge key (<<) is used; write the values out"),
        (6, "a number has more than 64 bits"),
        (7, "a key is not a scalar"),
        (9, "the key 'h' appears twice, on lines 9 and 9; keep one of them"),
        (10, "a number has more than 64 bits"),
    ]
    assert source.value == {"a": 1, "b": None, "c": {"e": None, "g": {"h": 1, "i": 3}}, None: 1}


@pytest.mark.parametrize(
    ("text", "line", "why"),
    [
        ("a:\n  b: [1\nc: 2\n", 3, "it is not YAML: while parsing a flow sequence: expected ',' or ']'"),
        ("a: 1\nb: x: y\n", 2, "it is not YAML: mapping values are not allowed here"),
        (
            "a: 1\n--- \na: 2\n",
            2,
            "it is not YAML: expected a single document in the stream: but found another document",
        ),
        ("a: 2026-13-45\n", 1, "it is not YAML: month must be in 1..12"),
        ("a: \x00\n", 1, "it is not YAML: unacceptable character #x0000: special characters are not allowed"),
    ],
)
def test_what_is_no_yaml_is_refused_where_it_stands(text: str, line: int, why: str) -> None:
    source = strict_yaml.review(text)
    assert (source.value, source.lines) == (None, {})
    (refusal,) = source.refused
    assert refusal.line == line
    assert refusal.why.startswith(why)


def test_each_key_and_element_has_its_line() -> None:
    text = "---\n# words\nid: x\nlimits: {queue: 1,\n  run: 2}\n"
    text += "criteria:\n  - id: a\n    gt: 1\n  - {id: b,\n     lt: 2}\n"
    source = strict_yaml.review(text)
    assert (source.value, source.refused) == (strict_yaml.parse(text), [])
    lines = {
        (): 3,
        ("id",): 3,
        ("limits",): 4,
        ("limits", "queue"): 4,
        ("limits", "run"): 5,
        ("criteria",): 6,
        ("criteria", 0): 7,
        ("criteria", 0, "id"): 7,
        ("criteria", 0, "gt"): 8,
        ("criteria", 1): 9,
        ("criteria", 1, "id"): 9,
        ("criteria", 1, "lt"): 10,
    }
    assert source.lines == lines
    assert {place: source.line(place) for place in lines} == lines
    assert source.line(("criteria", 1, "between", 0)) == source.line(("criteria", 1, "between")) == 9
    assert source.line(("name",)) == 3
    empty = strict_yaml.review("")
    assert (empty.value, empty.refused, empty.line(("id",))) == (None, [], 1)


def _calls(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            yield f"{node.value.id}.{node.attr}"


def test_nothing_is_read_past_the_readers() -> None:
    files = [path for folder in ("plugins", "files", "roles") for path in (ROOT / folder).rglob("*.py")]
    found = {str(path.relative_to(ROOT)): set(_calls(path)) for path in files}
    plain = {name for name, calls in found.items() if calls & {"json.load", "json.loads", "json.JSONDecoder"}}
    assert plain == set(PLAIN)
    loaders = {"yaml.load", "yaml.safe_load", "yaml.safe_load_all", "yaml.load_all", "yaml.full_load"}
    assert {name for name, calls in found.items() if calls & loaders} == {
        "files/kit/profiles/document.py",  # of one word, how most readers take it
        "plugins/plugin_utils/_common/strict_yaml.py",
        "files/workloads/gpt_pretraining/settings.py",  # on the nodes, and it refuses duplicate keys as well
    }


def test_every_file_that_ships_has_each_key_once() -> None:
    for path in sorted((ROOT / "files").rglob("*.json")):
        json_files.read_json(path)
    tables = [path for folder in ("files", "tests/mutation") for path in (ROOT / folder).rglob("*.yml")]
    for path in sorted(tables):
        strict_yaml.read(path)


ROW = b'{"job_id": "12", "attempt": 0, "loss": 1}\n'


@pytest.mark.parametrize("row", [b'{"job_id": "12", "attempt": 0, "loss": 9, "loss": 1}', b'{"a": {"b": 1, "b": 2}}'])
@pytest.mark.parametrize("place", ["first", "middle", "last", "cut off"])
def test_rows_with_a_key_twice_are_refused(row: bytes, place: str) -> None:
    before, after = {"first": (0, 3), "middle": (2, 2)}.get(place, (3, 0))
    content = ROW * before + row + (b"" if place == "cut off" else b"\n") + ROW * after
    with pytest.raises(EvidenceError) as caught:
        reduce.reduce_rows(io.BytesIO(content), "jsonl", "12", 0)
    assert caught.value.problem == "duplicate_key"


def test_a_document_with_a_key_twice_names_both_lines() -> None:
    with pytest.raises(EvidenceError, match="lines 1 and 2") as caught:
        document.parse(b'{"job_id": "12",\n "job_id": "13"}')
    assert caught.value.problem == "duplicate_key"


def test_ansible_reads_inventories_as_strictly_in_a_checkout() -> None:
    """What Ansible parses never comes before our readers."""
    settings = configparser.ConfigParser()
    settings.read(ROOT / "ansible.cfg")
    assert settings["defaults"]["duplicate_dict_key"] == "error"
