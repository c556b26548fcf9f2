# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Findings as columns: what is packed comes back whole, and what is damaged does not come back."""

from __future__ import annotations

import copy
import gzip
import json
import typing as t

import pytest
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._common import schema
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._findings import columns
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.conftest import ROOT
from tests.unit.plugins.plugin_utils._findings.made import finding

Json = dict[str, t.Any]
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-5, 5)
    | st.floats(allow_nan=False, allow_infinity=False, width=16)
    | st.text("ab"),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text("ab"), inner, max_size=2),
    max_leaves=4,
)
FINDINGS = st.lists(
    st.builds(
        finding,
        st.sampled_from(["gpu.ecc", "node.job", "share.mounted"]),
        st.sampled_from(columns.VERDICTS),
        value=VALUES,
        why=st.sampled_from(["a", "b"]),
        unit=st.sampled_from([None, "s"]),
        node=st.sampled_from(["n1", "n2"]),
    ),
    max_size=12,
)


def told(findings: t.Iterable[Json]) -> list[str]:
    return sorted(json.dumps(each, sort_keys=True) for each in findings)


@given(FINDINGS, FINDINGS)
def test_all_findings_come_back_whole(first: list[Json], second: list[Json]) -> None:
    packed = columns.pack(columns.Table(first))
    assert packed == columns.pack(columns.Table(copy.deepcopy(first)))
    table = columns.Table()
    table.merge(columns.unpack(packed))
    table.merge(columns.unpack(columns.pack(columns.Table(second))))
    assert told(table) == told([*first, *second])
    assert len(table) == sum(table.verdicts().values()) == len(first) + len(second)
    assert schema.problems("findings", columns.document(table)) == []


def test_it_knows_what_a_finding_may_hold() -> None:
    known = json.loads((ROOT / "files/schemas/finding.json").read_text(encoding="utf-8"))
    parts = known["properties"]
    assert list(columns.VERDICTS) == parts["verdict"]["enum"]
    assert {name: list(choices) for name, choices in columns._CHOICES.items()} == {
        name: part["enum"] for name, part in parts.items() if isinstance(part, dict) and "enum" in part
    }
    assert set(parts["where"]["properties"]) == columns._WHERE
    assert set(known["required"]) == columns._KEYS == {"id", *columns.FIELDS, "where"}
    assert columns._ID.pattern == parts["id"]["pattern"].strip("^$")


def test_what_is_the_same_everywhere_is_written_once() -> None:
    document = columns.document(columns.Table([finding(), finding(), finding("node.job")]))
    assert document["places"] == [{"node": "n1"}]
    assert document["at"] == [[0, 0], [0]]
    assert {tuple(column) for check in document["checks"] for column in check["fields"].values()} == {("values",)}


def test_a_place_may_have_every_part() -> None:
    where = dict.fromkeys(sorted(columns._WHERE), "x")
    (back,) = columns.Table([{**finding(), "where": where}])
    assert back["where"] == where


def test_an_empty_check_is_refused() -> None:
    document = columns.document(columns.Table([finding()]))
    empty = {**document["checks"][0], "count": 0, "at": 1}
    with pytest.raises(columns.ColumnsError):
        columns.table({**document, "count": 0, "at": [[0], []], "checks": [empty]})


def test_equal_values_of_different_types_are_told_apart() -> None:
    values = [1, 1.0, True, "1", None, [1], [True]]
    table = columns.Table(finding(value=value) for value in values)
    assert [repr(each["value"]) for each in columns.unpack(columns.pack(table))] == list(map(repr, values))


def test_what_a_terminal_would_act_on_is_taken_out() -> None:
    (back,) = columns.unpack(columns.pack(columns.Table([finding(why="\x1b[31m", value=float("nan"), node="n\x07")])))
    assert "\x1b" not in back["why"]
    assert "\x07" not in back["where"]["node"]
    assert isinstance(back["value"], str)


