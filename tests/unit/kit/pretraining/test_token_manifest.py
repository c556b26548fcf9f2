# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A manifest of tokens is taken as it is only if every value in it is possible and fits the others."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
import typing as t

import pytest
from kit.errors import KitError
from kit.pretraining import manifest as manifests

from tests.unit.kit import token_folders

Change = t.Callable[[dict[str, t.Any]], None]


@pytest.fixture
def document(tmp_path) -> dict[str, t.Any]:
    token_folders.make(tmp_path, entropy=1.5)
    return t.cast("dict[str, t.Any]", json.loads((tmp_path / "manifest.json").read_text()))


def parse(document: t.Any) -> manifests.Manifest:
    return manifests.parse(json.dumps(document).encode(), "gs://b/manifest.json")


def test_what_is_written_is_read(tmp_path):
    made = token_folders.make(tmp_path, entropy=1.5)
    found = manifests.read(tmp_path)
    assert found == made
    assert (found.dtype, found.vocab, found.max_token, found.entropy, found.source) == ("<u2", 200, 99, 1.5, "a test")
    assert found.sha256 == hashlib.sha256((tmp_path / "manifest.json").read_bytes()).hexdigest()
    assert (found.tokens(), found.tokens("train"), found.tokens("validation")) == (100, 90, 10)
    assert [shard.name for shard in found.shards] == [*(f"train-0000{n}.bin" for n in range(5)), "validation-00000.bin"]
    assert found.bytes == 200


def test_the_document_is_as_agreed(document):
    assert list(document) == ["schema", "dtype", "vocab", "max_token", "splits", "entropy", "source"]
    assert document["schema"] == 1
    assert {split: value["tokens"] for split, value in document["splits"].items()} == {"train": 90, "validation": 10}
    first = document["splits"]["train"]["shards"][0]
    assert list(first) == ["name", "tokens", "bytes", "sha256", "crc32c"]
    assert (first["name"], first["tokens"], first["bytes"]) == ("train-00000.bin", 20, 40)


def test_one_token_is_enough_for_a_split(tmp_path):
    assert token_folders.make(tmp_path, validation=1).tokens("validation") == 1


def test_what_is_no_number_is_not_written(tmp_path):
    made = dataclasses.replace(token_folders.make(tmp_path), entropy=math.nan)
    before = (tmp_path / "manifest.json").read_bytes()
    with pytest.raises(ValueError, match="not JSON compliant"):
        made.write(tmp_path)
    assert (tmp_path / "manifest.json").read_bytes() == before


def splits(**values: t.Any) -> Change:
    return lambda document: document["splits"]["train"].update(values)


def shard(**values: t.Any) -> Change:
    return lambda document: document["splits"]["train"]["shards"][1].update(values)


def top(**values: t.Any) -> Change:
    return lambda document: document.update(values)


def without(key: str) -> Change:
    return lambda document: document.pop(key)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (top(schema=2), "schema is '2', expected 1"),
        (top(dtype="<i8"), "dtype is '<i8', expected <u2 or <u4"),
        (top(dtype=["<u2"]), "dtype is"),
        (top(vocab=0), "vocab is '0', expected a whole number from 1"),
        (top(vocab="200"), "vocab is '200', expected a whole number"),
        (top(vocab=True), "vocab is 'True'"),
        (top(vocab=200.0), r"vocab is '200\.0'"),
        (top(vocab=99), "max_token is 99, not below the vocabulary of 99"),
        (top(max_token=-1), "max_token is '-1', expected a whole number from 0"),
        (top(max_token=None), "max_token is 'None'"),
        (top(vocab=70000, max_token=65536), "max_token is '65536', expected a value that <u2 can hold"),
        (top(entropy="low"), "entropy is 'low', expected 0 to ln 200, or null"),
        (top(entropy=True), "entropy is 'True'"),
        (top(entropy=-0.1), r"entropy is '-0\.1'"),
        (top(entropy=5.3), r"entropy is '5\.3', expected 0 to ln 200"),
        (top(entropy=math.nan), "entropy is 'nan'"),
        (top(source=None), "source is 'None', expected a text"),
        (top(splits={"train": {}}), r"splits is \"\['train'\]\", expected train and validation"),
        (top(splits={"train": {}, "validation": {}, "test": {}}), "splits is .*test"),
        (splits(tokens=91), r"train\.tokens is '91', expected 90, the sum of its shards"),
        (splits(shards=[], tokens=0), r"train\.tokens is '0', expected at least 1"),
        (shard(name="train-00002.bin"), r"train\.shards\[1\]\.name is 'train-00002\.bin', expected train-00001\.bin"),
        (shard(name="../train-00001.bin"), r"shards\[1\]\.name is"),
        (shard(tokens=0), r"shards\[1\]\.tokens is '0', expected a whole number from 1"),
        (shard(bytes=41), r"shards\[1\]\.bytes is '41', expected 40 for 20 tokens"),
        (shard(tokens=21, bytes=42), r"train\.tokens is '90', expected 91"),
        (shard(tokens=1 << 27 | 1, bytes=(1 << 28) + 2), r"bytes is '268435458', expected at most 268435456"),
        (shard(sha256="0" * 63), r"shards\[1\]\.sha256 is .*, expected a checksum"),
        (shard(sha256="G" * 64), r"sha256 is"),
        (shard(sha256=None), r"sha256 is 'None'"),
        (shard(crc32c="4waSgw="), r"crc32c is '4waSgw=', expected a checksum"),
        (shard(crc32c=7), r"crc32c is '7'"),
        (without("dtype"), r"gs://b/manifest\.json is not a manifest of tokens: KeyError\('dtype'\)"),
        (top(splits=7), "is not a manifest of tokens: TypeError"),
        (splits(shards=None), "is not a manifest of tokens: TypeError"),
        (splits(shards=["x"]), "is not a manifest of tokens: TypeError"),
    ],
)
def test_what_cannot_be_is_told(document, change, told):
    change(document)
    with pytest.raises(KitError, match=told) as error:
        parse(document)
    assert str(error.value).startswith("gs://b/manifest.json")


