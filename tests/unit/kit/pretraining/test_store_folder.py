# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A store in a folder: whole objects under plain names, written once, compared on the way in and out."""

from __future__ import annotations

import builtins
import errno
import hashlib
import io
import json
import os
import shutil
import sys
import typing as t
from pathlib import Path

import pytest
from kit.pretraining import store as stores
from kit.pretraining.attempts import CONFLICT, CREDENTIALS, DAMAGED, LOCAL, MISSING, STOPPED, StoreError
from kit.pretraining.store import Folder, Store, Stored, open_store

CONTENT = bytes(range(256)) * 10
DIGEST = hashlib.sha256(CONTENT).hexdigest()


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return open_store(str(tmp_path / "sto're; x"), deadline=7)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "local"
    path.write_bytes(CONTENT)
    return path


def told(reason: str, words: str, work, *arguments, **named) -> None:
    with pytest.raises(StoreError, match=words) as error:
        work(*arguments, **named)
    assert error.value.reason == reason


def get(store: Store, name: str, path: Path, size: int = len(CONTENT), digest: str = DIGEST) -> bool:
    return store.get(name, path, size=size, sha256=digest)


def test_what_is_put_is_there_and_comes_back(store, path, tmp_path):
    assert store.list() == []
    store.put(path, "a/b.bin")
    store.write("a/c", b"xyz")
    assert store.list() == [Stored("a/b.bin", 2560, None), Stored("a/c", 3, None)]
    assert store.list("a/b") == [Stored("a/b.bin", 2560, None)]
    assert store.list("b") == []
    assert get(store, "a/b.bin", tmp_path / "new/er/back") is True
    assert (tmp_path / "new/er/back").read_bytes() == CONTENT
    assert store.read("a/c") == b"xyz"
    assert [path.name for path in (tmp_path / "new/er").iterdir()] == ["back"]
    assert (store.retries, store.patience.deadline) == (0, 7)


def test_an_object_is_removed_once_or_twice(store, path):
    store.put(path, "x")
    store.delete("x")
    store.delete("x")
    assert store.list() == []
    told(MISSING, "sto're; x/x: there is no such object", store.read, "x")


def test_the_same_content_may_be_put_again_and_no_other(store, path):
    store.put(path, "x")
    store.write("x", CONTENT)
    before = Path(store.url, "x").stat().st_ino
    store.put(path, "x")
    assert Path(store.url, "x").stat().st_ino == before
    told(CONFLICT, "/x: the object exists with other content; it is not overwritten", store.write, "x", b"other")
    path.write_bytes(CONTENT[:-1] + b"!")
    told(CONFLICT, "other content", store.put, path, "x")
    assert store.read("x") == CONTENT


def test_a_whole_verified_file_is_not_fetched_again(store, path, tmp_path):
    store.put(path, "x")
    target = tmp_path / "target"
    assert [get(store, "x", target), get(store, "x", target)] == [True, False]
    store.delete("x")
    assert get(store, "x", target) is False


@pytest.mark.parametrize("there", [CONTENT[:-1], CONTENT[:-1] + b"!", CONTENT + b"!", b""])
def test_what_is_torn_or_damaged_is_replaced(store, path, tmp_path, there):
    store.put(path, "x")
    (tmp_path / "target").write_bytes(there)
    assert get(store, "x", tmp_path / "target") is True
    assert (tmp_path / "target").read_bytes() == CONTENT


@pytest.mark.parametrize(
    ("size", "digest", "words"),
    [
        (2561, DIGEST, "x: the object is damaged: 2560 bytes, expected 2561"),
        (2560, "0" * 64, f"x: the object is damaged: SHA-256 {DIGEST}, expected 0000"),
    ],
)
def test_a_damaged_object_replaces_nothing(store, path, tmp_path, size, digest, words):
    store.put(path, "x")
    (tmp_path / "target").write_bytes(b"before")
    told(DAMAGED, words, get, store, "x", tmp_path / "target", size, digest)
    assert (tmp_path / "target").read_bytes() == b"before"
    assert sorted(found.name for found in tmp_path.iterdir()) == ["local", "sto're; x", "target"]


@pytest.mark.parametrize("name", ["none", "a/none", "folder", "x/y"])
def test_what_is_not_there_is_told(store, tmp_path, name):
    store.write("folder/below", b"")
    store.write("x", b"")
    told(MISSING, f"/{name}: there is no such object", store.read, name)
    told(MISSING, f"/{name}: there is no such object", get, store, name, tmp_path / "target")
    assert not (tmp_path / "target").exists()


