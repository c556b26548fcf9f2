# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Atomic files and JSON that stays JSON."""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import sys
import typing as t
from pathlib import Path

import pytest
from kit.files import json_line, only_ours, plain, sha256, write_atomic, write_json


def test_a_document_is_written_whole_and_readable_by_others(tmp_path: Path) -> None:
    target = tmp_path / "new folder" / "in it" / "it's; \n odd.json"
    write_json(target, {"a": 1})
    assert json.loads(target.read_text()) == {"a": 1}
    assert target.stat().st_mode & 0o777 == 0o644
    assert list(target.parent.iterdir()) == [target]


def test_a_writer_that_raises_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    target = tmp_path / "metrics.json"
    write_json(target, "old")

    def fail(stream: t.BinaryIO) -> None:
        stream.write(b"half")
        raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space left"):
        write_atomic(target, fail)
    assert json.loads(target.read_text()) == "old"
    assert list(tmp_path.iterdir()) == [target]


def test_a_writer_killed_half_way_leaves_the_old_file(tmp_path: Path, root: Path) -> None:
    target = tmp_path / "metrics.json"
    write_json(target, "old")
    script = (
        "import os, signal, sys\nfrom kit.files import write_atomic\n"
        "write_atomic(sys.argv[1], lambda s: (s.write(b'half'), s.flush(), os.kill(os.getpid(), signal.SIGKILL)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(target)], env={**os.environ, "PYTHONPATH": str(root / "files")}, check=False
    )
    assert done.returncode == -signal.SIGKILL
    assert json.loads(target.read_text()) == "old"


def test_what_cannot_be_json_leaves_no_file(tmp_path: Path) -> None:
    with pytest.raises(TypeError):
        write_json(tmp_path / "x.json", {"a": object()})
    assert list(tmp_path.iterdir()) == []


def test_numbers_that_are_not_finite_become_strings_at_any_depth() -> None:
    value = {"loss": [1.0, math.nan], "deep": {"up": math.inf, "down": (-math.inf,)}, 3: True}
    assert plain(value) == {"loss": [1.0, "NaN"], "deep": {"up": "Infinity", "down": ["-Infinity"]}, "3": True}


def test_sha256_is_that_of_the_content(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"abc")
    assert sha256(tmp_path / "x") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"


def test_json_is_written_for_people_and_as_lines(tmp_path: Path) -> None:
    write_json(tmp_path / "x.json", {"a": [math.nan]})
    assert (tmp_path / "x.json").read_text() == '{\n "a": [\n  "NaN"\n ]\n}\n'
    assert json_line({"a": [-math.inf]}) == b'{"a": ["-Infinity"]}\n'


@pytest.mark.parametrize(
    ("mode", "is_ours"),
    [(0o600, True), (0o644, True), (0o755, True), (0o664, False), (0o646, False), (0o622, False)],
)
def test_a_file_that_others_may_write_is_not_only_ours(tmp_path: Path, mode: int, is_ours: bool) -> None:
    (tmp_path / "x").write_bytes(b"")
    (tmp_path / "x").chmod(mode)
    assert only_ours(tmp_path / "x") is is_ours


def test_neither_a_link_nor_a_folder_nor_anothers_file_is_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "x").write_bytes(b"")
    (tmp_path / "x").chmod(0o600)
    (tmp_path / "link").symlink_to(tmp_path / "x")
    (tmp_path / "folder").mkdir(mode=0o700)
    assert not only_ours(tmp_path / "link")
    assert not only_ours(tmp_path / "folder")
    assert only_ours(tmp_path / "x")
    monkeypatch.setattr(os, "geteuid", lambda: (tmp_path / "x").stat().st_uid + 1)
    assert not only_ours(tmp_path / "x")
    with pytest.raises(FileNotFoundError):
        only_ours(tmp_path / "gone")
