# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tokens are read across shards, and a shard that is not what the manifest says is never taken for it."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import sys
import threading
import types
import typing as t
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from kit.errors import KitError
from kit.pretraining import manifest as manifests
from kit.pretraining import tokens
from kit.pretraining.store import Folder, Stored

from tests.unit.kit.token_folders import make


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """90 training tokens in five shards, 10 for validation in one: 0, 1, 2, …"""
    make(tmp_path / "to'kens; x")
    return tmp_path / "to'kens; x"


def split(folder: Path, name: str = "train") -> tokens.Split:
    return tokens.Split(folder, manifests.read(folder), name)


def told(words: str, work: t.Callable[..., t.Any], *arguments: t.Any, **named: t.Any) -> str:
    with pytest.raises(KitError, match=words) as error:
        work(*arguments, **named)
    return str(error.value)


def test_every_range_of_tokens_is_read(folder):
    train = split(folder)
    assert len(train) == train.tokens == 90
    for first in range(91):
        for count in range(91 - first):
            assert train.read(first, count).tolist() == list(range(first, first + count))
    assert split(folder, "validation").read(0, 10).tolist() == list(range(90, 100))


def test_what_lies_in_one_shard_is_not_copied(folder):
    train = split(folder)
    inside, across = train.read(20, 20), train.read(19, 2)
    assert (inside.readonly, inside.format, inside.contiguous, type(inside.obj).__name__) == (True, "H", True, "mmap")
    assert (across.readonly, across.format, type(across.obj).__name__) == (True, "H", "bytes")
    assert train.numpy_type == "<u2"


def test_tokens_of_four_bytes_are_read(tmp_path):
    make(tmp_path, range(65500, 65600), vocab=70000)
    train = split(tmp_path)
    assert train.read(5, 30).tolist() == list(range(65505, 65535))
    assert (train.read(0, 1).format, train.numpy_type) == ("I", "<u4")


@pytest.mark.parametrize(("first", "count"), [(-1, 2), (0, 91), (90, 1), (91, 0), (5, -1), (200, 1)])
def test_what_is_not_there_is_not_read(folder, first, count):
    with pytest.raises(IndexError, match=f"tokens {first} to {first + count} of 90"):
        split(folder).read(first, count)


def test_few_shards_are_mapped_at_a_time_and_those_in_use_stay(folder, monkeypatch):
    assert tokens.MAX_MAPPED == 128
    monkeypatch.setattr(tokens, "MAX_MAPPED", 2)
    train, opened, mapped = split(folder), [], tokens.mapped

    def count(place, shard):
        opened.append(shard.name[6:11])
        return mapped(place, shard)

    monkeypatch.setattr(tokens, "mapped", count)
    held = train.read(0, 5)
    for first in (20, 0, 40, 0, 20):
        assert train.read(first, 1).tolist() == [first]
    assert opened == ["00000", "00001", "00002", "00001"]
    train.read(40, 1)
    train.read(60, 1)
    assert held.tolist() == [0, 1, 2, 3, 4]
    train.close()
    assert train.read(60, 1).tolist() == [60]
    assert opened == ["00000", "00001", "00002", "00001", "00002", "00003", "00003"]


def test_as_many_shards_are_transferred_at_a_time_as_a_pool_of_connections_holds():
    assert tokens.WORKERS == 8


def test_a_machine_of_the_other_byte_order_is_refused(folder, monkeypatch):
    monkeypatch.setattr(sys, "byteorder", "big")
    told("tokens are little-endian, this machine is not", split, folder)


def damage(folder: Path, content: bytes | None, name: str = "train-00002.bin") -> Path:
    path = folder / name
    path.unlink()
    if content is not None:
        path.write_bytes(content)
    return path


