# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Shards hold whole tokens up to their limit, and say what is in them."""

from __future__ import annotations

import base64
import hashlib
import os

import pytest
from kit.errors import KitError
from kit.pretraining import crc32c, shards
from kit.pretraining.shards import Writer


def checked(folder, split: str, made: tuple[shards.Shard, ...], width: int = 2) -> bytes:
    """Compare what is said with what is there; return the content of all."""
    content = b""
    for number, shard in enumerate(made):
        assert shard.name == f"{split}-{number:05d}.bin"
        found = (folder / shard.name).read_bytes()
        checksum = crc32c.Slow()
        checksum.update(found)
        assert (shard.bytes, shard.tokens) == (len(found), len(found) // width)
        assert shard.sha256 == hashlib.sha256(found).hexdigest()
        assert base64.b64decode(shard.crc32c) == checksum.digest()
        content += found
    assert len(list(folder.iterdir())) == len(made)
    return content


@pytest.mark.parametrize(("limit", "sizes"), [(10, [10, 10, 4]), (11, [10, 10, 4]), (24, [24]), (2, [2] * 12)])
@pytest.mark.parametrize("block", [2, 6, 24])
def test_tokens_are_split_at_the_limit(tmp_path, limit, sizes, block):
    writer, content = Writer(tmp_path, "train", "<u2", limit), bytes(range(24))
    for first in range(0, 24, block):
        writer.write(content[first : first + block])
    made = writer.close()
    assert [shard.bytes for shard in made] == sizes
    assert checked(tmp_path, "train", made) == content


def test_tokens_of_four_bytes_are_not_torn(tmp_path):
    writer = Writer(tmp_path, "validation", "<u4", 11)
    writer.write(memoryview(bytes(range(24))).cast("I"))
    made = writer.close()
    assert [shard.tokens for shard in made] == [2, 2, 2]
    assert checked(tmp_path, "validation", made, 4) == bytes(range(24))
    with pytest.raises(ValueError, match="6 bytes are not whole tokens of 4"):
        writer.write(bytes(6))


def test_what_is_large_is_written_in_blocks(tmp_path, monkeypatch):
    monkeypatch.setattr(shards, "BLOCK", 6)
    writer = Writer(tmp_path, "train", "<u2", 20)
    writer.write(bytes(range(30)))
    assert checked(tmp_path, "train", writer.close()) == bytes(range(30))


def test_a_shard_is_on_the_disk_before_it_is_told(tmp_path, monkeypatch):
    synced: list[int] = []
    monkeypatch.setattr(os, "fsync", lambda opened: synced.append(os.fstat(opened).st_size))
    writer = Writer(tmp_path, "train", "<u2", 16)
    writer.write(bytes(24))
    assert synced == [16]
    writer.close()
    assert synced == [16, 8]


def test_without_tokens_there_is_no_shard(tmp_path):
    writer = Writer(tmp_path, "train", "<u2")
    writer.write(b"")
    assert writer.close() == ()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("dtype", "limit"), [("<u2", 1), ("<u4", 3), ("<u2", (256 << 20) + 1), ("<u2", -2)])
def test_a_limit_that_is_none_is_refused(tmp_path, dtype, limit):
    with pytest.raises(KitError, match=f"shards of {limit} bytes: expected . to 268435456"):
        Writer(tmp_path, "train", dtype, limit)
    Writer(tmp_path, "train", "<u2", 256 << 20)
    Writer(tmp_path, "train", "<u4", 4)