@pytest.mark.parametrize(
    "changes",
    [
        {"id": "x"},
        {"id": 5},
        {"verdict": "passed"},
        {"verdict": None},
        {"title": 5},
        {"why": None},
        {"unit": 5},
        {"remedy": []},
        {"severity": "high"},
        {"bound_from": "x"},
        {"where": None},
        {"where": {"node": 5}},
        {"where": {"rack": "r1"}},
        {"where": {"node": 5, "host": "login"}},
        {"more": 1},
    ],
)
def test_what_is_no_finding_is_refused(changes: Json) -> None:
    with pytest.raises(columns.ColumnsError, match="not a finding"):
        columns.Table([{**finding(), **changes}])


@pytest.mark.parametrize("lacking", sorted(finding()))
def test_a_finding_without_a_part_is_refused(lacking: str) -> None:
    with pytest.raises(columns.ColumnsError, match="not a finding"):
        columns.Table([{key: value for key, value in finding().items() if key != lacking}])


def test_what_is_not_even_an_object_is_refused() -> None:
    with pytest.raises(columns.ColumnsError, match="not a finding"):
        columns.Table(t.cast(t.Any, ["x"]))


def _changed(path: str, value: t.Any) -> Json:
    """Return a good document but for one value; None takes it away."""
    document = columns.document(columns.Table([finding(why="a"), finding(why="b", node="n2")]))
    *parents, last = [int(key) if key.isdigit() else key for key in path.split("/")]
    part: t.Any = document
    for key in parents:
        part = part[key]
    if value is None:
        del part[last]
    else:
        part[last] = value
    return document


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("schema", 2),
        ("count", 3),
        ("places", [{"node": "n1"}]),
        ("places/0", {"node": 5}),
        ("at", []),
        ("at/0", [0]),
        ("at/0", [0, -1]),
        ("at/0", [0, 0.5]),
        ("at/0", [0, 2]),
        ("checks", None),
        ("checks/0/id", "X"),
        ("checks/0/count", 1),
        ("checks/0/at", -1),
        ("checks/0/at", "0"),
        ("checks/0/at", True),
        ("checks/0/fields/why", None),
        ("checks/0/fields/why/which", None),
        ("checks/0/fields/why/which", [0]),
        ("checks/0/fields/why/which", [0, 2]),
        ("checks/0/fields/why/values", ["a"]),
        ("checks/0/fields/why/values", ["a", None]),
        ("checks/0/fields/why/values", "ab"),
        ("checks/0/fields/verdict/values", ["passed"]),
        ("checks/0/fields/verdict/values", []),
    ],
)
def test_a_document_whose_parts_do_not_agree_is_refused(path: str, value: t.Any) -> None:
    assert len(columns.table(_changed("schema", 1))) == 2
    with pytest.raises(columns.ColumnsError):
        columns.table(_changed(path, value))


def test_a_check_that_appears_twice_is_refused() -> None:
    document = columns.document(columns.Table([finding()]))
    with pytest.raises(columns.ColumnsError, match="twice"):
        columns.table({**document, "count": 2, "checks": document["checks"] * 2})


@pytest.mark.parametrize(
    "content", [b"", b"x", b"{}", *(gzip.compress(text, mtime=0) for text in (b"{}", b"[", b"[" * 99999))]
)
def test_what_is_not_a_packed_table_is_refused(content: bytes) -> None:
    with pytest.raises(columns.ColumnsError):
        columns.unpack(content)


def test_every_prefix_of_a_packed_table_is_refused() -> None:
    packed = columns.pack(columns.Table([finding(), finding("node.job")]))
    for length in range(len(packed)):
        with pytest.raises(columns.ColumnsError):
            columns.unpack(packed[:length])


def test_more_than_fits_into_memory_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    packed = columns.pack(columns.Table([finding()]))
    assert packed[4:8] == bytes(4)  # no time of writing
    monkeypatch.setattr(columns, "MAX_BYTES", len(gzip.decompress(packed)))
    assert len(columns.unpack(packed)) == 1
    monkeypatch.setattr(columns, "MAX_BYTES", 100)
    with pytest.raises(columns.ColumnsError, match="more than 100 bytes"):
        columns.unpack(packed)