WHOLE = b"".join(number.to_bytes(2, "little") for number in range(40, 60))


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "which the manifest names, cannot be read: No such file or directory; fetch or stage it again"),
        (b"", ": 0 bytes, the manifest says 40; fetch or stage it again"),
        (WHOLE[:-1], ": 39 bytes, the manifest says 40"),
        (WHOLE + b"!", ": 41 bytes, the manifest says 40"),
    ],
)
def test_a_shard_of_another_size_is_told_before_it_is_read(folder, content, words):
    path = damage(folder, content)
    found = manifests.read(folder)
    message = told(words, split, folder)
    assert message.startswith(str(path))
    told(words, tokens.verify, folder)
    told("train-00002.bin: (cannot be mapped|.* bytes, the manifest says 40)", tokens.mapped, folder, found.shards[2])
    assert split(folder, "validation").tokens == 10


def test_a_shard_that_shrinks_later_is_told(folder):
    train = split(folder)
    damage(folder, WHOLE[:-2])
    assert train.read(0, 40).tolist() == list(range(40))
    told("train-00002.bin: 38 bytes, the manifest says 40; fetch or stage it again", train.read, 40, 1)
    damage(folder, b"")
    told("train-00002.bin: cannot be mapped: .*; fetch or stage it again", train.read, 40, 1)


def test_one_flipped_bit_is_found(folder):
    assert tokens.verify(folder)["verified_shards"] == 6
    damage(folder, WHOLE[:5] + bytes([WHOLE[5] ^ 1]) + WHOLE[6:])
    digest = hashlib.sha256(WHOLE).hexdigest()
    told(f"train-00002.bin: SHA-256 .*, the manifest says {digest}; fetch or stage it again", tokens.verify, folder)


def test_ranks_can_share_the_work_of_verifying(folder):
    found = manifests.read(folder)
    damage(folder, bytes(40))
    assert tokens.verify(folder, found, found.shards[0::2][:1])["verified_shards"] == 1
    assert tokens.verify(folder, found, found.shards[1::2], scan=True)["verified_shards"] == 3
    assert tokens.verify(folder, found, ())["verified_shards"] == 0
    told("train-00002.bin: SHA-256", tokens.verify, folder, found, found.shards[0::2])


def test_a_shard_that_cannot_be_read_is_told(folder, monkeypatch):
    def refuse(_path):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(tokens, "sha256", refuse)
    told("train-00000.bin: cannot be read: Permission denied; fetch", tokens.verify, folder)


def test_a_digest_that_is_known_is_not_taken_again(folder, monkeypatch):
    shard = manifests.read(folder).shards[0]
    monkeypatch.setattr(tokens, "sha256", None)
    tokens.check_shard(folder, shard, shard.sha256)
    told("SHA-256 0000, the manifest says", tokens.check_shard, folder, shard, "0000")


def test_what_there_is_is_described(folder):
    found = tokens.verify(folder, scan=True)
    assert found == {
        "tokens": 100,
        "train_tokens": 90,
        "validation_tokens": 10,
        "bytes": 200,
        "shards": 6,
        "verified_shards": 6,
        "dtype": "<u2",
        "vocab": 200,
        "max_token": 99,
        "entropy": None,
        "source": "a test",
        "manifest_sha256": hashlib.sha256((folder / "manifest.json").read_bytes()).hexdigest(),
        "size": "100 tokens of 2 bytes are 0.0 GB",
    }


def lower(folder: Path, **values: int) -> None:
    """Let the manifest say of the tokens what is not so."""
    path = folder / "manifest.json"
    text = path.read_text()
    for key, value in values.items():
        was = {"vocab": 200, "max_token": 99}[key]
        text = text.replace(f'"{key}": {was}', f'"{key}": {value}')
    path.write_text(text)


def test_a_token_that_the_vocabulary_has_not_is_told_with_its_place(folder):
    lower(folder, vocab=50, max_token=49)
    assert tokens.verify(folder)["verified_shards"] == 6
    told(
        "train-00002.bin: token 50 at position 10 is not below the vocabulary of 50 tokens: the model could not",
        tokens.verify,
        folder,
        scan=True,
    )
    lower(folder, vocab=50)
    found = manifests.read(folder)
    assert tokens.largest_token(folder, found, found.shards[1]) == 39