def test_what_just_can_be_is_taken(document):
    for vocab, largest, entropy in ((100, 99, math.log(100)), (70000, 65535, 0), (1 << 40, 0, None)):
        document.update(vocab=vocab, max_token=largest, entropy=entropy)
        assert parse(document).vocab == vocab
    whole = {"tokens": 1 << 27, "bytes": 1 << 28}
    document["splits"]["train"] = {"tokens": 1 << 27, "shards": [{**document["splits"]["train"]["shards"][0], **whole}]}
    assert parse(document).tokens("train") == 1 << 27
    document["splits"]["train"]["shards"][0]["tokens"] = document["splits"]["train"]["tokens"] = 1 << 26
    document["splits"]["validation"]["shards"][0]["bytes"] = 40
    assert parse({**document, "dtype": "<u4", "max_token": 1 << 17, "vocab": 1 << 18}).dtype == "<u4"


@pytest.mark.parametrize("content", [b"", b"{", b"\xff", b'{"schema": 1, "schema": 1}', b"[" * 99999])
def test_what_is_not_json_is_told(content):
    with pytest.raises(KitError, match=r"^x/manifest\.json is not JSON: "):
        manifests.parse(content, "x/manifest.json")


def test_a_list_is_no_manifest():
    with pytest.raises(KitError, match="is not a manifest of tokens: TypeError"):
        parse([])


def test_a_manifest_that_is_far_too_large_is_told(tmp_path, monkeypatch):
    token_folders.make(tmp_path)
    size = (tmp_path / "manifest.json").stat().st_size
    assert manifests.MAX_BYTES == 16777216
    monkeypatch.setattr(manifests, "MAX_BYTES", size)
    assert manifests.read(tmp_path).tokens() == 100
    monkeypatch.setattr(manifests, "MAX_BYTES", size - 1)
    with pytest.raises(KitError, match=f"has more than {size - 1} bytes"):
        manifests.read(tmp_path)


def test_a_folder_without_one_tells_how_to_make_it(tmp_path):
    with pytest.raises(KitError, match=r"is not a folder of tokens: manifest\.json cannot be read: No such .* convert"):
        manifests.read(tmp_path)


@pytest.mark.parametrize(("vocab", "dtype"), [(1, "<u2"), (65536, "<u2"), (65537, "<u4"), (1 << 32, "<u4")])
def test_the_type_follows_from_the_vocabulary(vocab, dtype):
    assert manifests.dtype_for(vocab) == dtype


@pytest.mark.parametrize("vocab", [0, -1, (1 << 32) + 1])
def test_a_vocabulary_that_no_type_holds_is_refused(vocab):
    with pytest.raises(KitError, match=f"a vocabulary of {vocab} tokens: expected 1 to 4294967296"):
        manifests.dtype_for(vocab)


def test_how_much_space_tokens_take_is_counted():
    """Not 20 GB, as is often said of so many."""
    assert manifests.counted(51_600_000_000, "<u2") == "51,600,000,000 tokens of 2 bytes are 103.2 GB"
    assert manifests.counted(51_600_000_000, "<u4") == "51,600,000,000 tokens of 4 bytes are 206.4 GB"
    assert manifests.counted(10_000_000_000, "<u2") == "10,000,000,000 tokens of 2 bytes are 20.0 GB"
