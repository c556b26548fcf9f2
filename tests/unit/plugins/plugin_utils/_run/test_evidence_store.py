# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Evidence that was saved is read back whole, or not at all."""

from __future__ import annotations

import datetime
import json
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._common import plain as plain_json
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._run import evidence as store


@pytest.fixture
def document(example: Any) -> dict[str, Any]:
    found: dict[str, Any] = example("evidence")
    return found


def test_what_was_saved_is_read_back(document: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "evidence" / "x.json"
    store.save(dict(sorted(document.items(), reverse=True)), str(path))
    assert store.load(str(path)) == document
    assert store.is_evidence(document)
    text = path.read_text()
    assert text.endswith("}\n")
    assert list(json.loads(text)) == sorted(document)
    assert text.startswith('{\n "')


def test_what_no_other_reader_accepts_is_not_saved_as_it_is(document: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    store.save({**document, "x": float("nan"), "y": "\ud800"}, str(path))
    assert "NaN" not in path.read_text().replace('"NaN"', "")
    assert store.load(str(path))["y"] == "?"


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b"{}",
        b"\xff",
        b'{"schema": 2, "schema": 1, "logs": {}, "artifacts": {}, "files": {}, "problems": []}',
        b'{"schema": 99, "logs": {}, "artifacts": {}, "files": {}, "problems": []}',
        b'{"logs": {}, "artifacts": {}, "files": {}, "problems": []}',
    ],
)
def test_what_is_no_evidence_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "x.json"
    path.write_bytes(content)
    with pytest.raises(store.EvidenceStoreError, match=str(path)):
        store.load(str(path))


@pytest.mark.parametrize("part", ["logs", "artifacts", "files", "problems"])
@pytest.mark.parametrize("value", [None, "x", 1])
def test_every_part_must_be_there(document: dict[str, Any], tmp_path: Path, part: str, value: Any) -> None:
    damaged = {**document, part: value}
    path = tmp_path / "x.json"
    path.write_text(json.dumps(damaged))
    with pytest.raises(store.EvidenceStoreError, match=part):
        store.load(str(path))
    assert not store.is_evidence(damaged)
    assert not store.is_evidence([document])


def test_a_file_that_is_not_there_says_so(tmp_path: Path) -> None:
    with pytest.raises(store.EvidenceStoreError, match="No such file"):
        store.load(str(tmp_path / "x.json"))


@pytest.mark.parametrize(("more", "taken"), [(0, True), (1, False)])
def test_it_is_read_up_to_a_limit(
    document: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, more: int, taken: bool
) -> None:
    path = tmp_path / "x.json"
    store.save(document, str(path))
    monkeypatch.setattr(store, "MAX_BYTES", path.stat().st_size)
    path.write_bytes(path.read_bytes() + b" " * more)
    if taken:
        assert store.load(str(path)) == document
    else:
        with pytest.raises(store.EvidenceStoreError, match="larger than"):
            store.load(str(path))
    assert store.is_evidence(document)


def test_the_limit_is_64_mebibytes() -> None:
    assert store.MAX_BYTES == 64 * 1024 * 1024


def test_where_nothing_was_collected_everything_is_to_blame() -> None:
    document = store.nothing_collected("the host is gone")
    assert store.is_evidence(document)
    (problem,) = document["problems"]
    assert problem == {"source": "*", "path": "", "problem": "not_collected", "detail": "the host is gone"}
    assert document["schema"] == 1
    assert store.nothing_collected("x", "timeout")["problems"][0]["problem"] == "timeout"


class Tagged(str):
    """As Ansible's texts are."""

    def __str__(self) -> str:
        return "a tag"


class Count(int):
    """As Ansible's numbers are."""


class Share(float):
    """As Ansible's numbers are."""


def test_only_json_of_its_own_types_is_left() -> None:
    given = {
        Tagged("a"): [Tagged("x"), Count(-3), Share(0.5), True, None, (1, 2)],
        1: {"day": datetime.date(2026, 11, 24), "time": datetime.datetime(2026, 11, 24, 1, 2, 3)},
        "other": {1j},
    }
    plain = plain_json.plain(given)
    assert plain == {
        "a": ["x", -3, 0.5, True, None, [1, 2]],
        "1": {"day": "2026-11-24", "time": "2026-11-24T01:02:03"},
        "other": "{1j}",
    }
    assert {type(key) for key in plain} == {str}
    assert [type(each) for each in plain["a"]] == [str, int, float, bool, type(None), list]