def test_a_token_that_is_the_vocabularys_size_is_outside(folder):
    lower(folder, vocab=99, max_token=98)
    words = "validation-00000.bin: token 99 at position 9 is not below the vocabulary of 99"
    told(words, tokens.verify, folder, scan=True)


def test_a_vocabulary_of_one_token_can_be_verified(tmp_path):
    make(tmp_path, [0] * 100, vocab=1)
    found = manifests.read(tmp_path)
    assert tokens.verify(tmp_path, scan=True)["max_token"] == 0
    assert tokens.verify(tmp_path, found, (), scan=True)["verified_shards"] == 0


def test_a_manifest_that_was_read_is_not_read_again(folder):
    found = manifests.read(folder)
    (folder / "manifest.json").unlink()
    assert tokens.verify(folder, found)["verified_shards"] == 6


def test_the_largest_token_is_compared_with_what_is_said_of_it(folder):
    lower(folder, max_token=98)
    words = "the largest token is 99, the manifest says 98; convert it again"
    told(words, tokens.verify, folder, scan=True)
    found = manifests.read(folder)
    assert tokens.verify(folder, found, found.shards[:2], scan=True)["verified_shards"] == 2
    told(words, tokens.verify, folder, found, found.shards[5:], scan=True)


def test_a_largest_token_that_nobody_has_is_told(tmp_path):
    make(tmp_path)
    lower(tmp_path, max_token=100)
    told("the largest token is 99, the manifest says 100", tokens.verify, tmp_path, scan=True)
    tokens.check_largest(tmp_path, manifests.read(tmp_path), [], whole=False)


def test_numpy_is_asked_where_there_is_one(folder, monkeypatch):
    class Array:
        def __init__(self, view: memoryview) -> None:
            self._view = view

        def max(self) -> str:
            return str(max(self._view))

    library = types.ModuleType("numpy")
    vars(library)["asarray"] = Array
    found = manifests.read(folder)
    for module in (library, None):
        monkeypatch.setitem(sys.modules, "numpy", module)
        assert tokens.largest_token(folder, found, found.shards[0]) == 19


def test_what_was_stated_is_compared_with_what_is_there(folder):
    found = manifests.read(folder)
    tokens.check_stated(found, 100)
    told(
        r"51,600,000,000 tokens are stated, 100 are there: 100 tokens of 2 bytes are 0\.0 GB, "
        r"51,600,000,000 tokens of 2 bytes are 103\.2 GB",
        tokens.check_stated,
        found,
        51_600_000_000,
    )


