# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A key is read only from a file of ours that nobody else can read, and no message holds any of it."""

from __future__ import annotations

import json
import os
import traceback
from pathlib import Path

import pytest
from kit.pretraining import credentials
from kit.pretraining.attempts import CREDENTIALS, StoreError

SECRET = "CaNaRy5ecret"
SERVICE = {"type": "service_account", "client_email": "a@b", "private_key": SECRET, "token_uri": "https://t"}
USER = {"type": "authorized_user", "client_id": "i", "client_secret": SECRET, "refresh_token": SECRET}


def key(folder: Path, content: object, mode: int = 0o600) -> Path:
    path = folder / "key.json"
    path.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
    path.chmod(mode)
    return path


@pytest.mark.parametrize("document", [SERVICE, USER])
@pytest.mark.parametrize("mode", [0o600, 0o400])
def test_a_key_that_only_we_can_read_is_read(tmp_path, document, mode):
    assert credentials.read_key(key(tmp_path, document, mode)) == document


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o610, 0o601, 0o620, 0o602, 0o777])
def test_a_key_that_others_can_reach_is_refused(tmp_path, mode):
    path = key(tmp_path, SERVICE, mode)
    told = f"^credentials {path}: the file has mode {mode:04o}, so other users can read .*0600: chmod 600 it$"
    refuse(path, told)


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"", "is not JSON"),
        (f'{{"private_key": "{SECRET}"'.encode(), "is not JSON"),
        (f'{{"{SECRET}": 1, "{SECRET}": 2}}'.encode(), "is not JSON"),
        (b"[" * 100000, "bytes, expected at most 65536"),
        (b"[" * 50000, "is not JSON"),
        (b"\xff\xfe" + SECRET.encode(), "is not JSON"),
        ([SERVICE], "is not a key of type service_account or authorized_user; for any other use the application"),
        ({"installed": {"client_secret": SECRET}}, "is not a key of type service_account"),
        ({**SERVICE, "type": "external_account"}, "is not a key of type service_account"),
        ({**SERVICE, "type": SECRET}, "is not a key of type service_account"),
        ({**SERVICE, "private_key": ""}, "has no private_key, which a key of type service_account must have"),
        ({**SERVICE, "token_uri": 7}, "has no token_uri"),
        ({"type": "authorized_user", "client_id": "i"}, "has no client_secret, which a key of type authorized_user"),
    ],
    ids=range(13),
)
def test_what_is_no_key_is_refused(tmp_path, content, told):
    refuse(key(tmp_path, content), told)


@pytest.mark.parametrize("kind", credentials.KEYS)
def test_every_part_of_a_key_is_needed(tmp_path, kind):
    whole = {"service_account": SERVICE, "authorized_user": USER}[kind]
    for name in set(whole) - {"type"}:
        refuse(key(tmp_path, {**whole, name: None}), f"has no {name}")


def test_a_key_of_the_largest_size_is_read(tmp_path):
    content = json.dumps(SERVICE).encode()
    assert credentials.read_key(key(tmp_path, content.ljust(credentials.BYTES))) == SERVICE
    refuse(key(tmp_path, content.ljust(credentials.BYTES + 1)), "has 65537 bytes, expected at most 65536")


def test_a_missing_key_is_told_with_its_path(tmp_path):
    refuse(tmp_path / "none.json", r"none\.json: the file cannot be read: No such file .*on this host$")


def test_the_file_is_closed_again(tmp_path):
    path = key(tmp_path, SERVICE)
    before = len(os.listdir("/proc/self/fd"))
    for _each in range(3):
        credentials.read_key(path)
        refuse(tmp_path, "is not a file")
    assert len(os.listdir("/proc/self/fd")) == before


def test_what_is_no_file_is_refused(tmp_path):
    refuse(tmp_path, "is not a file")
    os.mkfifo(tmp_path / "pipe", 0o600)
    refuse(tmp_path / "pipe", "is not a file")


def test_a_key_of_another_user_is_refused(tmp_path, monkeypatch):
    path, fstat = key(tmp_path, SERVICE), os.fstat

    def owned_by(user: int) -> None:
        monkeypatch.setattr(os, "fstat", lambda opened: os.stat_result((*fstat(opened)[:4], user, *fstat(opened)[5:])))

    owned_by(4711)
    refuse(path, f"belongs to user 4711, expected {os.geteuid()}, who reads it")
    monkeypatch.setattr(os, "geteuid", lambda: 4711)
    assert credentials.read_key(path) == SERVICE
    owned_by(0)  # such as one that the site's administrator put there
    assert credentials.read_key(path) == SERVICE


def refuse(path: Path, told: str) -> None:
    with pytest.raises(StoreError, match=told) as error:
        credentials.read_key(path)
    assert error.value.reason == CREDENTIALS
    assert SECRET not in "".join(traceback.format_exception(error.value))