def test_without_space_nothing_is_fetched(store, path, tmp_path, monkeypatch):
    store.put(path, "x")
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda _path: usage._replace(free=2559))
    told(LOCAL, "x: no space: .* has 2559 bytes free, the object needs 2560", get, store, "x", tmp_path / "target")
    monkeypatch.setattr(shutil, "disk_usage", lambda _path: usage._replace(free=2560))
    assert get(store, "x", tmp_path / "target")


class Full(io.FileIO):
    """A file on a full disk."""

    def write(self, _content):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_full_disk_is_told_and_nothing_remains(store, path, tmp_path, monkeypatch):
    store.put(path, "x")
    real = builtins.open

    def full(name, mode="r", *others):
        return Full(name, mode) if "w" in mode else real(name, mode, *others)

    monkeypatch.setattr(builtins, "open", full)
    told(LOCAL, "/x: No space left on device$", get, store, "x", tmp_path / "target")
    assert sorted(found.name for found in tmp_path.iterdir()) == ["local", "sto're; x"]


def test_a_file_that_cannot_be_read_is_told(store, tmp_path):
    told(LOCAL, "/x: No such file or directory: .*none", store.put, tmp_path / "none", "x")
    (tmp_path / "file").write_bytes(b"")
    told(LOCAL, "File exists", Folder(tmp_path / "file").put, tmp_path / "file", "x")
    told(LOCAL, "Not a directory", Folder(tmp_path / "file").list)


def test_an_object_that_may_not_be_read_is_told(store, path, monkeypatch):
    store.put(path, "x")
    real = builtins.open

    def refuse(name, *others):
        if Path(name).name == "x":
            raise PermissionError(errno.EACCES, "Permission denied", str(name))
        return real(name, *others)

    monkeypatch.setattr(builtins, "open", refuse)
    told(LOCAL, "/x: cannot be read: Permission denied", store.read, "x")


def test_what_was_written_is_read_back(store, path, monkeypatch):
    monkeypatch.setattr(stores, "is_verified", lambda *_others: False)
    told(DAMAGED, "/x: what was written differs from what is there now", store.put, path, "x")
    told(DAMAGED, "/y: what was written differs from what is there now", store.write, "y", b"")


def test_a_stopped_store_copies_nothing(store, path, tmp_path):
    store.put(path, "x")
    store.stop()
    told(STOPPED, "/x: the copy was given up", get, store, "x", tmp_path / "target")
    told(STOPPED, "/y: the copy was given up", store.put, path, "y")
    assert [each.name for each in store.list()] == ["x"]
    assert not (tmp_path / "target").exists()


def test_what_is_fetched_is_on_the_disk_before_it_has_its_name(store, path, tmp_path, monkeypatch):
    store.put(path, "x")
    synced: list[t.Any] = []
    monkeypatch.setattr(os, "fsync", lambda opened: synced.append(os.fstat(opened).st_size))
    monkeypatch.setattr(stores, "sync_directory", lambda folder: synced.append((folder, os.listdir(folder))))
    (tmp_path / "new").mkdir()
    get(store, "x", tmp_path / "new/target")
    assert synced == [2560, (tmp_path / "new", ["target"])]


def test_only_a_file_of_the_right_size_and_content_is_verified(path, tmp_path, monkeypatch):
    assert stores.is_verified(path, 2560, DIGEST)
    assert not stores.is_verified(path, 2561, DIGEST)
    assert not stores.is_verified(path, 2560, "0" * 64)
    assert not stores.is_verified(tmp_path / "none", 2560, DIGEST)
    os.mkfifo(tmp_path / "pipe")
    monkeypatch.setattr(stores, "sha256", lambda _path: DIGEST)
    assert not stores.is_verified(tmp_path / "pipe", 0, DIGEST)

    def refuse(_path):
        raise PermissionError

    monkeypatch.setattr(stores, "sha256", refuse)
    assert not stores.is_verified(path, 2560, DIGEST)


def test_hidden_and_unfinished_files_are_no_objects(store, path):
    store.put(path, "a/x")
    for name in (".hidden", "a/.building-x-host-1", ".folder/y"):
        Path(store.url, name).parent.mkdir(exist_ok=True)
        Path(store.url, name).write_bytes(b"")
    Path(store.url, "a/link").symlink_to("nowhere")
    assert [each.name for each in store.list()] == ["a/x"]


