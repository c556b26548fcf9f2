# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is said to be there outlives a crash of the node: contents before their names, logs before the end marker."""

from __future__ import annotations

import errno
import json
import os
import stat
import sys
from pathlib import Path

import pytest
from kit import files
from kit.errors import KitError
from kit.evidence import markers
from kit.job import Job

JOB = Job("12", 1)


@pytest.fixture
def synced(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The paths that were synced or, with an arrow before them, came into being by a rename."""
    done: list[str] = []
    fsync, replace = os.fsync, os.replace

    def sync(descriptor: int) -> None:
        done.append(os.readlink(f"/proc/self/fd/{descriptor}"))
        fsync(descriptor)

    def rename(old: str, new: str) -> None:
        done.append(f"> {new}")
        replace(old, new)

    monkeypatch.setattr(os, "fsync", sync)
    monkeypatch.setattr(os, "replace", rename)
    return done


def test_a_durable_file_is_synced_before_it_has_its_name_and_its_folder_after(
    tmp_path: Path, synced: list[str]
) -> None:
    files.write_json(tmp_path / "x.json", {"a": float("nan")})
    content, name, folder = synced
    assert Path(content).name.startswith(".x.json.")
    assert (name, folder) == (f"> {tmp_path}/x.json", str(tmp_path))
    assert json.loads((tmp_path / "x.json").read_text()) == {"a": "NaN"}
    assert stat.S_IMODE((tmp_path / "x.json").stat().st_mode) == 0o644


def test_what_is_written_is_durable_unless_it_need_not_be(tmp_path: Path, synced: list[str]) -> None:
    files.write_atomic(tmp_path / "x", lambda stream: stream.write(b"x"))
    assert len(synced) == 3


@pytest.fixture
def sizes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How much was in each file when it was synced."""
    found: list[int] = []
    monkeypatch.setattr(os, "fsync", lambda descriptor: found.append(os.fstat(descriptor).st_size))
    return found


def test_a_file_is_synced_with_all_that_was_written_to_it(tmp_path: Path, sizes: list[int]) -> None:
    files.write_atomic(tmp_path / "x", lambda stream: stream.write(b"four"))
    assert sizes[0] == 4


def test_both_logs_are_synced_with_the_end_line_in_them(
    tmp_path: Path, sizes: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    with open(tmp_path / "out", "w") as out, open(tmp_path / "err", "w") as err:
        monkeypatch.setattr(sys, "stdout", out)
        monkeypatch.setattr(sys, "stderr", err)
        out.write("no newline")
        markers.end(tmp_path, JOB, 3)
    nonce = json.loads((tmp_path / "12.end.json").read_text())["nonce"]
    assert len(nonce) == 32
    line = f"\nhpc-validation-end job=12 attempt=1 exit=3 nonce={nonce}\n"
    assert (tmp_path / "out").read_text() == f"no newline{line}"
    assert (tmp_path / "err").read_text() == line
    assert sizes[:2] == [len(f"no newline{line}"), len(line)]


def test_what_is_not_durable_waits_for_no_disk(tmp_path: Path, synced: list[str]) -> None:
    files.write_json(tmp_path / "x.json", {}, durable=False)
    assert synced == [f"> {tmp_path}/x.json"]


def test_a_file_system_that_syncs_no_folders_is_no_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_descriptor: int) -> None:
        raise OSError(errno.EINVAL, "Invalid argument")

    before = len(os.listdir("/proc/self/fd"))
    monkeypatch.setattr(os, "fsync", fail)
    files.sync_directory(tmp_path)
    assert len(os.listdir("/proc/self/fd")) == before


def test_both_logs_are_synced_with_their_end_line_before_the_end_marker(
    tmp_path: Path, synced: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with open(tmp_path / "out", "w") as out, open(tmp_path / "err", "w") as err:
        monkeypatch.setattr(sys, "stdout", out)
        monkeypatch.setattr(sys, "stderr", err)
        markers.end(tmp_path / "markers", JOB, 0)
    assert synced[:2] == [f"{tmp_path}/out", f"{tmp_path}/err"]
    assert synced[3] == f"> {tmp_path}/markers/12.end.json"
    assert (tmp_path / "out").read_text() == (tmp_path / "err").read_text()


@pytest.mark.parametrize(
    ("number", "is_lost"), [(errno.EINVAL, False), (errno.ENOTSUP, False), (errno.EIO, True), (errno.ENOSPC, True)]
)
def test_a_log_that_was_lost_has_no_end_marker(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, is_lost: bool
) -> None:
    real = os.fsync

    def fail(descriptor: int) -> None:
        if os.readlink(f"/proc/self/fd/{descriptor}") == f"{tmp_path}/err":
            raise OSError(number, os.strerror(number))
        real(descriptor)

    with open(tmp_path / "out", "w") as out, open(tmp_path / "err", "w") as err:
        monkeypatch.setattr(sys, "stdout", out)
        monkeypatch.setattr(sys, "stderr", err)
        monkeypatch.setattr(os, "fsync", fail)
        if is_lost:
            with pytest.raises(OSError, match=os.strerror(number)):
                markers.end(tmp_path, JOB, 0)
        else:
            markers.end(tmp_path, JOB, 0)
    assert (tmp_path / "12.end.json").exists() is not is_lost


@pytest.mark.parametrize(("code", "taken"), [(-1, False), (0, True), (255, True), (256, False)])
def test_only_exit_codes_are_taken(tmp_path: Path, code: int, taken: bool) -> None:
    if not taken:
        with pytest.raises(KitError, match="from 0 to 255"):
            markers.end(tmp_path, JOB, code)
        return
    markers.end(tmp_path, JOB, code)
    assert json.loads((tmp_path / "12.end.json").read_text())["exit_code"] == code
