# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""CRC32C by the published test vectors; our own is the same as the library's where there is one."""

from __future__ import annotations

import base64
import sys
import types

import pytest
from kit.pretraining import crc32c

VECTORS = {
    b"": "00000000",
    b"123456789": "e3069283",
    bytes(32): "8a9136aa",
    b"\xff" * 32: "62a8ab43",
    bytes(range(32)): "46dd794e",
    bytes(range(31, -1, -1)): "113fdb5c",
}


@pytest.mark.parametrize("content", VECTORS, ids=range(len(VECTORS)))
def test_the_checksums_of_rfc_3720(content):
    found = crc32c.Slow()
    for start in range(0, len(content), 5):
        found.update(memoryview(content)[start : start + 5])
    assert found.digest().hex() == VECTORS[content]


def test_it_is_stated_as_the_service_does(monkeypatch):
    monkeypatch.setitem(sys.modules, "google_crc32c", None)
    found = crc32c.checksum()
    assert isinstance(found, crc32c.Slow)
    found.update(b"123456789")
    assert crc32c.text(found) == base64.b64encode(bytes.fromhex("e3069283")).decode() == "4waSgw=="


def test_the_library_is_taken_where_there_is_one(monkeypatch):
    library = types.ModuleType("google_crc32c")
    vars(library)["Checksum"] = lambda: "theirs"
    monkeypatch.setitem(sys.modules, "google_crc32c", library)
    assert crc32c.checksum() == "theirs"
