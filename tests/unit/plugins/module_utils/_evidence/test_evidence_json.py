# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One JSON document: read whole and as its own, or not at all."""

from __future__ import annotations

import io
import json

import pytest
from ansible_collections.mlops.hpc_validation.plugins.module_utils._evidence import document as evidence_document
from ansible_collections.mlops.hpc_validation.plugins.module_utils._evidence.opening import EvidenceError

OWN = {"job_id": "12", "attempt": 0}


def read(content, limit=1000, job_id="12", attempt=0):
    content = content if isinstance(content, bytes) else content.encode("utf-8", "surrogatepass")
    return evidence_document.read_json(io.BytesIO(content), limit, job_id, attempt)


def problem(content, **options):
    with pytest.raises(EvidenceError) as refused:
        read(content, **options)
    return refused.value.problem


def nested(depth):
    return "[" * depth + "]" * depth


class Slow(io.BytesIO):
    """Gives three bytes at once, as a pipe may."""

    ended = False

    def read(self, size=-1):
        assert not self.ended, "it is read on after its end"
        block = super().read(min(size, 3))
        self.ended = not block
        return block


def test_what_comes_in_pieces_is_read_whole_and_no_further_than_one_byte_more():
    content = json.dumps(OWN).encode()
    assert evidence_document.read_json(Slow(content), len(content), "12", 0) == OWN
    for stream in (Slow(content + b" " * 500), io.BytesIO(content + b" " * 500)):
        with pytest.raises(EvidenceError, match=f"more than {len(content)} bytes"):
            evidence_document.read_json(stream, len(content), "12", 0)
        assert stream.tell() == len(content) + 1


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("", "empty"),
        (" \n", "empty"),
        (b"\xff", "not_json"),
        ("{", "truncated"),
        ('{"a": "b', "truncated"),
        ('{"a": 1', "truncated"),
        ('{"a": 1}}', "not_json"),
        ('{"a" 1}', "not_json"),
        ('{"a": ' + "1" * 5000 + "}", "not_json"),
        ('{"a": ' + nested(65) + "}", "not_json"),
        ('{"a": ' + nested(100_000) + "}", "not_json"),
        ('{"a": 1, "a": 1}', "duplicate_key"),
        ('{"x": [{"a": 1, "b": 2, "a": 3}]}', "duplicate_key"),
        ('{"\\ud800": 1, "\\udc00": 2}', "duplicate_key"),
        ('{"?": 1, "\\udc00": 2}', "duplicate_key"),
        ('{"x": {"a\\ud800": 1, "a?": 2}}', "duplicate_key"),
    ],
)
def test_what_is_no_document_says_why(content, expected):
    assert problem(content, limit=300_000) == expected


def test_the_limit_is_the_last_byte_that_is_read():
    content = json.dumps(OWN)
    assert read(content, limit=len(content)) == OWN
    assert problem(content, limit=len(content) - 1) == "too_large"
    assert problem(content + " " * 5000, limit=len(content)) == "too_large"


def test_no_more_is_asked_for_at_once_than_a_block(monkeypatch):
    asked = []

    class Stream(io.BytesIO):
        def read(self, size=-1):
            asked.append(size)
            return super().read(size)

    monkeypatch.setattr(evidence_document, "BLOCK_BYTES", 8)
    assert evidence_document.read_json(Stream(json.dumps(OWN).encode()), 1000, "12", 0) == OWN
    assert set(asked) == {8}


@pytest.mark.parametrize("value", [[1], 1, "text", None, True])
def test_what_cannot_say_whose_it_is_is_foreign(value):
    assert problem(json.dumps(value)) == "foreign"


@pytest.mark.parametrize(
    "change",
    [{"job_id": "13"}, {"job_id": 12}, {"job_id": None}, {"attempt": 1}, {"attempt": None}, {"attempt": False}],
)
def test_what_another_wrote_is_foreign(change):
    assert problem(json.dumps({**OWN, **change})) == "foreign"


def test_an_attempt_of_one_is_not_true():
    assert read(json.dumps({**OWN, "attempt": 1}), attempt=1)["attempt"] == 1
    assert problem(json.dumps({**OWN, "attempt": True}), attempt=1) == "foreign"


def test_what_is_not_finite_is_marked_and_what_is_no_text_replaced():
    document = read('{"job_id": "12", "attempt": 0, "a": [NaN, 1e999, -1e999], "b": -Infinity, "\\ud800": "\\udc00"}')
    assert document["a"] == [{"non_finite": "NaN"}, {"non_finite": "Infinity"}, {"non_finite": "-Infinity"}]
    assert document["b"] == {"non_finite": "-Infinity"}
    assert document["?"] == "?"


def test_depth_is_bounded_at_the_last_level():
    assert read(json.dumps({**OWN, "a": json.loads(nested(64))}))["a"] == json.loads(nested(64))
    assert problem(json.dumps({**OWN, "a": json.loads(nested(65))})) == "not_json"
    for depth in (64, 65):
        value = 1
        for _level in range(depth):
            value = {"a": value}
        if depth == 64:
            assert evidence_document.clean(value) == value
        else:
            with pytest.raises(EvidenceError, match="not_json: nested deeper than 64"):
                evidence_document.clean(value)


@pytest.mark.parametrize("value", [1.5, -0.0, 1e308, 10**400, True, None, "text", {"a": [{}]}])
def test_what_is_valid_stays_as_it_is(value):
    assert evidence_document.clean(value) == value
    assert type(evidence_document.clean(value)) is type(value)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_a_value_is_cleaned_whatever_made_it(value):
    (marker,) = evidence_document.clean([value])[0].values()
    assert json.loads(marker) is not None