@pytest.mark.parametrize(
    "name",
    ["", "/x", "../x", "a/../x", "a//b", "a/", ".hidden", "a/.b", "a b", "a\nb", "x\n", "ä", "-x", "a" * 901],
)
def test_a_name_that_is_not_plain_is_refused(store, path, tmp_path, name):
    for work in (store.read, store.delete):
        told(LOCAL, "is not the name of an object: expected letters, digits and", work, name)
    told(LOCAL, "is not the name of an object", store.put, path, name)
    told(LOCAL, "is not the name of an object", store.write, name, b"")
    told(LOCAL, "is not the name of an object", get, store, name, tmp_path / "local")


def test_a_plain_name_is_as_it_is():
    for name in ("x", "A-b_c.d=1/0/_", "a" * 900):
        assert stores.check_name(name) == name


def test_what_is_read_into_memory_is_limited(store, monkeypatch):
    store.write("x", b"12345")
    monkeypatch.setattr(stores, "MAX_READ", 5)
    assert store.read("x") == b"12345"
    monkeypatch.setattr(stores, "MAX_READ", 4)
    told(LOCAL, "/x: has more than the 4 bytes that are read at once", store.read, "x")


def test_a_listing_is_limited(store, monkeypatch):
    for name in "abc":
        store.write(name, b"")
    monkeypatch.setattr(stores, "MAX_LISTED", 3)
    assert len(store.list()) == 3
    monkeypatch.setattr(stores, "MAX_LISTED", 2)
    told(LOCAL, "more than 2 objects are there", store.list)


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("", "the store '' is neither a folder nor gs://BUCKET/PREFIX"),
        ("s3://bucket/x", "neither a folder"),
        ("https://host/x", "neither a folder"),
        ("gs://", "'' is not the name of a bucket, expected gs://BUCKET/PREFIX"),
        ("gs:///x", "'' is not the name of a bucket"),
        ("gs://Upper/x", "'Upper' is not the name of a bucket"),
        ("gs://ab", "'ab' is not the name of a bucket"),
        ("gs://bucket/../x", "is not the name of an object"),
    ],
)
def test_an_address_that_is_none_is_refused(url, words):
    told(LOCAL, words, open_store, url)


@pytest.mark.parametrize("deadline", [0, -1.0, float("nan")])
def test_a_deadline_is_more_than_nothing(tmp_path, deadline):
    told(LOCAL, r"the deadline is .* s, expected more than 0", open_store, str(tmp_path), deadline=deadline)


def test_a_deadline_may_be_short(tmp_path):
    assert open_store(str(tmp_path), deadline=0.5).patience.deadline == 0.5


def test_a_bucket_without_the_library_tells_which_python_has_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "kit.pretraining.gcs", None)
    told(LOCAL, f"{sys.executable} has no google-cloud-storage .*runtime deepspeed", open_store, "gs://bucket/x")


KEY = {"type": "service_account", "client_email": "a", "private_key": "b", "token_uri": "c"}


def key_file(folder: Path) -> Path:
    path = folder / "key.json"
    path.write_text(json.dumps(KEY))
    path.chmod(0o600)
    return path


@pytest.mark.parametrize(
    ("url", "bucket", "prefix"),
    [("gs://tokens", "tokens", ""), ("gs://my.bucket_1/a/b/", "my.bucket_1", "a/b"), ("gs://b-0/", "b-0", "")],
)
def test_the_address_of_a_bucket_is_taken_apart(monkeypatch, tmp_path, url, bucket, prefix):
    opened = []

    class Module:
        @staticmethod
        def Bucket(*arguments, **named):  # noqa: N802
            opened.append((*arguments, named))

    monkeypatch.setitem(sys.modules, "kit.pretraining.gcs", Module)
    monkeypatch.setattr("kit.pretraining.gcs", Module, raising=False)
    path = key_file(tmp_path)
    open_store(url)
    open_store(url, credentials=path, deadline=5)
    assert opened == [
        (bucket, prefix, {"key": None, "key_path": None, "deadline": 120.0}),
        (bucket, prefix, {"key": KEY, "key_path": path, "deadline": 5}),
    ]


def test_a_key_that_others_can_read_is_refused_before_anything_else(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "kit.pretraining.gcs", None)
    path = key_file(tmp_path)
    path.chmod(0o644)
    told(CREDENTIALS, "has mode 0644", open_store, "gs://bucket/x", credentials=path)
    path.unlink()
    told(CREDENTIALS, "cannot be read: No such file", open_store, "gs://bucket/x", credentials=path)
    open_store(str(tmp_path), credentials=path)  # a folder needs none


def test_the_limits_are_those_that_are_documented():
    assert (stores.MAX_READ, stores.MAX_LISTED, stores.DEADLINE) == (67108864, 200000, 120)