class Counting(Folder):
    """A store that tells what was asked of it."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.asked: list[str] = []
        self.crc32c: dict[str, str] = {}
        self.fails: dict[str, BaseException] = {}
        self.waits: dict[str, threading.Event] = {}

    def get(self, name, path, *, size, sha256):
        self.asked.append(f"get {name}")
        if name in self.waits:
            assert self.waits[name].wait(60)
        self.patience.retries += 1
        if name in self.fails:
            raise self.fails[name]
        return super().get(name, path, size=size, sha256=sha256)

    def put(self, path, name):
        self.asked.append(f"put {name}")
        self.patience.retries += 1
        super().put(path, name)

    def list(self, prefix=""):
        self.asked.append("list")
        return [Stored(each.name, each.size, self.crc32c.get(each.name)) for each in super().list(prefix)]


@pytest.fixture
def store(folder: Path) -> Counting:
    return Counting(folder)


NAMES = [*(f"train-0000{number}.bin" for number in range(5)), "validation-00000.bin"]


def test_a_folder_is_fetched_whole_and_verified(folder, store, tmp_path):
    lines: list[str] = []
    store.patience.retries = 5
    found = tokens.fetch(store, tmp_path / "new/cache", workers=2, tell=lines.append)
    assert (found["verified_shards"], found["fetched_shards"], found["retries"]) == (6, 6, 6)
    assert 0 <= found["seconds"] < 60
    assert found == {**tokens.describe(manifests.read(folder)), **{key: found[key] for key in EXTRA}}
    assert tokens.verify(tmp_path / "new/cache", scan=True)["verified_shards"] == 6
    assert (tmp_path / "new/cache/manifest.json").read_bytes() == (folder / "manifest.json").read_bytes()
    assert sorted(path.name for path in (tmp_path / "new/cache").iterdir()) == [".lock", "manifest.json", *NAMES]
    assert len(lines) == 6
    assert [line.partition(": ")[0] for line in lines] == [f"{number} of 6 shards" for number in range(1, 7)]
    assert sorted(line.partition(": ")[2] for line in lines) == NAMES


EXTRA = ("verified_shards", "fetched_shards", "retries", "seconds")


def test_what_is_there_whole_is_kept_and_what_is_torn_is_not(folder, store, tmp_path):
    cache = tmp_path / "cache"
    cache.mkdir()
    for name in NAMES[:3]:
        shutil.copy(folder / name, cache)
    damage(cache, bytes(40), NAMES[1])
    damage(cache, WHOLE[:-1], NAMES[2])
    host = os.uname().nodename
    (cache / f".building-{NAMES[4]}-{host}-1").write_bytes(b"left by a killed process")
    found = tokens.fetch(store, cache)
    assert (found["verified_shards"], found["fetched_shards"]) == (6, 5)
    assert sorted(path.name for path in cache.iterdir()) == [".lock", "manifest.json", *NAMES]
    again = tokens.fetch(store, cache)
    assert (again["verified_shards"], again["fetched_shards"]) == (6, 0)


def test_other_tokens_than_expected_are_not_fetched(folder, store, tmp_path):
    digest = manifests.read(folder).sha256
    told(
        rf"manifest\.json: SHA-256 {digest}, expected 0000: other tokens",
        tokens.fetch,
        store,
        tmp_path / "cache",
        manifest_sha256="0000",
    )
    assert not (tmp_path / "cache").exists()
    tokens.fetch(store, tmp_path / "cache", manifest_sha256=digest)


def test_a_folder_with_other_tokens_is_left_alone(store, tmp_path):
    make(tmp_path / "cache", range(50, 150))
    before = (tmp_path / "cache/train-00000.bin").read_bytes()
    told("cache holds other tokens: remove it, or give another folder", tokens.fetch, store, tmp_path / "cache")
    assert (tmp_path / "cache/train-00000.bin").read_bytes() == before


def test_without_space_nothing_is_fetched(folder, store, tmp_path, monkeypatch):
    cache = tmp_path / "cache"
    cache.mkdir()
    (cache / "folder").mkdir()
    shutil.copy(folder / NAMES[0], cache)
    damage(cache, WHOLE, NAMES[0])
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda _path: usage._replace(free=159))
    told("cache: no space: the shards need 160 bytes, 159 are free", tokens.fetch, store, cache)
    assert store.asked == ["list"]
    monkeypatch.setattr(shutil, "disk_usage", lambda _path: usage._replace(free=160))
    tokens.fetch(store, cache)


def test_a_store_that_lacks_a_shard_is_told_before_anything_is_fetched(folder, store, tmp_path):
    damage(folder, None, NAMES[3])
    words = "x/train-00003.bin, which the manifest names, is not there; upload the folder again"
    told(words, tokens.fetch, store, tmp_path / "cache")
    damage(folder, WHOLE, NAMES[4])
    damage(folder, WHOLE[:-2], NAMES[2])
    told("x/train-00002.bin: 38 bytes, the manifest says 40; upload", tokens.fetch, store, tmp_path / "cache")
    assert store.asked == ["list", "list"]
    assert not (tmp_path / "cache").exists()


def test_the_checksums_that_a_store_states_are_compared(folder, store, tmp_path):
    found = manifests.read(folder)
    store.crc32c = {shard.name: shard.crc32c for shard in found.shards}
    tokens.check_listing("x", found, store.list())
    store.crc32c[NAMES[1]] = "AAAAAA=="
    told(
        re.escape(f"x/train-00001.bin: CRC32C AAAAAA==, the manifest says {found.shards[1].crc32c}; upload it again"),
        tokens.fetch,
        store,
        tmp_path / "cache",
    )


def test_a_store_without_manifest_is_told(store, folder, tmp_path):
    damage(folder, b"{", "manifest.json")
    told(r"x/manifest\.json is not JSON", tokens.fetch, store, tmp_path / "cache")
    damage(folder, None, "manifest.json")
    told(r"x/manifest\.json: there is no such object", tokens.fetch, store, tmp_path / "cache")


def test_the_first_error_ends_a_fetch_and_what_came_stays(folder, store, tmp_path, monkeypatch):
    ended = threading.Event()

    class Pool(ThreadPoolExecutor):
        def shutdown(self, wait=True, *, cancel_futures=False):
            super().shutdown(wait=False, cancel_futures=cancel_futures)
            ended.set()
            super().shutdown(wait=wait)

    monkeypatch.setattr(tokens, "ThreadPoolExecutor", Pool)
    store.waits[NAMES[2]] = ended  # it may have begun before the error was seen
    damage(folder, bytes(40), NAMES[1])
    told("train-00001.bin: the object is damaged: SHA-256", tokens.fetch, store, tmp_path / "cache", workers=1)
    assert not (tmp_path / "cache/manifest.json").exists()
    assert (tmp_path / "cache" / NAMES[0]).is_file()
    assert not (tmp_path / "cache" / NAMES[1]).exists()
    assert store.asked[:3] == ["list", *(f"get {name}" for name in NAMES[:2])]
    assert store.asked[3:] in ([], [f"get {NAMES[2]}"])
    assert not store.patience.stopped.is_set()


def test_whoever_ends_the_process_ends_the_transfers(store, tmp_path):
    def end(_line: str) -> None:
        raise SystemExit(143)

    with pytest.raises(SystemExit):
        tokens.fetch(store, tmp_path / "cache", workers=1, tell=end)
    assert store.patience.stopped.is_set()


def test_a_folder_is_uploaded_with_its_manifest_last(folder, tmp_path):
    store, lines = Counting(tmp_path / "store"), []
    store.patience.retries = 5
    found = tokens.upload(folder, store, workers=1, tell=lines.append)
    assert store.asked[:6] == [f"put {name}" for name in NAMES]
    assert store.asked[6:] == ["list", "put manifest.json"]
    assert (found["verified_shards"], found["retries"], found["tokens"], len(lines)) == (6, 7, 100, 6)
    assert 0 <= found["seconds"] < 60
    assert tokens.fetch(store, tmp_path / "back")["fetched_shards"] == 6
    assert tokens.upload(folder, store)["verified_shards"] == 6


def test_a_damaged_folder_is_not_uploaded(folder, tmp_path):
    damage(folder, bytes(40), NAMES[0])
    store = Counting(tmp_path / "store")
    told("train-00000.bin: SHA-256", tokens.upload, folder, store, workers=1)
    assert "put manifest.json" not in store.asked
    assert f"put {NAMES[0]}" not in store.asked


def test_a_store_that_loses_what_it_was_given_gets_no_manifest(folder, tmp_path):
    store = Counting(tmp_path / "store")
    store.crc32c = {NAMES[0]: "AAAAAA=="}
    told("train-00000.bin: CRC32C AAAAAA==", tokens.upload, folder, store)
    assert "put manifest.json" not in store.asked
