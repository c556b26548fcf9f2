# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A file is written whole or not at all, and outlives a crash once it has been written."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

import pytest
from ansible_collections.mlops.hpc_validation.plugins.module_utils._common.atomic import write_atomic


@pytest.fixture
def acts(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """What was synced, and when it was renamed, as (act, path)."""
    done: list[tuple[str, str]] = []
    fsync, replace = os.fsync, os.replace

    def synced(descriptor: int) -> None:
        done.append(("sync", os.readlink(f"/proc/self/fd/{descriptor}")))
        done.append(("size", str(os.fstat(descriptor).st_size)))
        fsync(descriptor)

    def replaced(old: str, new: str) -> None:
        done.append(("rename", str(new)))
        replace(old, new)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(os, "replace", replaced)
    return done


def test_content_is_synced_before_it_has_its_name_and_the_name_after(
    tmp_path: Path, acts: list[tuple[str, str]]
) -> None:
    path = tmp_path / "a" / "b.json"
    write_atomic(str(path), b"new")
    assert path.read_bytes() == b"new"
    (first, content), size, rename, (last, folder), _size = acts
    assert (first, Path(content).parent, size) == ("sync", path.parent, ("size", "3"))
    assert Path(content).name.startswith(".")
    assert content.endswith(".tmp")
    assert rename == ("rename", str(path))
    assert (last, folder) == ("sync", str(path.parent))


@pytest.mark.parametrize(("given", "mode"), [({}, 0o644), ({"mode": 0o600}, 0o600)])
@pytest.mark.parametrize("umask", [0, 0o077])
def test_its_mode_is_the_one_asked_for_whatever_the_umask(
    tmp_path: Path, given: dict[str, int], mode: int, umask: int
) -> None:
    before = os.umask(umask)
    try:
        write_atomic(str(tmp_path / "folder" / "x"), b"", **given)
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "folder" / "x").stat().st_mode) == mode
    assert stat.S_IMODE((tmp_path / "folder").stat().st_mode) & 0o022 == 0


@pytest.mark.parametrize("broken", ["fsync", "replace", "fchmod"])
def test_what_cannot_be_written_leaves_the_old_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, broken: str
) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"old")

    def fail(*_arguments: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, broken, fail)
    with pytest.raises(OSError, match="No space left"):
        write_atomic(str(path), b"new")
    assert [each.name for each in tmp_path.iterdir()] == ["x"]
    assert path.read_bytes() == b"old"


def test_a_file_system_that_syncs_no_folders_is_no_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fsync, opened = os.fsync, []

    def files_only(descriptor: int) -> None:
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            opened.append(descriptor)
            raise OSError(errno.EINVAL, "Invalid argument")
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", files_only)
    write_atomic(str(tmp_path / "x"), b"new")
    assert (tmp_path / "x").read_bytes() == b"new"
    (descriptor,) = opened
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(descriptor)
